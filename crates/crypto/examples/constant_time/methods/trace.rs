//! Steps through two processes that differ in nothing but their secrets, instruction by
//! instruction: the next instruction must be the same, and no register that differs may be part of
//! an address. Needs no model of the instructions, so it sees what valgrind cannot run: AVX-512.

use std::arch::x86_64::__cpuid_count;
use std::collections::BTreeMap;
use std::ffi::{c_int, c_long, c_uint};

use super::operands::{self, Disassembly};
use super::{Case, Finding};

/// Compares runs, and keeps what it learnt about the program's instructions.
pub struct Tracer {
    disassembly: Disassembly,
    /// The index register of each gather that was met.
    gathers: BTreeMap<u64, usize>,
}

impl Tracer {
    /// `None` where a process may not trace its child, or where objdump is missing.
    pub fn new() -> Option<Self> {
        Child::start(|| ())?;
        let disassembly = Disassembly::of_this_process()?;
        Some(Self { disassembly, gathers: BTreeMap::new() })
    }

    /// Compares a run on plain secrets with one on random ones, and two on random ones.
    pub fn check(&mut self, case: &Case) -> Finding {
        // What is made at a first call has been made when the children are born.
        case.run(&mut case.secrets(1));
        let mut steps = 0;
        let mut places = Vec::new();
        for seeds in [[0, 1], [2, 3]] {
            let mut paths = Paths::compare(case, seeds, &self.gathers);
            let met = self.gathers.len();
            self.disassembly.gathers(paths.differing.keys(), &mut self.gathers);
            if self.gathers.len() > met {
                // Again, with an eye on their indices.
                paths = Paths::compare(case, seeds, &self.gathers);
            }
            steps += paths.steps;
            places.extend(paths.parted);
            places.extend(self.disassembly.leaks(&paths.differing));
        }
        places.sort();
        places.dedup();
        let figure = format!("{steps} steps, {} places", places.len());
        places.truncate(8);
        Finding { leaks: !places.is_empty(), figure, places }
    }
}

/// What two runs have in common.
struct Paths {
    steps: u64,
    /// Each instruction, and the registers that ever differed before it.
    differing: BTreeMap<u64, u32>,
    /// Where the runs went apart, if they did.
    parted: Option<String>,
}

impl Paths {
    fn compare(case: &Case, seeds: [u64; 2], gathers: &BTreeMap<u64, usize>) -> Self {
        // Between the two births nothing is allocated, so that both children have the same memory.
        let secrets = seeds.map(|seed| case.secrets(seed));
        let mut copy = secrets[0].clone();
        let [one, other] = secrets.each_ref().map(|secrets| {
            copy.copy_from_slice(secrets);
            Child::start(|| case.run(&mut copy))
        });
        let mut paths = Self { steps: 0, differing: BTreeMap::new(), parted: None };
        let (Some(one), Some(other)) = (one, other) else {
            paths.parted = Some("a child could not be traced".to_owned());
            return paths;
        };
        let mut last = 0;
        loop {
            let (Some(a), Some(b)) = (one.registers(), other.registers()) else {
                paths.parted = Some(format!("a child died after {last:#x}"));
                return paths;
            };
            if a.rip != b.rip {
                paths.parted = Some(format!("branches apart after {last:#x}"));
                return paths;
            }
            if a.rax() == END && b.rax() == END {
                return paths;
            }
            let differing = paths.differing.entry(a.rip).or_default();
            *differing |= a.differences(&b);
            if let Some(index) = gathers.get(&a.rip) {
                let same = one.vector(*index).is_some_and(|a| Some(a) == other.vector(*index));
                *differing |= u32::from(!same) << operands::INDICES;
            }
            paths.steps += 1;
            last = a.rip;
            // Both at once, on two cores.
            one.step();
            other.step();
            one.wait();
            other.wait();
        }
    }
}

/// A stopped copy of this process, which is about to run something.
struct Child(c_int);

impl Child {
    /// Stops just before `run`; `None` if this system does not allow that. Never inlined, so that
    /// all children stop at one and the same place.
    #[inline(never)]
    fn start(run: impl FnOnce()) -> Option<Self> {
        // SAFETY: this program has one thread, so its copy is whole.
        let process = unsafe { fork() };
        if process == 0 {
            // SAFETY: the request takes no arguments.
            unsafe { ptrace(TRACE_ME, 0, 0, 0) };
            breakpoint(START);
            run();
            breakpoint(END);
            // SAFETY: ends the copy at once, without the destructors and buffers of the original.
            unsafe { _exit(0) }
        }
        let child = (process > 0).then_some(Self(process))?;
        let stopped = child.wait();
        (stopped && child.registers()?.rax() == START).then_some(child)
    }

    /// Starts one instruction; `wait` follows.
    fn step(&self) {
        // SAFETY: the request takes no address and no signal.
        unsafe { ptrace(SINGLE_STEP, self.0, 0, 0) };
    }

    /// True if it stopped, false if it ended.
    fn wait(&self) -> bool {
        let mut status = 0;
        // SAFETY: writes one integer.
        unsafe { waitpid(self.0, &raw mut status, 0) };
        status & 0xff == 0x7f
    }

    fn registers(&self) -> Option<Registers> {
        let mut registers = Registers::default();
        // SAFETY: the request writes one `user_regs_struct`, of which `Registers` is a copy.
        let failed = unsafe { ptrace(GET_REGISTERS, self.0, 0, (&raw mut registers) as usize) };
        (failed == 0).then_some(registers)
    }

    /// A vector register of 512 bits, as far as this CPU has them.
    fn vector(&self, register: usize) -> Option<Vec<u8>> {
        let mut area = vec![0_u8; 16 * 1024];
        let mut buffer = Buffer { start: area.as_mut_ptr(), len: area.len() };
        let to = (&raw mut buffer) as usize;
        // SAFETY: the request writes at most `len` bytes to `start`, and `len` itself.
        let failed = unsafe { ptrace(GET_REGISTER_SET, self.0, EXTENDED_STATE, to) };
        // The standard format of XSAVE (Intel's manual, volume 1, section 13.4).
        let part = |component, len: usize, register: usize| {
            let from = __cpuid_count(0xd, component).ebx as usize + len * register;
            area.get(from..from + len)
        };
        let parts = match register {
            0..16 => [
                area.get(160 + 16 * register..176 + 16 * register),
                part(2, 16, register),
                part(6, 32, register),
            ],
            16..32 => [part(7, 64, register - 16), Some(&[]), Some(&[])],
            _ => return None,
        };
        (failed == 0).then(|| parts.into_iter().flatten().flatten().copied().collect())
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // SAFETY: the process is our child and not yet waited for to its end.
        unsafe { kill(self.0, SIGKILL) };
        self.wait();
    }
}

/// `struct iovec` of `sys/uio.h`.
#[repr(C)]
struct Buffer {
    start: *mut u8,
    len: usize,
}

/// `user_regs_struct` of `sys/user.h`.
#[derive(Default)]
#[repr(C)]
struct Registers {
    /// r15 to r8, with rbp and rbx after r12; rax, rcx, rdx, rsi, rdi.
    general: [u64; 15],
    orig_rax: u64,
    rip: u64,
    cs: u64,
    eflags: u64,
    rsp: u64,
    others: [u64; 7],
}

impl Registers {
    fn rax(&self) -> u64 {
        self.general[10]
    }

    /// A bit for each general register that differs, in the order of [`operands::REGISTERS`].
    fn differences(&self, other: &Self) -> u32 {
        let differs = self.general.iter().zip(&other.general).map(|(a, b)| a != b);
        let bits = differs.enumerate().fold(0, |bits, (i, differs)| bits | u32::from(differs) << i);
        bits | u32::from(self.rsp != other.rsp) << operands::RSP
    }
}

/// Stops under a tracer, which recognises the place by `name`.
fn breakpoint(name: u64) {
    // SAFETY: the trap is taken by the tracer; without one it ends the process, a child.
    unsafe { std::arch::asm!("int3", in("rax") name) };
}

const START: u64 = 0x5741_5454_4c4f_434b;
const END: u64 = START + 1;

const TRACE_ME: c_uint = 0;
const SINGLE_STEP: c_uint = 9;
const GET_REGISTERS: c_uint = 12;
const GET_REGISTER_SET: c_uint = 0x4204;
/// The register set `NT_X86_XSTATE`.
const EXTENDED_STATE: usize = 0x202;
const SIGKILL: c_int = 9;

// The C library that the standard library is linked with anyway.
unsafe extern "C" {
    fn fork() -> c_int;
    fn _exit(status: c_int) -> !;
    fn kill(process: c_int, signal: c_int) -> c_int;
    fn waitpid(process: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn ptrace(request: c_uint, process: c_int, address: usize, data: usize) -> c_long;
}
