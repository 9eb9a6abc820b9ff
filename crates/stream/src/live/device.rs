//! Batches on a device: runs of messages with one key, one length and consecutive nonces are sealed or
//! opened as one job.
//!
//! A device works on many messages at once, each on threads of its own, and one message alone would
//! take longer there than here. So it gets runs of [`LEAST_RUN`] messages or more; the CPU worker
//! does the others.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use wattlock_engine::crypto::{AeadKey, TAG_LEN};
use wattlock_engine::{Aad, Cipher, Data, Job, Operation, Policy};
use zeroize::Zeroizing;

use super::{OnDevice, Shared};
use crate::message::{self, Message, Nonce};
use crate::window::Taken;

/// Messages that are worth a job of a device.
const LEAST_RUN: usize = 8;

impl Shared {
    /// Seals or opens runs on the device. `done[i]` is false for messages left unchanged for the CPU.
    pub(super) fn on_device(&self, batch: &mut [Taken<Message>], done: &mut Vec<bool>) {
        done.resize(batch.len(), false);
        let Some(device) = &self.device else { return };
        let mut start = 0;
        while start < batch.len() {
            let end = start + run_len(&batch[start..]);
            if end - start >= LEAST_RUN {
                let started = Instant::now();
                let run = &mut batch[start..end];
                let bytes = run.iter().map(|taken| taken.item.bytes()).sum();
                let worked = work(device, run);
                self.recorder.worked(started.elapsed());
                self.recorder.on_device(if worked { bytes } else { 0 });
                done[start..end].fill(worked);
            }
            start = end;
        }
    }
}

/// What messages of a run have in common.
struct Kind<'a> {
    operation: Operation,
    key: &'a Arc<AeadKey>,
    nonce: Nonce,
    len: usize,
}

/// Returns `None` for a message with bytes that only its tag covers, or whose payload and tag exceed
/// its buffer.
fn kind(message: &Message) -> Option<Kind<'_>> {
    let (operation, key, nonce, aad) = match &message.cipher {
        message::Cipher::Seal { key, nonce, aad } => (Operation::Seal, key, nonce, aad),
        message::Cipher::Open { key, nonce, aad } => (Operation::Open, key, nonce, aad),
    };
    let fits = slot(message).end <= message.buffer.len();
    (aad.is_empty() && fits).then(|| Kind {
        operation,
        key,
        nonce: *nonce,
        len: message.payload.len(),
    })
}

/// The payload and its tag.
fn slot(message: &Message) -> Range<usize> {
    message.payload.start..message.payload.end + TAG_LEN
}

/// Returns how many messages from the first on are one run; at least one.
fn run_len(batch: &[Taken<Message>]) -> usize {
    let Some(first) = kind(&batch[0].item) else { return 1 };
    let continues = |(index, taken): &(usize, &Taken<Message>)| {
        kind(&taken.item).is_some_and(|kind| {
            let number = first.nonce.number.wrapping_add(*index as u64);
            kind.operation == first.operation
                && Arc::ptr_eq(kind.key, first.key)
                && kind.len == first.len
                && kind.nonce == Nonce { base: first.nonce.base, number }
        })
    };
    batch.iter().enumerate().take_while(continues).count().max(1)
}

/// Works on a run as one job, in a buffer of its own. Returns false on a device error or a wrong tag;
/// the CPU worker then finds the wrong message.
fn work(device: &OnDevice, run: &mut [Taken<Message>]) -> bool {
    let mut slots = Zeroizing::new(Vec::new());
    let Some(Kind { operation, key, nonce, len }) = kind(&run[0].item) else { return false };
    slots.reserve_exact(run.len() * (len + TAG_LEN));
    for taken in &*run {
        slots.extend_from_slice(&taken.item.buffer[slot(&taken.item)]);
    }
    let cipher = Cipher::Aead { operation, key, nonces: nonce.counted(), aad: Aad::None };
    let data = Data::InPlace { slots: &mut slots };
    let job = Job { cipher, chunk_len: len, data, deadline: None };
    let Ok(report) = device.engine.run_by(Policy::Gpu, job) else { return false };
    for fault in report.devices().filter_map(|device| device.fault.as_ref()) {
        (device.on_fault)(&fault.to_string());
    }
    for (taken, sealed) in run.iter_mut().zip(slots.chunks_exact(len + TAG_LEN)) {
        let slot = slot(&taken.item);
        taken.item.buffer[slot].copy_from_slice(sealed);
    }
    true
}
