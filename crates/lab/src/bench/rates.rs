//! Rates of code in this process: contenders for one case take turns, round after round.

use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};
use wattlock_host::summary::process_cpu_time;
use wattlock_report::results::Row;
use wattlock_report::results::Sample;

/// One thing that a contender does again and again.
pub struct Case {
    /// What, as the row names it.
    pub name: String,
    /// Bytes of plaintext of one call.
    pub call_bytes: usize,
}

/// A contender of a case: a tool and how it runs.
pub struct Contender<'a> {
    /// The row's tool.
    pub tool: String,
    /// The row's kernel.
    pub kernel: Option<String>,
    /// The row's threads. The CPU time of one is that of the thread that runs it.
    pub threads: Option<usize>,
    /// Messages of one call, where their number says more than the bytes.
    pub messages: Option<u64>,
    /// One call on the case's buffer. Returns the bytes done.
    pub run: Box<dyn FnMut(&mut [u8]) -> u64 + 'a>,
}

impl<'a> Contender<'a> {
    /// A contender that processes the whole buffer in each call.
    pub fn new(tool: &str, mut run: impl FnMut(&mut [u8]) + 'a) -> Self {
        let run = move |buffer: &mut [u8]| {
            run(buffer);
            buffer.len() as u64
        };
        Self {
            tool: tool.to_owned(),
            kernel: None,
            threads: None,
            messages: None,
            run: Box::new(run),
        }
    }

    /// The same with a kernel's name.
    pub fn kernel(mut self, name: &str) -> Self {
        self.kernel = Some(name.to_owned());
        self
    }

    /// The same with a number of threads.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }
}

/// How long to measure.
#[derive(Clone, Copy)]
pub struct Effort {
    /// Samples of each contender.
    pub rounds: usize,
    /// Wall time of one sample, about.
    pub sample_ns: u64,
}

/// Lets the contenders take turns on one buffer, each round starting with another, and returns
/// their rows in their order.
pub fn measure(
    effort: Effort,
    case: &Case,
    buffer: &mut [u8],
    contenders: Vec<Contender<'_>>,
) -> Vec<Row> {
    take_turns(effort, buffer, contenders).into_iter().map(|turns| turns.row(case)).collect()
}

/// The same, and they can go on.
pub fn take_turns<'a>(
    effort: Effort,
    buffer: &mut [u8],
    contenders: Vec<Contender<'a>>,
) -> Vec<Turns<'a>> {
    let mut turns: Vec<_> =
        contenders.into_iter().map(|c| Turns::warm_up(effort, c, buffer)).collect();
    for round in 0..effort.rounds {
        for turn in 0..turns.len() {
            let index = (round + turn) % turns.len();
            turns[index].sample(buffer);
        }
    }
    turns
}

/// A contender and what was measured of it.
pub struct Turns<'a> {
    contender: Contender<'a>,
    calls: u64,
    bytes: u64,
    wall_ns: Vec<u64>,
    cpu_ns: Vec<u64>,
}

impl<'a> Turns<'a> {
    /// Finds how many calls make one sample; the first call does not count.
    fn warm_up(effort: Effort, mut contender: Contender<'a>, buffer: &mut [u8]) -> Self {
        (contender.run)(buffer);
        let mut calls = 1;
        let mut time = |calls| {
            let started = Instant::now();
            for _ in 0..calls {
                (contender.run)(buffer);
            }
            started.elapsed().as_nanos() as u64
        };
        let calls = loop {
            let mut took = time(calls);
            if took * 4 >= effort.sample_ns {
                // Another program may have had the CPU meanwhile; not three times.
                took = took.min(time(calls)).min(time(calls));
            }
            if took * 4 >= effort.sample_ns || calls > 1 << 30 {
                break (calls * effort.sample_ns / took.max(1)).max(1);
            }
            calls *= 2;
        };
        Self { contender, calls, bytes: 0, wall_ns: Vec::new(), cpu_ns: Vec::new() }
    }

    fn sample(&mut self, buffer: &mut [u8]) {
        let cpu_ns = if self.contender.threads == Some(1) { thread_cpu_ns } else { cpu_ns };
        let cpu = cpu_ns();
        let started = Instant::now();
        self.bytes = self.work(buffer);
        self.wall_ns.push(started.elapsed().as_nanos() as u64);
        self.cpu_ns.push(cpu_ns() - cpu);
    }

    /// As much as one sample is. Returns the bytes done.
    pub fn work(&mut self, buffer: &mut [u8]) -> u64 {
        (0..self.calls).map(|_| (self.contender.run)(buffer)).sum()
    }

    /// What was measured.
    pub fn row(self, case: &Case) -> Row {
        Row {
            tool: self.contender.tool,
            case: case.name.clone(),
            kernel: self.contender.kernel,
            threads: self.contender.threads,
            call_bytes: Some(case.call_bytes as u64),
            bytes: self.bytes,
            messages: self.contender.messages.map(|messages| messages * self.calls),
            wall_ns: Sample::of(self.wall_ns),
            cpu_ns: Sample::of(self.cpu_ns),
            ..Row::default()
        }
    }
}

fn cpu_ns() -> u64 {
    process_cpu_time().as_nanos() as u64
}

fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// A buffer of `len` bytes that starts at a line of the cache.
pub struct Buffer {
    bytes: Vec<u8>,
    start: usize,
}

impl Buffer {
    /// Filled with a pattern that never repeats within a page.
    pub fn new(len: usize) -> Self {
        let mut bytes = vec![0; len + LINE];
        let start = bytes.as_ptr().align_offset(LINE).min(LINE);
        // From the start on, so that every buffer of a length holds the same.
        for (i, byte) in bytes[start..].iter_mut().enumerate() {
            *byte = (i % 251) as u8;
        }
        bytes.truncate(start + len);
        Self { bytes, start }
    }

    /// The bytes.
    pub fn bytes(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..]
    }
}

const LINE: usize = 64;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn one_interruption_does_not_make_samples_short() {
        let mut calls = 0;
        let contender = Contender::new("", |_| {
            calls += 1;
            // The first call is not timed.
            if calls == 2 {
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let effort = Effort { rounds: 1, sample_ns: 2_000_000 };
        let turns = Turns::warm_up(effort, contender, &mut []);
        assert!(turns.calls > 1, "a call takes some nanoseconds");
    }
}
