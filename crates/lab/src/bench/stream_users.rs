//! The users of a stream: their keys, what they submit, and whether it comes out right.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use anyhow::bail;
use wattlock_engine::crypto::{AeadAlgorithm, AeadKey, AesKernel, AesKey, NONCE_LEN, TAG_LEN};
use wattlock_host::exit::usage;
use wattlock_stream::{Cipher, Error, Nonce, Pool};
use zeroize::Zeroizing;

use crate::lock::lock;
use crate::simulation::SplitMix64;
use crate::study::aes::{Kernel, Key};

/// Users, and what they submit.
pub struct Users {
    users: Vec<User>,
    /// What messages are cut from.
    content: Vec<u8>,
}

struct User {
    /// Where its message lies in the content.
    message: Range<usize>,
    key: [u8; 32],
}

/// A user's expanded key and first counter block.
pub type CtrKey = (Arc<Key>, [u8; AesKey::BLOCK_LEN]);

/// What is done to all messages of a run.
#[derive(Clone, Copy, PartialEq)]
pub enum How {
    /// AES-256-CTR by this kernel.
    Ctr(Kernel),
    /// AES-256-GCM.
    Gcm,
}

/// The shortest and the longest message, in bytes.
const LENGTHS: Range<usize> = 35 << 10..LONGEST + 1;

/// Bytes of the longest message.
const LONGEST: usize = 150 << 10;

/// Places where a message may start in the content.
const STARTS: usize = 1 << 16;

/// Outputs that are kept to be checked, in bytes.
const KEPT: usize = 64 << 20;

impl Users {
    /// `count` users; the same ones in every run.
    pub fn new(count: usize) -> Self {
        let mut random = SplitMix64::new(0x5bd1_e995);
        let mut content = vec![0; STARTS + LENGTHS.end];
        content.chunks_mut(8).for_each(|chunk| {
            chunk.copy_from_slice(&random.draw().to_le_bytes()[..chunk.len()]);
        });
        let user = |_| {
            let start = random.between(0, STARTS as u64 - 1) as usize;
            let len = random.between(LENGTHS.start as u64, LENGTHS.end as u64 - 1) as usize;
            let mut key = [0; 32];
            key.chunks_mut(8).for_each(|part| part.copy_from_slice(&random.draw().to_le_bytes()));
            User { message: start..start + len, key }
        };
        let users = (0..count).map(user).collect();
        Self { users, content }
    }

    pub fn len(&self) -> usize {
        self.users.len()
    }

    /// Bytes of all messages.
    pub fn bytes(&self) -> u64 {
        self.users.iter().map(|user| user.message.len() as u64).sum()
    }

    /// Their expanded keys for CTR and first counter blocks: nothing of this belongs to the time of a
    /// run.
    pub fn ctr_keys(&self, kernel: Kernel) -> anyhow::Result<Vec<CtrKey>> {
        let key =
            |(index, user): (usize, &User)| Ok((Arc::new(Key::new(kernel, &user.key)?), iv(index)));
        self.users.iter().enumerate().map(key).collect()
    }

    /// The same for AES-256-GCM.
    pub fn gcm_keys(&self) -> anyhow::Result<Vec<Cipher>> {
        let cipher = |(index, user): (usize, &User)| {
            let key = Arc::new(AeadKey::new(AeadAlgorithm::Aes256Gcm, &user.key)?);
            Ok(Cipher::Seal { key, nonce: nonce(index), aad: 0..0 })
        };
        self.users.iter().enumerate().map(cipher).collect()
    }

    /// What a user submits to one of the paper's loops.
    pub fn submission(&self, pool: &Pool, index: usize) -> Zeroizing<Vec<u8>> {
        let plain = self.plain(index);
        let mut buffer = pool.take(plain.len());
        buffer.copy_from_slice(plain);
        buffer
    }

    /// What a user submits to a stream.
    pub fn gcm_message(
        &self,
        pool: &Pool,
        index: usize,
        cipher: Cipher,
    ) -> wattlock_stream::Message {
        let plain = self.plain(index);
        let mut buffer = pool.take(plain.len() + TAG_LEN);
        buffer[..plain.len()].copy_from_slice(plain);
        wattlock_stream::Message { user: index as u64, cipher, buffer, payload: 0..plain.len() }
    }

    fn plain(&self, index: usize) -> &[u8] {
        &self.content[self.users[index].message.clone()]
    }

    /// Whether an output is right, by code that has not made it: another kernel of AES, and for GCM
    /// the tag as well.
    fn is_right(&self, how: How, index: usize, output: &mut [u8]) -> anyhow::Result<bool> {
        let (user, plain) = (&self.users[index], self.plain(index));
        let made_by = match how {
            How::Ctr(kernel) => kernel,
            // AWS-LC made it, so that any kernel is another.
            How::Gcm => Kernel::TtableVartime,
        };
        let Some((ciphertext, rest)) = output.split_at_mut_checked(plain.len()) else {
            return Ok(false);
        };
        let first_block = match how {
            How::Ctr(_) => iv(index),
            How::Gcm => {
                let Some(tag) = rest.first_chunk() else { return Ok(false) };
                let key = AeadKey::new(AeadAlgorithm::Aes256Gcm, &user.key)?;
                let mut opened = ciphertext.to_vec();
                if key.open(nonce(index).bytes(), b"", &mut opened, tag).is_err() || opened != plain
                {
                    return Ok(false);
                }
                // SP 800-38D, 7.1: the tag took the first counter block.
                let mut block = [0; AesKey::BLOCK_LEN];
                block[..NONCE_LEN].copy_from_slice(&nonce(index).bytes());
                block[15] = 2;
                block
            }
        };
        Key::new(another(made_by), &user.key)?.ctr(&first_block, 0, ciphertext);
        Ok(ciphertext == plain)
    }
}

/// The study's producer: one thread, one user after the other.
///
/// # Errors
/// Those of `try_put`, but that there is no room: it waits twice the latency then, and tries again.
pub fn produce<M>(
    latency: Duration,
    messages: impl Iterator<Item = M>,
    try_put: impl Fn(M) -> Result<(), (Error, M)>,
) -> anyhow::Result<()> {
    for mut message in messages {
        thread::sleep(latency);
        loop {
            match try_put(message) {
                Ok(()) => break,
                Err((Error::Full { .. }, back)) => {
                    message = back;
                    thread::sleep(2 * latency);
                }
                // `end` returns the error that ended the stream.
                Err((Error::Closed, _)) => return Ok(()),
                Err((error, _)) => return Err(error.into()),
            }
        }
    }
    Ok(())
}

/// Refuses a window in which some messages would never find room: one byte always stays free.
///
/// # Errors
/// Exit code 2.
pub fn check_window(window: u64) -> anyhow::Result<()> {
    if window > LONGEST as u64 {
        return Ok(());
    }
    Err(usage(format!(
        "the window of {window} bytes cannot hold the longest message ({LONGEST} bytes); choose a \
         larger --window"
    )))
}

/// Buffers that go round.
pub const SPARE_BUFFERS: usize = 256;

/// The fastest kernel here that is not this one.
pub fn another(kernel: Kernel) -> Kernel {
    let others = Kernel::all().into_iter().rev();
    others.into_iter().find(|other| *other != kernel).unwrap_or(Kernel::Product(AesKernel::Soft))
}

fn iv(index: usize) -> [u8; AesKey::BLOCK_LEN] {
    ((index as u128) << 64).to_be_bytes()
}

fn nonce(index: usize) -> Nonce {
    Nonce { base: [0; NONCE_LEN], number: index as u64 }
}

/// Looks at what comes out of a run.
pub struct Check {
    users: Arc<Users>,
    how: How,
    all: bool,
    /// Keeps every `stride`-th output.
    stride: u64,
    kept: Mutex<Vec<(usize, Zeroizing<Vec<u8>>)>>,
    checked: AtomicUsize,
    wrong: AtomicUsize,
}

impl Check {
    /// Checks all outputs at once, or a sample afterwards.
    pub fn new(users: &Arc<Users>, how: How, all: bool) -> Self {
        Self {
            users: Arc::clone(users),
            how,
            all,
            stride: users.bytes().div_ceil(KEPT as u64).max(1),
            kept: Mutex::default(),
            checked: AtomicUsize::new(0),
            wrong: AtomicUsize::new(0),
        }
    }

    /// Takes a user's output. Returns the buffer, if it is not kept.
    ///
    /// # Errors
    /// That it could not be looked at.
    pub fn take(
        &self,
        user: usize,
        mut output: Zeroizing<Vec<u8>>,
    ) -> anyhow::Result<Zeroizing<Vec<u8>>> {
        if self.all {
            self.look(user, &mut output)?;
        } else if (user as u64).is_multiple_of(self.stride) {
            lock(&self.kept).push((user, output));
            return Ok(Zeroizing::default());
        }
        Ok(output)
    }

    fn look(&self, index: usize, output: &mut [u8]) -> anyhow::Result<()> {
        let right = self.users.is_right(self.how, index, output)?;
        self.checked.fetch_add(1, Ordering::Relaxed);
        self.wrong.fetch_add(usize::from(!right), Ordering::Relaxed);
        Ok(())
    }

    /// Checks what was kept. Returns how many outputs were right.
    ///
    /// # Errors
    /// That one was not.
    pub fn end(&self) -> anyhow::Result<usize> {
        let kept = std::mem::take(&mut *lock(&self.kept));
        for (index, mut output) in kept {
            self.look(index, &mut output)?;
        }
        let (checked, wrong) =
            (self.checked.load(Ordering::Relaxed), self.wrong.load(Ordering::Relaxed));
        if wrong > 0 || checked == 0 {
            bail!("{wrong} of {checked} checked outputs are wrong");
        }
        Ok(checked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_is_right_only_if_all_of_it_is() {
        let users = Users::new(3);
        for how in [How::Ctr(Kernel::TtableVartime), How::Ctr(Kernel::best()), How::Gcm] {
            let mut buffer = users.plain(1).to_vec();
            assert!(!users.is_right(how, 1, &mut buffer.clone()).unwrap());
            match how {
                How::Ctr(kernel) => {
                    let (key, iv) = users.ctr_keys(kernel).unwrap().swap_remove(1);
                    key.ctr(&iv, 0, &mut buffer);
                }
                How::Gcm => {
                    let Cipher::Seal { key, nonce, .. } = users.gcm_keys().unwrap().swap_remove(1)
                    else {
                        unreachable!()
                    };
                    let tag = key.seal(nonce.bytes(), b"", &mut buffer).unwrap();
                    buffer.extend(tag);
                }
            }
            assert!(users.is_right(how, 1, &mut buffer.clone()).unwrap());
            assert!(!users.is_right(how, 2, &mut buffer.clone()).unwrap());
            let last = buffer.len() - 1;
            buffer[last] ^= 1;
            assert!(!users.is_right(how, 1, &mut buffer).unwrap());
        }
    }
}
