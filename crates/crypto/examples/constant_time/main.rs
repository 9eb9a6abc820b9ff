//! Looks for time that depends on secrets: `constant_time memcheck|trace|timing [--strict] [CASE]…`.
//!
//! Three methods on the same cases ([`cases`]), each with controls that are known to leak and have
//! to be found; `docs/constant-time.md` says what each can see. `memcheck` runs under
//! `valgrind -q`; `trace` compares the instructions of two processes; `timing` measures. Exits
//! with 1 if a case leaks or a control does not show, `timing` only with `--strict`.
//! `make constant-time` calls all three.

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod cases;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod memcheck;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod operands;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod timing;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod tls_cases;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod trace;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod welch;

use std::process::ExitCode;

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
fn main() -> ExitCode {
    println!("skipped: the methods are written for Linux on x86-64");
    ExitCode::SUCCESS
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_default();
    let (options, wanted): (Vec<_>, Vec<_>) = arguments.partition(|name| name.starts_with("--"));
    let strict = options.iter().any(|option| option == "--strict");
    let method = match name.as_str() {
        "memcheck" => memcheck::running_on_valgrind().then_some(Method::Memcheck),
        "trace" => trace::Tracer::new().map(Method::Trace),
        "timing" => Some(Method::Timing),
        _ => {
            eprintln!("usage: constant_time memcheck|trace|timing [--strict] [CASE]...");
            return ExitCode::from(2);
        }
    };
    let Some(mut method) = method else {
        println!("skipped: {name}: it needs {}", needs(&name));
        return ExitCode::SUCCESS;
    };
    for (kernel, why) in cases::absent() {
        println!("skipped: {kernel}: {why}");
    }
    let mut wrong = 0;
    for case in cases::all() {
        let chosen = wanted.is_empty() || wanted.iter().any(|from| case.name.starts_with(&**from));
        if chosen && !judge(&case, &method.check(&case)) {
            wrong += 1;
        }
    }
    println!("{name}: {wrong} cases are not as they should be");
    let lenient = name == "timing" && !strict;
    if wrong == 0 || lenient { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
enum Method {
    Memcheck,
    Trace(trace::Tracer),
    Timing,
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
impl Method {
    fn check(&mut self, case: &cases::Case) -> Finding {
        match self {
            Self::Memcheck => memcheck::check(case),
            Self::Trace(tracer) => tracer.check(case),
            Self::Timing => timing::check(case),
        }
    }
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn needs(name: &str) -> &'static str {
    match name {
        "memcheck" => "to run under valgrind",
        _ => "objdump, and a system that lets a process trace its child",
    }
}

/// What a method has to say about a case.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
struct Finding {
    leaks: bool,
    /// The figure that says so.
    figure: String,
    /// Where, for a human.
    places: Vec<String>,
}

/// Prints a line; false if the finding is not what the case should give.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn judge(case: &cases::Case, finding: &Finding) -> bool {
    let (right, verdict) = match (case.kind, finding.leaks) {
        (cases::Kind::Ours, false) => (true, "ok"),
        (cases::Kind::Ours, true) => (false, "LEAKS"),
        (cases::Kind::Control, true) => (true, "ok: a control, and found"),
        (cases::Kind::Control, false) => (false, "CONTROL NOT FOUND"),
        (cases::Kind::AwsLc, false) => (true, "ok"),
        (cases::Kind::AwsLc, true) => (true, "not judged: AWS-LC's"),
    };
    println!("{:<36} {:<38} {verdict}", case.name, finding.figure);
    if !right || case.kind == cases::Kind::AwsLc {
        finding.places.iter().for_each(|place| println!("    {place}"));
    }
    right
}
