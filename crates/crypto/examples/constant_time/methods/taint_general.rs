//! The instructions of [`Taint`] on general registers.

use super::instruction::{Instruction, Operand, R11, RAX, RBP, RBX, RCX, RDI, RDX, RSI, RSP};
use super::taint::{Leak, Taint, ones};
use super::values::Values;

impl Taint {
    /// False if the instruction is unknown.
    pub(super) fn general_step(
        &mut self,
        instruction: &Instruction,
        values: &mut Values<'_>,
        leak: &mut Option<Leak>,
    ) -> bool {
        let operands = instruction.operands.as_slice();
        let name = instruction.name.as_str();
        if instruction.repeats {
            return self.string_step(instruction, values, leak);
        }
        if let Some(condition) = name.strip_prefix('j').filter(|_| !name.starts_with("jmp")) {
            let secret = match condition {
                "rcxz" | "ecxz" => self.general[RCX] != 0,
                condition => self.condition(condition),
            };
            if secret {
                *leak = Some(Leak::Branch);
            }
            return true;
        }
        if let Some(condition) = name.strip_prefix("set") {
            let secret = self.condition(condition);
            self.write(&operands[0], 1, u64::from(secret), values);
            return true;
        }
        if let (Some(condition), [from, to]) = (name.strip_prefix("cmov"), operands) {
            let len = width(operands).unwrap_or(8);
            let condition = match condition.strip_suffix(['l', 'q', 'w']) {
                Some(
                    stripped @ ("e" | "ne" | "b" | "ae" | "a" | "be" | "s" | "ns" | "g" | "ge"
                    | "le" | "o" | "no" | "p" | "np"),
                ) => stripped,
                _ => condition,
            };
            // A public condition says which of the two it was; what the other held is gone.
            let bits = match values.holds(condition) {
                _ if self.condition(condition) => ones(len),
                Some(true) => self.read(from, len, values),
                Some(false) => self.register(to),
                None => self.read(from, len, values) | self.register(to),
            };
            self.write(to, len, bits, values);
            return true;
        }
        if let Some((from_len, to_len)) = extension(name) {
            let bits = self.read(&operands[0], from_len, values);
            let signed = name.starts_with("movs") && bits >> (from_len - 1) & 1 == 1;
            let upper = if signed { ones(to_len) & !ones(from_len) } else { 0 };
            self.write(&operands[1], to_len, bits | upper, values);
            return true;
        }
        let stripped = name.strip_suffix(['b', 'w', 'l', 'q']);
        let (base, suffix) = match stripped {
            _ if is_known(name) => (name, None),
            Some(stripped) if is_known(stripped) => (stripped, name.bytes().last()),
            _ => return false,
        };
        let suffix = suffix.map(|letter| match letter {
            b'b' => 1,
            b'w' => 2,
            b'l' => 4,
            _ => 8,
        });
        let len = suffix.or_else(|| width(operands)).unwrap_or(8);
        self.arithmetic(base, operands, len, values, leak);
        true
    }

    fn arithmetic(
        &mut self,
        base: &str,
        operands: &[Operand],
        len: usize,
        values: &mut Values<'_>,
        leak: &mut Option<Leak>,
    ) {
        let full = |secret: bool| if secret { ones(len) } else { 0 };
        let bits = operands.iter().map(|operand| {
            let register = match operand {
                // A count, which is narrower.
                Operand::General { register: RCX, len: 1, .. } => 1,
                _ => len,
            };
            self.read(operand, register, values)
        });
        let bits: Vec<u64> = bits.collect();
        let any = bits.iter().any(|bits| *bits != 0);
        let last = operands.last().cloned().unwrap_or(Operand::Other);
        let same = operands.len() == 2
            && operands[0] == operands[1]
            && !matches!(operands[0], Operand::Memory(_));
        match base {
            "mov" | "movabs" => self.write(&last, len, bits[0], values),
            "xor" | "sub" if same => {
                self.write(&last, len, 0, values);
                self.flags(false);
            }
            "xor" | "or" | "and" | "test" => {
                let mut bits = bits[0] | bits[1];
                if let (Operand::Constant(mask), "and" | "test") = (&operands[0], base) {
                    // What is masked away is known.
                    let bytes = mask.to_le_bytes();
                    bits &= (0..8).filter(|i| bytes[*i] != 0).fold(0, |kept, i| kept | 1 << i);
                }
                if base != "test" {
                    self.write(&last, len, bits, values);
                }
                self.flags(bits != 0);
            }
            "add" | "sub" | "neg" | "imul"
                if operands.len() <= 2 && !(base == "imul" && operands.len() == 1) =>
            {
                self.write(&last, len, full(any), values);
                self.flags(any);
            }
            "imul" | "andn" | "bzhi" | "bextr" | "blsr" | "blsi" | "blsmsk" | "popcnt" | "bsf"
            | "bsr" | "tzcnt" | "lzcnt" => {
                if let ("imul", [_]) = (base, operands) {
                    return self.wide_product(any, len);
                }
                let sources = &bits[..bits.len() - 1];
                let any = sources.iter().any(|bits| *bits != 0)
                    // These two leave the register as it was for 0.
                    || matches!(base, "bsf" | "bsr") && any;
                self.write(&last, len, full(any), values);
                self.flags(any);
            }
            "mul" => self.wide_product(any, len),
            "div" | "idiv" => {
                if any || (self.general[RAX] | self.general[RDX]) & ones(len) != 0 {
                    *leak = Some(Leak::Time);
                }
                self.wide_product(any, len);
            }
            "cmp" => self.flags(any && !same),
            "adc" | "sbb" => {
                let secret = self.carry || any && !(base == "sbb" && same);
                self.write(&last, len, full(secret), values);
                self.flags(secret);
            }
            "adcx" => {
                let secret = self.carry || any;
                self.write(&last, len, full(secret), values);
                self.carry = secret;
            }
            "adox" => {
                let secret = self.others || any;
                self.write(&last, len, full(secret), values);
                self.others = secret;
            }
            "inc" | "dec" => {
                self.write(&last, len, full(any), values);
                self.others = any;
            }
            "not" | "bswap" => {
                let bits =
                    if base == "not" { bits[0] } else { bits[0].reverse_bits() >> (64 - len) };
                self.write(&last, len, bits, values);
            }
            "shl" | "sal" | "shr" | "sar" | "shld" | "shrd" => {
                // Flags stay where the count is 0.
                let counted = !matches!(operands[0], Operand::Constant(_)) && operands.len() > 1;
                self.write(&last, len, full(any), values);
                self.carry = any || counted && self.carry;
                self.others = any || counted && self.others;
            }
            "rol" | "ror" | "rcl" | "rcr" => {
                let secret = any || base.starts_with("rc") && self.carry;
                self.write(&last, len, full(secret), values);
                self.carry |= secret;
                self.others |= secret;
            }
            "bt" | "bts" | "btr" | "btc" => {
                if base != "bt" {
                    self.write(&last, len, full(any), values);
                }
                self.carry = any;
            }
            "rorx" | "sarx" | "shlx" | "shrx" | "movbe" => {
                let any = bits[..bits.len() - 1].iter().any(|bits| *bits != 0);
                self.write(&last, len, full(any), values);
            }
            "pext" | "pdep" => {
                // Microcode with a loop, on some CPUs.
                if any {
                    *leak = Some(Leak::Time);
                }
                self.write(&last, len, full(bits[0] | bits[1] != 0), values);
            }
            "mulx" => {
                let secret = bits[0] != 0 || self.general[RDX] & ones(len) != 0;
                self.write(&operands[1], len, full(secret), values);
                self.write(&last, len, full(secret), values);
            }
            "xchg" => {
                self.write(&operands[0], len, bits[1], values);
                self.write(&last, len, bits[0], values);
            }
            "xadd" => {
                self.write(&operands[0], len, bits[1], values);
                self.write(&last, len, full(any), values);
                self.flags(any);
            }
            "cmpxchg" => {
                let secret = any || self.general[RAX] & ones(len) != 0;
                self.write(&last, len, full(secret), values);
                self.general[RAX] = full(secret);
                self.flags(secret);
            }
            "push" => self.write_memory(values.general[RSP].wrapping_sub(8), 8, bits[0]),
            "pop" => {
                let bits = self.memory(values.general[RSP], 8);
                self.write(&last, 8, bits, values);
            }
            "leave" => self.general[RBP] = self.memory(values.general[RBP], 8),
            "call" | "jmp" => {
                if any {
                    *leak = Some(Leak::Address);
                }
                if base == "call" {
                    self.write_memory(values.general[RSP].wrapping_sub(8), 8, 0);
                }
            }
            "ret" if self.memory(values.general[RSP], 8) != 0 => *leak = Some(Leak::Address),
            "clt" => self.sign_extend(RAX, RAX, 4, 8),
            "cwt" => self.sign_extend(RAX, RAX, 2, 4),
            "cqto" => self.sign_extend(RAX, RDX, 8, 8),
            "cltd" => self.sign_extend(RAX, RDX, 4, 4),
            "syscall" => {
                for register in [RAX, RCX, R11] {
                    self.general[register] = 0;
                }
            }
            "cpuid" => [RAX, RBX, RCX, RDX].iter().for_each(|register| self.general[*register] = 0),
            "xgetbv" | "rdtsc" => {
                (self.general[RAX], self.general[RDX]) = (0, 0);
            }
            _ => {}
        }
    }

    fn wide_product(&mut self, secret: bool, len: usize) {
        let secret = secret || self.general[RAX] & ones(len) != 0;
        let bits = if secret { ones(8) } else { 0 };
        (self.general[RAX], self.general[RDX]) = (bits, bits);
        self.flags(secret);
    }

    fn sign_extend(&mut self, from: usize, to: usize, from_len: usize, to_len: usize) {
        let bits = self.general[from] & ones(from_len);
        let upper = if bits >> (from_len - 1) == 1 { ones(to_len) } else { 0 };
        self.general[to] = if from == to { bits | upper & !ones(from_len) } else { upper };
    }

    /// One element of `rep movs` or `rep stos`: the CPU stops after each.
    fn string_step(
        &mut self,
        instruction: &Instruction,
        values: &mut Values<'_>,
        leak: &mut Option<Leak>,
    ) -> bool {
        let name = instruction.name.as_str();
        if name == "ret" || name == "nop" || name == "pause" {
            return true;
        }
        if self.general[RCX] | self.general[RDI] | self.general[RSI] != 0 {
            *leak = Some(Leak::Address);
        }
        if values.general[RCX] == 0 {
            return true;
        }
        // The register of `stos` and the suffix of `movs` say how much.
        let len = width(&instruction.operands).unwrap_or(match name.as_bytes().last() {
            Some(b'b') => 1,
            Some(b'w') => 2,
            Some(b'l') => 4,
            _ => 8,
        });
        let bits = match name {
            "stos" => self.general[RAX],
            _ if name.starts_with("movs") => self.memory(values.general[RSI], len),
            _ => return false,
        };
        self.write_memory(values.general[RDI], len, bits);
        true
    }
}

/// Bytes of the general registers among the operands, but not of a count.
fn width(operands: &[Operand]) -> Option<usize> {
    operands.iter().rev().find_map(|operand| match operand {
        Operand::General { len, .. } => Some(*len),
        _ => None,
    })
}

/// The lengths before and after `movzbl` and its like.
fn extension(name: &str) -> Option<(usize, usize)> {
    let letters = name.strip_prefix("movz").or_else(|| name.strip_prefix("movs"))?.as_bytes();
    let len = |letter| match letter {
        b'b' => Some(1),
        b'w' => Some(2),
        b'l' => Some(4),
        b'q' => Some(8),
        _ => None,
    };
    let [from, to] = letters else { return None };
    Some((len(*from)?, len(*to)?))
}

fn is_known(name: &str) -> bool {
    KNOWN.split_whitespace().any(|known| known == name)
}

/// Names without the letter for the size of the operands.
const KNOWN: &str = "mov movabs xor or and test add sub neg imul mul div idiv andn bzhi bextr blsr \
    blsi blsmsk popcnt bsf bsr tzcnt lzcnt cmp adc sbb adcx adox inc dec not bswap shl sal shr sar \
    shld shrd rol ror rcl rcr bt bts btr btc rorx sarx shlx shrx movbe pext pdep mulx xchg xadd \
    cmpxchg push pop leave call jmp ret clt cwt cqto cltd syscall cpuid xgetbv rdtsc int3 lfence \
    mfence sfence pause cld prefetcht0 prefetcht1 prefetcht2 prefetchnta";
