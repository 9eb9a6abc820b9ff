//! The accelerator's column of Table 1 by the kernel's crypto interface (AF_ALG), as the paper's
//! interaction unit reaches it. Where no accelerator has a driver, the kernel computes on the CPU.

use std::sync::Arc;
use std::time::Duration;

use wattlock_af_alg::{AfAlgDevice, LinuxSockets};
use wattlock_engine::crypto::AesKey;
use wattlock_engine::{Cipher, Data, Engine, Fault, Job, Policy};
use wattlock_report::results::{Results, Row};

use super::speed;
use crate::bench::lab::Lab;
use crate::bench::rates::{Buffer, Case, Contender, Effort};
use crate::paper::live::NOT_MEASURED;

/// What rows name it.
pub const TOOL: &str = "kernel's crypto (AF_ALG)";

/// Messages in flight.
const DEPTH: usize = 8;

/// Longest time without an answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes of one call: whole messages of every size.
const CALL: u64 = 4 << 20;

/// Every size by the kernel's crypto; one thread keeps several messages in flight.
pub fn measure(lab: &mut Lab<'_>, sizes: &[u64], rounds: u16, seconds: u16) {
    let (engine, key) = match open() {
        Ok(opened) => opened,
        Err(why) => {
            lab.results.skipped.push(format!("{TOOL}: {why}"));
            return;
        }
    };
    let sample_ns = u64::from(seconds) * 1_000_000_000;
    let effort = Effort { rounds: rounds.into(), sample_ns };
    lab.results.tools.insert(TOOL.to_owned(), super::kernel_version());
    for &bytes in sizes {
        let messages = (CALL / bytes).max(1) as usize;
        let ivs = vec![[7; AesKey::BLOCK_LEN]; messages];
        let case = Case { name: speed::case(bytes), call_bytes: bytes as usize };
        let mut failed = None;
        let encrypt = |slots: &mut [u8]| {
            let cipher = Cipher::CbcEncrypt { key: &key, ivs: &ivs };
            let chunk_len = bytes as usize;
            let data = Data::InPlace { slots };
            let ran = engine.run_by(Policy::Gpu, Job { cipher, chunk_len, data, deadline: None });
            let fault = ran.map(|report| report.devices().find_map(|device| device.fault.clone()));
            failed = failed.take().or(fault.unwrap_or_else(|error| Some(Fault(error.to_string()))));
        };
        let mut buffer = Buffer::new(messages * bytes as usize);
        let first = lab.results.rows.len();
        lab.measure(effort, &case, buffer.bytes(), vec![Contender::new(TOOL, encrypt).threads(1)]);
        tell!("{}, {TOOL}", case.name);
        if let Some(why) = failed {
            lab.results.rows.truncate(first);
            lab.results.skipped.push(format!("{TOOL}: {why}"));
            return;
        }
    }
}

fn open() -> anyhow::Result<(Engine, AesKey)> {
    let device = AfAlgDevice::open(Arc::new(LinuxSockets), DEPTH, TIMEOUT)?;
    let engine = Engine::new(1).with_policy(Policy::Gpu).with_device(device);
    let key = AesKey::new(wattlock_engine::crypto::AesKernel::best(), &[0x42; 32])?;
    Ok((engine.with_chosen(&[AfAlgDevice::NAME])?, key))
}

/// Why no request went through the kernel's crypto interface here; `None` if some did.
pub fn missing(results: Option<&Results>) -> Option<String> {
    let Some(results) = results else { return Some(NOT_MEASURED.to_owned()) };
    if results.rows.iter().any(|row| row.tool == TOOL) {
        return None;
    }
    let why = results.skipped.iter().find(|why| why.starts_with(TOOL));
    Some(why.cloned().unwrap_or_else(|| "not in this run".to_owned()))
}

/// The row of a size, or why there is none.
pub fn row(results: &Results, bytes: u64) -> Result<&Row, String> {
    let found = results.row(TOOL, &speed::case(bytes));
    found.ok_or_else(|| {
        let why = results.skipped.iter().find(|why| why.starts_with(TOOL));
        why.cloned().unwrap_or_else(|| "not in this run".to_owned())
    })
}
