//! The joules that a part of a program took.

use std::path::PathBuf;
use std::sync::mpsc::{self, Sender};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use rustix::time::{ClockId, clock_gettime};
use wattlock_energy::{Energy, Load, Metered, Microjoules, Root, Sources, Tdp, modelled};

use crate::process::{self, threads};

/// The joules of the machine while a block runs: `with wattlock.measure() as m: …`. All that the machine does meanwhile
/// counts. Before the block ends, nothing is known: None, or an empty list.
#[pyclass(frozen, module = "wattlock")]
pub(crate) struct Measurement {
    root: Root,
    state: Mutex<State>,
}

enum State {
    New,
    /// It begins or ends at this moment.
    Busy,
    Running {
        end: Sender<()>,
        thread: JoinHandle<Option<Metered>>,
        started: Instant,
        cpu: Duration,
        generation: u32,
    },
    Done(Box<Result>),
}

struct Result {
    energy: Option<Energy>,
    modelled: Energy,
    wall: Duration,
    cpu: Duration,
}

#[pymethods]
impl Measurement {
    #[new]
    #[pyo3(signature = (*, root=None))]
    fn new(root: Option<PathBuf>) -> Self {
        let root = root.map_or_else(Root::default, Root::new);
        Self { root, state: Mutex::new(State::New) }
    }

    fn __enter__<'py>(slf: Bound<'py, Self>, py: Python<'py>) -> PyResult<Bound<'py, Self>> {
        let root = slf.get().root.clone();
        let state = slf.get().replace(State::Busy);
        if !matches!(state, State::New) {
            slf.get().replace(state);
            return Err(PyValueError::new_err("a measurement is used once"));
        }
        let begun = py.detach(|| begin(root))?;
        slf.get().replace(begun);
        Ok(slf)
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, py: Python<'_>, _raised: &Bound<'_, PyAny>) -> PyResult<bool> {
        let State::Running { end, thread, started, cpu, generation } = self.replace(State::Busy)
        else {
            return Err(PyValueError::new_err("the measurement has not begun"));
        };
        // A child has neither the thread nor its end of the channel.
        if generation != process::generation() {
            std::mem::forget((end, thread));
            return Ok(false);
        }
        let (wall, cpu) = (started.elapsed(), cpu_time().saturating_sub(cpu));
        let metered = py.detach(|| {
            drop(end);
            thread.join().ok().flatten()
        });
        let possible = wall.as_secs_f64() * threads() as f64;
        let utilisation = cpu.as_secs_f64() / possible.max(f64::MIN_POSITIVE);
        let modelled = modelled(Load { wall, utilisation, clock: 1.0 }, Tdp::Assumed);
        let energy = metered.map(|metered| metered.sum());
        self.replace(State::Done(Box::new(Result { energy, modelled, wall, cpu })));
        Ok(false)
    }

    /// Joules that were counted, or integrated from samples of power; None where nothing on this machine does that.
    #[getter]
    fn joules(&self) -> Option<f64> {
        self.energy(|energy| energy.best().map(Microjoules::joules)).flatten()
    }

    /// The least and the most joules that they may be; None as `joules`.
    #[getter]
    fn interval(&self) -> Option<(f64, f64)> {
        self.energy(interval).flatten()
    }

    /// What the joules are worth: "measured" by a counter, "integrated" from samples of power, "attributed" as a
    /// share of such a number, or "unavailable".
    #[getter]
    fn class_(&self) -> Option<&'static str> {
        let of = |result: &Result| match &result.energy {
            Some(energy) => energy.class().name(),
            None => "unavailable",
        };
        self.done(of)
    }

    /// The least and the most joules that models assume for the CPU time of this process, without any meter. It is no
    /// measurement.
    #[getter]
    fn modelled_interval(&self) -> Option<(f64, f64)> {
        self.done(|result| interval(&result.modelled)).flatten()
    }

    /// The parts of the machine that the joules cover.
    #[getter]
    fn covers(&self) -> Vec<String> {
        self.energy(|energy| energy.covers().map(str::to_owned).collect()).unwrap_or_default()
    }

    /// The parts that they should cover and do not.
    #[getter]
    fn missing(&self) -> Vec<String> {
        self.energy(|energy| energy.missing().map(str::to_owned).collect()).unwrap_or_default()
    }

    /// What is doubtful about the joules.
    #[getter]
    fn caveats(&self) -> Vec<String> {
        self.energy(|energy| energy.caveats().map(|caveat| caveat.name().to_owned()).collect())
            .unwrap_or_default()
    }

    /// Seconds that passed.
    #[getter]
    fn seconds(&self) -> Option<f64> {
        self.done(|result| result.wall.as_secs_f64())
    }

    /// CPU seconds of this process.
    #[getter]
    fn cpu_seconds(&self) -> Option<f64> {
        self.done(|result| result.cpu.as_secs_f64())
    }

    fn __repr__(&self) -> String {
        let text = match (self.class_(), self.joules(), self.interval()) {
            (None, ..) => "not ended".to_owned(),
            (Some(class), Some(joules), Some((low, high))) => {
                format!("{joules:.3} J ({low:.3} to {high:.3}), {class}")
            }
            (Some(_), ..) => "no joules: nothing on this machine counts them".to_owned(),
        };
        format!("<wattlock.Measurement: {text}>")
    }
}

impl Measurement {
    /// Puts another state in place of the one that is there. The lock is held for no longer.
    fn replace(&self, state: State) -> State {
        std::mem::replace(&mut *self.lock(), state)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn done<T>(&self, of: impl FnOnce(&Result) -> T) -> Option<T> {
        match &*self.lock() {
            State::Done(result) => Some(of(result)),
            _ => None,
        }
    }

    fn energy<T>(&self, of: impl FnOnce(&Energy) -> T) -> Option<T> {
        self.done(|result| result.energy.as_ref().map(of)).flatten()
    }
}

fn interval(energy: &Energy) -> Option<(f64, f64)> {
    energy.interval().map(|(low, high)| (low.joules(), high.joules()))
}

/// Starts to watch the meters, and returns once they were read for the first time.
fn begin(root: Root) -> PyResult<State> {
    let (end, ended) = mpsc::channel::<()>();
    let (begins, begun) = mpsc::sync_channel::<()>(1);
    let watch = move || {
        let mut sources = Sources::open(&root);
        let measured = sources.measure(|| {
            drop(begins);
            // Until the other end is dropped.
            let _ = ended.recv();
        });
        measured.ok().map(|((), metered)| metered)
    };
    let thread = thread::Builder::new().name("wattlock-measure".to_owned()).spawn(watch);
    let thread =
        thread.map_err(|error| PyRuntimeError::new_err(format!("starting a thread: {error}")))?;
    let _ = begun.recv();
    let (started, cpu, generation) = (Instant::now(), cpu_time(), process::generation());
    Ok(State::Running { end, thread, started, cpu, generation })
}

/// CPU time of this process.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}
