//! Keys on the device: which job works under which key, and that keys are wiped.
//!
//! A module works under one key at a time. Jobs that run at once get modules of their own; the
//! workers of one job share one.

use std::ffi::CString;
use std::sync::{Arc, Mutex};

use subtle::ConstantTimeEq;
use zeroize::{Zeroize, Zeroizing};

use super::Error;
use super::driver::{Context, Info};
use super::kernels::{Kernels, PTX, ROUND_KEYS_LEN};
use super::memory::{DeviceMemory, PinnedMemory};
use super::stream::Stream;
use crate::kernels::{HASH_KEY_WORDS, Tables};
use crate::lock::lock;
use crate::task::Keys;

/// The modules of a device.
pub(super) struct Keyring {
    context: Arc<Context>,
    ptx: CString,
    info: Info,
    tables: Tables,
    places: Mutex<Vec<Place>>,
}

struct Place {
    keyed: Arc<Keyed>,
    /// The key that it holds, as long as it has users.
    key: Key,
    users: usize,
}

/// Round keys and hash key as the device has them.
type Key = Zeroizing<Vec<u8>>;

/// A module, and the memory for its key.
pub(super) struct Keyed {
    pub kernels: Kernels,
    hash_key: DeviceMemory,
    staging: Mutex<PinnedMemory>,
    stream: Stream,
}

/// The right to work under a key; the key is wiped from the device with the last of these.
pub(super) struct Lease {
    ring: Arc<Keyring>,
    pub keyed: Arc<Keyed>,
    pub rounds: u32,
}

impl Keyring {
    /// With one module, so that a driver that refuses it says so now.
    pub fn new(context: &Arc<Context>, info: &Info, tables: Tables) -> Result<Self, Error> {
        let ring = Self {
            context: context.clone(),
            ptx: CString::new(PTX).map_err(|_| Error::Unsupported("a zero in the PTX"))?,
            info: info.clone(),
            tables,
            places: Mutex::default(),
        };
        let place = ring.place()?;
        lock(&ring.places).push(place);
        Ok(ring)
    }

    /// Puts `keys` where kernels find them, unless they are there; `None` where too many others are.
    pub fn lease(self: &Arc<Self>, keys: &Keys) -> Result<Option<Lease>, Error> {
        let wanted = bytes_of(keys);
        let mut places = lock(&self.places);
        let held = places
            .iter()
            .position(|place| place.users > 0 && bool::from(place.key.as_slice().ct_eq(&wanted)));
        let mut free = held.or_else(|| places.iter().position(|place| place.users == 0));
        if free.is_none() && places.len() < MOST_MODULES {
            places.push(self.place()?);
            free = Some(places.len() - 1);
        }
        let Some(free) = free else { return Ok(None) };
        let place = &mut places[free];
        if held.is_none() {
            place.keyed.set(&wanted)?;
            place.key = wanted;
        }
        place.users += 1;
        let keyed = place.keyed.clone();
        Ok(Some(Lease { ring: self.clone(), keyed, rounds: keys.rounds }))
    }

    fn place(&self) -> Result<Place, Error> {
        let keyed = Keyed {
            kernels: Kernels::load(&self.context, &self.ptx, &self.info, self.tables)?,
            hash_key: DeviceMemory::new(&self.context, HASH_KEY_LEN)?,
            staging: Mutex::new(PinnedMemory::new(&self.context, STAGING_LEN)?),
            stream: Stream::new(&self.context)?,
        };
        Ok(Place { keyed: Arc::new(keyed), key: Key::default(), users: 0 })
    }
}

impl Keyed {
    /// Where the kernels of GHASH find their tables.
    pub fn hash_key(&self) -> u64 {
        self.hash_key.address()
    }

    /// Sends `key`, reads it back and compares.
    fn set(&self, key: &[u8]) -> Result<(), Error> {
        let mut staging = lock(&self.staging);
        staging.write(0, key);
        let sent = self.send(&staging).and_then(|()| {
            // SAFETY: the stream has finished.
            unsafe { staging.bytes() }.zeroize();
            self.fetch(&staging)
        });
        // SAFETY: the stream has finished, or failed, and then the bytes are not read.
        let arrived = sent.is_err() || bool::from(unsafe { staging.bytes() }.ct_eq(key));
        self.clean(&mut staging);
        sent?;
        if arrived {
            Ok(())
        } else {
            Err(Error::Wrong("its copy of the key differs from what was sent"))
        }
    }

    /// Zeros where the key was; a refusal means that the device is lost.
    fn wipe(&self) {
        let mut staging = lock(&self.staging);
        self.clean(&mut staging);
        let _ = self.send(&staging);
    }

    fn clean(&self, staging: &mut PinnedMemory) {
        // After an error, a copy may still be under way.
        let _ = self.stream.synchronize();
        // SAFETY: the stream has finished, or its device is lost.
        unsafe { staging.bytes() }.zeroize();
    }

    fn send(&self, staging: &PinnedMemory) -> Result<(), Error> {
        let start = staging.as_ptr().cast_const();
        let round_keys = self.kernels.round_keys;
        // SAFETY: the memory is that long, and the callers wait before they change it.
        unsafe { self.stream.copy_to_address(round_keys, start, ROUND_KEYS_LEN) }?;
        // SAFETY: the hash key stands behind the round keys.
        let hash_key = unsafe { start.add(ROUND_KEYS_LEN) };
        // SAFETY: as for the round keys.
        unsafe { self.stream.copy_in(&self.hash_key, 0, hash_key, HASH_KEY_LEN) }?;
        self.stream.synchronize()
    }

    /// Reads back what [`Keyed::send`] sends.
    fn fetch(&self, staging: &PinnedMemory) -> Result<(), Error> {
        let start = staging.as_ptr();
        let round_keys = self.kernels.round_keys;
        // SAFETY: the memory is that long, and this function waits before it is read.
        unsafe { self.stream.copy_from_address(start, round_keys, ROUND_KEYS_LEN) }?;
        // SAFETY: the hash key stands behind the round keys.
        let hash_key = unsafe { start.add(ROUND_KEYS_LEN) };
        // SAFETY: as for the round keys.
        unsafe { self.stream.copy_out(hash_key, &self.hash_key, 0, HASH_KEY_LEN) }?;
        self.stream.synchronize()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut places = lock(&self.ring.places);
        let own = places.iter_mut().find(|place| Arc::ptr_eq(&place.keyed, &self.keyed));
        if let Some(place) = own {
            place.users -= 1;
            if place.users == 0 {
                place.keyed.wipe();
                place.key = Key::default();
            }
        }
    }
}

/// What [`Keyed::send`] sends.
fn bytes_of(keys: &Keys) -> Key {
    let mut bytes = Key::new(vec![0; STAGING_LEN]);
    let words = keys.round_keys.iter().chain(keys.hash_key.iter());
    for (place, word) in bytes.as_chunks_mut().0.iter_mut().zip(words) {
        *place = word.to_le_bytes();
    }
    bytes
}

/// Keys that are on the device at once. Each module is compiled by the driver, or found in its
/// cache, when it is first needed.
const MOST_MODULES: usize = 4;

const HASH_KEY_LEN: usize = 4 * HASH_KEY_WORDS;
const STAGING_LEN: usize = ROUND_KEYS_LEN + HASH_KEY_LEN;
