//! The instructions of this process, by objdump.

use std::collections::HashMap;
use std::fs;
use std::process::Command;
use std::rc::Rc;

use super::instruction::{Instruction, Operand};

/// The instructions of this process, disassembled when they are asked for.
pub struct Disassembly {
    objects: Vec<Object>,
    instructions: HashMap<u64, Rc<Instruction>>,
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

    /// The instruction that is about to run there: a true boundary. `None` if no file holds it.
    pub fn at(&mut self, address: u64) -> Option<Rc<Instruction>> {
        if !self.instructions.contains_key(&address) {
            self.learn(address);
        }
        self.instructions.get(&address).cloned()
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

    /// Disassembles from there.
    fn learn(&mut self, first: u64) {
        let Some(object) = self.object(first) else { return };
        let (path, base) = (object.path.clone(), object.start);
        let stop = first - base + AT_ONCE;
        let output = Command::new("objdump")
            .args(["-d", "--no-show-raw-insn", "-M", "att"])
            .arg(format!("--start-address={}", first - base))
            .arg(format!("--stop-address={stop}"))
            .arg(path)
            .output();
        let Ok(output) = output else { return };
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let Some((address, text)) = line.split_once(":\t") else { continue };
            let Ok(found) = u64::from_str_radix(address.trim(), 16) else { continue };
            // The last one may be cut off.
            if base + found > first && found + LONGEST > stop {
                break;
            }
            let mut instruction = Instruction::parse(text.trim());
            for operand in &mut instruction.operands {
                if let Operand::Memory(place) = operand
                    && place.in_file
                {
                    place.displacement += base;
                }
            }
            // What was found from another true boundary stays.
            self.instructions.entry(base + found).or_insert_with(|| Rc::new(instruction));
        }
    }
}

/// Bytes that one call disassembles.
const AT_ONCE: u64 = 8192;

/// Bytes of an instruction at most.
const LONGEST: u64 = 15;
