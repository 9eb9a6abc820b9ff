//! The kernel's crypto sockets (AF_ALG) as an engine device, as EECA's programs used them.
//!
//! A driver of an accelerator offers its ciphers to the kernel, and the kernel offers the best that
//! it has to programs by sockets: a message with the IV goes in, and its ciphertext is read from the
//! same socket. Where no accelerator has a driver, the kernel computes on the CPU. Reads are
//! asynchronous, by io_uring, so that one thread keeps several messages in flight.
//!
//! Laboratory only: each message costs two system calls and two copies.

mod cipher_socket;
mod read_queue;
mod socket_source;

use std::sync::Arc;
use std::time::{Duration, Instant};

use wattlock_engine::crypto::{AesKernel, AesKey};
use wattlock_engine::{Cipher, Data, Device, Engine, Fault, Job, Piece, Policy, Run, Stop, Tally};
use zeroize::Zeroizing;

use cipher_socket::CipherSocket;
use read_queue::ReadQueue;
use socket_source::Direction;

pub use socket_source::{LinuxSockets, SocketSource};

/// The kernel's crypto sockets as a device.
pub struct AfAlgDevice {
    sockets: Arc<dyn SocketSource>,
    /// Messages in flight at once.
    depth: usize,
    /// Longest time without an answer.
    timeout: Duration,
}

impl AfAlgDevice {
    /// Its name in reports.
    pub const NAME: &'static str = "af-alg";

    /// Returns the device after a self-test: it encrypts and decrypts as the CPU does.
    ///
    /// # Errors
    /// The kernel has no AF_ALG or no AES-CBC, forbids io_uring, or computes something else.
    pub fn open(
        sockets: Arc<dyn SocketSource>,
        depth: usize,
        timeout: Duration,
    ) -> Result<Box<dyn Device>, Fault> {
        self_test(Box::new(Self::new(Arc::clone(&sockets), depth, timeout)))?;
        Ok(Box::new(Self::new(sockets, depth, timeout)))
    }

    /// Returns the device without a self-test.
    pub fn new(sockets: Arc<dyn SocketSource>, depth: usize, timeout: Duration) -> Self {
        Self { sockets, depth: depth.max(1), timeout }
    }

    /// Works on a piece with all sockets; its input is untouched unless all of it is done.
    fn process(
        &self,
        queue: &mut ReadQueue,
        sockets: &mut [CipherSocket],
        task: &Task<'_>,
        piece: &mut Piece<'_>,
        until: Option<Instant>,
    ) -> Result<(), Stop> {
        let first =
            usize::try_from(piece.first()).map_err(|_| fault("piece index out of range"))?;
        let input = piece.slots();
        let mut output = Zeroizing::new(Vec::with_capacity(input.len()));
        output.resize(input.len(), 0);
        let chunks: Vec<&[u8]> = input.chunks(task.chunk_len).collect();
        let mut next = 0;
        for (index, socket) in sockets.iter_mut().enumerate() {
            if !start(queue, socket, index, task, first, &chunks, &mut next)? {
                break;
            }
        }
        while queue.in_flight() > 0 {
            let timeout = Instant::now() + self.timeout;
            let until = until.map_or(timeout, |until| until.min(timeout));
            let Some((index, read)) =
                queue.wait(until).map_err(|error| failed("io_uring", &error))?
            else {
                return Err(fault(&format!("AF_ALG: no answer within {:?}", self.timeout)));
            };
            let socket = &mut sockets[index];
            let read = read.map_err(|error| failed("AF_ALG: read", &error))?;
            let (chunk, at) = socket.place();
            let done = read.bytes();
            if done.is_empty() {
                return Err(fault("AF_ALG: socket closed before the message was complete"));
            }
            let begin = chunk * task.chunk_len + at;
            let place = output.get_mut(begin..begin + done.len());
            place.ok_or_else(|| fault("AF_ALG: more output than input"))?.copy_from_slice(done);
            if socket.advance(done.len()) {
                start(queue, socket, index, task, first, &chunks, &mut next)?;
            } else {
                socket
                    .resume(queue, index, chunks[chunk])
                    .map_err(|error| failed("AF_ALG: sendmsg", &error))?;
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
    fn from_job(job: &Job<'a>) -> Option<Self> {
        let (direction, key, ivs) = match job.cipher {
            Cipher::CbcEncrypt { key, ivs } => (Direction::Encrypt, key, ivs),
            Cipher::CbcDecrypt { key, ivs } => (Direction::Decrypt, key, ivs),
            _ => return None,
        };
        Some(Self { direction, ivs, chunk_len: job.chunk_len, key: raw_key(key) })
    }
}

/// Returns the key that a schedule was made from: it begins with it.
fn raw_key(key: &AesKey) -> Zeroizing<Vec<u8>> {
    let schedule = key.encrypt_schedule();
    let len = match schedule.rounds() {
        10 => 16,
        12 => 24,
        _ => 32,
    };
    let bytes = schedule.expose().as_flattened();
    Zeroizing::new(bytes[..len].to_vec())
}

/// Sends the next message by that socket. Returns false if there is none.
fn start(
    queue: &mut ReadQueue,
    socket: &mut CipherSocket,
    index: usize,
    task: &Task<'_>,
    first: usize,
    chunks: &[&[u8]],
    next: &mut usize,
) -> Result<bool, Stop> {
    let Some(chunk) = chunks.get(*next) else { return Ok(false) };
    let iv = task.ivs.get(first + *next).ok_or_else(|| fault("fewer IVs than messages"))?;
    socket
        .start(queue, index, *next, (task.direction, iv), chunk)
        .map_err(|error| failed("AF_ALG: sendmsg", &error))?;
    *next += 1;
    Ok(true)
}

impl Device for AfAlgDevice {
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
        let Some(task) = Task::from_job(run.job()) else { return Ok(()) };
        let connect = |_| self.sockets.socket(&task.key).map(CipherSocket::new);
        let sockets: std::io::Result<Vec<CipherSocket>> = (0..self.depth).map(connect).collect();
        let mut sockets = sockets.map_err(|error| fault(&error.to_string()))?;
        let mut queue = ReadQueue::new(self.depth).map_err(|error| {
            fault(&format!("io_uring is not available: {error}; see kernel.io_uring_disabled"))
        })?;
        let mut buffer = Zeroizing::default();
        while let Some(mut piece) = run.take_as(Self::NAME, usize::MAX, buffer)? {
            if let Err(stop) =
                self.process(&mut queue, &mut sockets, &task, &mut piece, run.deadline())
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

/// Checks that the device does what the CPU does: messages of every key length, both ways.
fn self_test(device: Box<dyn Device>) -> Result<(), Fault> {
    let wrong = |error: &dyn std::fmt::Display| Fault(error.to_string());
    let engine = Engine::new(1).with_policy(Policy::Gpu).with_device(device);
    let engine = engine.with_chosen(&[AfAlgDevice::NAME]).map_err(|error| wrong(&error))?;
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
                return Err(Fault(DIFFERS.to_owned()));
            }
        }
    }
    Ok(())
}

/// What is wrong if the self-test has other bytes than the CPU.
const DIFFERS: &str = "AF_ALG self-test failed: AES-CBC differs from the CPU's; another driver may be \
                       faulty, see /proc/crypto";

/// What the device is tested with: messages that go in one part and in several.
const MESSAGES: usize = 3;
const MESSAGE: usize = 80 << 10;
