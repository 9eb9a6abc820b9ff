//! Where a message is sealed: on the accelerator as long as it works, and on this thread otherwise.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use wattlock_engine::{Engine, Error as EngineError, Policy};
use zeroize::Zeroize;

use super::recorder::Recorder;
use crate::{Error, Message};

/// The accelerator, if there is one.
pub(super) struct Sealer {
    engine: Option<Arc<Engine>>,
    /// True once it failed: it is not asked again.
    lost: AtomicBool,
    recorder: Arc<Recorder>,
}

impl Sealer {
    pub fn new(engine: Option<Arc<Engine>>, recorder: Arc<Recorder>) -> Self {
        Self { engine, lost: AtomicBool::new(false), recorder }
    }

    /// Works on a message wherever it can be done.
    pub fn seal(&self, message: &mut Message) -> Result<(), Error> {
        let Some(engine) = &self.engine else { return self.on_cpu(message) };
        if !self.lost.load(Ordering::Relaxed)
            && let Some(sealed) = self.on_accelerator(engine, message)
        {
            return sealed;
        }
        self.recorder.instead();
        self.on_cpu(message)
    }

    /// Works on a message on this thread.
    pub fn on_cpu(&self, message: &mut Message) -> Result<(), Error> {
        let started = Instant::now();
        let worked = message.work();
        self.recorder.worked(started.elapsed());
        worked
    }

    /// Lets the engine work; `None` if the message is untouched.
    fn on_accelerator(&self, engine: &Engine, message: &mut Message) -> Option<Result<(), Error>> {
        let job = message.job()?;
        let started = Instant::now();
        let report = engine.run_by(Policy::Gpu, job);
        match report {
            Ok(report) => {
                self.recorder.worked(started.elapsed());
                if let Some(fault) = report.devices().find_map(|device| device.fault.as_ref()) {
                    self.lose(fault.to_string());
                }
                // What the device dropped, the engine's CPU workers have finished.
                match report.cpu.bytes {
                    0 => self.recorder.on_accelerator(),
                    _ => self.recorder.instead(),
                }
                Some(Ok(()))
            }
            Err(error @ EngineError::NoDevice { .. }) => {
                self.lose(error.to_string());
                None
            }
            Err(EngineError::Authentication { .. }) => {
                let payload = message.payload.clone();
                message.buffer[payload].zeroize();
                Some(Err(Error::Authentication))
            }
            Err(error) => Some(Err(Error::Device(Box::new(error)))),
        }
    }

    fn lose(&self, why: String) {
        self.lost.store(true, Ordering::Relaxed);
        self.recorder.lost(why);
    }
}
