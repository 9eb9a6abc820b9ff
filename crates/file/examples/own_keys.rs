//! Seals memory under a key of one's own, and reads parts of it.
//!
//! `cargo run --package wattlock-file --example own_keys`

use wattlock_engine::Engine;
use wattlock_engine::crypto::random;
use wattlock_file::{Cobblestone256, Error};

fn main() -> Result<(), Error> {
    let engine = Engine::new(2);
    let cipher = Cobblestone256::new(&engine, random::secret()?, b"example.com/documents v1");
    let document: Vec<u8> = (0..1_000_000_u32).map(|n| n as u8).collect();
    let sealed = cipher.seal_bytes(&document)?;
    assert_eq!(sealed.len() as u64, Cobblestone256::sealed_len(1_000_000));

    // All of it, and a hundred bytes of it, for which two chunks are read.
    let mut opened = vec![0; document.len()];
    cipher.open_bytes(&sealed, &mut opened)?;
    assert_eq!(opened, document);
    let view = cipher.view(&sealed[..])?;
    let mut part = [0; 100];
    view.read(500_000, &mut part)?;
    assert_eq!(part, document[500_000..500_100]);

    // From a reader to a writer, in bounded memory.
    let (mut container, mut text) = (Vec::new(), Vec::new());
    cipher.seal(&mut &b"some text"[..], &mut container)?;
    cipher.open(&mut &container[..], &mut text)?;
    assert!(!view.is_empty() && text == b"some text");
    println!("{} of {} bytes, and {} bytes of text", part.len(), view.len(), text.len());
    Ok(())
}
