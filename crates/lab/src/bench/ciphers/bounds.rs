//! The bound of the instruction set: how fast the rounds could be if the CPU began as many of their
//! instructions in each cycle as it can, and did nothing else.

use wattlock_report::results::{Bound, Results, Row};

use super::contenders::REGISTERS;

/// Rounds as instructions.
struct Rounds {
    /// The case's name begins with it.
    case: &'static str,
    /// Rounds of a block as the standard has them.
    rounds: f64,
    /// Those that are left for each block. The first round is the same for 256 counters but for one byte, and so
    /// one sum makes it for all. What the second round adds for that byte is the same for all pages of a long
    /// message in CTR.
    left: f64,
}

const ROUNDS: [Rounds; 11] = [
    Rounds { case: "aes-128-ctr", rounds: 10.0, left: 8.0 },
    Rounds { case: "aes-128-gcm", rounds: 10.0, left: 9.0 },
    Rounds { case: "aes-128-", rounds: 10.0, left: 10.0 },
    Rounds { case: "aes-192-ctr", rounds: 12.0, left: 10.0 },
    Rounds { case: "aes-192-", rounds: 12.0, left: 12.0 },
    Rounds { case: "aes-256-ctr", rounds: 14.0, left: 12.0 },
    Rounds { case: "aes-256-gcm", rounds: 14.0, left: 13.0 },
    Rounds { case: "aes-256-", rounds: 14.0, left: 14.0 },
    Rounds { case: "sha3-256", rounds: 24.0, left: 24.0 },
    Rounds { case: "parallelhash256", rounds: 24.0, left: 24.0 },
    Rounds { case: "kt128", rounds: 12.0, left: 12.0 },
];

/// Instructions of one round of a kernel, and the bytes of message that they are for.
struct Kernel {
    name: &'static str,
    instruction: &'static str,
    /// For a round.
    instructions: f64,
    /// Bytes of message, by the start of the case.
    bytes: fn(&str) -> f64,
}

const KERNELS: [Kernel; 4] = [
    Kernel { name: "aes-ni", instruction: "16-byte aesenc", instructions: 1.0, bytes: |_| 16.0 },
    Kernel { name: "vaes256", instruction: "32-byte vaesenc", instructions: 1.0, bytes: |_| 32.0 },
    Kernel { name: "vaes512", instruction: "64-byte vaesenc", instructions: 1.0, bytes: |_| 64.0 },
    // On 8 states, with logic of three operands (FIPS 202, section 3.2): theta 10 for the parities, 5
    // rotations and 25, rho 24, chi 25, iota 1.
    Kernel {
        name: "keccak-avx512",
        instruction: "64-byte vector instruction",
        instructions: 90.0,
        bytes: |case| if case.starts_with("kt128") { 8.0 * 168.0 } else { 8.0 * 136.0 },
    },
];

/// Adds the bounds of every kernel and case that has rounds on registers, and the rows' share of them.
pub fn add(results: &mut Results, gigahertz: f64) {
    let mut bounds: Vec<Bound> = Vec::new();
    for row in results.rows.iter().filter(|row| row.tool == REGISTERS) {
        let Some(name) = row.kernel.as_deref() else { continue };
        let Some(kernel) = KERNELS.iter().find(|kernel| name.contains(kernel.name)) else {
            continue;
        };
        let Some(rounds) = ROUNDS.iter().find(|rounds| row.case.starts_with(rounds.case)) else {
            continue;
        };
        if bounds.iter().any(|bound| bound.is_of(rounds.case, name)) {
            continue;
        }
        let bytes = (kernel.bytes)(&row.case);
        let of = |left: f64| left * kernel.instructions / bytes;
        // The median over all cases, so that one disturbed row does not decide.
        let per_cycle = measured(results, name, rounds.case) / gigahertz * of(rounds.rounds);
        let begun = (per_cycle - SLACK).ceil().max(1.0);
        bounds.push(Bound {
            case: rounds.case.to_owned(),
            kernel: name.to_owned(),
            instruction: kernel.instruction.to_owned(),
            per_cycle: begun as u64,
            measured_per_cycle: (per_cycle * 100.0).round() / 100.0,
            rounds: rounds.left as u64,
            gb_per_s: begun * gigahertz / of(rounds.left),
        });
    }
    for row in &mut results.rows {
        if row.tool == REGISTERS || row.tool == super::contenders::MEMORY {
            continue;
        }
        row.fraction_of_instructions = bound_of(&bounds, row).map(|bound| row.own_rate() / bound);
    }
    results.bounds = bounds;
}

/// The rate of a kernel's rounds on registers.
fn measured(results: &Results, kernel: &str, case: &str) -> f64 {
    let rows =
        results.rows.iter().filter(|row| row.tool == REGISTERS && row.case.starts_with(case));
    let mut rates: Vec<f64> =
        rows.filter(|row| row.kernel.as_deref() == Some(kernel)).map(Row::own_rate).collect();
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

/// The bound of the row's own kernel; of peers, that of the fastest. None where the rounds of one
/// message wait for each other.
fn bound_of(bounds: &[Bound], row: &Row) -> Option<f64> {
    let is_serial = row.case.ends_with("cbc encrypt") || row.case == "sha3-256";
    if is_serial || row.threads.is_some_and(|threads| threads > 1) || row.bytes == 0 {
        return None;
    }
    let longest = bounds.iter().filter(|bound| row.case.starts_with(&bound.case));
    let longest = longest.map(|bound| bound.case.len()).max()?;
    let mut of_case = bounds
        .iter()
        .filter(|bound| bound.case.len() == longest && row.case.starts_with(&bound.case));
    let Some(name) = row.kernel.as_deref() else {
        return of_case.map(|bound| bound.gb_per_s).reduce(f64::max);
    };
    let own = match KERNELS.iter().find(|kernel| name.contains(kernel.name)) {
        // By the instruction: a kernel of a mode has the rounds of the kernel of its cipher.
        Some(kernel) => of_case.find(|bound| bound.instruction == kernel.instruction),
        None if name.ends_with("soft") || name.ends_with("vartime") => None,
        None => of_case.reduce(|a, b| if a.gb_per_s < b.gb_per_s { b } else { a }),
    };
    own.map(|bound| bound.gb_per_s)
}

/// What a measured rate may lie above a whole number, by the clock's error.
const SLACK: f64 = 0.06;
