//! However the bytes of a sender arrive, each protocol finds the same messages in them. Of bytes that break the rules, it
//! may take less where they come together; what it answers may come together, too.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wattlock_stream::frame::Framing;
use wattlock_stream::gateway::{Protocol, Split};

fuzz_target!(|data: &[u8]| {
    let Some((&step, data)) = data.split_first() else { return };
    for protocol in [Protocol::Relp, Protocol::Fluent, Protocol::Numbered] {
        let split = Split { framing: Framing::Raw, limit: 300, bare_last: false };
        let all = protocol.hear(split, data, data.len());
        assert!(all.taken <= data.len());
        let pieces = protocol.hear(split, data, step.into());
        assert_eq!(all.is_broken, pieces.is_broken, "{protocol:?}");
        assert!(pieces.messages.starts_with(&all.messages), "{protocol:?}");
        assert!(all.taken == pieces.taken || all.is_broken, "{protocol:?}");
    }
});
