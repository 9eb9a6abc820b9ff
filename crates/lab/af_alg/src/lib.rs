//! The kernel's crypto interface (AF_ALG) as a device of the engine: the road by which EECA's
//! programs reached their accelerator.
//!
//! A driver of an accelerator offers its ciphers to the kernel, and the kernel offers the best that
//! it has to programs by sockets: a message with the IV goes in, and its ciphertext is read from the
//! same socket. Where no accelerator has a driver, the kernel computes on the CPU. Reads are
//! asynchronous, by io_uring, so that one thread keeps several messages in flight.
//!
//! For the laboratory: the product has no use for a road on which each message costs two system calls
//! and two copies.

mod kernel;
mod lane;
mod ring;

use std::sync::Arc;
use std::time::{Duration, Instant};

use wattlock_engine::crypto::{AesKernel, AesKey};
use wattlock_engine::{Cipher, Data, Device, Engine, Fault, Job, Piece, Policy, Run, Stop, Tally};
use zeroize::Zeroizing;

use lane::Lane;
use ring::Ring;

use kernel::Direction;

pub use kernel::{Kernel, Linux};

/// The kernel's crypto as a device.
pub struct KernelCrypto {
    kernel: Arc<dyn Kernel>,
    /// Messages in flight at once.
    depth: usize,
    /// How long a message may take.
    patience: Duration,
}

impl KernelCrypto {
    /// Its name in reports.
    pub const NAME: &'static str = "af-alg";

    /// The device, once it has encrypted and decrypted as the CPU does.
    ///
    /// # Errors
    /// The kernel has no AF_ALG or no AES-CBC, forbids io_uring, or computes something else.
    pub fn open(
        kernel: Arc<dyn Kernel>,
        depth: usize,
        patience: Duration,
    ) -> Result<Box<dyn Device>, Fault> {
        agrees(Box::new(Self::new(Arc::clone(&kernel), depth, patience)))?;
        Ok(Box::new(Self::new(kernel, depth, patience)))
    }

    /// The device without that test.
    pub fn new(kernel: Arc<dyn Kernel>, depth: usize, patience: Duration) -> Self {
        Self { kernel, depth: depth.max(1), patience }
    }

    /// Works on a piece with the lanes' sockets; its input is untouched unless all of it is done.
    fn process(
        &self,
        ring: &mut Ring,
        lanes: &mut [Lane],
        task: &Task<'_>,
        piece: &mut Piece<'_>,
        until: Option<Instant>,
    ) -> Result<(), Stop> {
        let first = usize::try_from(piece.first()).map_err(|_| fault("too many messages"))?;
        let input = piece.slots();
        let mut output = Zeroizing::new(Vec::with_capacity(input.len()));
        output.resize(input.len(), 0);
        let chunks: Vec<&[u8]> = input.chunks(task.chunk_len).collect();
        let mut next = 0;
        for (index, lane) in lanes.iter_mut().enumerate() {
            if !start(ring, lane, index, task, first, &chunks, &mut next)? {
                break;
            }
        }
        while ring.in_flight() > 0 {
            let patience = Instant::now() + self.patience;
            let until = until.map_or(patience, |until| until.min(patience));
            let Some((index, read)) =
                ring.wait(until).map_err(|error| failed("io_uring", &error))?
            else {
                return Err(fault("the kernel's crypto did not answer in time"));
            };
            let lane = &mut lanes[index];
            let read = read.map_err(|error| failed("read", &error))?;
            let (chunk, at) = lane.place();
            let done = read.bytes();
            if done.is_empty() {
                return Err(fault("the kernel's crypto ended"));
            }
            let begin = chunk * task.chunk_len + at;
            let place = output.get_mut(begin..begin + done.len());
            place
                .ok_or_else(|| fault("the kernel's crypto returned too much"))?
                .copy_from_slice(done);
            if lane.advance(done.len()) {
                start(ring, lane, index, task, first, &chunks, &mut next)?;
            } else {
                lane.go_on(ring, index, chunks[chunk])
                    .map_err(|error| failed("sendmsg", &error))?;
            }
        }
        drop(chunks);
        piece.slots().copy_from_slice(&output);
        Ok(())
    }
}

/// What is done to each message.
struct Task<'a> {
    direction: Direction,
    ivs: &'a [[u8; AesKey::BLOCK_LEN]],
    chunk_len: usize,
    key: Zeroizing<Vec<u8>>,
}

impl<'a> Task<'a> {
    fn of(job: &Job<'a>) -> Option<Self> {
        let (direction, key, ivs) = match job.cipher {
            Cipher::CbcEncrypt { key, ivs } => (Direction::Encrypt, key, ivs),
            Cipher::CbcDecrypt { key, ivs } => (Direction::Decrypt, key, ivs),
            _ => return None,
        };
        Some(Self { direction, ivs, chunk_len: job.chunk_len, key: material(key) })
    }
}

/// The key that a schedule was made from: it begins with it.
fn material(key: &AesKey) -> Zeroizing<Vec<u8>> {
    let schedule = key.encrypt_schedule();
    let len = match schedule.rounds() {
        10 => 16,
        12 => 24,
        _ => 32,
    };
    let bytes = schedule.expose().as_flattened();
    Zeroizing::new(bytes[..len].to_vec())
}

/// Sends the next message by that lane. False if there is none.
fn start(
    ring: &mut Ring,
    lane: &mut Lane,
    index: usize,
    task: &Task<'_>,
    first: usize,
    chunks: &[&[u8]],
    next: &mut usize,
) -> Result<bool, Stop> {
    let Some(chunk) = chunks.get(*next) else { return Ok(false) };
    let iv = task.ivs.get(first + *next).ok_or_else(|| fault("too few IVs"))?;
    lane.start(ring, index, *next, (task.direction, iv), chunk)
        .map_err(|error| failed("sendmsg", &error))?;
    *next += 1;
    Ok(true)
}

impl Device for KernelCrypto {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn workers(&self) -> usize {
        1
    }

    fn supports(&self, cipher: &Cipher<'_>) -> bool {
        matches!(cipher, Cipher::CbcEncrypt { .. } | Cipher::CbcDecrypt { .. })
    }

    /// Where no accelerator has a driver it is the CPU again.
    fn only_by_name(&self) -> bool {
        true
    }

    fn work(&self, run: &Run<'_, '_>, tally: &mut Tally) -> Result<(), Stop> {
        let Some(task) = Task::of(run.job()) else { return Ok(()) };
        let connect = || {
            let lane = |_| Ok(Lane::new(self.kernel.socket(&task.key)?));
            let lanes: std::io::Result<Vec<Lane>> = (0..self.depth).map(lane).collect();
            Ok((Ring::new(self.depth)?, lanes?))
        };
        let (mut ring, mut lanes) =
            connect().map_err(|error: std::io::Error| failed("AF_ALG", &error))?;
        let mut buffer = Zeroizing::default();
        while let Some(mut piece) = run.take_as(Self::NAME, usize::MAX, buffer)? {
            if let Err(stop) =
                self.process(&mut ring, &mut lanes, &task, &mut piece, run.deadline())
            {
                if matches!(stop, Stop::Fault(_)) {
                    run.hand_back(piece);
                }
                return Err(stop);
            }
            tally.count(piece.slots().len());
            buffer = run.finish(piece)?;
        }
        Ok(())
    }
}

fn fault(why: &str) -> Stop {
    Stop::Fault(Fault(why.to_owned()))
}

fn failed(call: &str, error: &std::io::Error) -> Stop {
    Stop::Fault(Fault(format!("{call}: {error}")))
}

/// That the device does what the CPU does: messages of every key length, both ways.
fn agrees(device: Box<dyn Device>) -> Result<(), Fault> {
    let wrong = |error: &dyn std::fmt::Display| Fault(error.to_string());
    let engine = Engine::new(1).with_policy(Policy::Gpu).with_device(device);
    let engine = engine.with_chosen(&[KernelCrypto::NAME]).map_err(|error| wrong(&error))?;
    let ivs: Vec<[u8; AesKey::BLOCK_LEN]> = (0..MESSAGES as u8).map(|n| [n; 16]).collect();
    for key_len in [16, 24, 32] {
        let key: Vec<u8> = (0..key_len).map(|i| (7 * i + 1) as u8).collect();
        let key = AesKey::new(AesKernel::Soft, &key).map_err(|error| wrong(&error))?;
        let plain: Vec<u8> = (0..MESSAGES * MESSAGE).map(|i| (i % 251) as u8).collect();
        for cipher in [
            Cipher::CbcEncrypt { key: &key, ivs: &ivs },
            Cipher::CbcDecrypt { key: &key, ivs: &ivs },
        ] {
            let job = |slots| Job {
                cipher,
                chunk_len: MESSAGE,
                data: Data::InPlace { slots },
                deadline: None,
            };
            let mut expected = plain.clone();
            job(&mut []).apply(0, true, &mut expected).map_err(|error| wrong(&error))?;
            let mut given = plain.clone();
            let report =
                engine.run_by(Policy::Gpu, job(&mut given)).map_err(|error| wrong(&error))?;
            if let Some(fault) = report.devices().find_map(|device| device.fault.clone()) {
                return Err(fault);
            }
            if given != expected {
                return Err(Fault("the kernel's AES-CBC is not the CPU's".to_owned()));
            }
        }
    }
    Ok(())
}

/// What the device is tested with: messages that go in one part and in several.
const MESSAGES: usize = 3;
const MESSAGE: usize = 80 << 10;
