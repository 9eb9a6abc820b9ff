//! However bytes arrive, the same messages are found in them, and together they are all bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wattlock_stream::frame::Framing;
use wattlock_stream::gateway::Split;

/// All units, where the bytes come in pieces of `step`; whether that was refused.
fn units(split: Split, data: &[u8], step: usize) -> (Vec<u8>, u64, bool) {
    let (mut taken, mut messages, mut came, mut scanned) = (0, 0, 0, 0);
    loop {
        let ended = came == data.len();
        match split.whole(&data[taken..came], scanned, ended) {
            Err(_) => return (data[..taken].to_vec(), messages, true),
            Ok(whole) if whole.messages > 0 => {
                assert!(whole.len <= came - taken);
                taken += whole.len;
                messages += whole.messages;
                scanned = 0;
            }
            Ok(_) if ended => return (data[..taken].to_vec(), messages, false),
            Ok(whole) => {
                assert!(whole.needed > came - taken);
                scanned = came - taken;
                came = (came + step).min(data.len());
            }
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&step, data)) = data.split_first() else { return };
    for framing in [Framing::Lines, Framing::Length] {
        let split = Split { framing, limit: 300, bare_last: true };
        let all = units(split, data, data.len().max(1));
        let piecewise = units(split, data, usize::from(step).max(1));
        assert_eq!(all, piecewise);
        if framing == Framing::Lines && !all.2 {
            assert_eq!(all.0, data);
        }
    }
});
