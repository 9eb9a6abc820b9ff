//! Three methods that look for time that depends on secrets, on cases that a program brings: those of
//! `wattlock-crypto` and of `wattlock-tls`. `docs/constant-time.md` says what each can see.

mod disassembly;
mod instruction;
mod memcheck;
mod taint;
mod taint_general;
mod taint_vector;
mod timing;
mod trace;
mod values;
mod welch;

use std::process::ExitCode;

/// Something to run on secrets.
pub struct Case {
    pub name: String,
    pub kind: Kind,
    /// Branches on the answer itself, such as "the tag is wrong", which is public.
    pub answers: u64,
    /// The methods that cannot see a control: what they say about it is shown, and not judged.
    pub unseen_by: &'static [&'static str],
    /// Bytes of secrets.
    len: usize,
    /// Makes bytes from a seed such that the answer is always the same.
    pub shape: fn(&mut [u8]),
    #[allow(clippy::type_complexity, reason = "any code on secrets, and named only here")]
    run: Box<dyn Fn(&mut [u8])>,
}

/// What is expected of a case.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// No time that depends on the secrets.
    Ours,
    /// A `_vartime` file or worse: the method has to find it.
    Control,
    /// Shown and not judged: why.
    #[allow(dead_code, reason = "one of the programs has such cases")]
    Shown(&'static str),
}

impl Case {
    /// Secrets for a run: plain ones for the seed 0, otherwise pseudo-random ones.
    pub fn secrets(&self, seed: u64) -> Vec<u8> {
        let mut bytes = vec![0; self.len];
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for chunk in bytes.chunks_mut(8) {
            // xorshift64*; it stays at 0 for the seed 0.
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            let word = state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
        (self.shape)(&mut bytes);
        bytes
    }

    /// Works on secrets, in place.
    pub fn run(&self, secrets: &mut [u8]) {
        (self.run)(secrets);
    }
}

/// A case of a kind that answers nothing, on secrets of any shape.
pub fn case(name: String, kind: Kind, len: usize, run: impl Fn(&mut [u8]) + 'static) -> Case {
    Case { name, kind, answers: 0, unseen_by: &[], len, shape: |_| (), run: Box::new(run) }
}

/// Does what the arguments say to all cases, or to those whose names they begin; says which kernels
/// are absent, and why.
pub fn run(cases: &[Case], absent: Vec<(&'static str, String)>) -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_default();
    let (options, wanted): (Vec<_>, Vec<_>) = arguments.partition(|name| name.starts_with("--"));
    let strict = options.iter().any(|option| option == "--strict");
    let method = match name.as_str() {
        "memcheck" => memcheck::running_on_valgrind().then_some(Method::Memcheck),
        "trace" => trace::Tracer::new().map(Method::Trace),
        "timing" => Some(Method::Timing),
        _ => {
            eprintln!("usage: memcheck|trace|timing [--strict] [CASE]...");
            return ExitCode::from(2);
        }
    };
    let Some(mut method) = method else {
        println!("skipped: {name}: it needs {}", needs(&name));
        return ExitCode::SUCCESS;
    };
    for (kernel, why) in absent {
        println!("skipped: {kernel}: {why}");
    }
    let mut wrong = 0;
    for case in cases {
        let chosen = wanted.is_empty() || wanted.iter().any(|from| case.name.starts_with(&**from));
        if chosen && !judge(case, &method.check(case), &name) {
            wrong += 1;
        }
    }
    println!("{name}: {wrong} cases are not as they should be");
    let lenient = name == "timing" && !strict;
    if wrong == 0 || lenient { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

enum Method {
    Memcheck,
    Trace(trace::Tracer),
    Timing,
}

impl Method {
    fn check(&mut self, case: &Case) -> Finding {
        match self {
            Self::Memcheck => memcheck::check(case),
            Self::Trace(tracer) => tracer.check(case),
            Self::Timing => timing::check(case),
        }
    }
}

fn needs(name: &str) -> &'static str {
    match name {
        "memcheck" => "to run under valgrind",
        _ => "objdump, and a system that lets a process trace its child",
    }
}

/// What a method has to say about a case.
struct Finding {
    leaks: bool,
    /// The figure that says so.
    figure: String,
    /// Where, for a human.
    places: Vec<String>,
}

/// Prints a line; false if the finding is not what the case should give.
fn judge(case: &Case, finding: &Finding, method: &str) -> bool {
    let unseen = case.unseen_by.contains(&method);
    let (right, verdict) = match (case.kind, finding.leaks) {
        (Kind::Control, false) if unseen => (true, "a control that this method cannot see"),
        (Kind::Ours, false) => (true, "ok"),
        (Kind::Ours, true) => (false, "LEAKS"),
        (Kind::Control, true) => (true, "ok: a control, and found"),
        (Kind::Control, false) => (false, "CONTROL NOT FOUND"),
        (Kind::Shown(_), false) => (true, "ok"),
        (Kind::Shown(why), true) => (true, why),
    };
    println!("{:<36} {:<38} {verdict}", case.name, finding.figure);
    if !right || matches!(case.kind, Kind::Shown(_)) {
        finding.places.iter().for_each(|place| println!("    {place}"));
    }
    right
}
