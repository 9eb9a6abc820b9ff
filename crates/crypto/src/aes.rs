//! AES-128, AES-192 and AES-256 (FIPS 197) in the modes ECB, CBC and CTR (NIST SP 800-38A), in
//! place, on the kernel that the caller or the CPU chooses.
//!
//! None of these modes authenticates: an attacker who changes the ciphertext changes the plaintext.
//! Use [`crate::AeadKey`]; this is for formats that bring a MAC of their own, and for measuring.

use zeroize::zeroize_stack;

use crate::choice;
use crate::error::Error;
#[cfg(target_arch = "aarch64")]
use crate::kernel::aes_armv8;
use crate::kernel::cpu::{self, AesNi, Vaes256, Vaes512};
use crate::kernel::cpu_arm::Armv8Aes;
use crate::kernel::{BLOCK_LEN, BlockKernel, RoundKeys, aes_soft, cbc_encrypt_records};
#[cfg(target_arch = "x86_64")]
use crate::kernel::{aes_ni, aes_vaes256, aes_vaes512};

/// Code for one instruction set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AesKernel {
    /// Plain integer operations, in constant time; runs everywhere.
    Soft,
    /// AES-NI, one block a register.
    AesNi(AesNi),
    /// VAES and AVX2, two blocks a register.
    Vaes256(Vaes256),
    /// VAES and AVX-512, four blocks a register.
    Vaes512(Vaes512),
    /// The instructions of ARMv8, one block a register.
    Armv8(Armv8Aes),
}

impl AesKernel {
    /// The names of all kernels for x86-64, those of other CPUs included, the slowest first.
    #[cfg(not(target_arch = "aarch64"))]
    pub const NAMES: [&str; 4] = ["aes-soft", "aes-ni", "aes-vaes256", "aes-vaes512"];

    /// The names of all kernels for ARM, those of other CPUs included, the slowest first.
    #[cfg(target_arch = "aarch64")]
    pub const NAMES: [&str; 2] = ["aes-soft", "aes-armv8"];

    /// The default of this CPU: the widest kernel that it runs, but never `aes-vaes256` or `aes-armv8`, which have to be
    /// named.
    pub fn best() -> Self {
        Vaes512::detect()
            .map(Self::Vaes512)
            .or_else(|| AesNi::detect().map(Self::AesNi))
            .unwrap_or(Self::Soft)
    }

    /// The kernel of that name.
    ///
    /// # Errors
    /// [`Error::UnknownKernel`], or [`Error::KernelAbsent`] with the reason.
    pub fn named(name: &str) -> Result<Self, Error> {
        match name {
            "aes-soft" => Ok(Self::Soft),
            "aes-ni" => choice::found(AesNi::detect(), name, AesNi::NEEDS).map(Self::AesNi),
            "aes-vaes256" => {
                choice::found(Vaes256::detect(), name, Vaes256::NEEDS).map(Self::Vaes256)
            }
            "aes-vaes512" => {
                choice::found(Vaes512::detect(), name, Vaes512::NEEDS).map(Self::Vaes512)
            }
            "aes-armv8" => {
                choice::found(Armv8Aes::detect(), name, Armv8Aes::NEEDS).map(Self::Armv8)
            }
            _ => Err(Error::UnknownKernel(name.to_owned())),
        }
    }

    /// The kernels that run on this CPU, the slowest first.
    pub fn all() -> Vec<Self> {
        choice::all(&Self::NAMES, Self::named)
    }

    /// The kernels that do not, each with the reason.
    pub fn absent() -> Vec<(&'static str, String)> {
        choice::absent(&Self::NAMES, Self::named)
    }

    /// The name that file, flag, bench and JSON share.
    pub fn name(self) -> &'static str {
        match self {
            Self::Soft => "aes-soft",
            Self::AesNi(_) => "aes-ni",
            Self::Vaes256(_) => "aes-vaes256",
            Self::Vaes512(_) => "aes-vaes512",
            Self::Armv8(_) => "aes-armv8",
        }
    }

    /// True if kernels were measured on CPUs of this class. Where they were not, [`Self::best`] goes by the
    /// instructions alone, and takes none of those that came later: they are used by name only.
    pub fn measured(self) -> bool {
        cpu::measured().is_some()
    }

    /// Runs `turns` times `rounds` rounds of this kernel on registers only, and returns the bytes
    /// that this would have enciphered: no mode can be faster. `None` for one of gates, which
    /// has no such bound.
    #[cfg(feature = "roofline")]
    pub(crate) fn register_bound(self, rounds: usize, turns: u64) -> Option<u64> {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::AesNi(proof) => Some(aes_ni::register_bound(proof, rounds, turns)),
            #[cfg(target_arch = "x86_64")]
            Self::Vaes256(proof) => Some(aes_vaes256::register_bound(proof, rounds, turns)),
            #[cfg(target_arch = "x86_64")]
            Self::Vaes512(proof) => Some(aes_vaes512::register_bound(proof, rounds, turns)),
            #[cfg(target_arch = "aarch64")]
            Self::Armv8(proof) => Some(aes_armv8::register_bound(proof, rounds, turns)),
            _ => None,
        }
    }
}

/// An expanded AES key, for the kernel that it was expanded for. Wiped on drop.
pub struct AesKey {
    expanded: Expanded,
    kernel: AesKernel,
    bits: usize,
}

enum Expanded {
    Soft(aes_soft::Key),
    #[cfg(target_arch = "x86_64")]
    AesNi(Box<aes_ni::Key>),
    #[cfg(target_arch = "x86_64")]
    Vaes256(Box<aes_vaes256::Key>),
    #[cfg(target_arch = "x86_64")]
    Vaes512(Box<aes_vaes512::Key>),
    #[cfg(target_arch = "aarch64")]
    Armv8(Box<aes_armv8::Key>),
}

impl Drop for AesKey {
    fn drop(&mut self) {
        // The modes keep round keys in more registers than there are, and the compiler puts some on
        // the stack. They are wiped once, here, and not after each message.
        zeroize_stack::<DEAD_STACK>();
    }
}

/// Bytes of the stack below the owner of a key that its modes may have left round keys in: CBC of many records
/// takes up to 26 KiB, by how the compiler inlines it.
const DEAD_STACK: usize = 32 * 1024;

/// The round keys of an [`AesKey`], for devices that have no use for a CPU's form of them. Wiped
/// on drop; neither `Debug` nor `Clone`.
pub struct AesSchedule(Box<RoundKeys>);

impl AesSchedule {
    /// 10, 12 or 14.
    pub fn rounds(&self) -> usize {
        self.0.rounds()
    }

    /// The round keys, one more than there are rounds, in the order of their use. The caller keeps
    /// them out of logs, errors and files, and wipes copies.
    pub fn expose(&self) -> &[[u8; BLOCK_LEN]] {
        self.0.keys()
    }
}

/// A message of CBC among many.
pub struct CbcRecord<'a> {
    /// The initialisation vector. Must be unpredictable to an attacker who chooses the plaintext.
    pub iv: [u8; BLOCK_LEN],
    /// Whole blocks.
    pub in_out: &'a mut [u8],
}

impl AesKey {
    /// Bytes of a block.
    pub const BLOCK_LEN: usize = BLOCK_LEN;

    /// Expands a key of 16, 24 or 32 bytes for `kernel`.
    ///
    /// # Errors
    /// [`Error::KeyLength`] for any other length.
    pub fn new(kernel: AesKernel, key: &[u8]) -> Result<Self, Error> {
        let expanded = match kernel {
            AesKernel::Soft => aes_soft::Key::new(key).map(Expanded::Soft),
            #[cfg(target_arch = "x86_64")]
            AesKernel::AesNi(proof) => aes_ni::Key::new(proof, key).map(Expanded::AesNi),
            #[cfg(target_arch = "x86_64")]
            AesKernel::Vaes256(proof) => aes_vaes256::Key::new(proof, key).map(Expanded::Vaes256),
            #[cfg(target_arch = "x86_64")]
            AesKernel::Vaes512(proof) => aes_vaes512::Key::new(proof, key).map(Expanded::Vaes512),
            #[cfg(not(target_arch = "x86_64"))]
            AesKernel::AesNi(_) | AesKernel::Vaes256(_) | AesKernel::Vaes512(_) => {
                unreachable!("no such proof can be made on this architecture")
            }
            #[cfg(target_arch = "aarch64")]
            AesKernel::Armv8(proof) => aes_armv8::Key::new(proof, key).map(Expanded::Armv8),
            #[cfg(not(target_arch = "aarch64"))]
            AesKernel::Armv8(_) => unreachable!("no such proof can be made on this architecture"),
        };
        let wrong_length = || Error::KeyLength { algorithm: "AES", len: key.len() };
        Ok(Self { expanded: expanded.ok_or_else(wrong_length)?, kernel, bits: 8 * key.len() })
    }

    /// The kernel that works with this key.
    pub fn kernel(&self) -> AesKernel {
        self.kernel
    }

    /// 128, 192 or 256.
    pub fn bits(&self) -> usize {
        self.bits
    }

    /// The round keys of the cipher (FIPS 197, 5.2).
    pub fn encrypt_schedule(&self) -> AesSchedule {
        AesSchedule(self.kernel_key().round_keys())
    }

    /// The round keys of the equivalent inverse cipher (FIPS 197, 5.3.5).
    pub fn decrypt_schedule(&self) -> AesSchedule {
        let keys = self.kernel_key().round_keys();
        let mut inverse = Box::new(RoundKeys::empty());
        inverse.inverse_of(&keys, aes_soft::inv_mix_columns);
        AesSchedule(inverse)
    }

    /// CTR with a 128-bit big-endian counter, which wraps: XORs the key stream that starts with
    /// the counter block `iv` onto `in_out`, which lies `offset` bytes into it. Encrypts and
    /// decrypts.
    #[inline]
    pub fn ctr(&self, iv: &[u8; BLOCK_LEN], offset: u64, in_out: &mut [u8]) {
        let block_len = BLOCK_LEN as u64;
        let counter = u128::from_be_bytes(*iv).wrapping_add(u128::from(offset / block_len));
        let skip = (offset % block_len) as usize;
        if skip == 0 {
            return self.kernel_key().ctr(counter, in_out);
        }
        self.ctr_from(counter, skip, in_out);
    }

    /// CTR from a place in a block.
    #[inline(never)]
    fn ctr_from(&self, counter: u128, skip: usize, in_out: &mut [u8]) {
        let (head, whole) = in_out.split_at_mut(in_out.len().min(BLOCK_LEN - skip));
        let mut first = [0; BLOCK_LEN];
        first[skip..][..head.len()].copy_from_slice(head);
        self.kernel_key().ctr(counter, &mut first);
        head.copy_from_slice(&first[skip..][..head.len()]);
        if !whole.is_empty() {
            self.kernel_key().ctr(counter.wrapping_add(1), whole);
        }
    }

    /// ECB: each block by itself. Equal blocks stay equal, which shows.
    ///
    /// # Errors
    /// [`Error::PartialBlock`] if `in_out` is not whole blocks; it is then untouched.
    pub fn ecb_encrypt(&self, in_out: &mut [u8]) -> Result<(), Error> {
        self.kernel_key().encrypt(whole_blocks(in_out)?);
        Ok(())
    }

    /// The inverse of [`AesKey::ecb_encrypt`].
    ///
    /// # Errors
    /// [`Error::PartialBlock`] if `in_out` is not whole blocks; it is then untouched.
    pub fn ecb_decrypt(&self, in_out: &mut [u8]) -> Result<(), Error> {
        self.kernel_key().decrypt(whole_blocks(in_out)?);
        Ok(())
    }

    /// CBC of one message: a chain, so it runs at the latency of the rounds.
    ///
    /// # Errors
    /// [`Error::PartialBlock`] if `in_out` is not whole blocks; it is then untouched.
    pub fn cbc_encrypt(&self, iv: &[u8; BLOCK_LEN], in_out: &mut [u8]) -> Result<(), Error> {
        let blocks = whole_blocks(in_out)?;
        self.kernel_key().cbc_encrypt_lanes(&mut [*iv], &mut [blocks]);
        Ok(())
    }

    /// As [`AesKey::cbc_encrypt`], for the next blocks of a message: `iv` becomes that of those behind them.
    #[inline]
    pub fn cbc_encrypt_blocks(&self, iv: &mut [u8; BLOCK_LEN], blocks: &mut [[u8; BLOCK_LEN]]) {
        self.kernel_key().cbc_encrypt_lanes(std::slice::from_mut(iv), &mut [blocks]);
    }

    /// CBC of many messages side by side, of unequal lengths: as fast as the rounds can start.
    ///
    /// # Errors
    /// [`Error::PartialBlock`] if a record is not whole blocks; all are then untouched.
    pub fn cbc_encrypt_records(&self, records: &mut [CbcRecord<'_>]) -> Result<(), Error> {
        if let [record] = records {
            return self.cbc_encrypt(&record.iv, record.in_out);
        }
        for record in &mut *records {
            whole_blocks(record.in_out)?;
        }
        let records = records.iter_mut().map(|record| (record.iv, record.in_out.as_chunks_mut().0));
        cbc_encrypt_records(self.kernel_key(), records);
        Ok(())
    }

    /// The inverse of [`AesKey::cbc_encrypt`]; blocks do not wait for each other.
    ///
    /// # Errors
    /// [`Error::PartialBlock`] if `in_out` is not whole blocks; it is then untouched.
    pub fn cbc_decrypt(&self, iv: &[u8; BLOCK_LEN], in_out: &mut [u8]) -> Result<(), Error> {
        self.kernel_key().cbc_decrypt(iv, whole_blocks(in_out)?);
        Ok(())
    }

    /// As [`AesKey::cbc_decrypt`], for the next blocks of a message: `iv` becomes that of those behind them.
    #[inline]
    pub fn cbc_decrypt_blocks(&self, iv: &mut [u8; BLOCK_LEN], blocks: &mut [[u8; BLOCK_LEN]]) {
        if let Some(&last) = blocks.last() {
            self.kernel_key().cbc_decrypt(iv, blocks);
            *iv = last;
        }
    }

    /// The round keys, if the key is for AES-NI or more.
    #[cfg(feature = "mac-then-encrypt")]
    pub(crate) fn aes_ni_keys(&self) -> Option<&RoundKeys> {
        match &self.expanded {
            #[cfg(target_arch = "x86_64")]
            Expanded::AesNi(key) => Some(key.encrypt_keys()),
            #[cfg(target_arch = "x86_64")]
            Expanded::Vaes256(key) => Some(key.encrypt_keys()),
            #[cfg(target_arch = "x86_64")]
            Expanded::Vaes512(key) => Some(key.encrypt_keys()),
            #[cfg(target_arch = "aarch64")]
            Expanded::Armv8(_) => None,
            Expanded::Soft(_) => None,
        }
    }

    #[inline]
    fn kernel_key(&self) -> &dyn BlockKernel {
        match &self.expanded {
            Expanded::Soft(key) => key,
            #[cfg(target_arch = "x86_64")]
            Expanded::AesNi(key) => &**key,
            #[cfg(target_arch = "x86_64")]
            Expanded::Vaes256(key) => &**key,
            #[cfg(target_arch = "x86_64")]
            Expanded::Vaes512(key) => &**key,
            #[cfg(target_arch = "aarch64")]
            Expanded::Armv8(key) => &**key,
        }
    }
}

#[inline]
fn whole_blocks(bytes: &mut [u8]) -> Result<&mut [[u8; BLOCK_LEN]], Error> {
    let len = bytes.len();
    match bytes.as_chunks_mut() {
        (blocks, []) => Ok(blocks),
        _ => Err(Error::PartialBlock { len, block_len: BLOCK_LEN }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 197, appendix A.1 and C.1.
    #[test]
    fn every_kernel_exposes_the_schedule_of_the_standard() {
        let key: [u8; 16] = std::array::from_fn(|i| {
            [
                0x2b, 0x7e, 0x15, 0x16, 0x28, 0xae, 0xd2, 0xa6, 0xab, 0xf7, 0x15, 0x88, 0x09, 0xcf,
                0x4f, 0x3c,
            ][i]
        });
        for kernel in AesKernel::all() {
            let schedule = AesKey::new(kernel, &key).unwrap().encrypt_schedule();
            assert_eq!(schedule.rounds(), 10);
            assert_eq!(schedule.expose()[0], key, "{}", kernel.name());
            assert_eq!(schedule.expose()[10][..4], [0xd0, 0x14, 0xf9, 0xa8], "{}", kernel.name());
            assert_eq!(schedule.expose()[10][12..], [0xb6, 0x63, 0x0c, 0xa6], "{}", kernel.name());
        }
        for len in [16, 24, 32] {
            let key = |kernel| AesKey::new(kernel, &vec![0x5a; len]).unwrap();
            let reference = key(AesKernel::Soft).decrypt_schedule();
            for kernel in AesKernel::all() {
                let schedule = key(kernel).decrypt_schedule();
                assert_eq!(schedule.rounds(), len / 4 + 6);
                assert_eq!(schedule.expose(), reference.expose(), "{}", kernel.name());
            }
        }
        // Appendix C.1, the equivalent inverse cipher.
        let key = AesKey::new(AesKernel::Soft, &std::array::from_fn::<u8, 16, _>(|i| i as u8));
        let schedule = key.unwrap().decrypt_schedule();
        let round = |index: usize| u128::from_be_bytes(schedule.expose()[index]);
        assert_eq!(round(0), 0x1311_1d7f_e394_4a17_f307_a78b_4d2b_30c5);
        assert_eq!(round(1), 0x13aa_29be_9c8f_aff6_f770_f580_00f7_bf03);
        assert_eq!(round(10), 0x0001_0203_0405_0607_0809_0a0b_0c0d_0e0f);
    }
}
