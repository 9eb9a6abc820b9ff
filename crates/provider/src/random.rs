//! Random numbers without a system call: IVs, and what stands for a MAC whose padding was wrong.
//!
//! A host may be in a sandbox that has no `getrandom`. So a key comes from the system when the
//! provider is loaded, and another one in each forked process; the numbers are AES-256 in counter
//! mode under it, with a counter that no two calls share. What is made here is either public or
//! forgotten at once, so that the key need not change with each call.
//!
//! No two processes have the same key: the kernel wipes it in every child, also in one that the
//! handler of [`fork`](crate::fork) does not see, and a process without a key asks for one.

use std::io;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use rustix::mm::{Advice, MapFlags, ProtFlags};
use wattlock_crypto::{AesKernel, AesKey, random};
use zeroize::Zeroize;

use crate::error::Error;

/// A key; a word of zero is none.
type Key = [AtomicU64; 4];

/// Memory that a child finds empty. It stays mapped: any thread may be using it.
static KEY: AtomicPtr<Key> = AtomicPtr::new(ptr::null_mut());
/// Calls so far: the upper half of the counter block.
static CALLS: AtomicU64 = AtomicU64::new(0);

/// Makes a place for the key, and takes one from the system. Once, at load.
///
/// # Errors
/// [`Error::Random`] if the system has no memory or gives no key.
pub(crate) fn set_up() -> Result<(), Error> {
    let place = map().map_err(|_| Error::Random)?;
    KEY.store(place, Ordering::Release);
    seed()
}

fn map() -> io::Result<*mut Key> {
    let (read_write, private) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    let len = size_of::<Key>();
    // SAFETY: a new mapping of the kernel's choice, of zeros.
    let place = unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), len, read_write, private) }?;
    // Linux before 4.14 cannot, and has the handler only.
    // SAFETY: the mapping above; a child may find zeros in it.
    let _ = unsafe { rustix::mm::madvise(place, len, Advice::LinuxWipeOnFork) };
    Ok(place.cast())
}

/// Takes a key from the system.
///
/// # Errors
/// [`Error::Random`] if the system gives none.
pub(crate) fn seed() -> Result<(), Error> {
    // SAFETY: only a mapping is put there, which stays for ever.
    let place = unsafe { KEY.load(Ordering::Acquire).as_ref() }.ok_or(Error::Random)?;
    let mut fresh = random::array::<32>()?;
    let (words, _) = fresh.as_chunks::<8>();
    for (place, word) in place.iter().zip(words) {
        place.store(u64::from_ne_bytes(*word), Ordering::Relaxed);
    }
    fresh.zeroize();
    Ok(())
}

/// The key, if this process has one.
fn key() -> Option<[u8; 32]> {
    // SAFETY: as in `seed`.
    let place = unsafe { KEY.load(Ordering::Acquire).as_ref() }?;
    let words = place.each_ref().map(|word| word.load(Ordering::Relaxed));
    let mut key = [0; 32];
    for (bytes, word) in key.as_chunks_mut::<8>().0.iter_mut().zip(words) {
        *bytes = word.to_ne_bytes();
    }
    (!words.contains(&0)).then_some(key)
}

/// Fills `bytes`.
///
/// # Errors
/// [`Error::Random`] in a process to which the system gives no key.
pub(crate) fn fill(bytes: &mut [u8]) -> Result<(), Error> {
    let mut key = match key() {
        Some(key) => key,
        None => {
            seed()?;
            key().ok_or(Error::Random)?
        }
    };
    let cipher = AesKey::new(AesKernel::best(), &key);
    key.zeroize();
    let mut block = [0; AesKey::BLOCK_LEN];
    block[..8].copy_from_slice(&CALLS.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    bytes.fill(0);
    cipher?.ctr(&block, 0, bytes);
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;

    #[test]
    fn no_two_calls_give_the_same_numbers() {
        set_up().unwrap();
        let mut seen = std::collections::HashSet::new();
        for _ in 0..1000 {
            let mut ivs = [[0; 16]; 3];
            fill(ivs.as_flattened_mut()).unwrap();
            assert!(ivs.into_iter().all(|iv| seen.insert(iv)));
        }
    }
}
