//! Secrets as memory that was never written: valgrind's memcheck follows each of their bits, and
//! reports a branch or an address that depends on one (Langley's "ctgrind", 2010).

use std::arch::asm;

use super::{Case, Finding};

/// Runs the case on marked secrets and counts what memcheck reports.
pub fn check(case: &Case) -> Finding {
    let mut secrets = case.secrets(1);
    let before = reports();
    mark(&mut secrets, MAKE_MEM_UNDEFINED);
    case.run(&mut secrets);
    let reported = reports() - before;
    // What came of secrets is secret: were it not, memcheck would have lost the trail. An answer
    // leaves nothing, or wipes it.
    let lost = if case.answers == 0 { defined_bytes(&secrets) } else { 0 };
    mark(&mut secrets, MAKE_MEM_DEFINED);
    let places = if lost == 0 { vec![] } else { vec![format!("{lost} bytes lost their mark")] };
    let figure = match case.answers {
        0 => format!("{reported} reports"),
        answers => format!("{reported} reports, at most {answers} for the answer"),
    };
    Finding { leaks: reported > case.answers || lost > 0, figure, places }
}

/// True if the program runs under valgrind.
pub fn running_on_valgrind() -> bool {
    request(RUNNING_ON_VALGRIND, 0, 0, 0) != 0
}

fn reports() -> u64 {
    request(COUNT_ERRORS, 0, 0, 0)
}

fn mark(bytes: &mut [u8], how: u64) {
    request(how, bytes.as_mut_ptr() as u64, bytes.len() as u64, 0);
}

/// How many bytes memcheck does not hold for secret.
fn defined_bytes(bytes: &[u8]) -> usize {
    let mut bits = vec![0_u8; bytes.len()];
    let (from, to) = (bytes.as_ptr() as u64, bits.as_mut_ptr() as u64);
    assert_eq!(request(GET_VBITS, from, to, bytes.len() as u64), 1, "memcheck knows the buffers");
    bits.iter().filter(|bits| **bits == 0).count()
}

/// Valgrind's client request (`valgrind.h`, BSD licence): valgrind knows the rotations, which
/// leave `rdi` as it was, and answers in `rdx`. On a CPU without valgrind they do nothing.
fn request(code: u64, first: u64, second: u64, third: u64) -> u64 {
    let arguments = [code, first, second, third, 0, 0];
    let mut answer = 0_u64;
    // SAFETY: the rotations add up to 128 bits, the exchange is of a register with itself.
    // Valgrind reads the six arguments, and writes nothing but `rdx` and, for GET_VBITS, the
    // buffer whose length the caller gives.
    unsafe {
        asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            in("rax") arguments.as_ptr(),
            inout("rdx") answer,
            options(nostack),
        );
    }
    answer
}

const RUNNING_ON_VALGRIND: u64 = 0x1001;
const COUNT_ERRORS: u64 = 0x1201;
/// Memcheck's own requests begin with its letters, "MC".
const MEMCHECK: u64 = 0x4d43_0000;
const MAKE_MEM_UNDEFINED: u64 = MEMCHECK + 1;
const MAKE_MEM_DEFINED: u64 = MEMCHECK + 2;
const GET_VBITS: u64 = MEMCHECK + 8;
