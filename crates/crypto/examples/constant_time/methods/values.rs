//! What the registers of a stopped process hold.

use std::arch::x86_64::__cpuid_count;

use super::instruction::Address;

/// The registers' contents before an instruction.
pub struct Values<'a> {
    /// In the order of [`REGISTERS`].
    pub general: [u64; 16],
    pub flags: u64,
    /// Where the thread's segment begins.
    pub thread: u64,
    pub vectors: &'a Extended,
}

impl Values<'_> {
    /// All registers zero.
    #[cfg(test)]
    pub fn of_zeros<T>(run: impl FnOnce(&mut Values<'_>) -> T) -> T {
        let vectors = Extended(vec![0; 4096]);
        run(&mut Values { general: [0; 16], flags: 0, thread: 0, vectors: &vectors })
    }

    /// A place in memory, but for a vector of indices.
    pub fn address(&self, address: &Address) -> u64 {
        let of = |register: Option<usize>| register.map_or(0, |register| self.general[register]);
        let index = of(address.index).wrapping_mul(address.scale);
        let thread = if address.thread { self.thread } else { 0 };
        address.displacement.wrapping_add(of(address.base)).wrapping_add(index).wrapping_add(thread)
    }

    /// Whether a condition, as it ends the name of an instruction, is met. `None` if its name is unknown.
    pub fn holds(&self, condition: &str) -> Option<bool> {
        let set = |flags: u64| self.flags & flags != 0;
        let less = set(SIGN) != set(OVERFLOW);
        Some(match condition {
            "e" => set(ZERO),
            "ne" => !set(ZERO),
            "b" => set(CARRY),
            "ae" => !set(CARRY),
            "be" => set(CARRY | ZERO),
            "a" => !set(CARRY | ZERO),
            "s" => set(SIGN),
            "ns" => !set(SIGN),
            "o" => set(OVERFLOW),
            "no" => !set(OVERFLOW),
            "p" => set(PARITY),
            "np" => !set(PARITY),
            "l" => less,
            "ge" => !less,
            "le" => less || set(ZERO),
            "g" => !less && !set(ZERO),
            _ => return None,
        })
    }

    /// A vector register of 512 bits, as far as this CPU has them.
    pub fn vector(&self, register: usize) -> [u8; 64] {
        self.vectors.vector(register)
    }

    /// A mask register.
    pub fn mask(&self, register: usize) -> u64 {
        self.vectors.mask(register)
    }
}

/// Bits of the register of flags.
pub const CARRY: u64 = 1;
pub const PARITY: u64 = 1 << 2;
pub const ZERO: u64 = 1 << 6;
pub const SIGN: u64 = 1 << 7;
pub const OVERFLOW: u64 = 1 << 11;

/// What XSAVE keeps: vector and mask registers.
#[derive(PartialEq)]
pub struct Extended(pub Vec<u8>);

impl Extended {
    /// The standard format (Intel's manual, volume 1, section 13.4).
    fn part(&self, component: usize, len: usize, register: usize) -> &[u8] {
        let from = COMPONENTS.with(|components| components[component]) + len * register;
        self.0.get(from..from + len).unwrap_or(&[])
    }

    pub fn vector(&self, register: usize) -> [u8; 64] {
        let mut vector = [0; 64];
        if register < 16 {
            vector[..16].copy_from_slice(&self.0[160 + 16 * register..][..16]);
            for (at, component, len) in [(16, 2, 16), (32, 6, 32)] {
                let part = self.part(component, len, register);
                vector[at..at + part.len()].copy_from_slice(part);
            }
        } else {
            let part = self.part(7, 64, register - 16);
            vector[..part.len()].copy_from_slice(part);
        }
        vector
    }

    pub fn mask(&self, register: usize) -> u64 {
        <[u8; 8]>::try_from(self.part(5, 8, register)).map_or(0, u64::from_le_bytes)
    }
}

thread_local! {
    /// Where XSAVE puts each component; past all if this CPU has it not. CPUID leaves the virtual
    /// machine, which takes longer than a step.
    static COMPONENTS: [usize; 8] = std::array::from_fn(|component| {
        let place = __cpuid_count(0xd, component as u32);
        if place.eax == 0 { usize::MAX / 2 } else { place.ebx as usize }
    });
}
