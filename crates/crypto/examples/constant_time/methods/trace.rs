//! Steps through two processes that differ in nothing but their secrets, instruction by
//! instruction, and follows which bytes came of secrets ([`super::taint`]). A branch, an address, a
//! divisor of such bytes is a leak, whatever the values: as long as there is none, every secret takes
//! this path. What differs between the two processes must have been followed: that checks the
//! following itself. It runs what valgrind cannot: AVX-512.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_long, c_uint};

use super::disassembly::Disassembly;
use super::instruction::{Instruction, RAX, RDI, REGISTERS, RSP};
use super::taint::{Leak, Taint};
use super::values::{CARRY, Extended, OVERFLOW, PARITY, SIGN, Values, ZERO};
use super::{Case, Finding};

/// Compares runs, and keeps what it learnt about the program's instructions.
pub struct Tracer {
    disassembly: Disassembly,
}

impl Tracer {
    /// `None` where a process may not trace its child, or where objdump is missing.
    pub fn new() -> Option<Self> {
        Child::start(|| ())?;
        Some(Self { disassembly: Disassembly::of_this_process()? })
    }

    /// Compares a run on plain secrets with one on random ones; where the secrets have a shape, two
    /// on random ones as well.
    pub fn check(&mut self, case: &Case) -> Finding {
        // What is made at a first call has been made when the children are born.
        case.run(&mut case.secrets(1));
        let pairs: &[[u64; 2]] = if case.answers == 0 { &[[0, 1]] } else { &[[0, 1], [2, 3]] };
        let mut steps = 0;
        let mut most = 0;
        let mut places = BTreeMap::new();
        for seeds in pairs {
            let run = Run::compare(case, *seeds, &mut self.disassembly);
            steps += run.steps;
            places.extend(run.places);
            if run.taken > case.answers {
                places.extend(run.branches);
            }
            most = most.max(run.taken);
        }
        let mut figure = format!("{steps} steps, {} places", places.len());
        if case.answers > 0 {
            figure += &format!(", {most} of {} for the answer", case.answers);
        }
        let leaks = !places.is_empty();
        let places = places.into_iter().take(8);
        let places = places.map(|(at, what)| format!("{}: {what}", self.disassembly.place(at)));
        Finding { leaks, figure, places: places.collect() }
    }
}

/// What two runs have in common.
struct Run {
    steps: u64,
    /// What is a leak, by the instruction's address.
    places: BTreeMap<u64, String>,
    /// Conditional jumps on what came of secrets, in which both runs agree.
    branches: BTreeMap<u64, String>,
    /// How often such a jump was met.
    taken: u64,
}

impl Run {
    fn compare(case: &Case, seeds: [u64; 2], disassembly: &mut Disassembly) -> Self {
        // Between the two births nothing is allocated, so that both children have the same memory.
        let secrets = seeds.map(|seed| case.secrets(seed));
        let mut copy = secrets[0].clone();
        let [one, other] = secrets.each_ref().map(|secrets| {
            copy.copy_from_slice(secrets);
            Child::start(|| case.run(&mut copy))
        });
        let mut run =
            Self { steps: 0, places: BTreeMap::new(), branches: BTreeMap::new(), taken: 0 };
        let (Some(one), Some(other)) = (one, other) else {
            run.places.insert(0, "a child could not be traced".to_owned());
            return run;
        };
        let mut taint = Taint::default();
        taint.mark(copy.as_ptr() as u64, copy.len());
        let mut last = 0;
        loop {
            let (Some(a), Some(b)) = (one.registers(), other.registers()) else {
                run.places.insert(last, "a child died here".to_owned());
                return run;
            };
            if a.rip != b.rip {
                run.places.insert(last, "branches apart".to_owned());
                return run;
            }
            if a.rax() == END && b.rax() == END {
                let lost = taint.unmarked(copy.as_ptr() as u64, copy.len());
                if case.answers == 0 && lost > 0 {
                    run.places
                        .insert(0, format!("the trail of {lost} bytes of the result was lost"));
                }
                return run;
            }
            let Some(instruction) = disassembly.at(a.rip) else {
                run.places.insert(a.rip, "an instruction of no file".to_owned());
                return run;
            };
            let vectors = [one.vectors(), other.vectors()];
            run.check_trail(&mut taint, [&a, &b], &vectors, &instruction);
            let mut values = Values {
                general: a.in_order(),
                flags: a.eflags,
                thread: a.others[1],
                vectors: &vectors[0],
            };
            if a.rip == free as *const () as u64 {
                // The C library compares a word of what is freed with a random number of its own,
                // whatever it held, and then keeps its lists there.
                taint.write_memory(values.general[RDI], 16, 0);
            }
            match taint.step(&instruction, &mut values) {
                Some(Leak::Branch) => {
                    run.taken += 1;
                    run.branches.insert(a.rip, format!("Branch: {}", instruction.text));
                }
                Some(leak) => {
                    run.places.insert(a.rip, format!("{leak:?}: {}", instruction.text));
                }
                None => {}
            }
            run.steps += 1;
            last = a.rip;
            // Both at once, on two cores.
            one.step();
            other.step();
            one.wait();
            other.wait();
        }
    }

    /// What differs came of secrets: says where that was not seen, and sees it from there on.
    fn check_trail(
        &mut self,
        taint: &mut Taint,
        [a, b]: [&Registers; 2],
        vectors: &[Extended; 2],
        instruction: &Instruction,
    ) {
        let mut lost = Vec::new();
        for (i, (a, b)) in a.in_order().into_iter().zip(b.in_order()).enumerate() {
            let unseen = differing(&a.to_le_bytes(), &b.to_le_bytes()) & !taint.general[i];
            if unseen != 0 {
                lost.push(REGISTERS[i].to_owned());
                taint.general[i] |= unseen;
            }
        }
        if vectors[0].0 != vectors[1].0 {
            for i in 0..32 {
                let [a, b] = vectors.each_ref().map(|vectors| vectors.vector(i));
                let unseen = differing(&a, &b) & !taint.vectors.0[i];
                if unseen != 0 {
                    lost.push(format!("zmm{i}"));
                    taint.vectors.0[i] |= unseen;
                }
            }
            for i in 0..8 {
                if vectors[0].mask(i) != vectors[1].mask(i) && !taint.masks[i] {
                    lost.push(format!("k{i}"));
                    taint.masks[i] = true;
                }
            }
        }
        let flags = (a.eflags ^ b.eflags) & flags_read(&instruction.name);
        if flags & CARRY != 0 && !taint.carry || flags & !CARRY != 0 && !taint.others {
            lost.push("flags".to_owned());
        }
        // Before the first step the registers hold what made the secrets.
        if !lost.is_empty() && self.steps > 0 {
            let what = format!("lost the trail of {} before {}", lost.join(", "), instruction.text);
            self.places.insert(a.rip, what);
        }
    }
}

/// A bit for each byte that differs.
fn differing(a: &[u8], b: &[u8]) -> u64 {
    a.iter().zip(b).enumerate().fold(0, |bits, (i, (a, b))| bits | u64::from(a != b) << i)
}

/// The flags that a conditional jump with that name reads (Intel's manual, volume 1, appendix B).
fn flags_read(name: &str) -> u64 {
    match name.strip_prefix('j').unwrap_or_default() {
        "e" | "ne" => ZERO,
        "b" | "ae" => CARRY,
        "a" | "be" => CARRY | ZERO,
        "s" | "ns" => SIGN,
        "o" | "no" => OVERFLOW,
        "p" | "np" => PARITY,
        "l" | "ge" => SIGN | OVERFLOW,
        "g" | "le" => ZERO | SIGN | OVERFLOW,
        _ => 0,
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

    /// Vector and mask registers.
    fn vectors(&self) -> Extended {
        let mut area = vec![0_u8; 16 * 1024];
        let mut buffer = Buffer { start: area.as_mut_ptr(), len: area.len() };
        let to = (&raw mut buffer) as usize;
        // SAFETY: the request writes at most `len` bytes to `start`, and `len` itself.
        unsafe { ptrace(GET_REGISTER_SET, self.0, EXTENDED_STATE, to) };
        Extended(area)
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
        self.general[RAX]
    }

    /// In the order of [`REGISTERS`].
    fn in_order(&self) -> [u64; 16] {
        let mut all = [self.rsp; 16];
        all[..RSP].copy_from_slice(&self.general);
        all
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
    fn free(block: *mut u8);
    fn ptrace(request: c_uint, process: c_int, address: usize, data: usize) -> c_long;
}
