//! SHA3-256, FIPS 202: one message, or any number of independent messages eight at a time.

use std::cmp::Reverse;

use crate::keccak::{KeccakKernel, LANES};
use crate::sponge::{EqualLanes, Sponge, absorb_many};

/// Bytes of a digest.
pub const DIGEST_LEN: usize = 32;

/// The SHA3-256 of one message, with this CPU's best kernel.
///
/// Serial by construction: many messages are several times faster with [`update_many`].
pub struct Sha3_256 {
    sponge: Sponge<RATE, ROUNDS>,
    kernel: KeccakKernel,
}

impl Sha3_256 {
    /// A hasher that has read no data yet.
    pub fn new() -> Self {
        Self { sponge: Sponge::new(), kernel: KeccakKernel::best() }
    }

    /// Absorbs `data`.
    pub fn update(&mut self, data: &[u8]) {
        self.sponge.update(self.kernel, data);
    }

    /// The digest.
    pub fn finish(mut self) -> [u8; DIGEST_LEN] {
        let mut digest = [0; DIGEST_LEN];
        self.sponge.finish(self.kernel, SHA3_DOMAIN, &mut digest);
        digest
    }
}

impl Default for Sha3_256 {
    fn default() -> Self {
        Self::new()
    }
}

/// The state of one message among many: see [`update_many`] and [`finish_many`].
pub struct Sha3_256Lane(Sponge<RATE, ROUNDS>);

impl Sha3_256Lane {
    /// A hasher that has read no data yet.
    pub fn new() -> Self {
        Self(Sponge::new())
    }

    /// The digest. [`finish_many`] is faster for several messages.
    pub fn finish(mut self, kernel: KeccakKernel) -> [u8; DIGEST_LEN] {
        let mut digest = [0; DIGEST_LEN];
        self.0.finish(kernel, SHA3_DOMAIN, &mut digest);
        digest
    }
}

impl Default for Sha3_256Lane {
    fn default() -> Self {
        Self::new()
    }
}

/// Absorbs into every lane its own data, of any length, eight lanes at a time.
///
/// The lanes are taken in their order, and one whose data is used up makes room for the next:
/// with the longest data first, the fewest of the eight idle at the end.
pub fn update_many(kernel: KeccakKernel, lanes: &mut [(&mut Sha3_256Lane, &[u8])]) {
    let jobs = lanes.iter_mut().filter_map(|(lane, data)| lane.0.job(data));
    absorb_many::<RATE, ROUNDS>(kernel, jobs);
    for (lane, data) in lanes {
        lane.0.keep_rest(data);
    }
}

/// The digests of `lanes`, in their order; the last blocks too are hashed eight at a time.
pub fn finish_many(kernel: KeccakKernel, mut lanes: Vec<Sha3_256Lane>) -> Vec<[u8; DIGEST_LEN]> {
    let jobs = lanes.iter_mut().filter_map(|lane| lane.0.padding_job(SHA3_DOMAIN));
    absorb_many::<RATE, ROUNDS>(kernel, jobs);
    lanes.iter().map(|lane| digest(&lane.0)).collect()
}

/// The digests of `messages`, in their order, hashed eight at a time.
pub fn sha3_256_many(kernel: KeccakKernel, messages: &[&[u8]]) -> Vec<[u8; DIGEST_LEN]> {
    let mut digests = vec![[0; DIGEST_LEN]; messages.len()];
    if messages.iter().all(|message| message.len() == messages[0].len()) {
        for (group, digests) in messages.chunks(LANES).zip(digests.chunks_mut(LANES)) {
            let group = std::array::from_fn(|n| group.get(n).copied());
            let mut lanes = EqualLanes::<RATE, ROUNDS>::absorb(kernel, group);
            lanes.finish(kernel, group, SHA3_DOMAIN);
            digests.iter_mut().enumerate().for_each(|(n, digest)| lanes.digest(n, digest));
        }
        return digests;
    }
    let mut order: Vec<usize> = (0..messages.len()).collect();
    order.sort_by_key(|&i| Reverse(messages[i].len()));
    for group in order.chunks(GROUP) {
        let mut sponges: Vec<_> = group.iter().map(|_| Sponge::<RATE, ROUNDS>::new()).collect();
        let jobs = sponges
            .iter_mut()
            .zip(group)
            .filter_map(|(sponge, &i)| sponge.last_job(messages[i], SHA3_DOMAIN));
        absorb_many::<RATE, ROUNDS>(kernel, jobs);
        for (sponge, &i) in sponges.iter().zip(group) {
            digests[i] = digest(sponge);
        }
    }
    digests
}

fn digest(sponge: &Sponge<RATE, ROUNDS>) -> [u8; DIGEST_LEN] {
    let mut digest = [0; DIGEST_LEN];
    sponge.digest(&mut digest);
    digest
}

/// Bytes of a block, FIPS 202 section 6.1: 1600 bits less twice the digest.
const RATE: usize = 136;
/// `Keccak-f[1600]`, section 3.4.
const ROUNDS: usize = 24;
/// The domain bits 01 and the first bit of the padding, appendix B.2.
const SHA3_DOMAIN: u8 = 0x06;
/// Messages whose states are in memory at once.
const GROUP: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTHS: [usize; 18] = [
        0,
        1,
        135,
        136,
        137,
        271,
        272,
        273,
        1087,
        1088,
        1089,
        4096,
        8191,
        8192,
        8193,
        16384,
        65537,
        (1 << 20) + 3,
    ];

    fn pattern(len: usize) -> Vec<u8> {
        (0..len).map(|i| (i % 251) as u8).collect()
    }

    fn expected(message: &[u8]) -> [u8; 32] {
        <::sha3::Sha3_256 as ::sha3::Digest>::digest(message).into()
    }

    /// FIPS 202's example of the empty message (NIST, SHA3-256_Msg0).
    #[test]
    fn the_empty_message() {
        let hex = "a7ffc6f8bf1ed76651c14756a061d662f580ff4de43b49fa82d80a4b80f8434a";
        let digest: String = Sha3_256::new().finish().iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(digest, hex);
    }

    #[test]
    fn one_message_agrees_with_the_sha3_crate() {
        for len in LENGTHS {
            let message = pattern(len);
            for piece in [1, 7, 135, 136, 137, 1000, 1 << 21] {
                if len / piece > 10_000 {
                    continue;
                }
                let mut hash = Sha3_256::new();
                message.chunks(piece).for_each(|piece| hash.update(piece));
                assert_eq!(hash.finish(), expected(&message), "{len} bytes by {piece}");
            }
        }
    }

    #[test]
    fn many_messages_agree_with_the_sha3_crate() {
        let data = pattern((1 << 20) + 50);
        for kernel in KeccakKernel::all() {
            for count in [0, 1, 2, 7, 8, 9, 17, 40, 300] {
                // Other starts too, so that no two messages of one length are alike.
                let messages: Vec<&[u8]> = (0..count)
                    .map(|i| {
                        (i, LENGTHS[i * 7 % LENGTHS.len()].min(if i < 40 { 1 << 21 } else { 500 }))
                    })
                    .map(|(i, len)| &data[i % 47..][..len])
                    .collect();
                let digests = sha3_256_many(kernel, &messages);
                assert_eq!(digests.len(), count);
                for (i, message) in messages.iter().enumerate() {
                    let len = message.len();
                    assert_eq!(digests[i], expected(message), "{}, {len}", kernel.name());
                }
            }
        }
    }

    /// Messages of one length skip the queue: every number of lanes, at any alignment.
    #[test]
    fn messages_of_one_length_agree_with_the_sha3_crate() {
        let data = pattern((1 << 20) + 50);
        for kernel in KeccakKernel::all() {
            for len in LENGTHS {
                for count in if len > 20_000 { 4..6 } else { 1..18 } {
                    let messages: Vec<&[u8]> = (0..count).map(|i| &data[i..][..len]).collect();
                    let digests = sha3_256_many(kernel, &messages);
                    for (digest, message) in digests.iter().zip(&messages) {
                        assert_eq!(*digest, expected(message), "{}, {len}", kernel.name());
                    }
                }
            }
        }
    }

    #[test]
    fn lanes_may_be_fed_in_pieces_of_any_length() {
        let data = pattern(20_000);
        let lens = [0, 1, 135, 136, 137, 8191, 8192, 8193, 16384, 272, 5, 1000];
        for kernel in KeccakKernel::all() {
            for step in [1, 100, 136, 1000, 4096] {
                let mut lanes: Vec<_> = lens.iter().map(|_| Sha3_256Lane::new()).collect();
                let mut rest: Vec<&[u8]> =
                    lens.iter().enumerate().map(|(i, &len)| &data[i..][..len]).collect();
                let messages = rest.clone();
                let mut round = 0;
                while rest.iter().any(|rest| !rest.is_empty()) {
                    let mut call = Vec::new();
                    for (i, (lane, rest)) in lanes.iter_mut().zip(&mut rest).enumerate() {
                        let len = (step * (1 + (i + round) % 5)).min(rest.len());
                        let (now, later) = rest.split_at(len);
                        *rest = later;
                        call.push((lane, now));
                    }
                    update_many(kernel, &mut call);
                    round += 1;
                }
                let single = lanes.remove(3).finish(kernel);
                assert_eq!(single, expected(messages[3]));
                lanes.insert(3, Sha3_256Lane::new());
                let digests = finish_many(kernel, lanes);
                for (i, message) in messages.iter().enumerate().filter(|(i, _)| *i != 3) {
                    assert_eq!(digests[i], expected(message), "{}, lane {i}", kernel.name());
                }
            }
        }
    }
}
