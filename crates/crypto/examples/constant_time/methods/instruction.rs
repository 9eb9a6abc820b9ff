//! An instruction as objdump writes it, in AT&T syntax: its name and its operands, the last of which
//! is written.

/// General registers, in the order of the kernel's `user_regs_struct`.
pub const REGISTERS: [&str; 16] = [
    "r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi",
    "rdi", "rsp",
];

/// Places in [`REGISTERS`].
pub const RBP: usize = 4;
pub const RBX: usize = 5;
pub const R11: usize = 6;
pub const RAX: usize = 10;
pub const RCX: usize = 11;
pub const RDX: usize = 12;
pub const RSI: usize = 13;
pub const RDI: usize = 14;
pub const RSP: usize = 15;

/// Name, operands, and what is appended to them.
#[derive(Debug, Default)]
pub struct Instruction {
    /// As objdump writes it.
    pub text: String,
    pub name: String,
    pub operands: Vec<Operand>,
    /// `rep` and its like: done once for each of `rcx`.
    pub repeats: bool,
    /// The mask register behind an operand.
    pub mask: Option<usize>,
    /// What is masked becomes zero.
    pub zeroing: bool,
    /// The elements that a memory operand is repeated for, or 0.
    pub repeated: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    Constant(u64),
    /// A part of a general register: its place in [`REGISTERS`], its first byte and its bytes.
    General {
        register: usize,
        from: usize,
        len: usize,
    },
    /// The lower bytes of a vector register.
    Vector {
        register: usize,
        len: usize,
    },
    Mask(usize),
    Memory(Address),
    /// Where a direct jump goes, and registers that nobody computes with.
    Other,
}

/// What a place in memory is computed of.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Address {
    pub base: Option<usize>,
    pub index: Option<usize>,
    /// Of a gather or scatter.
    pub vector_index: Option<(usize, usize)>,
    pub scale: u64,
    pub displacement: u64,
    /// Relative to the thread's segment.
    pub thread: bool,
    /// Relative to the instruction: then the displacement is the place in the file.
    pub in_file: bool,
}

impl Instruction {
    pub fn parse(text: &str) -> Self {
        let mut parsed = Self { text: text.to_owned(), ..Self::default() };
        let (code, comment) = text.split_once('#').unwrap_or((text, ""));
        let code = code.split('<').next().unwrap_or_default().trim();
        let mut rest = code;
        while let Some((word, behind)) = rest.split_once(char::is_whitespace) {
            if !PREFIXES.contains(&word) {
                break;
            }
            parsed.repeats |= word.starts_with("rep");
            rest = behind.trim_start();
        }
        let (name, operands) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        parsed.name = name.to_owned();
        for operand in split_operands(operands.trim()) {
            let mut operand = operand.trim();
            while let Some((before, decoration)) = operand.rsplit_once('{') {
                let decoration = decoration.trim_end_matches('}');
                if let Some(mask) = decoration.strip_prefix("%k") {
                    parsed.mask = mask.parse().ok();
                } else if decoration == "z" {
                    parsed.zeroing = true;
                } else if let Some(count) = decoration.strip_prefix("1to") {
                    parsed.repeated = count.parse().unwrap_or(0);
                }
                operand = before;
            }
            if !operand.is_empty() {
                parsed.operands.push(parse_operand(operand, comment));
            }
        }
        parsed
    }

    /// The memory operand, if there is one.
    pub fn memory(&self) -> Option<&Address> {
        self.operands.iter().find_map(|operand| match operand {
            Operand::Memory(address) => Some(address),
            _ => None,
        })
    }

    /// True if a vector or mask register is among the operands.
    pub fn is_vector(&self) -> bool {
        let vector = |operand: &_| matches!(operand, Operand::Vector { .. } | Operand::Mask(_));
        self.operands.iter().any(vector)
    }

    /// Bytes of the widest vector operand.
    pub fn vector_len(&self) -> usize {
        let len = |operand: &Operand| match operand {
            Operand::Vector { len, .. } => *len,
            _ => 0,
        };
        self.operands.iter().map(len).max().unwrap_or(0)
    }
}

/// At the commas outside parentheses.
fn split_operands(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    text.split(move |c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth == 0
    })
    .filter(|operand| !operand.is_empty())
}

fn parse_operand(text: &str, comment: &str) -> Operand {
    let text = text.trim_start_matches('*');
    if let Some(constant) = text.strip_prefix('$') {
        return Operand::Constant(number(constant));
    }
    if !text.contains('(') {
        if let Some(name) = text.strip_prefix("%fs:") {
            let displacement = number(name);
            return Operand::Memory(Address { displacement, thread: true, ..Address::default() });
        }
        return text.strip_prefix('%').map_or(Operand::Other, parse_register);
    }
    let thread = text.starts_with("%fs:");
    let text = text.rsplit(':').next().unwrap_or_default();
    let (displacement, inside) = text.split_once('(').unwrap_or((text, ""));
    let mut address = Address { displacement: number(displacement), thread, ..Address::default() };
    let mut parts =
        inside.trim_end_matches(')').split(',').map(|part| part.trim_start_matches('%'));
    match parts.next() {
        Some("rip") => {
            address.in_file = true;
            address.displacement =
                u64::from_str_radix(comment.split_whitespace().next().unwrap_or(""), 16)
                    .unwrap_or(0);
        }
        Some(base) => {
            if let Operand::General { register, .. } = parse_register(base) {
                address.base = Some(register);
            }
        }
        None => {}
    }
    match parts.next().map(parse_register) {
        Some(Operand::General { register, .. }) => address.index = Some(register),
        Some(Operand::Vector { register, len }) => address.vector_index = Some((register, len)),
        _ => {}
    }
    address.scale = parts.next().map_or(1, number);
    Operand::Memory(address)
}

/// A register's name without its sign.
fn parse_register(name: &str) -> Operand {
    let digits = name.trim_start_matches(|c: char| c.is_ascii_lowercase());
    let number = digits.parse().unwrap_or(99);
    let vector = |len| Operand::Vector { register: number, len };
    match name.as_bytes() {
        [b'x', b'm', ..] if number < 32 => return vector(16),
        [b'y', b'm', ..] if number < 32 => return vector(32),
        [b'z', b'm', ..] if number < 32 => return vector(64),
        [b'k', _] if number < 8 => return Operand::Mask(number),
        _ => {}
    }
    let general = |wide: &str, from, len| {
        let place = REGISTERS.iter().position(|known| *known == wide);
        place.map(|register| Operand::General { register, from, len })
    };
    if let Some(operand) = general(name, 0, 8) {
        return operand;
    }
    let numbered = name.starts_with('r');
    let found = match name.as_bytes() {
        [.., b'd'] if numbered => general(name.trim_end_matches('d'), 0, 4),
        [.., b'w'] if numbered => general(name.trim_end_matches('w'), 0, 2),
        [.., b'b'] if numbered => general(name.trim_end_matches('b'), 0, 1),
        [b'e', rest @ ..] => general(&format!("r{}", String::from_utf8_lossy(rest)), 0, 4),
        [letter, b'l'] if b"abcd".contains(letter) => {
            general(&format!("r{}x", char::from(*letter)), 0, 1)
        }
        [letter, b'h'] if b"abcd".contains(letter) => {
            general(&format!("r{}x", char::from(*letter)), 1, 1)
        }
        [_, _, b'l'] => general(&format!("r{}", name.trim_end_matches('l')), 0, 1),
        [_, _] => general(&format!("r{name}"), 0, 2),
        _ => None,
    };
    found.unwrap_or(Operand::Other)
}

/// As objdump writes it: hexadecimal, perhaps negative, or decimal.
fn number(text: &str) -> u64 {
    let (negative, text) = text.strip_prefix('-').map_or((false, text), |text| (true, text));
    let value = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    let value = value.unwrap_or(0);
    if negative { value.wrapping_neg() } else { value }
}

const PREFIXES: [&str; 12] = [
    "rep", "repz", "repnz", "lock", "notrack", "bnd", "data16", "cs", "ds", "es", "{evex}", "{vex}",
];
