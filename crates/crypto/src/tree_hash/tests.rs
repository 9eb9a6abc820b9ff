//! Tests of the tree hashes.

use super::encode::{left_encode, length_encode, right_encode};
use super::*;

const CHUNK: usize = 8192;
const LENGTHS: [usize; 23] = [
    0,
    1,
    135,
    136,
    137,
    167,
    168,
    169,
    CHUNK - 1,
    CHUNK,
    CHUNK + 1,
    2 * CHUNK - 1,
    2 * CHUNK,
    2 * CHUNK + 1,
    3 * CHUNK,
    8 * CHUNK - 1,
    8 * CHUNK,
    8 * CHUNK + 1,
    9 * CHUNK,
    9 * CHUNK + 1,
    17 * CHUNK - 1,
    18 * CHUNK,
    (1 << 20) + 3,
];

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i % 251) as u8).collect()
}

fn hash(
    hash: TreeHash,
    kernel: KeccakKernel,
    message: &[u8],
    customization: &[u8],
    len: usize,
) -> Vec<u8> {
    let mut hasher = Hasher::new(hash, kernel, customization);
    hasher.update(message);
    let mut out = vec![0; len];
    hasher.finish(&mut out);
    out
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn k12_crate(message: &[u8], customization: &[u8], len: usize) -> Vec<u8> {
    use k12::{CustomRefKt128, ExtendableOutput, Update, XofReader};
    let mut hash = CustomRefKt128::new_customized(customization);
    hash.update(message);
    let mut out = vec![0; len];
    hash.finalize_xof().read(&mut out);
    out
}

fn tiny_keccak_crate(message: &[u8], customization: &[u8], b: usize, len: usize) -> Vec<u8> {
    use tiny_keccak::Hasher as _;
    let mut hash = tiny_keccak::ParallelHash::v256(customization, b);
    hash.update(message);
    let mut out = vec![0; len];
    hash.finalize(&mut out);
    out
}

/// RFC 9861, section 5: no message, no customization.
#[test]
fn rfc9861_empty() {
    for kernel in KeccakKernel::all() {
        let out = hash(TreeHash::Kt128, kernel, b"", b"", 10032);
        assert_eq!(
            hex(&out[..64]),
            "1ac2d450fc3b4205d19da7bfca1b37513c0803577ac7167f06fe2ce1f0ef39e5\
             4269c056b8c82e48276038b6d292966cc07a3d4645272e31ff38508139eb0a71"
        );
        assert_eq!(
            hex(&out[10000..]),
            "e8dc563642f7228c84684c898405d3a834799158c079b12880277a1d28e2ff6d"
        );
    }
}

/// RFC 9861, section 5: messages of 17^i bytes.
#[test]
fn rfc9861_messages() {
    let expected = [
        "2bda92450e8b147f8a7cb629e784a058efca7cf7d8218e02d345dfaa65244a1f",
        "6bf75fa2239198db4772e36478f8e19b0f371205f6a9a93a273f51df37122888",
        "0c315ebcdedbf61426de7dcf8fb725d1e74675d7f5327a5067f367b108ecb67c",
        "cb552e2ec77d9910701d578b457ddf772c12e322e4ee7fe417f92c758f0d59d0",
        "8701045e22205345ff4dda05555cbb5c3af1a771c2b89baef37db43d9998b9fe",
        "844d610933b1b9963cbdeb5ae3b6b05cc7cbd67ceedf883eb678a0a8e0371682",
        "3c390782a8a4e89fa6367f72feaaf13255c8d95878481d3cd8ce85f58e880af8",
    ];
    for kernel in KeccakKernel::all() {
        for (i, expected) in expected.into_iter().enumerate() {
            let message = pattern(17usize.pow(i as u32));
            assert_eq!(hex(&hash(TreeHash::Kt128, kernel, &message, b"", 32)), expected);
        }
    }
}

/// RFC 9861, section 5: customization strings of 41^i bytes.
#[test]
fn rfc9861_customizations() {
    let expected = [
        "fab658db63e94a246188bf7af69a133045f46ee984c56e3c3328caaf1aa1a583",
        "d848c5068ced736f4462159b9867fd4c20b808acc3d5bc48e0b06ba0a3762ec4",
        "c389e5009ae57120854c2e8c64670ac01358cf4c1baf89447a724234dc7ced74",
        "75d2f86a2e644566726b4fbcfc5657b9dbcf070c7b0dca06450ab291d7443bcf",
    ];
    for kernel in KeccakKernel::all() {
        for (i, expected) in expected.into_iter().enumerate() {
            let message = vec![0xff; (1 << i) - 1];
            let customization = pattern(41usize.pow(i as u32));
            let out = hash(TreeHash::Kt128, kernel, &message, &customization, 32);
            assert_eq!(hex(&out), expected);
        }
    }
}

/// NIST's example values for SP 800-185, ParallelHash256, samples 4 to 6.
#[test]
fn sp800_185_samples() {
    let short: Vec<u8> = (0..0x28).filter(|i| i % 16 < 8).collect();
    let long: Vec<u8> = (0..0x5c).filter(|i| i % 16 < 12).collect();
    let samples = [
        (
            &short,
            8,
            &b""[..],
            "bc1ef124da34495e948ead207dd9842235da432d2bbc54b4c110e64c45110553\
          1b7f2a3e0ce055c02805e7c2de1fb746af97a1dd01f43b824e31b87612410429",
        ),
        (
            &short,
            8,
            b"Parallel Data",
            "cdf15289b54f6212b4bc270528b49526006dd9b54e2b6add1ef6900dda3963bb\
          33a72491f236969ca8afaea29c682d47a393c065b38e29fae651a2091c833110",
        ),
        (
            &long,
            12,
            b"Parallel Data",
            "69d0fcb764ea055dd09334bc6021cb7e4b61348dff375da262671cdec3effa8d\
          1b4568a6cce16b1cad946ddde27f6ce2b8dee4cd1b24851ebf00eb90d43813e9",
        ),
    ];
    for kernel in KeccakKernel::all() {
        for (message, block_len, customization, expected) in samples {
            let parameters = TreeHash::ParallelHash256 { block_len: block_len.try_into().unwrap() };
            let out = hash(parameters, kernel, message, customization, 64);
            assert_eq!(hex(&out), expected);
        }
    }
}

#[test]
fn kt128_agrees_with_the_k12_crate() {
    for kernel in KeccakKernel::all() {
        for len in LENGTHS {
            let message = pattern(len);
            for customization in [0, 1, 300, CHUNK - 3, CHUNK, 3 * CHUNK] {
                let customization = pattern(customization);
                let out = hash(TreeHash::Kt128, kernel, &message, &customization, 200);
                let name = kernel.name();
                assert!(
                    out == k12_crate(&message, &customization, 200),
                    "{name}, {len} bytes, customization {}",
                    customization.len()
                );
            }
        }
    }
}

#[test]
fn parallel_hash_agrees_with_the_tiny_keccak_crate() {
    for kernel in KeccakKernel::all() {
        for len in LENGTHS {
            let message = pattern(len);
            for (block_len, customization, out_len) in
                [(8192, &b""[..], 32), (1000, b"S", 64), (136, b"", 1), (65536, b"long", 300)]
            {
                let parameters =
                    TreeHash::ParallelHash256 { block_len: block_len.try_into().unwrap() };
                let out = hash(parameters, kernel, &message, customization, out_len);
                assert!(
                    out == tiny_keccak_crate(&message, customization, block_len, out_len),
                    "{}, {len} bytes, B = {block_len}",
                    kernel.name()
                );
            }
        }
    }
}

/// In one piece, the head and the leaves share lanes: each number of them, and ends of all kinds.
#[test]
fn a_whole_message_makes_the_same_tree() {
    let ends = [0, 1, 135, 136, 168, CHUNK - 1];
    let lengths = (0..20).flat_map(|chunks| ends.map(|end| chunks * CHUNK + end));
    let data = pattern((1 << 20) + 10);
    for (i, len) in lengths.chain([(1 << 20) + 3]).enumerate() {
        // Other starts too, for other alignments.
        let message = &data[i % 7..][..len];
        for customization in [&b""[..], b"S", &data[..CHUNK - 1]] {
            let kt128 = k12_crate(message, customization, 32);
            let parallel_hash = tiny_keccak_crate(message, customization, CHUNK, 32);
            for kernel in KeccakKernel::all() {
                for (parameters, expected) in
                    [(TreeHash::Kt128, &kt128), (TreeHash::PARALLEL_HASH_256, &parallel_hash)]
                {
                    let mut out = [0; 32];
                    Root::new(parameters, kernel, customization).finish(message, &mut out);
                    assert_eq!(out[..], **expected, "{parameters:?}, {}, {len}", kernel.name());
                }
            }
        }
    }
}

#[test]
fn pieces_do_not_matter() {
    let message = pattern(40 * CHUNK + 77);
    for kernel in KeccakKernel::all() {
        for parameters in [TreeHash::Kt128, TreeHash::PARALLEL_HASH_256] {
            let whole = hash(parameters, kernel, &message, b"S", 32);
            for piece in [100, CHUNK - 1, CHUNK, 5 * CHUNK + 1, 9 * CHUNK, 20 * CHUNK + 3] {
                let mut hasher = Hasher::new(parameters, kernel, b"S");
                message.chunks(piece).for_each(|piece| hasher.update(piece));
                let mut out = [0; 32];
                hasher.finish(&mut out);
                assert_eq!(out[..], whole, "{parameters:?}, {}, by {piece}", kernel.name());
            }
        }
    }
}

#[test]
fn leaves_of_other_threads_make_the_same_tree() {
    for parameters in [TreeHash::Kt128, TreeHash::PARALLEL_HASH_256] {
        for kernel in KeccakKernel::all() {
            for len in LENGTHS {
                let message = pattern(len);
                let (chunks, rest) = message.split_at(len - len % parameters.chunk_len());
                let (head, chunks) = chunks.split_at(parameters.head_len().min(chunks.len()));
                let mut root = Root::new(parameters, kernel, b"S");
                root.absorb_head(head).unwrap();
                let values: Vec<Vec<u8>> = std::thread::scope(|scope| {
                    let threads: Vec<_> = chunks
                        .chunks(11 * parameters.chunk_len())
                        .map(|piece| {
                            scope.spawn(move || {
                                let mut out = vec![0; parameters.leaves_len(piece.len())];
                                parameters.leaves(kernel, piece, &mut out).unwrap();
                                out
                            })
                        })
                        .collect();
                    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
                });
                values.iter().for_each(|values| root.absorb_leaves(values).unwrap());
                let mut out = [0; 32];
                root.finish(rest, &mut out);
                assert_eq!(out[..], hash(parameters, kernel, &message, b"S", 32), "{len}");
            }
        }
    }
}

#[test]
fn lengths_are_encoded_as_the_standards_say() {
    assert_eq!(*left_encode(0), [1, 0]);
    assert_eq!(*right_encode(0), [0, 1]);
    assert_eq!(*length_encode(0), [0]);
    assert_eq!(*left_encode(256), [2, 1, 0]);
    assert_eq!(*right_encode(65538), [1, 0, 2, 3]);
    assert_eq!(*length_encode(65538), [1, 0, 2, 3]);
}

#[test]
fn parts_of_a_wrong_length_or_in_a_wrong_order_are_refused() {
    let (kernel, message) = (KeccakKernel::best(), pattern(3 * CHUNK));
    let mut root = Root::new(TreeHash::Kt128, kernel, b"");
    assert!(matches!(root.absorb_leaves(&[0; 32]), Err(Error::PartOrder)));
    assert!(matches!(
        root.absorb_head(&message[1..CHUNK]),
        Err(Error::BufferLength { len: 8191, expected: CHUNK })
    ));
    root.absorb_head(&message[..CHUNK]).unwrap();
    assert!(matches!(root.absorb_head(&message[..CHUNK]), Err(Error::PartOrder)));
    let mut values = [0; 65];
    let leaves = TreeHash::Kt128.leaves(kernel, &message[CHUNK..], &mut values);
    assert!(matches!(leaves, Err(Error::BufferLength { len: 65, expected: 64 })));
    let leaves = TreeHash::Kt128.leaves(kernel, &message[1..], &mut values);
    assert!(matches!(leaves, Err(Error::PartialBlock { len: 24_575, block_len: CHUNK })));
    assert_eq!(values, [0; 65]);
    TreeHash::Kt128.leaves(kernel, &message[CHUNK..], &mut values[..64]).unwrap();
    assert!(matches!(
        root.absorb_leaves(&values),
        Err(Error::PartialBlock { len: 65, block_len: 32 })
    ));
    root.absorb_leaves(&values[..64]).unwrap();
    // What was refused changed nothing.
    let mut out = [0; 32];
    root.finish(&[], &mut out);
    assert_eq!(out[..], hash(TreeHash::Kt128, kernel, &message, b"", 32));
}

/// A block that no memory can hold is the whole message.
#[test]
fn a_block_may_be_longer_than_any_message() {
    for block_len in [usize::MAX, usize::MAX / 8 + 1, 1 << 32] {
        let parameters = TreeHash::ParallelHash256 { block_len: block_len.try_into().unwrap() };
        let message = pattern(100_000);
        let mut hasher = Hasher::new(parameters, KeccakKernel::best(), b"");
        message.chunks(1000).for_each(|piece| hasher.update(piece));
        let mut out = [0; 32];
        hasher.finish(&mut out);
        assert_eq!(out[..], tiny_keccak_crate(&message, b"", block_len, 32));
    }
}
