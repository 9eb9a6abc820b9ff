//! Files of keys and of who may sign are read or refused, whatever they hold, and nothing asks for a passphrase for
//! longer than is allowed.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use wattlock_file::{AllowedSigners, Error, IdentityFile, NoPrompt, Recipient, Signer};

/// The least work that a passphrase can ask for.
const WORK_FACTOR: u8 = 1;

fuzz_target!(|data: &[u8]| {
    let _ = IdentityFile::parse(data, "file", Arc::new(NoPrompt), WORK_FACTOR);
    let _ = Signer::from_openssh(data, || Err(Error::WrongPassphrase));
    let Ok(text) = std::str::from_utf8(data) else { return };
    let lines = text.lines().count();
    if let Ok(signers) = AllowedSigners::parse(text) {
        assert!(signers.skipped.iter().all(|(line, _)| (1..=lines).contains(line)));
    }
    if let Ok(list) = Recipient::parse_list(text) {
        assert!(!list.recipients.is_empty());
        assert!(list.recipients.len() + list.unusable.len() <= lines);
    }
});
