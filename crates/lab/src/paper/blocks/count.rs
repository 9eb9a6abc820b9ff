//! How many instructions a form of the listing, RC4 or RC4A executes for each byte: by the CPU's
//! counter, or where the kernel shows none, by executing a child one instruction at a time.

use std::env;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use nix::sys::ptrace;
use nix::sys::signal::{Signal, raise};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use perf_event::Builder;
use perf_event::events::Hardware;

use super::form::Form;
use super::rows::KEY;
use crate::study::{Rc4, Rc4a};

/// How instructions were counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// By the CPU.
    Hardware,
    /// By single steps.
    Steps,
}

impl Counter {
    /// What counts here.
    ///
    /// # Errors
    /// Why nothing does.
    pub fn find() -> Result<Self, String> {
        let hardware = match counted(|| ()) {
            Ok(_) => return Ok(Self::Hardware),
            Err(why) => why,
        };
        match steps(&[COUNT, Form::PROBE, "0", "0"]) {
            Ok(_) => Ok(Self::Steps),
            Err(why) => Err(format!(
                "instructions: no hardware counter (perf_event_open: {hardware:#}), and no single \
                 steps ({why:#})"
            )),
        }
    }

    /// As results name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hardware => "hardware counter",
            Self::Steps => "single steps",
        }
    }

    /// Instructions for each byte of what has that name: what `bytes` take more than none.
    ///
    /// # Errors
    /// That nothing has that name, and why what counts does not.
    pub fn per_byte(self, name: &str, bytes: usize) -> anyhow::Result<f64> {
        let [none, all] = match self {
            Self::Hardware => {
                let mut work = named(name)?;
                let mut data = vec![0x5a; bytes];
                work(&mut data);
                [counted(|| work(&mut []))?, counted(|| work(&mut data))?]
            }
            Self::Steps => steps(&[COUNT, name, "0", &bytes.to_string()])?,
        };
        Ok((all as f64 - none as f64) / bytes as f64)
    }
}

/// What is counted by that name: a form of the listing, or a cipher of the study of six.
fn named(name: &str) -> anyhow::Result<Box<dyn FnMut(&mut [u8])>> {
    match name {
        "rc4" => {
            let mut cipher = Rc4::new(&KEY)?;
            Ok(Box::new(move |data: &mut [u8]| cipher.xor(data)))
        }
        "rc4a" => {
            let mut cipher = Rc4a::with_default_k2(&KEY)?;
            Ok(Box::new(move |data: &mut [u8]| cipher.xor(data)))
        }
        _ => Form::named(name).map(Form::work).with_context(|| format!("{name:?} is no form")),
    }
}

/// Instructions of this thread in user mode.
fn counted(work: impl FnOnce()) -> anyhow::Result<u64> {
    let mut counter = Builder::new(Hardware::INSTRUCTIONS).build()?;
    counter.enable()?;
    work();
    counter.disable()?;
    Ok(counter.read()?)
}

/// The hidden flag of `wattlock-lab paper blocks` that makes it the child.
const COUNT: &str = "--count-steps";

/// What a child executes between its first stop and its second, and from there to its third.
fn steps(args: &[&str; 4]) -> anyhow::Result<[u64; 2]> {
    let program = env::current_exe().context("this program")?;
    let mut child = Command::new(program)
        .args(["paper", "blocks"])
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let pid = Pid::from_raw(child.id().try_into()?);
    let counted = stepped(pid);
    // It may be stopped, or have ended.
    let _ = child.kill();
    let _ = child.wait();
    counted
}

fn stepped(pid: Pid) -> anyhow::Result<[u64; 2]> {
    expect_stop(waitpid(pid, None)?)?;
    let mut counts = [0; 2];
    for count in &mut counts {
        loop {
            ptrace::step(pid, None)?;
            *count += 1;
            match waitpid(pid, None)? {
                WaitStatus::Stopped(_, Signal::SIGTRAP) => {}
                stopped => {
                    expect_stop(stopped)?;
                    break;
                }
            }
            if *count > MOST_STEPS {
                bail!("more than {MOST_STEPS} instructions");
            }
        }
    }
    Ok(counts)
}

fn expect_stop(status: WaitStatus) -> anyhow::Result<()> {
    match status {
        WaitStatus::Stopped(_, Signal::SIGSTOP) => Ok(()),
        other => bail!("the child does not stop as expected: {other:?}"),
    }
}

/// No form takes as many for what it is given.
const MOST_STEPS: u64 = 20_000_000;

/// The child: does what has that name on two lengths, and stops before, between and after.
///
/// # Errors
/// That nothing has that name, and that it cannot be traced.
pub fn be_stepped(name: &str, lengths: &[usize]) -> anyhow::Result<()> {
    let mut work = named(name)?;
    let mut data = vec![0x5a; lengths.iter().copied().max().unwrap_or(0)];
    work(&mut data);
    ptrace::traceme().context("ptrace")?;
    raise(Signal::SIGSTOP)?;
    for length in lengths {
        work(&mut data[..*length]);
        raise(Signal::SIGSTOP)?;
    }
    Ok(())
}
