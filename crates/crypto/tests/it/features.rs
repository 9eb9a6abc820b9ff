//! The features of the CPU, and the kernels that need them.

use wattlock_crypto::stitched::StitchedKernel;
use wattlock_crypto::{AesKernel, GcmKernel, KeccakKernel, ShaKernel, cpu_features};

#[test]
fn every_kernel_but_the_portable_ones_names_its_features() {
    let features = cpu_features();
    let names = AesKernel::NAMES.into_iter().chain(KeccakKernel::NAMES).chain(ShaKernel::NAMES);
    let names: Vec<_> = names.chain(StitchedKernel::NAMES).chain(GcmKernel::NAMES).collect();
    let absent = [
        AesKernel::absent(),
        KeccakKernel::absent(),
        ShaKernel::absent(),
        StitchedKernel::absent(),
        GcmKernel::absent(),
    ]
    .concat();
    for name in &names {
        let needs = |used_by: &str| used_by.split(", ").any(|user| user == *name);
        let mut needed = features.iter().filter(|feature| needs(&feature.used_by)).peekable();
        let portable = ["aes-soft", "keccak-soft", "sha-rustcrypto", "aws-lc"].contains(name);
        let runs = absent.iter().all(|(absent, _)| absent != name);
        // Of another architecture than this one the features are not listed.
        if name.ends_with("-armv8") != cfg!(target_arch = "aarch64") && !portable {
            assert!(needed.peek().is_none() && !runs, "{name}");
            continue;
        }
        assert_eq!(needed.peek().is_none(), portable, "{name}");
        assert_eq!(needed.all(|feature| feature.here), runs, "{name}");
    }
    for (at, feature) in features.iter().enumerate() {
        assert!(features[..at].iter().all(|before| before.name != feature.name), "{feature:?}");
    }
    // A kernel needs what the kernels that it builds on need.
    if cfg!(target_arch = "x86_64") {
        for (feature, kernel) in [
            ("aes", "gcm-vaes512"),
            ("aes", "sha-ni"),
            ("vaes", "gcm-vaes512"),
            ("sse4.1", "cbc-sha-ni"),
        ] {
            let of = features.iter().find(|of| of.name == feature).unwrap();
            assert!(of.used_by.split(", ").any(|user| user == kernel), "{of:?}");
        }
    }
    // What is named like a kernel is one.
    let mut users = features.iter().flat_map(|feature| feature.used_by.split(", "));
    assert!(users.all(|user| user.contains(' ') || names.contains(&user)), "{features:?}");
}
