//! The vector instructions of [`Taint`]: which bytes of a result come of which bytes of the operands.
//!
//! An instruction has a grain: bytes stay in their place, in their element, in their lane of 16 bytes,
//! or may go anywhere. What has no rule here goes anywhere.

use super::instruction::{Address, Instruction, Operand};
use super::taint::{Leak, Taint, ones, spread};
use super::values::Values;

/// All that an instruction leaves to be asked.
struct Vector<'a> {
    instruction: &'a Instruction,
    /// Without the `v` of those that clear the upper bytes.
    name: &'a str,
    clears: bool,
    len: usize,
}

impl Taint {
    /// False if the instruction is unknown.
    pub fn vector_step(
        &mut self,
        instruction: &Instruction,
        values: &mut Values<'_>,
        leak: &mut Option<Leak>,
    ) -> bool {
        let written = instruction.name.as_str();
        let stripped = written.strip_prefix('v');
        let name = stripped.unwrap_or(written);
        let len = instruction.vector_len();
        let vector = Vector { instruction, name, clears: stripped.is_some(), len };
        if name == "zeroupper" {
            self.vectors.0[..16].iter_mut().for_each(|bits| *bits &= ones(16));
            return true;
        }
        if name == "zeroall" {
            self.vectors.0[..16].fill(0);
            return true;
        }
        if written.starts_with('k') {
            return self.mask_step(instruction, values);
        }
        let operands = instruction.operands.as_slice();
        let Some(last) = operands.last() else { return false };
        if name.contains("gather") {
            return self.gather(&vector, values);
        }
        if name.contains("scatter") {
            return false;
        }
        if is_flagging(name) {
            let secret = operands.iter().any(|operand| self.any(operand, &vector, values) != 0);
            (self.carry, self.others) = (secret, secret);
            return true;
        }
        let quotient = ["div", "sqrt"].iter().any(|word| name.starts_with(word));
        if quotient && operands.iter().any(|operand| self.any(operand, &vector, values) != 0) {
            *leak = Some(Leak::Time);
        }
        if let Some(len) = moved_part(name, operands) {
            let bits = self.source(&operands[0], len, values);
            self.put(last, len, bits, &vector, values);
            return true;
        }
        if is_whole_move(name) {
            return self.whole_move(&vector, values);
        }
        if let Some(len) = part_len(name, "insert").or_else(|| part_len(name, "pinsr")) {
            return self.insert(&vector, len, values);
        }
        if let Some(len) = part_len(name, "extract").or_else(|| part_len(name, "pextr")) {
            let (Operand::Constant(at), from) = (&operands[0], &operands[1]) else { return false };
            let bits = self.source(from, 64, values) >> (*at as usize * len % 64);
            match last {
                Operand::General { .. } => self.put(last, 8, bits & ones(len), &vector, values),
                _ => self.put(last, len, bits & ones(len), &vector, values),
            }
            return instruction.mask.is_none() || matches!(last, Operand::Vector { .. });
        }
        if let Some(len) = part_len(name, "broadcast")
            .or_else(|| part_len(name, "pbroadcast"))
            .filter(|_| name != "pbroadcastm")
        {
            let bits = self.source(&operands[0], len, values);
            let all = (0..64).step_by(len).fold(0, |all, at| all | (bits & ones(len)) << at);
            return self.finish(&vector, all, values);
        }
        match last {
            Operand::Memory(_) => false,
            Operand::General { .. } | Operand::Mask(_) => {
                let sources = &operands[..operands.len() - 1];
                let any = sources.iter().any(|operand| self.any(operand, &vector, values) != 0)
                    || instruction.mask.is_some_and(|mask| self.masks[mask]);
                self.write_any(last, any);
                true
            }
            _ => self.compute(&vector, values),
        }
    }

    /// What has no rule of its own: the union of all sources, by grain.
    fn compute(&mut self, vector: &Vector<'_>, values: &Values<'_>) -> bool {
        let operands = vector.instruction.operands.as_slice();
        let (last, sources) = operands.split_last().expect("the caller has seen the last");
        let registers = sources.iter().filter(|operand| !matches!(operand, Operand::Constant(_)));
        let mut bits = 0;
        let mut wide = 0;
        for source in registers.clone() {
            match source {
                // A general register among vectors: anywhere.
                Operand::General { .. } | Operand::Mask(_) => {
                    wide |= self.any(source, vector, values);
                }
                _ => bits |= self.source_repeated(source, vector, values),
            }
        }
        let count = registers.count();
        let all_ones =
            vector.name.starts_with("pternlog") && operands[0] == Operand::Constant(0xff);
        let same = vector.clears
            && sources.len() >= 2
            && sources[sources.len() - 1] == sources[sources.len() - 2]
            || !vector.clears && sources.len() == 1 && sources[0] == *last;
        let zero = same
            && ["pxor", "xorp", "psub", "pcmpeq", "pcmpgt", "pandn", "andnp"]
                .iter()
                .any(|name| vector.name.starts_with(name));
        if all_ones || zero {
            return self.finish(vector, 0, values);
        }
        // Two operands: legacy code that adds to the last, unless it only reads one.
        let adds = !vector.clears && !reads_one(vector.name)
            || [
                "pternlog", "permi2", "permt2", "pmadd52", "pdp", "fmadd", "fmsub", "fnm",
                "pshldv", "pshrdv",
            ]
            .iter()
            .any(|name| vector.name.starts_with(name));
        if adds {
            bits |= self.source(last, vector.len, values);
        }
        let counted = ["psll", "psrl", "psra"].iter().any(|name| vector.name.starts_with(name))
            && !vector.name[4..].starts_with('v')
            && !matches!(operands[0], Operand::Constant(_));
        let grain = if counted && count > 0 { 64 } else { grain(vector.name) };
        let mut result = 0;
        for at in (0..64).step_by(grain) {
            result |= spread(bits >> at, grain) << at;
        }
        if wide != 0 {
            result = u64::MAX;
        }
        self.finish(vector, result, values)
    }

    /// Writes a result under the instruction's mask.
    fn finish(&mut self, vector: &Vector<'_>, bits: u64, values: &Values<'_>) -> bool {
        let last = vector.instruction.operands.last().expect("the caller has seen the last");
        let mut bits = bits;
        if let Some(mask) = vector.instruction.mask {
            if self.masks[mask] {
                bits = u64::MAX;
            } else if !vector.instruction.zeroing && !vector.name.starts_with("pblendm") {
                bits |= self.source(last, vector.len, values);
            }
        }
        self.put(last, vector.len, bits, vector, values);
        true
    }

    /// A move of a whole register, from or to a part of memory that a mask chooses.
    fn whole_move(&mut self, vector: &Vector<'_>, values: &mut Values<'_>) -> bool {
        let (from, to) = match vector.instruction.operands.as_slice() {
            [from, to] => (from, to),
            _ => return false,
        };
        let bits = self.source(from, vector.len, values);
        let Some(mask) = vector.instruction.mask else {
            self.put(to, vector.len, bits, vector, values);
            return true;
        };
        let element = element_len(vector.name);
        let chosen = values.mask(mask);
        let bytes = (0..64 / element)
            .filter(|i| chosen >> i & 1 == 1)
            .fold(0, |bytes, i| bytes | ones(element) << (i * element));
        let kept = if vector.instruction.zeroing && !matches!(to, Operand::Memory(_)) {
            0
        } else {
            self.source(to, vector.len, values)
        };
        let mut result = kept & !bytes | bits & bytes;
        if self.masks[mask] {
            result = kept | bits | if matches!(to, Operand::Memory(_)) { 0 } else { u64::MAX };
        }
        self.put(to, vector.len, result, vector, values);
        true
    }

    fn insert(&mut self, vector: &Vector<'_>, len: usize, values: &Values<'_>) -> bool {
        let operands = vector.instruction.operands.as_slice();
        let Operand::Constant(at) = operands[0] else { return false };
        let onto = if vector.clears { &operands[2] } else { operands.last().expect("it has some") };
        let shift = at as usize * len % vector.len;
        let part = self.source(&operands[1], len, values) & ones(len);
        let bits = self.source(onto, vector.len, values) & !(ones(len) << shift) | part << shift;
        self.finish(vector, bits, values)
    }

    /// The elements that the mask chooses.
    fn gather(&mut self, vector: &Vector<'_>, values: &mut Values<'_>) -> bool {
        let instruction = vector.instruction;
        let Some(Address { vector_index: Some((index, index_len)), .. }) = instruction.memory()
        else {
            return false;
        };
        let size = |letter| if letter == Some(&b'd') { 4 } else { 8 };
        let letters = vector.name.as_bytes();
        let [.., from, to] = letters else { return false };
        let (index_size, size) = (size(Some(from)), size(Some(to)));
        let Some(address) = instruction.memory() else { return false };
        let last = instruction.operands.last().expect("it has some");
        let count = (index_len / index_size).min(64 / size);
        let chosen = instruction.mask.map_or(u64::MAX, |mask| values.mask(mask));
        let indices = values.vector(*index);
        let mut bits = self.source(last, 64, values);
        for i in (0..count).filter(|i| chosen >> i & 1 == 1) {
            let bytes = &indices[i * index_size..][..index_size];
            let offset = match bytes {
                [a, b, c, d] => i64::from(i32::from_le_bytes([*a, *b, *c, *d])) as u64,
                _ => u64::from_le_bytes(bytes.try_into().expect("eight bytes")),
            };
            let place = values.address(address).wrapping_add(offset.wrapping_mul(address.scale));
            let element = self.memory(place, size) << (i * size);
            bits = bits & !(ones(size) << (i * size)) | element;
        }
        let Operand::Vector { len, .. } = last else { return false };
        self.put(last, *len, bits, vector, values);
        true
    }

    /// Instructions on mask registers.
    fn mask_step(&mut self, instruction: &Instruction, values: &Values<'_>) -> bool {
        let operands = instruction.operands.as_slice();
        let Some((last, sources)) = operands.split_last() else { return false };
        let len = match instruction.name.as_bytes().last() {
            Some(b'b') => 1,
            Some(b'w') => 2,
            Some(b'd') => 4,
            _ => 8,
        };
        let of = |taint: &Self, operand: &_| taint.source(operand, len, values) != 0;
        if instruction.name.contains("test") {
            let secret = operands.iter().any(|operand| of(self, operand));
            (self.carry, self.others) = (secret, secret);
            return true;
        }
        let same = sources.len() == 2 && sources[0] == sources[1];
        let constant =
            same && (instruction.name.starts_with("kxor") || instruction.name.starts_with("kxnor"));
        let secret = !constant && sources.iter().any(|operand| of(self, operand));
        match last {
            Operand::Memory(address) => {
                self.write_memory(values.address(address), len, if secret { ones(len) } else { 0 });
            }
            register => self.write_any(register, secret),
        }
        true
    }

    // Operands

    fn source(&self, operand: &Operand, len: usize, values: &Values<'_>) -> u64 {
        self.read(operand, len, values)
    }

    /// As [`Taint::source`], with one element of memory for all where the instruction says so.
    fn source_repeated(&self, operand: &Operand, vector: &Vector<'_>, values: &Values<'_>) -> u64 {
        let repeated = vector.instruction.repeated;
        if repeated == 0 || !matches!(operand, Operand::Memory(_)) {
            return self.source(operand, vector.len, values);
        }
        let len = (vector.len / repeated).max(1);
        if self.source(operand, len, values) == 0 { 0 } else { u64::MAX }
    }

    fn any(&self, operand: &Operand, vector: &Vector<'_>, values: &Values<'_>) -> u64 {
        self.source(operand, vector.len.max(8), values)
    }

    fn write_any(&mut self, to: &Operand, secret: bool) {
        self.write_register(to, if secret { ones(8) } else { 0 });
    }

    fn put(
        &mut self,
        to: &Operand,
        len: usize,
        bits: u64,
        vector: &Vector<'_>,
        values: &Values<'_>,
    ) {
        let &Operand::Vector { register, .. } = to else {
            return self.write(to, len, bits & ones(len), values);
        };
        let kept = if vector.clears { 0 } else { self.vectors.0[register] & !ones(len.max(16)) };
        self.vectors.0[register] = kept | bits & ones(len);
    }
}

fn is_flagging(name: &str) -> bool {
    ["ptest", "testp", "comis", "ucomis"].iter().any(|known| name.starts_with(known))
        && !name.starts_with("ptestm")
        && !name.starts_with("ptestnm")
}

/// Bytes of a move between a vector register and a general one or memory, which clears the rest.
fn moved_part(name: &str, operands: &[Operand]) -> Option<usize> {
    let memory = operands.iter().any(|operand| matches!(operand, Operand::Memory(_)));
    match name {
        "movq" => Some(8),
        "movd" => Some(4),
        "movss" if memory => Some(4),
        "movsd" if memory => Some(8),
        // Only the stores: loads leave the other half, by the general rule.
        "movlps" | "movlpd" if matches!(operands.last(), Some(Operand::Memory(_))) => Some(8),
        _ => None,
    }
}

fn is_whole_move(name: &str) -> bool {
    ["mova", "movu", "movdq", "movnt", "lddqu"].iter().any(|known| name.starts_with(known))
}

/// Bytes of an element of `vmovdqu8` and its like.
fn element_len(name: &str) -> usize {
    match name {
        _ if name.ends_with("u8") => 1,
        _ if name.ends_with("16") => 2,
        _ if name.ends_with("64") || name.ends_with("pd") => 8,
        _ => 4,
    }
}

/// Bytes of the part that an instruction with that name works with.
fn part_len(name: &str, what: &str) -> Option<usize> {
    match name.strip_prefix(what)? {
        "b" => Some(1),
        "w" => Some(2),
        "d" | "ss" | "ps" => Some(4),
        "q" | "sd" | "i32x2" | "f32x2" => Some(8),
        "i128" | "f128" | "i32x4" | "f32x4" | "i64x2" | "f64x2" => Some(16),
        "i64x4" | "f64x4" | "i32x8" | "f32x8" => Some(32),
        _ => None,
    }
}

/// Legacy instructions whose result has nothing of what was there.
fn reads_one(name: &str) -> bool {
    [
        "pshufd",
        "pshufhw",
        "pshuflw",
        "pabs",
        "pmovzx",
        "pmovsx",
        "aesimc",
        "aeskeygenassist",
        "movddup",
        "sqrtp",
    ]
    .iter()
    .any(|known| name.starts_with(known))
}

/// Bytes among which those of a result and of the operands may change places: 1, 4, 8, 16, or 64.
fn grain(name: &str) -> usize {
    const BYTES: &[&str] = &[
        "pxor", "por", "pand", "xorp", "orp", "andp", "andnp", "pternlog", "paddb", "psubb",
        "paddusb", "psubusb", "pminub", "pmaxub", "pavgb", "pabsb", "pcmpeqb", "pcmpgtb",
        "pblendmb",
    ];
    const ELEMENTS: &[&str] = &[
        "padd", "psub", "psllv", "psrlv", "psrav", "psllw", "pslld", "psllq", "psrlw", "psrld",
        "psrlq", "psraw", "psrad", "psraq", "prol", "pror", "pmuludq", "pmulld", "pmullq", "pmin",
        "pmax", "pcmpeq", "pcmpgt", "pabs", "pshld", "pshrd", "pmadd52", "pblendm", "gf2p8",
        "pblendw", "pblendd", "blendp",
    ];
    const LANES: &[&str] = &[
        "pshufb", "pshufd", "pshufhw", "pshuflw", "punpck", "unpck", "palignr", "pslldq", "psrldq",
        "aes", "pclmul", "pack", "shufp", "psadbw", "phadd", "permilp", "pblendvb", "movshdup",
        "movsldup", "movddup",
    ];
    let starts = |names: &[&str]| names.iter().any(|known| name.starts_with(known));
    // The lanes first: their names begin as others do.
    match () {
        () if starts(LANES) => 16,
        () if starts(BYTES) => 1,
        () if starts(ELEMENTS) => 8,
        () => 64,
    }
}
