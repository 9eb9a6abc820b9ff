//! From the text of a module to instructions whose registers, labels and symbols are numbers: long,
//! because PTX has many words.

use std::collections::HashMap;

/// What a text declares.
#[derive(Debug, Default)]
pub struct Module {
    /// As `.version` says it, in tenths.
    pub version: u32,
    /// Variables in constant or global memory: name, alignment, first bytes.
    pub variables: Vec<(String, usize, Vec<u8>)>,
    pub kernels: HashMap<String, Kernel>,
}

#[derive(Debug, Default)]
pub struct Kernel {
    /// Offset and size of each parameter.
    pub parameters: Vec<(usize, usize)>,
    /// The most threads of a block that it was compiled for.
    pub most_threads: Option<usize>,
    pub registers: usize,
    /// Bytes of memory of its own that each thread needs.
    pub local_bytes: usize,
    /// Bytes of shared memory that it declares, without what the launch asks for.
    pub shared_bytes: usize,
    pub code: Vec<Inst>,
}

#[derive(Debug)]
pub struct Inst {
    /// The predicate that has to be true, or false.
    pub guard: Option<(usize, bool)>,
    pub op: Op,
}

/// A scalar type: bits, and whether it has a sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Type {
    pub bits: u32,
    pub signed: bool,
}

#[derive(Clone, Copy, Debug)]
pub enum Src {
    Reg(usize),
    Imm(u64),
    /// The address of a variable of the module, which the launch knows.
    Variable(usize),
    Special(Special),
}

#[derive(Clone, Copy, Debug)]
pub enum Special {
    Thread,
    Threads,
    Block,
    Blocks,
    Lane,
    Zero,
    One,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    Global,
    Shared,
    Param,
    Local,
}

#[derive(Clone, Copy, Debug)]
pub enum Alu {
    Add,
    Sub,
    MulLo,
    MulHi,
    Div,
    Rem,
    And,
    Or,
    Xor,
    Shl,
    Shr,
    Min,
    Max,
}

#[derive(Clone, Copy, Debug)]
pub enum Compare {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

#[derive(Debug)]
pub enum Op {
    Mov(usize, Src),
    Pack(usize, u32, Vec<Src>),
    Unpack(Vec<usize>, u32, Src),
    Alu(Alu, Type, usize, Src, Src),
    MulWide(Type, usize, Src, Src),
    /// Product of the type, plus a third operand; twice as wide if so said.
    Mad {
        wide: bool,
        of: Type,
        d: usize,
        a: Src,
        b: Src,
        c: Src,
    },
    Not(Type, usize, Src),
    Neg(Type, usize, Src),
    Cvt {
        to: Type,
        from: Type,
        d: usize,
        a: Src,
    },
    Prmt(usize, Src, Src, Src),
    Lop3(usize, Src, Src, Src, Src),
    /// Funnel shift to the left or right; the amount wraps or is clamped.
    Shf {
        left: bool,
        wrap: bool,
        d: usize,
        a: Src,
        b: Src,
        c: Src,
    },
    Bfe(Type, usize, Src, Src, Src),
    Bfi(Type, usize, Src, Src, Src, Src),
    Count {
        ones: bool,
        bits: u32,
        d: usize,
        a: Src,
    },
    Reverse(Type, usize, Src),
    Setp(Compare, Type, usize, Src, Src),
    Selp(usize, Src, Src, Src),
    Ld {
        space: Space,
        of: Type,
        d: Vec<usize>,
        base: Src,
        offset: i64,
    },
    St {
        space: Space,
        of: Type,
        s: Vec<Src>,
        base: Src,
        offset: i64,
    },
    Bra(usize),
    Barrier,
    Ret,
}

/// Reads `text`.
///
/// # Errors
/// The statement that is not understood.
pub fn parse(text: &str) -> Result<Module, String> {
    let text = without_comments(text);
    let mut module = Module::default();
    let mut names = HashMap::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let line = rest.lines().next().unwrap_or_default().trim();
        if let Some(version) = line.strip_prefix(".version") {
            let digits: String = version.chars().filter(char::is_ascii_digit).collect();
            module.version = digits.parse().map_err(|_| line.to_owned())?;
            rest = &rest[line.len()..];
        } else if line.starts_with(".target") || line.starts_with(".address_size") {
            rest = &rest[line.len()..];
        } else if line.contains(".entry") {
            let body = rest.find('{').ok_or("an entry without a body")?;
            let end = rest.find("\n}").ok_or("a body without an end")?;
            let (name, kernel) = kernel(&rest[..body], &rest[body + 1..end], &names)
                .map_err(|error| format!("{line}: {error}"))?;
            module.kernels.insert(name, kernel);
            rest = &rest[end + 2..];
        } else {
            let end = rest.find(';').ok_or_else(|| format!("not understood: {line}"))?;
            variable(&rest[..end], &mut module, &mut names)?;
            rest = &rest[end + 1..];
        }
        rest = rest.trim_start();
    }
    Ok(module)
}

fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        out.push_str(line.split("//").next().unwrap_or_default());
        out.push('\n');
    }
    out
}

/// A variable of the module. Shared ones start at address 0: there is at most one.
fn variable(
    text: &str,
    module: &mut Module,
    names: &mut HashMap<String, Src>,
) -> Result<(), String> {
    let wrong = || format!("not understood: {}", text.lines().next().unwrap_or_default());
    let (head, values) = text.split_once('=').unwrap_or((text, ""));
    let words: Vec<&str> = head.split_whitespace().collect();
    let declared = words.last().ok_or_else(wrong)?;
    let (name, count) = declared.split_once('[').unwrap_or((declared, "1]"));
    if words.contains(&".shared") {
        names.insert(name.to_owned(), Src::Imm(0));
        return Ok(());
    }
    let unit =
        words.iter().rev().find_map(|word| type_of(word)).ok_or_else(wrong)?.bits as usize / 8;
    let align = words.iter().skip_while(|word| **word != ".align").nth(1);
    let count: usize = count.trim_end_matches(']').parse().map_err(|_| wrong())?;
    let mut bytes = Vec::new();
    for value in
        values.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').filter(|v| !v.is_empty())
    {
        let value = number(value).ok_or_else(wrong)?;
        bytes.extend_from_slice(&value.to_le_bytes()[..unit]);
    }
    bytes.resize(count * unit, 0);
    names.insert(name.to_owned(), Src::Variable(module.variables.len()));
    let align = align.and_then(|align| align.parse().ok()).unwrap_or(unit);
    module.variables.push((name.to_owned(), align, bytes));
    Ok(())
}

/// What the names in a kernel mean.
struct Names {
    names: HashMap<String, Src>,
    parameters: HashMap<String, usize>,
    labels: HashMap<String, usize>,
    registers: usize,
}

fn kernel(
    head: &str,
    body: &str,
    outer: &HashMap<String, Src>,
) -> Result<(String, Kernel), String> {
    let (name, parameters) = head.split_once('(').unwrap_or((head, ")"));
    let name = name.split_whitespace().last().ok_or("an entry without a name")?.to_owned();
    let (parameters, directives) = parameters.split_once(')').ok_or("parameters without an end")?;
    let mut kernel = Kernel::default();
    let mut names = Names {
        names: outer.clone(),
        parameters: HashMap::new(),
        labels: HashMap::new(),
        registers: 0,
    };
    let mut offset = 0;
    for parameter in parameters.split(',').map(str::trim).filter(|text| !text.is_empty()) {
        let words: Vec<&str> = parameter.split_whitespace().collect();
        let of = words.iter().find_map(|word| type_of(word)).ok_or(parameter)?;
        let declared = words.last().copied().unwrap_or_default();
        let (name, count) = declared.split_once('[').unwrap_or((declared, "1]"));
        let count: usize = count.trim_end_matches(']').parse().map_err(|_| parameter)?;
        let align = words.iter().skip_while(|word| **word != ".align").nth(1);
        let align = align.filter(|_| count > 1).and_then(|align| align.parse().ok());
        let size = of.bits as usize / 8;
        offset = usize::next_multiple_of(offset, align.unwrap_or(size));
        kernel.parameters.push((offset, size * count));
        names.parameters.insert(name.to_owned(), offset);
        offset += size * count;
    }
    if let Some(most) = directives.split(".maxntid").nth(1) {
        let most = most.split([',', '\n', '.']).next().unwrap_or_default().trim();
        kernel.most_threads = Some(most.parse().map_err(|_| directives.trim())?);
    }
    let statements = statements(body, &mut names, &mut kernel)?;
    for text in statements {
        let inst =
            instruction(text, &mut names).ok_or_else(|| format!("not understood: {text}"))?;
        kernel.code.push(inst);
    }
    kernel.code.push(Inst { guard: None, op: Op::Ret });
    kernel.registers = names.registers;
    Ok((name, kernel))
}

/// The instructions of a body, after its labels and declarations have been noted.
fn statements<'t>(
    body: &'t str,
    names: &mut Names,
    kernel: &mut Kernel,
) -> Result<Vec<&'t str>, String> {
    let mut found = Vec::new();
    let between = |c: char| c.is_whitespace() || c == '{' || c == '}';
    for statement in body.split(';') {
        let mut statement = statement.trim_start_matches(between).trim();
        while let Some((label, rest)) = statement.split_once(':') {
            if label.contains(char::is_whitespace) {
                break;
            }
            names.labels.insert(label.to_owned(), found.len());
            statement = rest.trim_start_matches(between).trim();
        }
        if statement.starts_with(".reg") {
            let name = statement.split_whitespace().last().unwrap_or_default();
            if !name.starts_with('%') {
                names.declare(name);
            }
            continue;
        }
        if statement.starts_with(".local") || statement.starts_with(".shared") {
            let declared = statement.split_whitespace().last().unwrap_or_default();
            let (name, count) = declared.split_once('[').ok_or(statement)?;
            let unit = statement.split_whitespace().rev().find_map(type_of).ok_or(statement)?;
            let count: usize = count.trim_end_matches(']').parse().map_err(|_| statement)?;
            let bytes = count * unit.bits as usize / 8;
            let room = if statement.starts_with(".local") {
                &mut kernel.local_bytes
            } else {
                &mut kernel.shared_bytes
            };
            let at = room.next_multiple_of(16);
            *room = at + bytes;
            let base = if statement.starts_with(".local") { LOCAL_BASE } else { 0 };
            names.names.insert(name.to_owned(), Src::Imm(base + at as u64));
        } else if !statement.is_empty() && !statement.starts_with(".pragma") {
            found.push(statement);
        }
    }
    Ok(found)
}

/// Where the threads' own memory stands among the generic addresses.
pub const LOCAL_BASE: u64 = 0x7000_0000_0000_0000;

impl Names {
    fn register(&mut self, name: &str) -> Option<usize> {
        if let Some(Src::Reg(index)) = self.names.get(name) {
            return Some(*index);
        }
        if !name.starts_with('%') {
            return None;
        }
        Some(self.declare(name))
    }

    fn declare(&mut self, name: &str) -> usize {
        let index = self.registers;
        self.registers += 1;
        self.names.insert(name.to_owned(), Src::Reg(index));
        index
    }

    fn source(&mut self, text: &str) -> Option<Src> {
        let special = match text {
            "%tid.x" => Special::Thread,
            "%ntid.x" => Special::Threads,
            "%ctaid.x" => Special::Block,
            "%nctaid.x" => Special::Blocks,
            "%laneid" => Special::Lane,
            "%tid.y" | "%tid.z" | "%ctaid.y" | "%ctaid.z" => Special::Zero,
            "%ntid.y" | "%ntid.z" | "%nctaid.y" | "%nctaid.z" => Special::One,
            _ => {
                return self
                    .register(text)
                    .map(Src::Reg)
                    .or_else(|| number(text).map(Src::Imm))
                    .or_else(|| self.names.get(text).copied());
            }
        };
        Some(Src::Special(special))
    }

    /// `[base+offset]`, of registers, symbols or parameters.
    fn address(&mut self, text: &str) -> Option<(Src, i64)> {
        let text = text.strip_prefix('[')?.strip_suffix(']')?;
        let (base, offset) = text.split_once('+').unwrap_or((text, "0"));
        let offset = number(offset.trim())? as i64;
        let base = base.trim();
        if let Some(at) = self.parameters.get(base) {
            return Some((Src::Imm(*at as u64), offset));
        }
        Some((self.source(base)?, offset))
    }
}

/// One instruction, with a predicate before it or not.
fn instruction(text: &str, names: &mut Names) -> Option<Inst> {
    let (guard, text) = match text.strip_prefix('@') {
        Some(guarded) => {
            let (guard, rest) = guarded.split_once(char::is_whitespace)?;
            let wanted = !guard.starts_with('!');
            (Some((names.register(guard.trim_start_matches('!'))?, wanted)), rest.trim())
        }
        None => (None, text),
    };
    let (opcode, operands) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let operands = split(operands);
    let words: Vec<&str> = opcode.split('.').collect();
    Some(Inst { guard, op: operation(&words, &operands, names)? })
}

fn operation(words: &[&str], operands: &[&str], names: &mut Names) -> Option<Op> {
    let of = words.last().and_then(|word| type_of(&format!(".{word}")));
    let has = |word: &str| words.contains(&word);
    match words[0] {
        "ret" | "exit" => return Some(Op::Ret),
        "bar" | "barrier" => return Some(Op::Barrier),
        "bra" => return names.labels.get(*operands.first()?).copied().map(Op::Bra),
        "ld" | "ldu" | "st" => return memory(words, operands, names),
        "mov" if operands.first()?.starts_with('{') => {
            let parts = vector(operands[0]);
            let parts: Vec<_> =
                parts.iter().map(|text| names.register(text)).collect::<Option<_>>()?;
            let bits = of?.bits / parts.len() as u32;
            return Some(Op::Unpack(parts, bits, names.source(operands.get(1)?)?));
        }
        "mov" if operands.get(1)?.starts_with('{') => {
            let d = names.register(operands[0])?;
            let parts = vector(operands[1]);
            let parts: Vec<_> =
                parts.iter().map(|text| names.source(text)).collect::<Option<_>>()?;
            return Some(Op::Pack(d, of?.bits / parts.len() as u32, parts));
        }
        _ => {}
    }
    let d = names.register(operands.first()?.split('|').next()?)?;
    let sources = operands[1..].iter().map(|text| names.source(text));
    let sources: Vec<Src> = sources.collect::<Option<_>>()?;
    let src = |n: usize| sources.get(n).copied();
    let alu = match words[0] {
        "add" => Some(Alu::Add),
        "sub" => Some(Alu::Sub),
        "mul" if has("hi") => Some(Alu::MulHi),
        "mul" if !has("wide") => Some(Alu::MulLo),
        "div" => Some(Alu::Div),
        "rem" => Some(Alu::Rem),
        "and" => Some(Alu::And),
        "or" => Some(Alu::Or),
        "xor" => Some(Alu::Xor),
        "shl" => Some(Alu::Shl),
        "shr" => Some(Alu::Shr),
        "min" => Some(Alu::Min),
        "max" => Some(Alu::Max),
        _ => None,
    };
    if let Some(alu) = alu {
        return Some(Op::Alu(alu, of?, d, src(0)?, src(1)?));
    }
    Some(match words[0] {
        "mov" | "cvta" => Op::Mov(d, src(0)?),
        "mul" => Op::MulWide(of?, d, src(0)?, src(1)?),
        "mad" if !has("hi") => {
            Op::Mad { wide: has("wide"), of: of?, d, a: src(0)?, b: src(1)?, c: src(2)? }
        }
        "not" => Op::Not(of?, d, src(0)?),
        "neg" => Op::Neg(of?, d, src(0)?),
        "cvt" => {
            let to = type_of(&format!(".{}", words[words.len() - 2]))?;
            Op::Cvt { to, from: of?, d, a: src(0)? }
        }
        "prmt" if words.len() == 2 => Op::Prmt(d, src(0)?, src(1)?, src(2)?),
        "lop3" => Op::Lop3(d, src(0)?, src(1)?, src(2)?, src(3)?),
        "shf" => {
            Op::Shf { left: has("l"), wrap: has("wrap"), d, a: src(0)?, b: src(1)?, c: src(2)? }
        }
        "bfe" => Op::Bfe(of?, d, src(0)?, src(1)?, src(2)?),
        "bfi" => Op::Bfi(of?, d, src(0)?, src(1)?, src(2)?, src(3)?),
        "popc" => Op::Count { ones: true, bits: of?.bits, d, a: src(0)? },
        "clz" => Op::Count { ones: false, bits: of?.bits, d, a: src(0)? },
        "brev" => Op::Reverse(of?, d, src(0)?),
        "setp" => Op::Setp(comparison(words[1])?, of?, d, src(0)?, src(1)?),
        "selp" => Op::Selp(d, src(0)?, src(1)?, src(2)?),
        _ => return None,
    })
}

fn memory(words: &[&str], operands: &[&str], names: &mut Names) -> Option<Op> {
    let of = type_of(&format!(".{}", words.last()?))?;
    let space = words[1..].iter().find_map(|word| match *word {
        "shared" => Some(Space::Shared),
        "param" => Some(Space::Param),
        "local" => Some(Space::Local),
        _ => None,
    });
    let space = space.unwrap_or(Space::Global);
    if words[0] == "st" {
        let (base, offset) = names.address(operands.first()?)?;
        let s = vector(operands.get(1)?).into_iter().map(|text| names.source(text));
        return Some(Op::St { space, of, s: s.collect::<Option<_>>()?, base, offset });
    }
    let d = vector(operands.first()?).into_iter().map(|text| names.register(text));
    let d = d.collect::<Option<_>>()?;
    let (base, offset) = names.address(operands.get(1)?)?;
    Some(Op::Ld { space, of, d, base, offset })
}

fn comparison(word: &str) -> Option<Compare> {
    Some(match word {
        "eq" => Compare::Eq,
        "ne" => Compare::Ne,
        "lt" | "lo" => Compare::Lt,
        "le" | "ls" => Compare::Le,
        "gt" | "hi" => Compare::Gt,
        "ge" | "hs" => Compare::Ge,
        _ => return None,
    })
}

/// Operands, of which one in braces is one.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts.retain(|part| !part.is_empty());
    parts
}

/// The parts of `{a, b}`, or the one of `a`.
fn vector(text: &str) -> Vec<&str> {
    text.trim_start_matches('{').trim_end_matches('}').split(',').map(str::trim).collect()
}

fn type_of(word: &str) -> Option<Type> {
    let (bits, signed) = match word {
        ".pred" => (1, false),
        ".b8" | ".u8" => (8, false),
        ".b16" | ".u16" => (16, false),
        ".b32" | ".u32" => (32, false),
        ".b64" | ".u64" => (64, false),
        ".s8" => (8, true),
        ".s16" => (16, true),
        ".s32" => (32, true),
        ".s64" => (64, true),
        _ => return None,
    };
    Some(Type { bits, signed })
}

/// A number in decimal or hexadecimal, or a predicate's constant.
fn number(text: &str) -> Option<u64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let digits = digits.trim_end_matches('U');
    let value = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok()?,
        None => digits.parse().ok()?,
    };
    Some(if negative { value.wrapping_neg() } else { value })
}
