//! What is sealed opens: any length, any range, any number of threads, either format.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::ops::Range;
use std::path::Path;

use proptest::prelude::*;
use wattlock_engine::Engine;
use wattlock_file::{
    Error, Format, Identities, Input, NativeIdentity, Progress, Protect, Recipients, Target,
    Unprotect, UsedNames, Wrapping, protect, unprotect,
};

struct Keys {
    wrapping: Wrapping,
    identities: Identities,
}

impl Keys {
    fn new() -> Self {
        let identity = NativeIdentity::generate();
        let recipients = Recipients::new(vec![identity.recipient()]).unwrap();
        let identities = Identities::new(vec![identity.into()]);
        Self { wrapping: Wrapping::new(recipients), identities }
    }

    fn seal(&self, format: Format, threads: usize, plain: &Path, sealed: &Path) {
        let how = Protect {
            engine: &Engine::new(threads),
            wrapping: &self.wrapping,
            format,
            armor: false,
            signer: None,
            metadata: true,
            overwrite: false,
            replace: false,
            progress: &Progress::default(),
        };
        let target = Target::File(sealed.to_owned());
        protect(&how, &Input::Path(plain.to_owned()), target).unwrap();
    }

    fn open(
        &self,
        threads: usize,
        sealed: &Path,
        range: Option<Range<u64>>,
    ) -> Result<Vec<u8>, Error> {
        let how = Unprotect {
            engine: &Engine::new(threads),
            identities: &self.identities,
            range,
            sealed_name: None,
            used_names: &UsedNames::default(),
            overwrite: false,
            replace: false,
            progress: &Progress::default(),
        };
        let mut opened = Vec::new();
        unprotect(&how, &Input::Path(sealed.to_owned()), Target::Stream(&mut opened))?;
        Ok(opened)
    }
}

/// Lengths of every size, and most of all those around a chunk.
fn lengths() -> impl Strategy<Value = usize> {
    let around = |chunk: usize| {
        (0usize..6, 0usize..3).prop_map(move |(n, d)| (n * chunk + d).saturating_sub(1))
    };
    prop_oneof![0usize..100, around(16 * 1024), around(64 * 1024), 0usize..1_500_000]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn whole_and_in_part(
        len in lengths(),
        a in any::<prop::sample::Index>(),
        b in any::<prop::sample::Index>(),
        threads in 1usize..4,
        is_age in any::<bool>(),
    ) {
        let keys = Keys::new();
        let directory = tempfile::tempdir().unwrap();
        let (plain, sealed) = (directory.path().join("plain"), directory.path().join("sealed"));
        let bytes: Vec<u8> = (0..len).map(|i| (i % 251) as u8 ^ (i >> 14) as u8).collect();
        fs::write(&plain, &bytes).unwrap();
        let format = if is_age { Format::AgeV1 } else { Format::WattlockV1 };
        keys.seal(format, threads, &plain, &sealed);
        prop_assert!(keys.open(threads, &sealed, None).unwrap() == bytes);
        let (a, b) = (a.index(len + 1), b.index(len + 1));
        let part = a.min(b)..a.max(b);
        let range = part.start as u64..part.end as u64;
        prop_assert!(keys.open(threads, &sealed, Some(range)).unwrap() == bytes[part.clone()]);
        let to_the_end = part.start as u64..u64::MAX;
        prop_assert!(keys.open(threads, &sealed, Some(to_the_end)).unwrap() == bytes[part.start..]);
        prop_assert!(keys.open(threads, &sealed, Some(len as u64 + 1..u64::MAX)).is_err());
    }

    #[test]
    fn a_flipped_bit_anywhere_is_refused(
        len in 0usize..100_000,
        at in any::<prop::sample::Index>(),
        bit in 0u32..8,
        is_age in any::<bool>(),
    ) {
        let keys = Keys::new();
        let directory = tempfile::tempdir().unwrap();
        let (plain, sealed) = (directory.path().join("plain"), directory.path().join("sealed"));
        fs::write(&plain, vec![0x5a; len]).unwrap();
        keys.seal(if is_age { Format::AgeV1 } else { Format::WattlockV1 }, 2, &plain, &sealed);
        let mut bytes = fs::read(&sealed).unwrap();
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        fs::write(&sealed, &bytes).unwrap();
        prop_assert!(keys.open(2, &sealed, None).is_err(), "byte {at}, bit {bit}");
    }
}
