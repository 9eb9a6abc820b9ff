//! Hands out the data key of a wattlock v1 container, so that another implementation of
//! Cobblestone-256 can open its payload. Deliberately not in the program: this key opens the
//! container for ever, even after its recipients change.
//!
//! `cargo run --example data_key -- IDENTITY CONTAINER` prints the key in hex, the context, and
//! the offset of the payload in the container.

use std::path::PathBuf;
use std::sync::Arc;

use wattlock_file::{Identities, IdentityFile, Input, NoPrompt, PAYLOAD_CONTEXT, data_key};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args_os().skip(1);
    let (Some(identity), Some(container), None) = (args.next(), args.next(), args.next()) else {
        return Err("usage: data_key IDENTITY CONTAINER".into());
    };
    let (text, name) = (std::fs::read(&identity)?, identity.to_string_lossy());
    let file = IdentityFile::parse(&text, &name, Arc::new(NoPrompt), 22)?;
    let identities = Identities::new(file.into_identities()?);
    let (key, offset) = data_key(&Input::Path(PathBuf::from(container)), &identities)?;
    let hex: String = key.expose().iter().map(|byte| format!("{byte:02x}")).collect();
    println!("{hex}\n{}\n{offset}", String::from_utf8_lossy(PAYLOAD_CONTEXT));
    Ok(())
}
