//! A raw cipher in the middle of a stream: windows in, windows out, each spread over the workers.

use std::sync::{Mutex, PoisonError};

use zeroize::Zeroizing;

use wattlock_engine::crypto::AesKey;
use wattlock_engine::{Cipher, Data, Direction, Engine, Error, Job, Mode, Policy, Transform};

use crate::study::aes::{self, How, Work};
use crate::study::{Algorithm, Blowfish, Parc4, Parc4i, Rc4, Rc4a};

/// One message under a raw cipher, worked through window by window, in order.
///
/// Nothing here authenticates. AES-GCM is no raw cipher.
pub struct RawStream {
    state: State,
    direction: Direction,
    /// Bytes done.
    position: u64,
    grain: Option<usize>,
}

/// What a raw cipher is keyed with. The bytes are the caller's, who wipes them.
#[derive(Clone, Copy)]
pub struct RawKey<'a> {
    /// The key.
    pub key: &'a [u8],
    /// RC4A's second key; the first bytes of RC4 under the first if not given.
    pub key2: Option<&'a [u8]>,
    /// The IV, of [`Algorithm::iv_len`] bytes.
    pub iv: &'a [u8],
}

enum State {
    Aes { key: aes::Key, mode: Mode, iv: [u8; AesKey::BLOCK_LEN] },
    Rc4(Rc4),
    Rc4a(Rc4a),
    Parc4(Parc4, Keystream),
    Parc4i(Parc4i, [Zeroizing<Vec<u8>>; 2]),
    Blowfish { key: Blowfish, iv: Option<[u8; 8]>, spread: bool },
}

impl RawStream {
    /// A stream at its beginning. `kernel` is for AES and ignored elsewhere.
    ///
    /// # Errors
    /// [`study::Error::KeyRange`], [`study::Error::IvLength`] and what the cipher itself says; and
    /// for AES-GCM, which is no raw cipher.
    ///
    /// [`study::Error::KeyRange`]: crate::study::Error::KeyRange
    /// [`study::Error::IvLength`]: crate::study::Error::IvLength
    pub fn new(
        algorithm: Algorithm,
        kernel: aes::Kernel,
        keyed: RawKey<'_>,
        direction: Direction,
    ) -> anyhow::Result<Self> {
        algorithm.check_lengths(keyed.key.len(), keyed.iv.len())?;
        let state = match algorithm {
            Algorithm::AesGcm { .. } => {
                anyhow::bail!("{algorithm} is not a raw cipher: it has a tag")
            }
            Algorithm::Aes(aes) => State::Aes {
                key: aes::Key::new(kernel, keyed.key)?,
                mode: aes.mode,
                iv: keyed.iv.try_into().unwrap_or_default(),
            },
            Algorithm::Rc4 => State::Rc4(Rc4::new(keyed.key)?),
            Algorithm::Rc4a => State::Rc4a(match keyed.key2 {
                Some(key2) => Rc4a::new(keyed.key, key2),
                None => Rc4a::with_default_k2(keyed.key),
            }?),
            Algorithm::Parc4 => State::Parc4(Parc4::new(keyed.key)?, Keystream::default()),
            Algorithm::Parc4i => State::Parc4i(Parc4i::new(keyed.key)?, Default::default()),
            Algorithm::Blowfish(_) | Algorithm::PBlock(_) => State::Blowfish {
                key: Blowfish::new(keyed.key)?,
                iv: keyed.iv.try_into().ok(),
                spread: matches!(algorithm, Algorithm::PBlock(_)),
            },
        };
        Ok(Self { state, direction, position: 0, grain: None })
    }

    /// Deals exactly `grain` bytes to a worker at a time, instead of what fits its cache.
    #[must_use]
    pub fn with_grain(mut self, grain: Option<usize>) -> Self {
        self.grain = grain.filter(|grain| *grain > 0);
        self
    }

    /// Works through the next window of the message. Every window but the last is whole blocks.
    ///
    /// # Errors
    /// What the cipher says. The window then holds a mixture and the stream is at its end.
    pub fn apply(&mut self, engine: &Engine, window: &mut [u8]) -> Result<(), Error> {
        if window.is_empty() {
            return Ok(());
        }
        let position = self.position;
        self.position += window.len() as u64;
        let of_cipher = |source| Error::Other { chunk: 0, source };
        match &mut self.state {
            State::Rc4(cipher) => {
                cipher.xor(window);
                Ok(())
            }
            State::Rc4a(cipher) => {
                cipher.xor(window);
                Ok(())
            }
            State::Parc4(cipher, keystream) => {
                keystream.xor(engine, self.grain, window, |bytes| cipher.fill(bytes))
            }
            State::Parc4i(cipher, halves) => parc4i(engine, cipher, halves, self.grain, window),
            State::Blowfish { key, iv, spread } => {
                key.permits(window.len() as u64).map_err(|e| of_cipher(e.into()))?;
                let cipher = BlowfishAt { key, iv: *iv, position, direction: self.direction };
                if *spread {
                    run(engine, Cipher::Other(&cipher), self.grain, window)
                } else {
                    cipher.apply(0, window).map_err(of_cipher)
                }
            }
            State::Aes { key, mode: Mode::Ecb, .. } => {
                let how = match self.direction {
                    Direction::Encrypt => How::EcbEncrypt,
                    Direction::Decrypt => How::EcbDecrypt,
                };
                run_aes(engine, key, how, self.grain, window)
            }
            State::Aes { key, mode: Mode::Cbc, iv } => {
                cbc(engine, key, iv, self.direction, self.grain, window)
            }
            State::Aes { key, iv, .. } => {
                let blocks = u128::from(position / AesKey::BLOCK_LEN as u64);
                let iv = u128::from_be_bytes(*iv).wrapping_add(blocks).to_be_bytes();
                run_aes(engine, key, How::Ctr { iv }, self.grain, window)
            }
        }
    }
}

/// Bytes that a worker is dealt where the caller does not say.
const CHUNK: usize = 64 * 1024;

fn run(
    engine: &Engine,
    cipher: Cipher<'_>,
    grain: Option<usize>,
    window: &mut [u8],
) -> Result<(), Error> {
    let job = Job {
        cipher,
        chunk_len: grain.unwrap_or(CHUNK),
        data: Data::InPlace { slots: window },
        deadline: None,
    };
    match grain {
        Some(_) => engine.run_by(Policy::Dealt { piece_chunks: 1 }, job)?,
        None => engine.run(job)?,
    };
    Ok(())
}

fn run_aes(
    engine: &Engine,
    key: &aes::Key,
    how: How<'_>,
    grain: Option<usize>,
    window: &mut [u8],
) -> Result<(), Error> {
    let work = Work { key, how, chunk_len: grain.unwrap_or(CHUNK) };
    run(engine, work.cipher(), grain, window)
}

/// CBC: one chain to encrypt, chunks to decrypt, whose IVs are kept before they are overwritten.
fn cbc(
    engine: &Engine,
    key: &aes::Key,
    chain: &mut [u8; AesKey::BLOCK_LEN],
    direction: Direction,
    grain: Option<usize>,
    window: &mut [u8],
) -> Result<(), Error> {
    let last = |bytes: &[u8]| bytes.last_chunk().copied().unwrap_or_default();
    match direction {
        Direction::Encrypt => {
            let how = How::CbcEncrypt { ivs: &[*chain] };
            run_aes(engine, key, how, Some(window.len()), window)?;
            *chain = last(window);
            Ok(())
        }
        Direction::Decrypt => {
            let mut ivs = vec![*chain];
            ivs.extend(window.chunks(grain.unwrap_or(CHUNK)).map(last));
            *chain = ivs.pop().unwrap_or(*chain);
            run_aes(engine, key, How::CbcDecrypt { ivs: &ivs }, grain, window)
        }
    }
}

/// Key stream that a serial cipher makes on this thread and that all threads XOR.
#[derive(Default)]
struct Keystream(Zeroizing<Vec<u8>>);

impl Keystream {
    /// Bytes made before they are shared out: enough for several threads, and little enough to
    /// stay in their caches.
    const LEN: usize = 1 << 20;

    fn xor(
        &mut self,
        engine: &Engine,
        grain: Option<usize>,
        window: &mut [u8],
        mut fill: impl FnMut(&mut [u8]),
    ) -> Result<(), Error> {
        let len = Self::LEN.min(window.len()).max(self.0.len());
        self.0.resize(len, 0);
        for part in window.chunks_mut(Self::LEN) {
            let keystream = &mut self.0[..part.len()];
            fill(keystream);
            run(engine, Cipher::Other(&Xor(keystream)), grain, part)?;
        }
        Ok(())
    }
}

/// PARC4-I: two threads make the halves of the key stream, and all threads XOR.
fn parc4i(
    engine: &Engine,
    cipher: &mut Parc4i,
    halves: &mut [Zeroizing<Vec<u8>>; 2],
    grain: Option<usize>,
    window: &mut [u8],
) -> Result<(), Error> {
    for part in window.chunks_mut(Keystream::LEN) {
        let (position, next) = cipher.next(part.len());
        let mut jobs = next.into_iter().zip(&mut *halves).map(|(half, keystream)| {
            keystream.resize(half.len, 0);
            Mutex::new((half, keystream))
        });
        let jobs = [jobs.next(), jobs.next()];
        engine.for_each(&jobs, |job| {
            if let Some(job) = job {
                let (half, keystream) = &mut *job.lock().unwrap_or_else(PoisonError::into_inner);
                half.fill(keystream);
            }
        })?;
        let halves = halves.each_ref().map(|half| half.as_slice());
        run(engine, Cipher::Other(&XorHalves { position, halves }), grain, part)?;
    }
    Ok(())
}

struct XorHalves<'a> {
    position: u64,
    halves: [&'a [u8]; 2],
}

impl Transform for XorHalves<'_> {
    fn apply(
        &self,
        offset: u64,
        in_out: &mut [u8],
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        Parc4i::xor_block(self.position, self.halves, offset, in_out);
        Ok(())
    }
}

struct Xor<'a>(&'a [u8]);

impl Transform for Xor<'_> {
    fn apply(
        &self,
        offset: u64,
        in_out: &mut [u8],
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let keystream = &self.0[offset as usize..][..in_out.len()];
        Ok(Parc4::xor_block(keystream, in_out)?)
    }
}

struct BlowfishAt<'a> {
    key: &'a Blowfish,
    iv: Option<[u8; 8]>,
    position: u64,
    direction: Direction,
}

impl Transform for BlowfishAt<'_> {
    fn apply(
        &self,
        offset: u64,
        in_out: &mut [u8],
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        match (self.iv, self.direction) {
            (Some(iv), _) => self.key.xor_ctr(iv, self.position + offset, in_out)?,
            (None, Direction::Encrypt) => self.key.encrypt_ecb(in_out)?,
            (None, Direction::Decrypt) => self.key.decrypt_ecb(in_out)?,
        }
        Ok(())
    }
}
