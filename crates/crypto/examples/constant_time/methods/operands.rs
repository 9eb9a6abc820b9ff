//! Which registers an instruction makes an address of, as objdump writes it.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::process::Command;

/// General registers, in the order of the kernel's `user_regs_struct`.
pub const REGISTERS: [&str; 16] = [
    "r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi",
    "rdi", "rsp",
];

/// The place of `rsp`.
pub const RSP: usize = 15;

/// The bit after those: the vector register of a gather's indices.
pub const INDICES: usize = 16;

/// The instructions of this process, disassembled when they are asked for.
pub struct Disassembly {
    objects: Vec<Object>,
    instructions: HashMap<u64, String>,
}

/// A file whose code is in memory.
struct Object {
    path: String,
    start: u64,
    end: u64,
}

impl Disassembly {
    /// `None` without objdump.
    pub fn of_this_process() -> Option<Self> {
        Command::new("objdump").arg("--version").output().ok()?;
        let mut objects: Vec<Object> = Vec::new();
        for line in fs::read_to_string("/proc/self/maps").ok()?.lines() {
            // 7f00-7f10 r-xp 00000000 08:01 123    /path
            let (range, rest) = line.split_once(' ')?;
            let Some((_, path)) = rest.split_once('/') else { continue };
            let (start, end) = range.split_once('-')?;
            let end = u64::from_str_radix(end, 16).ok()?;
            let path = format!("/{path}");
            match objects.last_mut().filter(|object| object.path == path) {
                Some(object) => object.end = end,
                None => {
                    objects.push(Object { path, start: u64::from_str_radix(start, 16).ok()?, end });
                }
            }
        }
        Some(Self { objects, instructions: HashMap::new() })
    }

    /// Those of `executed` whose address, or whose time, comes of a register that differed.
    pub fn leaks(&mut self, executed: &BTreeMap<u64, u32>) -> Vec<String> {
        self.learn(executed.keys().copied());
        let leaks = executed.iter().filter_map(|(address, differing)| {
            let text = self.instructions.get(address).map_or("(unknown)", String::as_str);
            let leaks = text == "(unknown)" || depends(text, *differing);
            leaks.then(|| format!("{}: {text}", self.place(*address)))
        });
        leaks.collect()
    }

    /// Adds the gathers and scatters among `executed` to `found`, with their index registers.
    pub fn gathers<'a>(
        &mut self,
        executed: impl Iterator<Item = &'a u64> + Clone,
        found: &mut BTreeMap<u64, usize>,
    ) {
        self.learn(executed.clone().copied());
        for address in executed {
            let Some(text) = self.instructions.get(address).filter(|text| is_gather(text)) else {
                continue;
            };
            let digits = |register: &str| register.trim_start_matches(['x', 'y', 'z', 'm']).parse();
            let vector = memory_registers(text).find(|register| register.contains("mm"));
            // No register has the number 99, so that an index that is not understood differs.
            found.insert(*address, vector.and_then(|name| digits(name).ok()).unwrap_or(99));
        }
    }

    /// An address as objdump and addr2line take it.
    pub fn place(&self, address: u64) -> String {
        match self.object(address) {
            Some(object) => format!("{}+{:#x}", object.path, address - object.start),
            None => format!("{address:#x}"),
        }
    }

    fn object(&self, address: u64) -> Option<&Object> {
        self.objects.iter().find(|object| (object.start..object.end).contains(&address))
    }

    /// Disassembles runs of addresses, each from one that was executed: a true boundary.
    fn learn(&mut self, addresses: impl Iterator<Item = u64>) {
        let unknown = addresses.filter(|address| !self.instructions.contains_key(address));
        let mut runs: Vec<[u64; 2]> = Vec::new();
        for address in unknown {
            match runs.last_mut() {
                Some([_, last]) if address - *last < NEAR => *last = address,
                _ => runs.push([address, address]),
            }
        }
        for [first, last] in runs {
            let Some(object) = self.object(first) else { continue };
            let (path, base) = (object.path.clone(), object.start);
            let output = Command::new("objdump")
                .args(["-d", "--no-show-raw-insn", "-M", "att"])
                .arg(format!("--start-address={}", first - base))
                .arg(format!("--stop-address={}", last - base + LONGEST))
                .arg(path)
                .output();
            let Ok(output) = output else { continue };
            for line in String::from_utf8_lossy(&output.stdout).lines() {
                let Some((address, text)) = line.split_once(":\t") else { continue };
                let Ok(address) = u64::from_str_radix(address.trim(), 16) else { continue };
                self.instructions.insert(base + address, text.trim().to_owned());
            }
        }
    }
}

/// Bytes between two instructions that are disassembled by one call.
const NEAR: u64 = 4096;

/// Bytes of an instruction.
const LONGEST: u64 = 15;

/// Whether the time of this instruction depends on one of the registers in `differing`.
fn depends(text: &str, differing: u32) -> bool {
    let text = text.split(['#', '<']).next().unwrap_or_default();
    let name = text.split_whitespace().find(|word| !PREFIXES.contains(word)).unwrap_or_default();
    if is_gather(name) && differing >> INDICES & 1 == 1 {
        return true;
    }
    if differing == 0 || name.starts_with("lea") || name.starts_with("nop") {
        return false;
    }
    let differs = |register: &str| {
        let place = REGISTERS.iter().position(|known| *known == register);
        place.is_some_and(|place| differing >> place & 1 == 1)
    };
    let quotient = ["div", "idiv"].iter().any(|word| name.strip_prefix(word).is_some_and(is_width));
    // The stack pointer, implicit everywhere; the quotient's time; the counts of string
    // instructions; the index of `xlat`.
    let implicit = differs("rsp")
        || quotient && ["rax", "rdx"].into_iter().any(differs)
        || quotient && registers(text).any(|register| differs(&wide(register)))
        || text.starts_with("rep") && differs("rcx")
        || name.starts_with("xlat") && differs("rax");
    implicit || memory_registers(text).any(|register| differs(&wide(register)))
}

fn is_gather(text: &str) -> bool {
    text.contains("gather") || text.contains("scatter")
}

/// What the assembler appends to a name for the size of the operands.
fn is_width(suffix: &str) -> bool {
    matches!(suffix, "" | "b" | "w" | "l" | "q")
}

fn registers(text: &str) -> impl Iterator<Item = &str> {
    text.split([' ', ',', '(', ')']).filter_map(|part| part.strip_prefix('%'))
}

/// The registers between parentheses.
fn memory_registers(text: &str) -> impl Iterator<Item = &str> {
    let insides = text.split('(').skip(1).filter_map(|rest| rest.split(')').next());
    insides.flat_map(|inside| inside.split(',').filter_map(|part| part.strip_prefix('%')))
}

/// The 64-bit register that this one is a part of.
fn wide(register: &str) -> String {
    match register.strip_prefix('e') {
        Some(rest) => format!("r{rest}"),
        None => register.trim_end_matches('d').to_owned(),
    }
}

const PREFIXES: [&str; 9] =
    ["rep", "repz", "repnz", "lock", "notrack", "bnd", "data16", "cs", "{evex}"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_registers_of_addresses() {
        let rax = 1 << REGISTERS.iter().position(|name| *name == "rax").unwrap();
        for leaks in [
            "mov    (%rcx,%rax,4),%edx",
            "movzbl 0x12(%rax),%eax",
            "rep stos %al,%es:(%rax)",
            "div    %rcx",
            "div    %eax",
            "xlat   %ds:(%rbx)",
        ] {
            assert!(depends(leaks, rax), "{leaks}");
        }
        let gather = "vpgatherdd (%rcx,%zmm1,4),%zmm0{%k1}";
        assert!(depends(gather, 1 << INDICES));
        for harmless in [
            gather,
            "mov    (%rcx,%rdx,4),%eax",
            "lea    (%rcx,%rax,4),%edx",
            "xor    %rax,%rcx",
            "nopw   0x0(%rax,%rax,1)",
            "call   1234 <function(%rax)>",
            "movaps %xmm0,0x10(%rsp)",
        ] {
            assert!(!depends(harmless, rax), "{harmless}");
        }
    }
}
