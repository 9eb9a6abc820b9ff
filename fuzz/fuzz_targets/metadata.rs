//! Decoding of any sealed metadata ends, and a name never leaves its directory.
#![no_main]

use std::os::unix::ffi::OsStrExt;

use libfuzzer_sys::fuzz_target;
use wattlock_file::Metadata;

fuzz_target!(|data: &[u8]| {
    let Ok(metadata) = Metadata::decode(data) else { return };
    if let Some(name) = &metadata.name {
        assert!(
            !name.as_bytes().contains(&b'/') && name != ".." && name != "." && !name.is_empty()
        );
    }
    assert_eq!(Metadata::decode(&metadata.encode()), Ok(metadata));
});
