//! Keys on the device: who works under which, and that none stays.
//!
//! A module works under one key at a time. Jobs that run at once get modules of their own; the
//! workers of one job share one.

use std::ffi::CString;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use wattlock_engine::crypto::{AeadKey, AesKey, AesSchedule};
use zeroize::{Zeroize, Zeroizing};

use super::driver::{Context, Info};
use super::kernels::{Kernels, PTX, ROUND_KEYS_LEN, Tables};
use super::memory::{DeviceMemory, PinnedMemory};
use super::stream::Stream;
use super::Error;
use super::ghash;

/// A key as the kernels want it.
#[derive(Clone, Copy)]
pub(super) enum Key<'a> {
    Encrypt(&'a AesKey),
    Decrypt(&'a AesKey),
    Gcm(&'a AeadKey),
}

impl Key<'_> {
    /// What tells it from all keys that are in use at the same time: where it stands.
    fn place(&self) -> (usize, u8) {
        match *self {
            Self::Encrypt(key) => (std::ptr::from_ref(key).addr(), 0),
            Self::Decrypt(key) => (std::ptr::from_ref(key).addr(), 1),
            Self::Gcm(key) => (std::ptr::from_ref(key).addr(), 2),
        }
    }

    /// Writes round keys, and for GCM what [`ghash`] needs, and returns the rounds.
    fn expand(&self, out: &mut [u8]) -> Result<u32, Error> {
        match *self {
            Self::Encrypt(key) => Ok(at_the_end(&key.encrypt_schedule(), out)),
            Self::Decrypt(key) => Ok(at_the_end(&key.decrypt_schedule(), out)),
            Self::Gcm(key) => {
                let key = key.block_cipher().ok_or(Error::Unsupported("an AEAD without AES"))?;
                let mut hash_key = Zeroizing::new([0; AesKey::BLOCK_LEN]);
                key.ecb_encrypt(&mut *hash_key)?;
                ghash::expand(&hash_key, &mut out[ROUND_KEYS_LEN..]);
                Ok(at_the_end(&key.encrypt_schedule(), out))
            }
        }
    }
}

/// The kernels find a key's last round keys at the same place for every size.
fn at_the_end(keys: &AesSchedule, out: &mut [u8]) -> u32 {
    let bytes = keys.expose().as_flattened();
    out[ROUND_KEYS_LEN - bytes.len()..ROUND_KEYS_LEN].copy_from_slice(bytes);
    keys.rounds() as u32
}

/// The modules of a device.
pub(super) struct Keyring {
    context: Arc<Context>,
    ptx: CString,
    info: Info,
    tables: Tables,
    places: Mutex<Vec<Place>>,
    freed: Condvar,
}

struct Place {
    keyed: Arc<Keyed>,
    /// Which key it holds; of meaning only while it has users.
    key: (usize, u8),
    rounds: u32,
    users: usize,
}

/// A module, and the memory for its key.
pub(super) struct Keyed {
    pub kernels: Kernels,
    hash_key: DeviceMemory,
    staging: Mutex<PinnedMemory>,
    stream: Stream,
}

/// The right to work under a key; the key is wiped from the device with the last of these.
pub(super) struct Lease<'a> {
    ring: &'a Keyring,
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
            freed: Condvar::new(),
        };
        let place = ring.place()?;
        lock(&ring.places).push(place);
        Ok(ring)
    }

    /// Puts `key` where kernels find it, unless it is there; waits where too many others are.
    pub fn lease(&self, key: Key<'_>) -> Result<Lease<'_>, Error> {
        let mut places = lock(&self.places);
        loop {
            let wanted = key.place();
            let held = places.iter().position(|place| place.users > 0 && place.key == wanted);
            if let Some(held) = held {
                return Ok(self.enter(&mut places[held]));
            }
            let mut free = places.iter().position(|place| place.users == 0);
            if free.is_none() && places.len() < MOST_MODULES {
                places.push(self.place()?);
                free = Some(places.len() - 1);
            }
            if let Some(free) = free {
                let place = &mut places[free];
                place.rounds = place.keyed.set(key)?;
                place.key = wanted;
                return Ok(self.enter(place));
            }
            places = self.freed.wait(places).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }

    fn enter(&self, place: &mut Place) -> Lease<'_> {
        place.users += 1;
        Lease { ring: self, keyed: place.keyed.clone(), rounds: place.rounds }
    }

    fn place(&self) -> Result<Place, Error> {
        let keyed = Keyed {
            kernels: Kernels::load(&self.context, &self.ptx, &self.info, self.tables)?,
            hash_key: DeviceMemory::new(&self.context, ghash::KEY_LEN)?,
            staging: Mutex::new(PinnedMemory::new(&self.context, STAGING_LEN)?),
            stream: Stream::new(&self.context)?,
        };
        Ok(Place { keyed: Arc::new(keyed), key: (0, 0), rounds: 0, users: 0 })
    }
}

impl Keyed {
    /// Where the kernels of GHASH find their tables.
    pub fn hash_key(&self) -> u64 {
        self.hash_key.address()
    }

    fn set(&self, key: Key<'_>) -> Result<u32, Error> {
        let mut staging = lock(&self.staging);
        // SAFETY: nobody copies from here but this function, which waits for its copies.
        let bytes = unsafe { staging.bytes() };
        let sent = key.expand(bytes).and_then(|rounds| self.send(&staging).map(|()| rounds));
        self.clean(&mut staging);
        sent
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
        // SAFETY: so many bytes are there, and this function's callers wait before they change.
        unsafe { self.stream.copy_to_address(round_keys, start, ROUND_KEYS_LEN) }?;
        // SAFETY: the hash key stands behind the round keys.
        let hash_key = unsafe { start.add(ROUND_KEYS_LEN) };
        // SAFETY: as for the round keys.
        unsafe { self.stream.copy_in(&self.hash_key, 0, hash_key, ghash::KEY_LEN) }?;
        self.stream.synchronize()
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let mut places = lock(&self.ring.places);
        let own = places.iter_mut().find(|place| Arc::ptr_eq(&place.keyed, &self.keyed));
        if let Some(place) = own {
            place.users -= 1;
            if place.users == 0 {
                place.keyed.wipe();
                self.ring.freed.notify_one();
            }
        }
    }
}

/// A worker that panicked left nothing half-changed under these locks.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Keys that are on the device at once. Each module is compiled by the driver, or found in its
/// cache, when it is first needed.
const MOST_MODULES: usize = 4;

const STAGING_LEN: usize = ROUND_KEYS_LEN + ghash::KEY_LEN;
