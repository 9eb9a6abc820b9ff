//! The cases on one thread: messages that lie in memory, each call with its IV.

use wattlock_engine::crypto::tree_hash::TreeHash;
use wattlock_engine::crypto::{GcmKernel, HmacAlgorithm, KeccakKernel, ShaKernel};
use wattlock_peers::Operation;

use super::super::lab::Lab;
use super::super::rates::Contender;
use super::contenders::{keccak_registers, memory, registers};
use super::ours::{CbcRecords, Hmac, Open, Seal, Sha3, mode, tree_hash};
use super::rivals::{Rival, Shape, Tags, compared};
use super::{Bench, GCM, KEY, RECORD, SHORT, TREES};
use crate::study::aes;

type RunMode = fn(&aes::Key, &[u8; 16], &mut [u8]);

impl Bench {
    /// Measures one case of messages, unless it is not asked for: rivals that agree, and what the
    /// machine allows them.
    fn messages(
        &self,
        lab: &mut Lab<'_>,
        name: &str,
        shape: Shape,
        rivals: impl FnOnce() -> Vec<Rival>,
        limits: impl FnOnce() -> Vec<Contender<'static>>,
    ) {
        let mut wrong = Vec::new();
        self.case(lab, name, shape.len, shape.buffer(), || {
            let mut contenders = compared(shape, None, rivals(), &mut wrong);
            contenders.extend(limits());
            contenders
        });
        note_wrong(lab, name, shape, wrong);
    }

    /// The peers that offer an operation.
    fn rivals(&self, operation: Operation, key: &[u8]) -> impl Iterator<Item = Rival> {
        self.peers.iter().filter_map(move |peer| Rival::peer(peer.as_ref(), operation, key))
    }

    /// ECB, CBC and CTR with each kernel, and what its rounds on registers allow.
    pub(super) fn aes(&self, lab: &mut Lab<'_>) {
        let modes: [(&str, Operation, bool, RunMode); 5] = [
            ("ctr", Operation::AesCtr, true, |key, iv, b| key.ctr(iv, 0, b)),
            ("ecb encrypt", Operation::AesEcbEncrypt, false, |key, _, b| {
                key.ecb_encrypt(b).expect("whole blocks");
            }),
            ("ecb decrypt", Operation::AesEcbDecrypt, false, |key, _, b| {
                key.ecb_decrypt(b).expect("whole blocks");
            }),
            ("cbc encrypt", Operation::AesCbcEncrypt, false, |key, iv, b| {
                key.cbc_encrypt(iv, b).expect("whole blocks");
            }),
            ("cbc decrypt", Operation::AesCbcDecrypt, true, |key, iv, b| {
                key.cbc_decrypt(iv, b).expect("whole blocks");
            }),
        ];
        for bits in [128, 192, 256] {
            let key = &KEY[..bits / 8];
            for (name, operation, at_all, run) in modes {
                let calls = if at_all && bits != 192 { &self.all_calls } else { &self.calls };
                for &len in calls {
                    let is_short = len < SHORT;
                    let kernels =
                        if is_short { vec![aes::Kernel::best()] } else { aes::Kernel::all() };
                    let rivals = || {
                        let ours = kernels.into_iter();
                        let ours =
                            ours.map(|kernel| Rival::ours(kernel.name(), mode(kernel, key, run)));
                        ours.chain(self.rivals(operation, key)).collect()
                    };
                    let limits = || match is_short {
                        true => Vec::new(),
                        false => registers(bits).chain([memory()]).collect(),
                    };
                    self.messages(
                        lab,
                        &format!("aes-{bits}-{name}"),
                        Shape::one(len),
                        rivals,
                        limits,
                    );
                }
            }
        }
    }

    /// CBC of many records at once.
    pub(super) fn records(&self, lab: &mut Lab<'_>) {
        for bits in [128, 256] {
            let key = &KEY[..bits / 8];
            for records in [8, 16, 32] {
                let name = format!("aes-{bits}-cbc encrypt, {records} records");
                let rivals = || {
                    let ours = aes::Kernel::all().into_iter().map(|kernel| {
                        let key = aes::Key::new(kernel, key).expect("a key of the right length");
                        Rival::ours(kernel.name(), CbcRecords(key))
                    });
                    ours.chain(self.rivals(Operation::AesCbcEncrypt, key)).collect()
                };
                let shape = Shape::many(RECORD, records);
                self.messages(lab, &name, shape, rivals, || registers(bits).collect());
            }
        }
    }

    /// HMAC of one record, and of many at once.
    pub(super) fn macs(&self, lab: &mut Lab<'_>) {
        let usual: &[usize] = &[RECORD];
        for (algorithm, operation) in [
            (HmacAlgorithm::Sha1, Operation::HmacSha1),
            (HmacAlgorithm::Sha256, Operation::HmacSha256),
            (HmacAlgorithm::Sha384, Operation::HmacSha384),
        ] {
            for records in [1, 8, 16, 32] {
                let is_all = algorithm == HmacAlgorithm::Sha256 && records != 16;
                for &len in if is_all { &self.all_calls } else { usual } {
                    let shape = match records {
                        1 => Shape::one(len),
                        _ => Shape::many(len, records),
                    };
                    let rivals = || {
                        let ours = ShaKernel::all().into_iter().map(|kernel| {
                            Rival::ours(kernel.name(), Hmac::new(kernel, algorithm, &KEY))
                        });
                        ours.chain(self.rivals(operation, &KEY)).collect()
                    };
                    let plural = if records == 1 { "" } else { "s" };
                    let name = format!("{algorithm}, {records} record{plural}");
                    self.messages(lab, &name, shape, rivals, Vec::new);
                }
            }
        }
    }

    /// AES-GCM of one message, and what a key costs.
    pub(super) fn gcm(&self, lab: &mut Lab<'_>) {
        for (bits, algorithm) in GCM {
            let key = &KEY[..bits / 8];
            let seals = || {
                let ours = GcmKernel::all().into_iter();
                let ours = ours
                    .map(|kernel| Rival::ours(kernel.name(), Seal::new(kernel, algorithm, key)));
                ours.chain(self.rivals(Operation::AesGcmSeal, key))
            };
            let lengths = if bits == 256 { &self.gcm_calls } else { &self.all_calls };
            for &len in lengths {
                let limits = || match len < SHORT {
                    true => Vec::new(),
                    false => registers(bits).chain([memory()]).collect(),
                };
                let name = format!("aes-{bits}-gcm seal");
                self.messages(lab, &name, Shape::one(len), || seals().collect(), limits);
            }
            for &len in &self.all_calls {
                self.gcm_open(lab, &format!("aes-{bits}-gcm open"), bits, len);
            }
            let keys = [key.to_vec(), key.iter().map(|byte| !byte).collect()];
            for (name, len) in [("key", 0), ("key and seal", 64)] {
                self.case(lab, &format!("aes-{bits}-gcm {name}"), len, 64, || {
                    let rivals = seals().filter_map(|rival| rival.replacing_key(key));
                    rivals.map(|rival| rival.key_contender(keys.clone(), len)).collect()
                });
            }
        }
    }

    fn gcm_open(&self, lab: &mut Lab<'_>, name: &str, bits: usize, len: usize) {
        let key = &KEY[..bits / 8];
        let algorithm = GCM.into_iter().find(|of| of.0 == bits).expect("a size of GCM").1;
        let shape = Shape::one(len);
        let mut wrong = Vec::new();
        self.case(lab, name, len, shape.buffer(), || {
            let tags = Tags::new(shape, &mut Seal::new(GcmKernel::best(), algorithm, key));
            let ours = GcmKernel::all().into_iter();
            let ours =
                ours.map(|kernel| Rival::ours(kernel.name(), Open::new(kernel, algorithm, key)));
            let rivals = ours.chain(self.rivals(Operation::AesGcmOpen, key));
            let contenders = compared(shape, Some(&tags), rivals.collect(), &mut wrong);
            // A pass over memory would change the messages, and they would be opened no more.
            let limits = registers(bits).filter(|_| len >= SHORT);
            contenders.into_iter().chain(limits).collect()
        });
        note_wrong(lab, name, shape, wrong);
    }

    /// SHA3-256 of one message and of eight, and the tree hashes.
    pub(super) fn hashes(&self, lab: &mut Lab<'_>) {
        for &len in &self.all_calls {
            let rivals = || {
                let ours = [Rival::ours(KeccakKernel::best().name(), Sha3(KeccakKernel::best()))];
                ours.into_iter().chain(self.rivals(Operation::Sha3_256, &[])).collect()
            };
            self.messages(lab, "sha3-256", Shape::one(len), rivals, Vec::new);
            let rivals = || {
                let ours = KeccakKernel::all().into_iter();
                let ours = ours.map(|kernel| Rival::ours(kernel.name(), Sha3(kernel)));
                ours.chain(self.rivals(Operation::Sha3_256, &[])).collect()
            };
            let limits = || keccak_registers(false).into();
            self.messages(lab, "sha3-256, 8 messages", Shape::many(len, 8), rivals, limits);
        }
        for (name, hash, operation) in TREES {
            for &len in self.all_calls.iter().chain([&self.large]) {
                let rivals = || {
                    let ours = KeccakKernel::all().into_iter();
                    let ours =
                        ours.map(|kernel| Rival::ours(kernel.name(), tree_hash(hash, kernel)));
                    ours.chain(self.rivals(operation, &[])).collect()
                };
                let limits = || keccak_registers(hash == TreeHash::Kt128).into();
                self.messages(lab, name, Shape::one(len), rivals, limits);
            }
        }
    }
}

/// Says which rivals gave something else than ours, and so have no row.
fn note_wrong(lab: &mut Lab<'_>, name: &str, shape: Shape, wrong: Vec<String>) {
    for tool in wrong {
        let why = format!("{tool}: differs from wattlock in {name}, {} bytes", shape.len);
        tell!("warning: {why}");
        lab.results.skipped.push(why);
    }
}
