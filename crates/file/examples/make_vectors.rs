//! Makes the vectors of wattlock v1 anew: `cargo run --example make_vectors -- vectors/wattlock-v1`.
//!
//! Containers are random, so this changes every file. The committed ones stay: that today's code
//! opens them is the proof that the format has not changed.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use wattlock_engine::Engine;
use wattlock_file::{
    Format, Input, NativeIdentity, Passphrase, Progress, Protect, Recipient, Recipients, Target,
    Wrapping, protect,
};
use wattlock_vectors::sha256;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let folder = PathBuf::from(std::env::args_os().nth(1).ok_or("usage: make_vectors FOLDER")?);
    let maker = Maker { folder, identity: NativeIdentity::generate() };
    maker.successes()?;
    maker.failures_of_the_header()?;
    maker.failures_of_the_payload()?;
    maker.readme()
}

struct Maker {
    folder: PathBuf,
    identity: NativeIdentity,
}

/// Bytes of a chunk with its tag, and of what stands in front of the first.
const SLOT: usize = 16 * 1024 + 16;
const PREFIX: usize = 56;

impl Maker {
    fn successes(&self) -> Result<()> {
        for len in [0, 1, 16383, 16384, 16385] {
            let plain = pattern(len);
            let container = self.container(&plain, vec![self.identity.recipient()], true)?;
            self.write(&format!("success_{len}_bytes"), "success", Some(&plain), &container)?;
        }
        let plain = pattern(20);
        let two = || -> Vec<Recipient> {
            let other = NativeIdentity::generate();
            vec![other.recipient(), self.identity.recipient()]
        };
        let container = self.container(&plain, two(), true)?;
        self.write("success_second_recipient", "success", Some(&plain), &container)?;
        let container = self.container(&plain, two(), false)?;
        self.write("success_without_metadata", "success", Some(&plain), &container)?;
        let container = self.container(&plain, vec![passphrase("rosebud")], true)?;
        self.write("success_passphrase", "success", Some(&plain), &container)?;
        self.write("passphrase_wrong", "no match", None, &container)?;
        let other = NativeIdentity::generate().recipient();
        let container = self.container(&plain, vec![other], true)?;
        self.write("key_wrong", "no match", None, &container)
    }

    fn failures_of_the_header(&self) -> Result<()> {
        let container = self.container(&pattern(20), vec![self.identity.recipient()], true)?;
        let text = String::from_utf8_lossy(&container).into_owned();
        let at = |what: &str| text.find(what).ok_or("the header has changed");
        let flipped = |at: usize| {
            let mut bytes = container.clone();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            bytes
        };
        let cases = [
            ("header_mac_flipped", "HMAC failure", flipped(at("\n--- ")? + 5)),
            ("header_data_key_flipped", "HMAC failure", flipped(at("=> data-key ")? + 40)),
            ("header_metadata_flipped", "HMAC failure", flipped(at("=> metadata ")? + 40)),
            ("header_stanza_flipped", "no match", flipped(at("-> X25519 ")? + 12)),
            ("header_version_unknown", "header failure", replace(&container, "/v1", "/v2")),
            ("header_cut", "header failure", container[..at("\n--- ")? + 20].to_vec()),
            ("header_without_mac", "header failure", container[..=at("\n--- ")?].to_vec()),
            ("header_crlf", "header failure", replace(&container, "/v1\n", "/v1\r\n")),
            ("header_two_spaces", "header failure", replace(&container, "-> X", "->  X")),
            ("header_unknown_line", "header failure", replace(&container, "--- ", "??? ")),
        ];
        for (name, expect, bytes) in cases {
            self.write(name, expect, None, &bytes)?;
        }
        Ok(())
    }

    fn failures_of_the_payload(&self) -> Result<()> {
        let container = self.container(&pattern(33_000), vec![self.identity.recipient()], true)?;
        let mac = container.windows(5).position(|w| w == b"\n--- ").ok_or("there is no MAC")?;
        let prefix = mac + 5 + 43 + 1;
        let chunks = prefix + PREFIX;
        let (first, second) = (chunks..chunks + SLOT, chunks + SLOT..chunks + 2 * SLOT);
        let flipped = |at: usize| {
            let mut bytes = container.clone();
            bytes[at] ^= 1;
            bytes
        };
        let mut swapped = container.clone();
        swapped[first.clone()].copy_from_slice(&container[second.clone()]);
        swapped[second.clone()].copy_from_slice(&container[first.clone()]);
        let front = &container[..second.end];
        let cases = [
            ("payload_salt_flipped", flipped(prefix)),
            ("payload_commitment_flipped", flipped(prefix + 24)),
            ("payload_first_chunk_flipped", flipped(first.start)),
            ("payload_tag_flipped", flipped(first.end - 1)),
            ("payload_last_byte_flipped", flipped(container.len() - 1)),
            ("payload_chunks_swapped", swapped),
            ("payload_chunk_duplicated", [front, &container[second.start..]].concat()),
            (
                "payload_chunk_removed",
                [&container[..first.start], &container[first.end..]].concat(),
            ),
            ("payload_cut_in_chunk", container[..second.start + 1000].to_vec()),
            ("payload_cut_at_boundary", front.to_vec()),
            ("payload_cut_in_last_tag", container[..second.end + 10].to_vec()),
            ("payload_cut_in_prefix", container[..prefix + 30].to_vec()),
            ("payload_missing", container[..prefix].to_vec()),
            ("payload_byte_appended", [&container[..], b"x"].concat()),
            ("payload_chunk_appended", [&container[..], &container[first]].concat()),
        ];
        for (name, bytes) in cases {
            self.write(name, "payload failure", None, &bytes)?;
        }
        Ok(())
    }

    fn container(
        &self,
        plain: &[u8],
        recipients: Vec<Recipient>,
        metadata: bool,
    ) -> Result<Vec<u8>> {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("vector");
        fs::write(&path, plain)?;
        let wrapping = Wrapping::new(Recipients::new(recipients)?);
        let how = Protect {
            engine: &Engine::new(1),
            wrapping: &wrapping,
            format: Format::WattlockV1,
            armor: false,
            signer: None,
            metadata,
            overwrite: false,
            replace: false,
            progress: &Progress::default(),
        };
        let mut container = Vec::new();
        protect(&how, &Input::Path(path), Target::Stream(&mut container))?;
        Ok(container)
    }

    fn write(&self, name: &str, expect: &str, plain: Option<&[u8]>, body: &[u8]) -> Result<()> {
        let mut text = format!("expect: {expect}\n");
        if let Some(plain) = plain {
            writeln!(text, "payload: {}", sha256(plain))?;
        }
        match name {
            "success_passphrase" => writeln!(text, "passphrase: rosebud")?,
            "passphrase_wrong" => writeln!(text, "passphrase: rosebush")?,
            _ => writeln!(text, "identity: {}", *self.identity.to_text())?,
        }
        text.push('\n');
        fs::write(self.folder.join(name), [text.as_bytes(), body].concat())?;
        Ok(())
    }

    fn readme(&self) -> Result<()> {
        let mut text = String::from(
            "# wattlock v1 test vectors\n\nSource: this project, \
             `cargo run --example make_vectors`. Licence: as the project. Each file names what \
             must happen to it in its line `expect:`.\n\n| file | SHA-256 |\n|---|---|\n",
        );
        let mut files: Vec<_> = fs::read_dir(&self.folder)?.collect::<std::io::Result<_>>()?;
        files.sort_by_key(fs::DirEntry::file_name);
        for file in files.iter().filter(|file| file.file_name() != "README.md") {
            let name = file.file_name();
            let digest = sha256(&fs::read(file.path())?);
            writeln!(text, "| `{}` | {digest} |", Path::new(&name).display())?;
        }
        fs::write(self.folder.join("README.md"), text)?;
        Ok(())
    }
}

fn passphrase(text: &str) -> Recipient {
    Recipient::passphrase(&Passphrase::from(text), 10).expect("a work factor of 10")
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i % 251) as u8).collect()
}

/// Replaces the first `from` in the header.
fn replace(container: &[u8], from: &str, to: &str) -> Vec<u8> {
    let at = container.windows(from.len()).position(|window| window == from.as_bytes());
    match at {
        Some(at) => [&container[..at], to.as_bytes(), &container[at + from.len()..]].concat(),
        None => container.to_vec(),
    }
}
