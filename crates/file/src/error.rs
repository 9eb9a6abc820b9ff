//! What can go wrong with a container, and what a person can do about it.
//!
//! It is long because it lists every error three times: its message, its kind, its advice.

use std::ffi::OsString;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use wattlock_engine as engine;

use crate::limits::MAX_HEADER_LEN;
use crate::shown::{Shown, without_error_numbers};

/// Why an operation on a file failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system refused an operation on a file.
    #[error("cannot {action} {}: {}", Shown(path), reason(action, source))]
    Io {
        /// What was tried, as a verb: "read", "write", "rename".
        action: &'static str,
        /// On which file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The input starts with no known version line.
    #[error("this is not a container that Wattlock knows")]
    NotAContainer,
    /// The input is what `wattlock stream` makes.
    #[error("this is a sealed stream, and not a container")]
    SealedStream,
    /// A sealed stream in a file cannot be worked on, or is not what was sealed.
    #[error("{what}")]
    Stream {
        /// What it means to the caller.
        kind: Kind,
        /// What is wrong.
        what: String,
    },
    /// The input starts like a container, of a version that came later or never.
    #[error("this container is of a version that is not known here")]
    UnknownVersion,
    /// A directory, where a file is needed.
    #[error("{} is a directory", Shown(.0))]
    Directory(PathBuf),
    /// A directory, where the output is to be.
    #[error("the output {} is a directory; use --out-dir to write into it", Shown(.0))]
    OutputIsDirectory(PathBuf),
    /// A device or a pipe, whose output would stand next to it.
    #[error("{} is a device or a pipe", Shown(.0))]
    NotAFile(PathBuf),
    /// The original was to be removed, and is still there; the output is complete.
    #[error("the output is complete, but {} could not be removed: {}", Shown(path), words(source))]
    NotRemoved {
        /// The original.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The original has other names, which would keep its old content.
    #[error("cannot replace {}: it has {links} hard links", Shown(path))]
    HardLinked {
        /// The original.
        path: PathBuf,
        /// All of its names.
        links: u64,
    },
    /// The original has a mode that the new file would not get.
    #[error(
        "cannot replace {}: its mode {mode:04o} has a setuid, setgid or sticky bit",
        Shown(path)
    )]
    SpecialMode {
        /// The original.
        path: PathBuf,
        /// The lowest twelve bits.
        mode: u32,
    },
    /// The new file cannot get an attribute that the original has.
    #[error(
        "cannot copy the attribute {name} of the original to {}: {}",
        Shown(path),
        words(source)
    )]
    AttributeNotCopied {
        /// The new file.
        path: PathBuf,
        /// The attribute, as the system calls it.
        name: String,
        /// What the system said.
        source: io::Error,
    },
    /// The output is there already, and is not what the input would become.
    #[error("{} exists already, and is not what this container holds", Shown(.0))]
    Differs(PathBuf),
    /// The output is there already, and is no container of this format, or of something else.
    #[error("{} exists already, and is not what this file would become", Shown(.0))]
    Stale(PathBuf),
    /// The output is there already, and may be for other recipients.
    #[error("{} exists already, and the keys given do not prove that it is for these recipients", Shown(.0))]
    Unproven(PathBuf),
    /// The name of the output cannot be derived from that of the container.
    #[error("cannot name the output of {}: it ends neither with .wlk nor with .age", Shown(.0))]
    NoName(PathBuf),
    /// The container's sealed name was asked for, and there is none.
    #[error("no name is sealed in this container")]
    NoSealedName,
    /// The container's sealed name is one that most programs do not show.
    #[error("the sealed name {} starts with a dot", Shown(Path::new(.0)))]
    HiddenName(OsString),
    /// Another container of the run seals the same name, or an input has it.
    #[error("the sealed name {} is that of another output or input of this run", Shown(.0))]
    NameTaken(PathBuf),
    /// A passphrase stanza that asks for more work than the limit.
    #[error("the work factor {0} of its passphrase is above the limit")]
    TooMuchWork(u8),
    /// More stanzas than the limit.
    #[error(
        "the container is for {found} recipients, and the limit is {limit}: raise it with \
         --max-recipients {found}"
    )]
    TooManyRecipients {
        /// Stanzas in its header.
        found: usize,
        /// Stanzas that identities try at most.
        limit: usize,
    },
    /// The output's name would be longer than file systems allow.
    #[error(
        "cannot name the output of {}: with .{suffix}, the name has {len} bytes, and 255 are allowed",
        Shown(path)
    )]
    NameTooLong {
        /// The input.
        path: PathBuf,
        /// Bytes of the output's name.
        len: usize,
        /// What is added.
        suffix: &'static str,
    },
    /// The header breaks the grammar.
    #[error("the header is malformed at line {line}: {what}")]
    Header {
        /// Counted from 1.
        line: usize,
        /// Which rule is broken.
        what: &'static str,
    },
    /// The header does not end within the limit.
    #[error("the header is longer than {MAX_HEADER_LEN} bytes")]
    HeaderTooLong,
    /// The header's MAC, or what is sealed in it, does not match the file key.
    #[error("the header is not authentic")]
    HeaderAuthentication,
    /// The input ends inside the header.
    #[error("the container ends inside its header")]
    HeaderCut,
    /// None of the identities opens any of the stanzas.
    #[error("no given identity opens this container; it is encrypted to {recipients}")]
    WrongKey {
        /// The types of its stanzas, in words.
        recipients: String,
    },
    /// The container has a passphrase, and none was given.
    #[error("this container needs a passphrase")]
    NeedsPassphrase,
    /// The passphrase does not open the stanza.
    #[error("the passphrase is wrong")]
    WrongPassphrase,
    /// The payload is damaged or was tampered with.
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// What was released before the damage is authentic, but not all.
    #[error("{source}; the {released} bytes that came out before are authentic but incomplete")]
    Incomplete {
        /// Plaintext bytes released.
        released: u64,
        /// What stopped it.
        source: Box<Error>,
    },
    /// Only a part of a damaged container could be recovered.
    #[error(
        "{} bytes are lost{}{}; {bytes} bytes are authentic and in {}",
        lost.iter().map(|range| range.end - range.start).sum::<u64>(),
        if *end_may_be_missing { ", and the end may be missing" } else { "" },
        if *commitment_is_wrong { ", the key commitment is wrong" } else { "" },
        Shown(output)
    )]
    Salvaged {
        /// Where they are.
        output: PathBuf,
        /// Bytes that were recovered.
        bytes: u64,
        /// The bytes of the plaintext that were not, as far as the container's length says.
        lost: Vec<Range<u64>>,
        /// True if more may have followed.
        end_may_be_missing: bool,
        /// True if the payload was not made with this key, or its commitment is damaged.
        commitment_is_wrong: bool,
    },
    /// A container has no signature.
    #[error("there is no signature {}", Shown(.0))]
    NotSigned(PathBuf),
    /// A signature is not that of the container's payload.
    #[error("the signature of {} is wrong", Shown(.0))]
    WrongSignature(PathBuf),
    /// A signature is by a key that is not allowed.
    #[error("{} is signed by the key {key}, which is not among the allowed signers", Shown(path))]
    WrongSigner {
        /// The container.
        path: PathBuf,
        /// Its fingerprint.
        key: String,
    },
    /// The output is there already.
    #[error("{} exists already", Shown(.0))]
    Exists(PathBuf),
    /// Another output of the same run is there: two outputs are one file.
    #[error("will not overwrite {}, which this run wrote", Shown(.0))]
    WrittenByThisRun(PathBuf),
    /// A link stands below a folder that the user named, where links are not followed.
    #[error("{} is a symbolic link, which is not followed here", Shown(.0))]
    Link(PathBuf),
    /// The output would overwrite the input.
    #[error("the output {} is the input", Shown(.0))]
    OutputIsInput(PathBuf),
    /// The input changed while it was being read.
    #[error("{} changed meanwhile", Shown(.0))]
    Changed(PathBuf),
    /// The caller stopped it.
    #[error("stopped")]
    Stopped,
    /// What was written does not read back as what was meant.
    #[error("{} does not match what it was made from", Shown(.0))]
    Mismatch(PathBuf),
    /// The operation needs another kind of input.
    #[error("{what}")]
    Usage {
        /// What does not go together.
        what: String,
    },
    /// A variant that needs a GPU, where none takes part.
    #[error("no GPU device")]
    NoDevice,
    /// A recipient could not wrap the file key.
    #[error("wrapping the file key failed: {0}")]
    Wrap(String),
    /// An identity could not be used.
    #[error("using an identity failed: {0}")]
    Unwrap(String),
    /// A primitive failed.
    #[error(transparent)]
    Crypto(#[from] engine::crypto::Error),
    /// The engine failed for a reason that is not the file's.
    #[error(transparent)]
    Engine(engine::Error),
}

/// How a payload differs from what was sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// A chunk's tag is wrong.
    #[error("the payload is not authentic at chunk {chunk}")]
    Chunk {
        /// Index of the chunk.
        chunk: u64,
    },
    /// The payload ends where no payload can end.
    #[error("the payload is cut short")]
    Truncated,
    /// An empty chunk stands where none may.
    #[error("the payload ends with an empty chunk that may not be there")]
    EmptyLastChunk,
    /// The payload was not made with this data key.
    #[error("the payload does not belong to this header")]
    Commitment,
    /// The text around an armored container is broken.
    #[error("the ASCII armor is malformed")]
    Armor,
    /// The metadata are sealed correctly but make no sense.
    #[error("the metadata are malformed")]
    Metadata,
    /// A SEFPS container has another digest than what it holds, or no form of one. The message is
    /// the paper's.
    #[error("The data may be altered or decrypted with wrong password")]
    Altered,
}

/// What an error means to the caller; the exit codes follow from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The system, or something outside the container.
    Failure,
    /// The request makes no sense.
    Usage,
    /// A wrong key, or a container that is not what was sealed.
    Authentication,
    /// Something that was asked for is not on this machine.
    Unavailable,
}

impl Error {
    /// Makes [`Error::Io`] of what failed while `path` was to be used: "read", "write".
    /// [`Error::Link`] if a link is the reason.
    pub fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| match source.get_ref().and_then(|inner| inner.downcast_ref()) {
            Some(LinkBelow(link)) => Self::Link(link.clone()),
            None => Self::Io { action, path, source },
        }
    }

    /// Makes [`Error::Usage`].
    pub fn usage(what: impl Into<String>) -> Self {
        Self::Usage { what: what.into() }
    }

    /// The kind of this error.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Header { .. }
            | Self::HeaderTooLong
            | Self::HeaderAuthentication
            | Self::HeaderCut
            | Self::WrongKey { .. }
            | Self::NeedsPassphrase
            | Self::WrongPassphrase
            | Self::Damaged(_)
            | Self::Mismatch(_) => Kind::Authentication,
            Self::Stream { kind, .. } => *kind,
            // A change of a container's first bytes makes one of these.
            Self::NotAContainer | Self::SealedStream | Self::UnknownVersion => Kind::Authentication,
            // An output that could not be written says nothing about the container.
            Self::Incomplete { source, .. } => source.kind(),
            Self::Salvaged { .. } => Kind::Authentication,
            Self::NotSigned(_) | Self::WrongSignature(_) | Self::WrongSigner { .. } => {
                Kind::Authentication
            }
            Self::Usage { .. }
            | Self::OutputIsInput(_)
            | Self::Directory(_)
            | Self::OutputIsDirectory(_)
            | Self::NotAFile(_)
            | Self::NoName(_) => Kind::Usage,
            Self::NoDevice => Kind::Unavailable,
            Self::Io { .. }
            | Self::NotRemoved { .. }
            | Self::HardLinked { .. }
            | Self::SpecialMode { .. }
            | Self::AttributeNotCopied { .. }
            | Self::Differs(_)
            | Self::Stale(_)
            | Self::Unproven(_)
            | Self::NoSealedName
            | Self::HiddenName(_)
            | Self::NameTaken(_)
            | Self::TooMuchWork(_)
            | Self::TooManyRecipients { .. }
            | Self::NameTooLong { .. }
            | Self::Exists(_)
            | Self::WrittenByThisRun(_)
            | Self::Link(_)
            | Self::Changed(_)
            | Self::Stopped
            | Self::Wrap(_)
            | Self::Unwrap(_)
            | Self::Crypto(_)
            | Self::Engine(_) => Kind::Failure,
        }
    }

    /// True if there was no space for what was written.
    pub(crate) fn is_disk_full(&self) -> bool {
        let full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded];
        matches!(self, Self::Io { source, .. } if full.contains(&source.kind()))
    }

    /// What a person can do about it, where that is not plain from the message.
    pub fn advice(&self) -> Option<&'static str> {
        Some(match self {
            Self::Io { action: "read", source, .. }
                if source.kind() == io::ErrorKind::PermissionDenied =>
            {
                "check the file's permissions"
            }
            Self::Io { source, .. } => match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    "free some space, or choose another output"
                }
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    "check the permissions, or choose another output"
                }
                io::ErrorKind::InvalidFilename => {
                    "the name gets too long; write to another one with -o"
                }
                _ => return None,
            },
            Self::NotAContainer => {
                "give a file that wattlock or age made; if it should be one, it is damaged"
            }
            Self::SealedStream => "open it with `wattlock stream --open -i IDENTITY <FILE`",
            Self::UnknownVersion => "a newer wattlock or age may know it",
            Self::Directory(_) => "name the files in it, or take them all with --recursive",
            Self::NotAFile(_) => "name its output with -o",
            Self::NotRemoved { .. } => "remove the original yourself",
            Self::HardLinked { .. } => {
                "the other links would keep the old content; remove them first, or write to another \
                 file: without --replace, or with -o"
            }
            Self::SpecialMode { .. } => {
                "clear the bit with chmod u-s,g-s,-t, or leave out --replace, which keeps the original"
            }
            Self::AttributeNotCopied { .. } => {
                "the original was kept; write to a file system that supports the attribute, or leave \
                 out --replace"
            }
            Self::Differs(_) | Self::Stale(_) => "overwrite it with --force, or move it away",
            Self::Unproven(_) => {
                "give the identity of each recipient with -i, make it again with --force, or move \
                 it away"
            }
            Self::NoName(_) => {
                "name the output with -o, choose its folder with --out-dir, or take the sealed \
                 name with --restore-name"
            }
            Self::NoSealedName => "name the output with -o",
            Self::NameTaken(_) => "open it by itself, with -o",
            Self::HiddenName(_) => "name the output with -o, or allow it with --dot-files",
            Self::TooMuchWork(_) => {
                "a work factor of N takes 2^N KiB of memory; if you trust the source, raise the limit \
                 with --max-work-factor N"
            }
            Self::TooManyRecipients { .. } => {
                "each may cost a key operation; raise it only if you trust the container's source"
            }
            Self::NameTooLong { .. } => {
                "the other files are not affected; rename this one, or protect it by itself with -o"
            }
            Self::Header { .. } | Self::HeaderTooLong | Self::HeaderCut => {
                "the file is damaged or not complete; get another copy of it"
            }
            Self::Damaged(Damage::Altered) => {
                "check the key, cipher and IV: another of them looks the same as damage"
            }
            Self::HeaderAuthentication | Self::Damaged(_) => {
                "the file was truncated, damaged or tampered with; get another copy of it"
            }
            Self::WrongKey { .. } => {
                "give the matching identity with -i; a damaged header can look the same"
            }
            Self::NeedsPassphrase => "use -p",
            Self::WrongPassphrase => "try again; capitals and keyboard layout count",
            Self::Incomplete { .. } => "discard the output, or use it as an incomplete copy",
            Self::Salvaged { .. } => {
                "the lost bytes are zeros in it; get another copy of the container if there is one"
            }
            Self::NotSigned(_) => "`wattlock protect --sign KEY` makes one",
            Self::WrongSignature(_) => {
                "the container or its signature was damaged or replaced; get both again"
            }
            Self::WrongSigner { .. } => {
                "the file of --signer allows keys by principals, namespaces and times"
            }
            Self::Exists(_) => "choose another output, or overwrite it with --force",
            Self::WrittenByThisRun(_) => {
                "its original was kept: two inputs have this output; write one of them to another \
                 folder with --out-dir"
            }
            Self::Link(_) => {
                "remove the link, or name the folder that it leads to as an input or with --out-dir"
            }
            Self::OutputIsInput(_) => {
                "choose another output; --replace removes the original once the new file is safe"
            }
            Self::Changed(_) => "it was left as it is; try again when no one writes to it",
            Self::Mismatch(_) => "the original was kept; check the disk",
            Self::NoDevice => {
                "`wattlock doctor` says which GPU runtimes are here, and why they are not used; the \
                 other variants need none"
            }
            _ => return None,
        })
    }

    /// Replaces the path that the error names, if that is `from`, by `to`: the name that the user
    /// gave.
    #[must_use]
    pub fn renamed(mut self, from: &Path, to: &Path) -> Self {
        let path = match &mut self {
            Self::Incomplete { released, source } => {
                let inner = std::mem::replace(&mut **source, Self::NoDevice);
                let source = Box::new(inner.renamed(from, to));
                return Self::Incomplete { released: *released, source };
            }
            Self::Io { path, .. }
            | Self::HardLinked { path, .. }
            | Self::SpecialMode { path, .. }
            | Self::AttributeNotCopied { path, .. }
            | Self::Directory(path)
            | Self::NotAFile(path)
            | Self::Exists(path)
            | Self::Changed(path)
            | Self::Mismatch(path) => path,
            _ => return self,
        };
        if path == from {
            to.clone_into(path);
        }
        self
    }

    /// Finds where an engine's failure came from: the container, its input or its output.
    pub(crate) fn from_run(error: engine::Error, input: &Path, output: &Path) -> Self {
        match error {
            engine::Error::Authentication { chunk } => Self::Damaged(Damage::Chunk { chunk }),
            engine::Error::Load { source, .. } => Self::from_transfer("read", input, source),
            engine::Error::Store { source, .. } => Self::from_transfer("write", output, source),
            other => Self::Engine(other),
        }
    }

    fn from_transfer(action: &'static str, path: &Path, source: io::Error) -> Self {
        let inner = source.get_ref();
        if let Some(damage) = inner.and_then(|inner| inner.downcast_ref::<Damage>()) {
            return Self::Damaged(*damage);
        }
        if inner.is_some_and(|inner| inner.is::<Stopped>()) {
            return Self::Stopped;
        }
        if inner.is_some_and(|inner| inner.is::<NotEqual>()) {
            return Self::Mismatch(path.to_owned());
        }
        if source.kind() == io::ErrorKind::UnexpectedEof {
            return Self::Changed(path.to_owned());
        }
        Self::Io { action, path: path.to_owned(), source }
    }
}

/// Why the system refused `action`, in words.
fn reason(action: &str, source: &io::Error) -> String {
    match (action, source.kind()) {
        ("read", io::ErrorKind::NotFound) => "no such file".to_owned(),
        ("create", io::ErrorKind::NotFound) => "no such directory".to_owned(),
        _ => words(source),
    }
}

/// What the system said, without the number of the error.
fn words(source: &io::Error) -> String {
    without_error_numbers(&source.to_string())
}

/// Travels inside an [`io::Error`] from where a path is followed to [`Error::io`]: the link in it.
#[derive(Debug, thiserror::Error)]
#[error("{} is a symbolic link, which is not followed here", Shown(.0))]
pub(crate) struct LinkBelow(pub PathBuf);

/// Travels inside an [`io::Error`] from a comparing sink to [`Error::from_run`].
#[derive(Debug, thiserror::Error)]
#[error("the contents differ")]
pub(crate) struct NotEqual;

/// Travels inside an [`io::Error`] from a transfer whose caller stopped it to [`Error::from_run`].
#[derive(Debug, thiserror::Error)]
#[error("stopped")]
pub(crate) struct Stopped;

impl From<Damage> for io::Error {
    fn from(damage: Damage) -> Self {
        Self::new(io::ErrorKind::InvalidData, damage)
    }
}
