//! Runs a kernel, block by block and thread by thread.

use super::parse::{Alu, Compare, Inst, Kernel, LOCAL_BASE, Op, Space, Special, Src, Type};

/// Device memory as the launch sees it; implementations check bounds.
pub trait Memory {
    /// `None` where nothing, or not so much, is allocated.
    fn load(&self, address: u64, len: usize) -> Option<u64>;
    /// `None` as above.
    fn store(&mut self, address: u64, len: usize, value: u64) -> Option<()>;
}

/// How many threads run, and with how much shared memory of the launch.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub blocks: u32,
    pub threads: u32,
    pub shared_bytes: usize,
}

/// What a GPU would stop for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing, or too little, is allocated there.
    Address(String),
    /// An access that is not aligned to its size.
    Misaligned(String),
    /// A loop that does not end.
    Endless,
    /// A launch that the kernel was not made for.
    Launch(String),
}

/// Runs `kernel` with `parameters`, laid out as it declares them, and the addresses of the
/// variables of its module.
pub fn launch(
    kernel: &Kernel,
    shape: Shape,
    parameters: &[u8],
    variables: &[u64],
    memory: &mut dyn Memory,
) -> Result<(), Fault> {
    if kernel.most_threads.is_some_and(|most| shape.threads as usize > most) {
        return Err(Fault::Launch(format!("{} threads in a block", shape.threads)));
    }
    let mut parameters = parameters.to_vec();
    parameters.resize(parameters.len() + 8, 0);
    let mut block = Block {
        kernel,
        shape,
        index: 0,
        parameters,
        variables,
        shared: Vec::new(),
        local: vec![0xa5; kernel.local_bytes * shape.threads as usize],
        memory,
    };
    let mut registers = vec![0; kernel.registers * shape.threads as usize];
    for index in 0..shape.blocks {
        block.index = index;
        block.shared.clear();
        block.shared.resize(kernel.shared_bytes + shape.shared_bytes, 0xa5);
        let mut counters: Vec<Option<usize>> = vec![Some(0); shape.threads as usize];
        while counters.iter().any(Option::is_some) {
            for (thread, counter) in counters.iter_mut().enumerate() {
                let Some(start) = *counter else { continue };
                let registers = &mut registers[thread * kernel.registers..][..kernel.registers];
                *counter = block.run(thread as u32, start, registers)?;
            }
        }
    }
    Ok(())
}

struct Block<'a> {
    kernel: &'a Kernel,
    shape: Shape,
    index: u32,
    parameters: Vec<u8>,
    variables: &'a [u64],
    shared: Vec<u8>,
    local: Vec<u8>,
    memory: &'a mut dyn Memory,
}

/// Instructions after which a thread is thought to run for ever.
const MOST_STEPS: u64 = 1 << 32;

impl Block<'_> {
    /// Runs a thread up to the next barrier, behind which it goes on, or to its end.
    fn run(
        &mut self,
        thread: u32,
        start: usize,
        registers: &mut [u64],
    ) -> Result<Option<usize>, Fault> {
        let kernel = self.kernel;
        let mut at = start;
        for _ in 0..MOST_STEPS {
            let Inst { guard, op } = &kernel.code[at];
            at += 1;
            if let Some((predicate, wanted)) = guard
                && (registers[*predicate] & 1 == 1) != *wanted
            {
                continue;
            }
            match op {
                Op::Bra(target) => at = *target,
                Op::Barrier => return Ok(Some(at)),
                Op::Ret => return Ok(None),
                Op::Ld { .. } | Op::St { .. } => self.access(op, thread, registers)?,
                op => self.compute(op, thread, registers),
            }
        }
        Err(Fault::Endless)
    }

    #[inline]
    fn value(&self, source: Src, thread: u32, registers: &[u64]) -> u64 {
        match source {
            Src::Reg(index) => registers[index],
            Src::Imm(value) => value,
            Src::Variable(index) => self.variables[index],
            Src::Special(special) => u64::from(match special {
                Special::Thread => thread,
                Special::Threads => self.shape.threads,
                Special::Block => self.index,
                Special::Blocks => self.shape.blocks,
                Special::Lane => thread % 32,
                Special::Zero => 0,
                Special::One => 1,
            }),
        }
    }

    fn access(&mut self, op: &Op, thread: u32, registers: &mut [u64]) -> Result<(), Fault> {
        let (Op::Ld { space, of, base, offset, .. } | Op::St { space, of, base, offset, .. }) = op
        else {
            return Ok(());
        };
        let count = match op {
            Op::Ld { d, .. } => d.len(),
            Op::St { s, .. } => s.len(),
            _ => 0,
        };
        let bytes = of.bits as usize / 8;
        let base = self.value(*base, thread, registers);
        let mut address = base.wrapping_add(*offset as u64);
        if *space == Space::Shared {
            address &= 0xffff_ffff;
        }
        if !address.is_multiple_of((bytes * count) as u64) {
            return Err(Fault::Misaligned(format!("{op:?} at {address:#x}")));
        }
        for n in 0..count {
            let place = address + (n * bytes) as u64;
            let done = match op {
                Op::Ld { d, .. } => self.load(*space, place, bytes, thread).map(|value| {
                    registers[d[n]] = if of.signed { extend(value, *of) as u64 } else { value };
                }),
                Op::St { s, .. } => {
                    let value = self.value(s[n], thread, registers);
                    self.store(*space, place, bytes, thread, value)
                }
                _ => None,
            };
            done.ok_or_else(|| Fault::Address(format!("{op:?} at {place:#x}")))?;
        }
        Ok(())
    }

    fn load(&self, space: Space, address: u64, len: usize, thread: u32) -> Option<u64> {
        let at = address as usize;
        match space {
            Space::Param => number(self.parameters.get(at..at + len)?),
            Space::Shared => number(self.shared.get(at..at + len)?),
            Space::Global if address < LOCAL_BASE => self.memory.load(address, len),
            Space::Global | Space::Local => {
                number(self.local.get(self.own(address, len, thread)?)?)
            }
        }
    }

    fn store(
        &mut self,
        space: Space,
        address: u64,
        len: usize,
        thread: u32,
        value: u64,
    ) -> Option<()> {
        let at = address as usize;
        let target = match space {
            Space::Param => return None,
            Space::Shared => self.shared.get_mut(at..at + len)?,
            Space::Global if address < LOCAL_BASE => return self.memory.store(address, len, value),
            Space::Global | Space::Local => {
                let own = self.own(address, len, thread)?;
                self.local.get_mut(own)?
            }
        };
        target.copy_from_slice(&value.to_le_bytes()[..len]);
        Some(())
    }

    /// Where a thread's own memory holds `address`.
    fn own(&self, address: u64, len: usize, thread: u32) -> Option<std::ops::Range<usize>> {
        let at = address.checked_sub(LOCAL_BASE)? as usize;
        let start = thread as usize * self.kernel.local_bytes + at;
        (at + len <= self.kernel.local_bytes).then_some(start..start + len)
    }

    fn compute(&self, op: &Op, thread: u32, registers: &mut [u64]) {
        let get = |source: &Src| self.value(*source, thread, registers);
        let get32 = |source: &Src| self.value(*source, thread, registers) as u32;
        let (d, value) = match op {
            Op::Mov(d, a) => (*d, get(a)),
            Op::Alu(alu, of, d, a, b) => (*d, alu_of(*alu, *of, get(a), get(b))),
            Op::Prmt(d, a, b, c) => (*d, permute(get32(a), get32(b), get32(c)).into()),
            Op::Lop3(d, a, b, c, table) => {
                (*d, look_up(get32(a), get32(b), get32(c), get32(table)).into())
            }
            Op::Shf { left, wrap, d, a, b, c } => {
                let pair = (u64::from(get32(b)) << 32) | u64::from(get32(a));
                let by = if *wrap { get32(c) & 31 } else { get32(c).min(32) };
                let shifted = if *left { (pair << by) >> 32 } else { pair >> by };
                (*d, shifted & 0xffff_ffff)
            }
            Op::MulWide(of, d, a, b) => {
                let product = extend(get(a), *of).wrapping_mul(extend(get(b), *of)) as u64;
                (*d, product & mask(2 * of.bits))
            }
            Op::Mad { wide, of, d, a, b, c } => {
                let product = extend(get(a), *of).wrapping_mul(extend(get(b), *of)) as u64;
                let bits = if *wide { 2 * of.bits } else { of.bits };
                (*d, product.wrapping_add(get(c)) & mask(bits))
            }
            Op::Not(of, d, a) => (*d, !get(a) & mask(of.bits)),
            Op::Neg(of, d, a) => (*d, get(a).wrapping_neg() & mask(of.bits)),
            Op::Cvt { to, from, d, a } => (*d, extend(get(a), *from) as u64 & mask(to.bits)),
            Op::Bfe(of, d, a, b, c) => (*d, extract(*of, get(a), get32(b), get32(c))),
            Op::Bfi(of, d, a, b, c, len) => {
                let (at, len) = (get32(c) & 0xff, get32(len) & 0xff);
                let field = if at < of.bits { mask(len) << at & mask(of.bits) } else { 0 };
                let moved = if at < of.bits { get(a) << at } else { 0 };
                (*d, (get(b) & !field) | (moved & field))
            }
            Op::Count { ones, bits, d, a } => {
                let value = get(a) & mask(*bits);
                let zeros = value.leading_zeros() - (64 - bits);
                (*d, u64::from(if *ones { value.count_ones() } else { zeros }))
            }
            Op::Reverse(of, d, a) => (*d, get(a).reverse_bits() >> (64 - of.bits)),
            Op::Setp(compare, of, d, a, b) => {
                (*d, u64::from(holds(*compare, extend(get(a), *of), extend(get(b), *of))))
            }
            Op::Selp(d, a, b, p) => (*d, if get(p) & 1 == 1 { get(a) } else { get(b) }),
            Op::Pack(d, bits, parts) => {
                let joined = parts
                    .iter()
                    .rev()
                    .fold(0, |all, part| (all << bits) | (get(part) & mask(*bits)));
                (*d, joined)
            }
            Op::Unpack(parts, bits, a) => {
                let all = get(a);
                for (n, part) in parts.iter().enumerate() {
                    registers[*part] = all >> (n as u32 * bits) & mask(*bits);
                }
                return;
            }
            Op::Ld { .. } | Op::St { .. } | Op::Bra(_) | Op::Barrier | Op::Ret => return,
        };
        registers[d] = value;
    }
}

/// The low `len` bytes, at most eight.
fn number(bytes: &[u8]) -> Option<u64> {
    let mut value = [0; 8];
    value.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(u64::from_le_bytes(value))
}

fn mask(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

/// As a number that no 64-bit type overflows.
fn extend(value: u64, of: Type) -> i128 {
    let value = value & mask(of.bits);
    if of.signed && value >> (of.bits - 1) & 1 == 1 {
        i128::from((value | !mask(of.bits)) as i64)
    } else {
        i128::from(value)
    }
}

fn alu_of(alu: Alu, of: Type, a: u64, b: u64) -> u64 {
    let wide = |value: u64| extend(value, of);
    let result = match alu {
        Alu::Add => a.wrapping_add(b),
        Alu::Sub => a.wrapping_sub(b),
        Alu::MulLo => a.wrapping_mul(b),
        Alu::MulHi if of.signed => (wide(a).wrapping_mul(wide(b)) >> of.bits) as u64,
        Alu::MulHi => ((wide(a) as u128).wrapping_mul(wide(b) as u128) >> of.bits) as u64,
        Alu::Div => wide(a).checked_div(wide(b)).map_or(u64::MAX, |value| value as u64),
        Alu::Rem => wide(a).checked_rem(wide(b)).map_or(a, |value| value as u64),
        Alu::And => a & b,
        Alu::Or => a | b,
        Alu::Xor => a ^ b,
        Alu::Shl => a.checked_shl((b as u32).min(64)).unwrap_or(0),
        // Amounts beyond the width are clamped to it, and the sign fills.
        Alu::Shr => (wide(a) >> (b as u32).min(of.bits)) as u64,
        Alu::Min => wide(a).min(wide(b)) as u64,
        Alu::Max => wide(a).max(wide(b)) as u64,
    };
    result & mask(of.bits)
}

/// Four bytes out of eight, or their signs, as `prmt.b32` without a mode chooses them.
fn permute(a: u32, b: u32, selector: u32) -> u32 {
    let bytes = ((u64::from(b) << 32) | u64::from(a)).to_le_bytes();
    u32::from_le_bytes(std::array::from_fn(|n| {
        let choice = selector >> (4 * n);
        let byte = bytes[(choice & 7) as usize];
        if choice & 8 == 0 { byte } else { ((byte as i8) >> 7) as u8 }
    }))
}

/// Any function of three bits, given as its table.
fn look_up(a: u32, b: u32, c: u32, table: u32) -> u32 {
    (0..8).filter(|index| table >> index & 1 == 1).fold(0, |all, index| {
        let pick = |word: u32, bit: u32| if index >> bit & 1 == 1 { word } else { !word };
        all | (pick(a, 2) & pick(b, 1) & pick(c, 0))
    })
}

fn extract(of: Type, value: u64, at: u32, len: u32) -> u64 {
    let (at, len) = (at & 0xff, len & 0xff);
    if len == 0 {
        return 0;
    }
    let shifted = extend(value, of) >> at.min(of.bits);
    let len = len.min(of.bits);
    (extend(shifted as u64, Type { bits: len, signed: of.signed }) as u64) & mask(of.bits)
}

fn holds(compare: Compare, a: i128, b: i128) -> bool {
    match compare {
        Compare::Eq => a == b,
        Compare::Ne => a != b,
        Compare::Lt => a < b,
        Compare::Le => a <= b,
        Compare::Gt => a > b,
        Compare::Ge => a >= b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permutes_as_the_reference_says() {
        assert_eq!(permute(0x3322_1100, 0x7766_5544, 0x7531), 0x7755_3311);
        assert_eq!(permute(0x0000_0080, 0, 0x0008), 0x8080_80ff);
    }

    #[test]
    fn looks_up_as_the_reference_says() {
        let (a, b, c) = (0xf0f0_1234, 0xcccc_5678, 0xaaaa_9abc);
        assert_eq!(look_up(a, b, c, 0x96), a ^ b ^ c);
        assert_eq!(look_up(a, b, c, 0x80), a & b & c);
        assert_eq!(look_up(a, b, c, 0xca), (a & b) | (!a & c));
    }
}
