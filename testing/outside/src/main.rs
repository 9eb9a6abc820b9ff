//! Seals a text for a new key, as a program of somebody else would, and opens a part of it again.

use wattlock_engine::Engine;
use wattlock_file::{
    Error, Format, Identities, NativeIdentity, Opener, Recipients, Sealer, Wrapping,
};

fn main() -> Result<(), Error> {
    let engine = Engine::new(2);
    let identity = NativeIdentity::generate();
    let wrapping = Wrapping::new(Recipients::new(vec![identity.recipient()])?);
    let text = b"what was said in confidence\n".repeat(10_000);
    let container = Sealer::new(&engine, &wrapping, Format::WattlockV1).seal_bytes(&text)?;

    let identities = Identities::new(vec![identity.into()]);
    let opener = Opener::new(&engine, &identities);
    let view = opener.view(&container[..])?;
    let mut part = [0; 28];
    view.plaintext.read(28 * 5_000, &mut part)?;
    print!("{}", String::from_utf8_lossy(&part));

    let mut all = vec![0; text.len()];
    opener.open_bytes(&container, &mut all)?;
    assert!(all == text);
    println!("{} bytes in a container of {}", all.len(), container.len());
    Ok(())
}
