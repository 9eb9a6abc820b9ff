//! The kernels of AES-GCM do what AWS-LC does: at all lengths where they change their way, anywhere in memory, and
//! with nothing inside that is not inlined.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use wattlock_crypto::{AeadAlgorithm, AeadKey, GcmKernel, NONCE_LEN};

const ALGORITHMS: [AeadAlgorithm; 3] =
    [AeadAlgorithm::Aes128Gcm, AeadAlgorithm::Aes192Gcm, AeadAlgorithm::Aes256Gcm];

/// Additional data: none, of TLS, around one and two blocks, long.
const AADS: [usize; 10] = [0, 1, 5, 13, 16, 17, 31, 32, 33, 200];

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i % 251) as u8).collect()
}

/// A key for AWS-LC and the same for each other kernel that runs here.
fn each_kernel(check: impl Fn(&AeadKey, &AeadKey, &str)) {
    for (kernel, why) in GcmKernel::absent() {
        wattlock_testing::skip("cpu", format_args!("{kernel}: {why}"));
    }
    for kernel in GcmKernel::all() {
        for algorithm in ALGORITHMS {
            let raw: Vec<u8> = (0..algorithm.key_len()).map(|i| (i * 7 + 3) as u8).collect();
            let key = |kernel| AeadKey::with_kernel_alone(kernel, algorithm, &raw).unwrap();
            let what = format!("{} {}", kernel.name(), algorithm.name());
            check(&key(kernel), &key(GcmKernel::AwsLc), &what);
        }
    }
}

/// Seals in place and apart, with an extra byte too, and opens.
fn agree(own: &AeadKey, aws_lc: &AeadKey, text: &[u8], aad: &[u8], what: &str) {
    let what = || format!("{what}, {} bytes, {} of additional data", text.len(), aad.len());
    let nonce: [u8; NONCE_LEN] = std::array::from_fn(|i| (i * 11 + text.len()) as u8);
    let mut expected = text.to_vec();
    let expected_tag = aws_lc.seal(nonce, aad, &mut expected).unwrap();

    let mut in_place = text.to_vec();
    let tag = own.seal(nonce, aad, &mut in_place).unwrap();
    assert!(tag == expected_tag && in_place == expected, "{}", what());

    let mut apart = vec![0xee; text.len()];
    let tag = own.seal_into(nonce, aad, text, None, &mut apart).unwrap();
    assert!(tag == expected_tag && apart == expected, "apart, {}", what());

    if let Some((extra, before)) = text.split_last() {
        apart.fill(0xee);
        let tag = own.seal_into(nonce, aad, before, Some(*extra), &mut apart).unwrap();
        assert!(tag == expected_tag && apart == expected, "with an extra byte, {}", what());
    }

    own.open(nonce, aad, &mut in_place, &tag).unwrap();
    assert!(in_place == text, "opened, {}", what());

    let mut wrong = tag;
    wrong[text.len() % 16] ^= 1 << (text.len() % 8);
    apart.copy_from_slice(&expected);
    assert!(own.open(nonce, aad, &mut apart, &wrong).is_err(), "forged, {}", what());
    assert!(apart.iter().all(|byte| *byte == 0), "forged, {}", what());
}

#[test]
fn all_lengths_to_a_kilobyte_agree_with_aws_lc() {
    each_kernel(|own, aws_lc, what| {
        for len in 0..1100 {
            let aad = AADS[len % AADS.len()];
            agree(own, aws_lc, &pattern(len), &pattern(aad), what);
        }
    });
}

#[test]
fn additional_data_of_any_length_agrees_with_aws_lc() {
    each_kernel(|own, aws_lc, what| {
        for len in [0, 1, 16, 48, 64, 100, 240, 241, 256, 737, 1000] {
            for aad in (0..70).chain([127, 128, 129, 1000]) {
                agree(own, aws_lc, &pattern(len), &pattern(aad), what);
            }
        }
    });
}

#[test]
fn long_messages_agree_with_aws_lc() {
    // The counters of 256 blocks are a page of the kernel's table; 1 MiB are 256 of them.
    const LENS: [usize; 11] =
        [2015, 2016, 2017, 4031, 4063, 4064, 4065, 8192, 16_384, 70_000, (1 << 20) + (1 << 12) + 3];
    each_kernel(|own, aws_lc, what| {
        for len in LENS {
            agree(own, aws_lc, &pattern(len), &pattern(13), what);
        }
    });
}

#[test]
fn unaligned_texts_agree_with_aws_lc() {
    each_kernel(|own, aws_lc, what| {
        for start in 0..64 {
            for len in [1, 63, 64, 200, 500, 1500] {
                let (memory, nonce) = (pattern(2000), [7; NONCE_LEN]);
                let mut expected = memory.clone();
                let tag = aws_lc.seal(nonce, &[], &mut expected[start..][..len]).unwrap();
                let mut sealed = memory;
                assert_eq!(
                    own.seal(nonce, &[], &mut sealed[start..][..len]).unwrap(),
                    tag,
                    "{what}"
                );
                // What is around it stays as it was.
                assert!(sealed == expected, "{what}, {len} bytes from {start}");
            }
        }
    });
}

/// Beyond these pages there is nothing: a kernel that reads or writes there ends the test.
#[cfg(target_os = "linux")]
#[test]
fn texts_at_the_borders_of_memory_agree_with_aws_lc() {
    let pages = pages::Guarded::new();
    each_kernel(|own, aws_lc, what| {
        for len in (0..=300).chain([480, 481, 737, 1100, 4096]) {
            let (text, aad) = (pattern(len), pattern(len % 40));
            let nonce = [5; NONCE_LEN];
            let mut expected = text.clone();
            let tag = aws_lc.seal(nonce, &aad, &mut expected).unwrap();
            for at_end in [false, true] {
                pages.with(|memory| {
                    let start = if at_end { memory.len() - len } else { 0 };
                    let place = &mut memory[start..][..len];
                    place.copy_from_slice(&text);
                    assert_eq!(own.seal(nonce, &aad, place).unwrap(), tag, "{what}, {len}");
                    assert!(place == expected, "{what}, {len} bytes, at the end: {at_end}");
                    own.open(nonce, &aad, place, &tag).unwrap();
                    assert!(place == text, "{what}, {len} bytes, at the end: {at_end}");
                });
            }
        }
    });
}

/// Additional data may lie there as well.
#[cfg(target_os = "linux")]
#[test]
fn additional_data_at_the_borders_of_memory_agrees_with_aws_lc() {
    let pages = pages::Guarded::new();
    each_kernel(|own, aws_lc, what| {
        for len in 0..=70 {
            for text in [0, 20, 300] {
                pages.with(|memory| {
                    let start = memory.len() - len;
                    memory[start..].copy_from_slice(&pattern(len));
                    agree(own, aws_lc, &pattern(text), &memory[start..], what);
                });
            }
        }
    });
}

#[cfg(target_os = "linux")]
mod pages {
    use std::cell::UnsafeCell;
    use std::ffi::c_void;
    use std::slice;

    use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

    const LEN: usize = 2 * 4096;

    /// Two pages between two that may not be touched.
    pub struct Guarded(UnsafeCell<*mut u8>);

    impl Guarded {
        pub fn new() -> Self {
            let all = LEN + 2 * 4096;
            let private = MapFlags::PRIVATE;
            // SAFETY: the kernel chooses a place that nothing else has.
            let memory =
                unsafe { mmap_anonymous(std::ptr::null_mut(), all, ProtFlags::empty(), private) };
            let middle = memory.unwrap().cast::<u8>().wrapping_add(4096);
            let flags = MprotectFlags::READ | MprotectFlags::WRITE;
            // SAFETY: the pages are in what was mapped, and nothing refers to them yet.
            unsafe { mprotect(middle.cast(), LEN, flags) }.unwrap();
            Self(UnsafeCell::new(middle))
        }

        /// Lends the two pages.
        pub fn with(&self, work: impl FnOnce(&mut [u8])) {
            // SAFETY: this type is for one thread, and lends its pages to one at a time.
            let middle = unsafe { *self.0.get() };
            // SAFETY: the pages may be read and written, and are lent once.
            work(unsafe { slice::from_raw_parts_mut(middle, LEN) });
        }
    }

    impl Drop for Guarded {
        fn drop(&mut self) {
            let start = self.0.get_mut().wrapping_sub(4096).cast::<c_void>();
            // SAFETY: this was mapped above, and nothing refers to it any more.
            unsafe { munmap(start, LEN + 2 * 4096) }.unwrap();
        }
    }
}

/// A function of a kernel that is not inlined, because it lacks a feature of its caller or is thought too long, makes
/// the kernel twenty times slower, and right. Builds with debug assertions check every pointer by a call: `make
/// constant-time` runs this in the release build.
#[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
#[test]
fn nothing_in_the_kernel_is_called_but_what_is_rare() {
    /// Parts of the names of what may be called.
    const RARE: [&str; 10] = [
        "longer_head",
        "long_aad",
        "OnceLock",
        "gcm_key5terms",
        "gcm_narrow_key5terms",
        // Once for a long message, and its result lies in memory anyway.
        "5front",
        "panic",
        // What a long part ends with.
        "gcm_vaes512_parts4rest",
        // Once for sixteen blocks in short parts, and before a long part.
        "gcm_vaes512_parts8catch_up",
        // Once for seven blocks or more.
        "gcm_vaes512_short_parts4make",
    ];
    /// Parts of the names of the kernels, and how many of each there are at least.
    const KERNELS: [(&str, usize); 10] = [
        ("gcm_vaes512_short5short", 42),
        ("gcm_vaes512_long4long", 6),
        ("gcm_vaes512_short_parts10short_part", 6),
        ("gcm_vaes512_short_parts4make", 6),
        ("gcm_vaes512_parts9long_part", 6),
        ("gcm_vaes512_parts4rest", 6),
        ("gcm_vaes2565short", 18),
        ("gcm_vaes2564long", 2),
        ("gcm_aes_ni5short", 18),
        ("gcm_aes_ni4long", 2),
    ];
    if !wattlock_testing::has_program("objdump") {
        return wattlock_testing::skip("program", "objdump is not installed");
    }
    let program = std::env::current_exe().unwrap();
    let mut objdump = std::process::Command::new("objdump");
    let told = objdump.args(["-d", "--no-show-raw-insn"]).arg(program).output().unwrap();
    let text = String::from_utf8_lossy(&told.stdout);
    let mut found = [0; KERNELS.len()];
    for function in text.split("\n\n") {
        let name = function.lines().next().unwrap_or_default();
        let Some(kernel) = KERNELS.iter().position(|(part, _)| name.contains(part)) else {
            continue;
        };
        found[kernel] += 1;
        let calls =
            function.lines().filter(|line| line.contains("\tcall ") || line.contains("\tcall\t"));
        for call in calls {
            let known = RARE.iter().any(|part| call.contains(part)) || call.contains("call   *");
            assert!(known, "{name}{call}");
        }
    }
    for ((kernel, least), found) in KERNELS.into_iter().zip(found) {
        assert!(found >= least, "{found} of {kernel} in this program");
    }
}
