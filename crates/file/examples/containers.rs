//! Containers that are no files: from a reader to a writer, in memory, and in ranges of an object that
//! lies far away.
//!
//! `cargo run --package wattlock-file --example containers`

use std::io;
use std::sync::Arc;

use wattlock_engine::Engine;
use wattlock_file::{
    Error, Format, Identities, IdentityFile, Metadata, NativeIdentity, NoPrompt, Opener, ReadAt,
    Recipient, Recipients, Sealer, Wrapping,
};

/// An object in a store. Each call would be one request for a range of its bytes.
struct Object(Vec<u8>);

impl ReadAt for Object {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        println!("  a request for {} bytes from {offset} on", buffer.len());
        self.0.read_exact_at(buffer, offset)
    }
}

fn main() -> Result<(), Error> {
    let engine = Engine::new(2);

    // Keys are text, as `wattlock keygen` and age write them.
    let identity = NativeIdentity::generate();
    let list = format!("# recipients.txt\n{}\n", identity.recipient().text().unwrap_or_default());
    let list = Recipient::parse_list(&list)?;
    for key in &list.unusable {
        println!("line {}: {}; its owner cannot open this", key.line, key.what);
    }
    let file = IdentityFile::parse(identity.to_text().as_bytes(), "key", Arc::new(NoPrompt), 22)?;
    let identities = Identities::new(file.into_identities()?);

    // From a reader to a writer, in bounded memory, with a name for the one who opens it.
    let wrapping = Wrapping::new(Recipients::new(list.recipients)?);
    let metadata = Metadata { name: Some("numbers".into()), ..Metadata::default() };
    let sealer = Sealer::new(&engine, &wrapping, Format::WattlockV1).with_metadata(metadata);
    let numbers: Vec<u8> = (0..200_000_u32).flat_map(u32::to_be_bytes).collect();
    let mut container = Vec::new();
    sealer.seal(&mut &numbers[..], &mut container)?;

    // A hundred bytes of it, as an object store has it: the header and one chunk are asked for.
    let opener = Opener::new(&engine, &identities);
    println!("{} bytes; opening 100 of them:", container.len());
    let view = opener.view(Object(container))?;
    let mut part = [0; 100];
    view.plaintext.read(400_000, &mut part)?;
    assert_eq!(part, numbers[400_000..400_100]);
    println!("from {:?}, {} bytes long; now all:", view.metadata.name, view.plaintext.len());
    let mut all = vec![0; view.plaintext.len() as usize];
    view.plaintext.read_all(&mut all)?;
    assert!(all == numbers);

    // In age's format, as text (armored), sealed from an object that is read at any offset.
    let mut text = Vec::new();
    Sealer::new(&engine, &wrapping, Format::AgeV1).armored().seal_at(&numbers, &mut text)?;
    let mut opened = Vec::new();
    opener.open(&mut &text[..], &mut opened)?;
    assert!(opened == numbers);
    Ok(())
}
