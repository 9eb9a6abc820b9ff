//! Which bytes of registers and memory came of secrets, followed from instruction to instruction: what
//! memcheck does, for what runs on this CPU, AVX-512 included. It never says of a byte that came
//! of a secret that it did not; where it does not know an instruction it says so.

use std::collections::HashMap;

use super::instruction::{Address, Instruction, Operand};
use super::values::Values;

/// Bit `i` of a mask stands for byte `i`.
#[derive(Default)]
pub struct Taint {
    pub general: [u64; 16],
    pub vectors: Vectors,
    pub masks: [bool; 8],
    /// The carry flag, and the other flags.
    pub carry: bool,
    pub others: bool,
    memory: HashMap<u64, u64>,
}

/// Those of the vector registers.
#[derive(Default)]
pub struct Vectors(pub [u64; 32]);

/// What an instruction does with secrets that it must not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leak {
    /// A conditional jump: public only if it is the answer.
    Branch,
    /// An address, a mask of memory, the target of a jump or a count of repetitions.
    Address,
    /// Operands of an instruction whose time depends on them.
    Time,
    /// An instruction that this file does not know.
    Unknown,
}

impl Taint {
    /// Marks memory.
    pub fn mark(&mut self, start: u64, len: usize) {
        (start..start + len as u64).for_each(|place| self.write_memory(place, 1, 1));
    }

    /// How many bytes of that memory are not marked.
    pub fn unmarked(&self, start: u64, len: usize) -> usize {
        (start..start + len as u64).filter(|place| self.memory(*place, 1) == 0).count()
    }

    /// Does what `instruction` does, from the values before it.
    pub fn step(&mut self, instruction: &Instruction, values: &mut Values<'_>) -> Option<Leak> {
        let name = instruction.name.as_str();
        if ["nop", "endbr", "prefetchw", "lea"].iter().any(|harmless| name.starts_with(harmless)) {
            if name.starts_with("lea") && name != "leave" {
                self.lea(instruction);
                return None;
            }
            if !name.starts_with("lea") {
                return None;
            }
        }
        let mut leak = None;
        if let Some(address) = instruction.memory()
            && self.address_is_secret(address, instruction)
        {
            leak = Some(Leak::Address);
        }
        let known = if instruction.is_vector() || name.starts_with("vzero") {
            self.vector_step(instruction, values, &mut leak)
        } else {
            self.general_step(instruction, values, &mut leak)
        };
        if known { leak } else { Some(Leak::Unknown) }
    }

    fn address_is_secret(&self, address: &Address, instruction: &Instruction) -> bool {
        let secret = |register: Option<usize>| register.is_some_and(|at| self.general[at] != 0);
        secret(address.base)
            || secret(address.index)
            || address.vector_index.is_some_and(|(at, len)| self.vectors.0[at] & ones(len) != 0)
            || instruction.mask.is_some_and(|mask| self.masks[mask])
    }

    fn lea(&mut self, instruction: &Instruction) {
        let (Some(address), Some(to)) = (instruction.memory(), instruction.operands.last()) else {
            return;
        };
        let parts = [address.base, address.index];
        let bits = parts.iter().flatten().fold(0, |bits, at| bits | self.general[*at]);
        let &Operand::General { len, .. } = to else { return };
        self.write_register(to, spread(bits, len));
    }

    // Registers and memory

    pub(super) fn memory(&self, start: u64, len: usize) -> u64 {
        let line = |line: u64| self.memory.get(&line).copied().unwrap_or(0);
        let shift = start % 64;
        let mut bits = line(start / 64) >> shift;
        if shift > 0 {
            bits |= line(start / 64 + 1) << (64 - shift);
        }
        bits & ones(len)
    }

    pub(super) fn write_memory(&mut self, start: u64, len: usize, bits: u64) {
        let (shift, bits, kept) = (start % 64, bits & ones(len), ones(len));
        let low = self.memory.entry(start / 64).or_default();
        *low = *low & !(kept << shift) | bits << shift;
        if shift > 0 && shift + len as u64 > 64 {
            let high = self.memory.entry(start / 64 + 1).or_default();
            *high = *high & !(kept >> (64 - shift)) | bits >> (64 - shift);
        }
    }

    /// Of a general register, a mask register or a vector register of that length.
    pub(super) fn register(&self, operand: &Operand) -> u64 {
        match *operand {
            Operand::General { register, from, len } => self.general[register] >> from & ones(len),
            Operand::Vector { register, len } => self.vectors.0[register] & ones(len),
            Operand::Mask(mask) => u64::from(self.masks[mask]) * ones(8),
            _ => 0,
        }
    }

    pub(super) fn read(&self, operand: &Operand, len: usize, values: &Values<'_>) -> u64 {
        match operand {
            Operand::Memory(address) => self.memory(values.address(address), len),
            register => self.register(register) & ones(len),
        }
    }

    /// Writing 4 bytes clears the upper half, fewer leave the rest.
    pub(super) fn write_register(&mut self, to: &Operand, bits: u64) {
        match *to {
            Operand::General { register, from, len } => {
                let kept = if len >= 4 { 0 } else { self.general[register] & !(ones(len) << from) };
                self.general[register] = kept | (bits & ones(len)) << from;
            }
            Operand::Mask(mask) => self.masks[mask] = bits != 0,
            _ => {}
        }
    }

    pub(super) fn write(&mut self, to: &Operand, len: usize, bits: u64, values: &Values<'_>) {
        match to {
            Operand::Memory(address) => self.write_memory(values.address(address), len, bits),
            register => self.write_register(register, bits),
        }
    }

    pub(super) fn flags(&mut self, secret: bool) {
        (self.carry, self.others) = (secret, secret);
    }

    /// Whether the condition at the end of a name reads a secret flag.
    pub(super) fn condition(&self, suffix: &str) -> bool {
        match suffix {
            "b" | "ae" | "c" | "nc" | "nae" | "nb" => self.carry,
            "a" | "be" | "na" | "nbe" => self.carry || self.others,
            _ => self.others,
        }
    }
}

/// The bits of that number of bytes.
pub fn ones(len: usize) -> u64 {
    if len >= 64 { u64::MAX } else { (1 << len) - 1 }
}

/// All bytes if one is marked.
pub fn spread(bits: u64, len: usize) -> u64 {
    if bits & ones(len) == 0 { 0 } else { ones(len) }
}

#[cfg(test)]
mod tests {
    use super::super::instruction::RAX;
    use super::*;

    /// With `rax` and `zmm1` secret, and flags that are not.
    fn step(taint: &mut Taint, text: &str) -> Option<Leak> {
        Values::of_zeros(|values| taint.step(&Instruction::parse(text), values))
    }

    fn secret() -> Taint {
        let mut taint = Taint::default();
        taint.general[RAX] = ones(8);
        taint.vectors.0[1] = ones(64);
        taint
    }

    #[test]
    fn finds_addresses_and_times_that_are_secret() {
        for (leak, text) in [
            (Leak::Address, "mov    (%rcx,%rax,4),%edx"),
            (Leak::Address, "movzbl 0x12(%rax),%eax"),
            (Leak::Address, "jmp    *%rax"),
            (Leak::Address, "vpgatherdd (%rcx,%zmm1,4),%zmm0{%k1}"),
            (Leak::Time, "div    %rcx"),
            (Leak::Time, "divl   0x8(%rsp)"),
            (Leak::Unknown, "xlat   %ds:(%rbx)"),
        ] {
            assert_eq!(step(&mut secret(), text), Some(leak), "{text}");
        }
        for harmless in [
            "mov    (%rcx,%rdx,4),%eax",
            "lea    (%rcx,%rax,4),%edx",
            "xor    %rax,%rcx",
            "nopw   0x0(%rax,%rax,1)",
            "call   1234 <function(%rax)>",
            "movaps %xmm1,0x10(%rsp)",
            "jne    1234 <function>",
        ] {
            assert_eq!(step(&mut secret(), harmless), None, "{harmless}");
        }
    }

    /// Whether a jump after these instructions is on a secret.
    #[test]
    fn follows_secrets_to_flags() {
        for (leaks, texts) in [
            (true, &["cmp    $0x4d,%al"][..]),
            (true, &["movzbl %ah,%ecx", "add    $0x3,%rdx", "test   %ecx,%ecx"]),
            (true, &["push   %rax", "mov    -0x8(%rsp),%rbx", "dec    %ebx"]),
            (true, &["mov    %rax,0x40(%rcx)", "cmpb   $0x1,0x7(%rip)        # 47 <x>"]),
            (true, &["vpcmpeqb %zmm2,%zmm1,%k2", "kortestq %k2,%k2"]),
            (true, &["vpshufb %xmm3,%xmm1,%xmm4", "vmovq  %xmm4,%rbx", "bzhi   %rcx,%rbx,%rdx"]),
            (true, &["aesenc %xmm2,%xmm1", "pmovmskb %xmm1,%edx", "sub    $0x1,%edx"]),
            (true, &["cmp    $0x1,%rax", "sete   %cl", "mov    %ecx,%edx", "test   %dl,%dl"]),
            (true, &["cmp    $0x1,%rax", "cmovne %rbx,%rcx", "test   %rcx,%rcx"]),
            // No flag is set here: "above" is met, and "equal" is not.
            (true, &["cmova  %rax,%rcx", "test   %rcx,%rcx"]),
            (true, &["cmove  %rcx,%rax", "test   %rax,%rax"]),
            (false, &["cmove  %rax,%rcx", "test   %rcx,%rcx"]),
            (false, &["cmova  %rcx,%rax", "test   %rax,%rax"]),
            (false, &["cmp    $0x4d,%bl"]),
            (false, &["cmp    $0x1,%rax", "xor    %ecx,%ecx"]),
            (false, &["cmp    $0x1,%rax", "sub    $0x1,%rdx"]),
            (false, &["mov    $0x5,%eax", "test   %rax,%rax"]),
            (false, &["vpxor  %xmm1,%xmm1,%xmm1", "vptest %ymm1,%ymm1"]),
            (false, &["vpaddq %zmm2,%zmm3,%zmm1", "vpcmpeqb %zmm2,%zmm1,%k2", "kortestq %k2,%k2"]),
        ] {
            let mut taint = secret();
            for text in texts {
                assert_eq!(step(&mut taint, text), None, "{text}");
            }
            let leak = step(&mut taint, "jbe    1234 <function>");
            assert_eq!(leak == Some(Leak::Branch), leaks, "{texts:?}");
        }
    }
}
