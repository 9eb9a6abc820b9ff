//! The published vectors of SHA3-256, ParallelHash256 and KT128, on every kernel that runs here.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use wattlock_crypto::KeccakKernel;
use wattlock_crypto::sha3::sha3_256_many;
use wattlock_crypto::tree_hash::{Hasher, TreeHash};
use wattlock_vectors::{line, rsp};

/// A tree hash of one message.
fn tree(
    hash: TreeHash,
    kernel: KeccakKernel,
    message: &[u8],
    customization: &[u8],
    output_len: usize,
) -> Vec<u8> {
    let mut hasher = Hasher::new(hash, kernel, customization);
    hasher.update(message);
    let mut output = vec![0; output_len];
    hasher.finish(&mut output);
    output
}

#[test]
fn sha3_256_of_each_message() {
    on_every_response(|kernel, messages, digests, file| {
        for (at, (message, digest)) in messages.iter().zip(digests).enumerate() {
            let made = sha3_256_many(kernel, &[message]);
            assert_eq!(made, [*digest], "{}, vector {at} of {file}", kernel.name());
        }
    });
}

/// Messages of unequal lengths side by side: a lane that ends early must not disturb the others.
#[test]
fn sha3_256_of_all_messages_at_once() {
    on_every_response(|kernel, messages, digests, file| {
        let mut messages: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
        let mut digests = digests.to_vec();
        for order in ["rising", "falling"] {
            let made = sha3_256_many(kernel, &messages);
            assert_eq!(made, digests, "{}, {file}, lengths {order}", kernel.name());
            messages.reverse();
            digests.reverse();
        }
    });
}

#[test]
fn sha3_256_of_no_message() {
    for kernel in kernels() {
        assert!(sha3_256_many(kernel, &[]).is_empty(), "{}", kernel.name());
    }
}

#[test]
fn parallel_hash_256_of_each_message() {
    on_every_line("parallel_hash", |kernel, fields, what| {
        let [message, block_len, customization, output_len, output] = fields else {
            panic!("five fields expected, {what}");
        };
        let block_len = line::length(block_len).try_into().unwrap();
        let hash = TreeHash::ParallelHash256 { block_len };
        let (message, customization) = (line::bytes(message), line::bytes(customization));
        let made = tree(hash, kernel, &message, &customization, line::length(output_len));
        assert_eq!(made.len(), line::length(output_len), "{what}");
        assert!(made.ends_with(&end(output)), "{what}");
    });
}

#[test]
fn kt128_of_each_message() {
    on_every_line("kt128", |kernel, fields, what| {
        let [message, customization, output_len, output] = fields else {
            panic!("four fields expected, {what}");
        };
        let len = line::length(output_len);
        let (message, customization) = (line::bytes(message), line::bytes(customization));
        let made = tree(TreeHash::Kt128, kernel, &message, &customization, len);
        assert_eq!(made.len(), len, "{what}");
        assert!(made.ends_with(&end(output)), "{what}");
    });
}

/// Calls `check` with the messages and digests of every file of SHA3-256, on every kernel.
fn on_every_response(check: impl Fn(KeccakKernel, &[Vec<u8>], &[[u8; 32]], &str)) {
    let files = wattlock_vectors::files("sha3");
    assert!(!files.is_empty(), "no file of SHA3-256");
    let kernels = kernels();
    for path in files {
        let file = path.file_name().unwrap().to_string_lossy();
        let text = rsp::read(&path);
        let (messages, digests): (Vec<_>, Vec<_>) = rsp::records(&text)
            .iter()
            .map(|vector| {
                let mut message = vector.bytes("Msg"); // one byte even where there is none
                message.truncate(vector.text("Len").parse::<usize>().unwrap() / 8);
                let digest: [u8; 32] = vector.bytes("MD").try_into().unwrap();
                (message, digest)
            })
            .unzip();
        assert!(!messages.is_empty(), "{file} has no vector");
        assert_eq!(messages.len(), text.matches("MD = ").count(), "{file}");
        for &kernel in &kernels {
            check(kernel, &messages, &digests, &file);
            println!("{file}: {} vectors on {}", messages.len(), kernel.name());
        }
    }
}

/// Calls `check` with the fields of every line of every file of `folder`, on every kernel.
fn on_every_line(folder: &str, check: impl Fn(KeccakKernel, &[String], &str)) {
    let files = wattlock_vectors::files(folder);
    assert!(!files.is_empty(), "no file in {folder}");
    let kernels = kernels();
    for path in files {
        let file = path.file_name().unwrap().to_string_lossy();
        let vectors = line::read(&path);
        assert!(!vectors.is_empty(), "{file} has no vector");
        for &kernel in &kernels {
            for (at, fields) in vectors.iter().enumerate() {
                check(kernel, fields, &format!("{}, vector {at} of {file}", kernel.name()));
            }
            println!("{file}: {} vectors on {}", vectors.len(), kernel.name());
        }
    }
}

/// The end of an output, or all of it; never nothing, which would be the end of anything.
fn end(digits: &str) -> Vec<u8> {
    let end = rsp::unhex(digits);
    assert!(end.len() >= 32, "an output of {} bytes proves little", end.len());
    end
}

/// The kernels that run here; says which do not.
fn kernels() -> Vec<KeccakKernel> {
    for (name, why) in KeccakKernel::absent() {
        wattlock_testing::skip("cpu", format_args!("{name}: {why}"));
    }
    let kernels = KeccakKernel::all();
    assert!(!kernels.is_empty(), "no kernel runs here");
    kernels
}
