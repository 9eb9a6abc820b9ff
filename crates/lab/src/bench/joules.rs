//! The joules of a row: counted in windows, or modelled and named so.

use std::time::Duration;

use wattlock_energy::{Energy, Idle, Metered};
use wattlock_host::energy::model;
use wattlock_report::results::{Joules, Row, Sample};

use crate::args;

/// Windows in which one contender did the same, and the bytes of plaintext in each.
#[derive(Default)]
pub struct Counted {
    windows: Vec<(Metered, u64)>,
}

impl Counted {
    pub fn push(&mut self, window: Metered, bytes: u64) {
        self.windows.push((window, bytes));
    }

    pub fn is_empty(&self) -> bool {
        self.windows.is_empty()
    }

    /// The joules of the row, from what was counted.
    pub fn joules(&self, row: &Row, idle: Option<&Idle>) -> Joules {
        let bytes: Vec<u64> = self.windows.iter().map(|(_, bytes)| *bytes).collect();
        let bytes = Sample::of(bytes).median;
        let scaled = |energy: Energy, of: u64| match of {
            0 => energy,
            of => energy.scaled(bytes as f64 / of as f64),
        };
        let gross = self.windows.iter().map(|(window, of)| scaled(window.sum(), *of));
        let gross: Vec<Energy> = gross.collect();
        let net = idle.map(|idle| {
            let net = self.windows.iter().map(|(window, of)| (idle.net(window).sum(), *of));
            net.map(|(energy, of)| scaled(energy, of)).collect::<Vec<_>>()
        });
        let values: Option<Vec<u64>> =
            gross.iter().map(|energy| energy.best().map(|best| best.0)).collect();
        let net = net.and_then(|net| Energy::median(&net));
        let mut joules = Joules::of(row, bytes, Energy::median(&gross), net);
        joules.energy_window_uj = values.map(Sample::of);
        joules
    }
}

/// The joules of the row by models, from its times; `clock` is the share of the full one.
pub fn modelled(row: &Row, meters: &args::Meters, clock: f64) -> Joules {
    let time = |sample: &Sample| Duration::from_nanos(sample.median);
    let (gross, net) = model(meters, time(&row.wall_ns), time(&row.cpu_ns), clock);
    Joules::of(row, row.bytes, Some(gross), Some(net))
}
