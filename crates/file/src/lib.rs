//! Encrypts and decrypts containers, of Wattlock and of age, on all cores.
//!
//! # Use
//!
//! To seal, parse public keys into [`Recipient`]s, collect them in [`Recipients`], and make a
//! [`Wrapping`]. To open, collect private keys ([`NativeIdentity`], [`IdentityFile`]) or passphrases
//! ([`Identity`]) in [`Identities`].
//!
//! | from and to | seal | open |
//! |---|---|---|
//! | files; an output appears complete or not at all | [`protect()`] | [`unprotect()`] |
//! | readers and writers | [`Sealer::seal`] | [`Opener::open`] |
//! | memory | [`Sealer::seal_bytes`] | [`Opener::open_bytes`] |
//! | anything that is read at any offset ([`ReadAt`]), such as an object in a store | [`Sealer::seal_at`] | [`Opener::view`], in ranges |
//! | keys of one's own, without a header | [`Cobblestone256`] | [`Cobblestone256`] |
//!
//! ```
//! use wattlock_engine::Engine;
//! use wattlock_file::{
//!     Format, Identities, NativeIdentity, Opener, Recipients, Sealer, Wrapping,
//! };
//!
//! let engine = Engine::new(2);
//! let identity = NativeIdentity::generate();
//! let wrapping = Wrapping::new(Recipients::new(vec![identity.recipient()])?);
//! let sealer = Sealer::new(&engine, &wrapping, Format::WattlockV1);
//! let container = sealer.seal_bytes(b"what was said in confidence")?;
//!
//! let identities = Identities::new(vec![identity.into()]);
//! let view = Opener::new(&engine, &identities).view(&container[..])?;
//! let mut part = [0; 10];
//! view.plaintext.read(17, &mut part)?;
//! assert_eq!(&part, b"confidence");
//! # Ok::<(), wattlock_file::Error>(())
//! ```
//!
//! The examples `containers` and `own_keys` show more. Outputs in memory are all zeros after an error;
//! streams get authentic bytes only. Errors never hold a key or a passphrase; their
//! [kind](Error::kind) says what they mean to a caller, and their text may name options of the program
//! `wattlock`. An `Engine`, a [`Wrapping`] and [`Identities`] may be shared by threads.
//!
//! # Inside
//!
//! The road of a file: [`Batch`] plans which input becomes which output; [`protect`] and
//! [`unprotect`] open both; the header ([`Header`], with [`Recipients`] and [`Identities`]) yields
//! the payload's keys; a transfer carries chunks from the source through an engine job to the
//! sink; [`Staged`] makes the output appear whole or not at all, alone or with the other outputs of a group.
#![forbid(unsafe_code)]

mod age_v1;
mod armor;
mod batch;
mod cobblestone;
mod container;
mod durability;
mod error;
mod exchange;
mod exclude;
mod extended;
mod file_state;
mod folder;
mod folders;
mod format;
mod group_commit;
mod header;
mod input;
mod inspect;
mod key_header;
mod keys;
mod layout;
mod limits;
mod lock;
mod memory;
mod metadata;
mod opener;
mod payload;
mod post_quantum;
mod protect;
mod raw;
mod read_at;
mod rekey;
mod remote;
mod resume;
mod salvage;
mod sealer;
mod shard;
mod shown;
mod signature;
mod staging;
mod task;
mod temporary;
mod transfer;
mod unprotect;
mod unpublished;
mod wattlock_v1;

pub use batch::{Batch, Direction, Found, Listing, Outcome, Plan, Skip, Step, expect_all};
pub use error::{Damage, Error, Kind};
pub use exclude::Exclude;
pub use extended::ExtendedAttributes;
pub use folder::Location;
pub use folders::Folders;
pub use format::Format;
pub use header::{Header, Stanza};
pub use input::{Input, OpenFile};
pub use inspect::{Inspection, inspect};
pub use key_header::{recipients_of_key, unwrap_data_key, wrap_data_key};
pub use keys::{
    Identities, Identity, IdentityFile, NativeIdentity, NoPrompt, Passphrase, Prompt, Recipient,
    RecipientList, Recipients, UnusableKey, Wrapping, looks_private, looks_public,
    without_byte_order_mark,
};
pub use layout::Layout;
pub use limits::MAX_RECIPIENTS;
pub use metadata::Metadata;
pub use opener::{ContainerView, Opener};
pub use protect::{Protect, protect};
pub use raw::{Cobblestone256, PlaintextView};
pub use read_at::ReadAt;
pub use rekey::{Rekey, rekey};
pub use remote::{RemoteObject, RemoteOutput};
pub use resume::keep;
pub use salvage::{Salvaged, salvage, salvaged_path};
pub use sealer::{ContainerInParts, NewContainer, Sealer};
pub use shard::Shard;
pub use shown::{Shown, holds_key, name_bytes, without_controls, without_error_numbers};
pub use signature::{AllowedSigners, Signer, check_signature};
pub use staging::{Attributes, Staged};
pub use task::Task;
pub use temporary::{GlobalLocks, abandon_all, lock_all};
pub use transfer::Progress;
pub use unprotect::{SealedName, Target, Unprotect, UsedNames, data_key, unprotect};
pub use unpublished::Unpublished;
pub use wattlock_v1::PAYLOAD_CONTEXT;

/// What became of one file.
#[derive(Debug, Default)]
pub struct Done {
    /// Bytes read from the input, header included.
    pub bytes_in: u64,
    /// Bytes written to the output, header included.
    pub bytes_out: u64,
    /// Where the output is, if it is a file.
    pub output: Option<std::path::PathBuf>,
    /// The name of the container's format, as on the command line.
    pub format: &'static str,
    /// What the engine did.
    pub report: wattlock_engine::Report,
    /// Who signed the container, if its signature was checked.
    pub signed_by: Option<String>,
    /// The signature that was removed with the container that the output replaced.
    pub removed_signature: Option<std::path::PathBuf>,
}
