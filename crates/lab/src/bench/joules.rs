//! The joules of a row: counted in windows, or modelled and named so.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use wattlock_energy::{Class, Energy, Figure, Idle, Window};

use super::results::Row;
use super::sample::Sample;
use crate::args;
use wattlock_host::energy::{interval, model};

/// What is told of a row's energy. Keys of models are others than those of what was measured.
#[derive(Debug, Default, Serialize)]
pub struct Joules {
    /// User and system seconds for 10^9 bytes of plaintext.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_s_per_gb: Option<f64>,
    /// Bytes of plaintext that the energies are of; 0 where there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_bytes: Option<u64>,
    /// The energy of so many bytes, gross.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy: Option<Energy>,
    /// The same without what the machine takes at rest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub net: Option<Energy>,
    /// What was counted in each window, scaled to so many bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_window_uj: Option<Sample>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pj_per_byte: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    net_pj_per_byte: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model_pj_per_byte: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model_net_pj_per_byte: Option<Value>,
}

/// Windows in which one contender did the same, and the bytes of plaintext in each.
#[derive(Default)]
pub struct Counted {
    windows: Vec<(Window, u64)>,
}

impl Counted {
    pub fn push(&mut self, window: Window, bytes: u64) {
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
        Joules {
            energy_window_uj: values.map(Sample::of),
            ..Joules::of(
                row,
                bytes,
                Energy::median(&gross),
                net.and_then(|net| Energy::median(&net)),
            )
        }
    }
}

impl Joules {
    /// The joules of the row by models, from its times; `clock` is the share of the full one.
    pub fn modelled(row: &Row, meters: &args::Meters, clock: f64) -> Self {
        let time = |sample: &Sample| Duration::from_nanos(sample.median);
        let (gross, net) = model(meters, time(&row.wall_ns), time(&row.cpu_ns), clock);
        Self::of(row, row.bytes, Some(gross), Some(net))
    }

    fn of(row: &Row, bytes: u64, energy: Option<Energy>, net: Option<Energy>) -> Self {
        let mut joules = Self {
            cpu_s_per_gb: (row.bytes > 0).then(|| row.cpu_ns.median as f64 / row.bytes as f64),
            energy_bytes: Some(bytes),
            ..Self::default()
        };
        let per_byte = |energy: &Energy| {
            let figure = energy.figure("nJ/B", |joules| joules * 1e9 / bytes as f64)?;
            Some(interval(&figure, 1e3))
        };
        for (energy, counted, modelled) in [
            (&energy, &mut joules.pj_per_byte, &mut joules.model_pj_per_byte),
            (&net, &mut joules.net_pj_per_byte, &mut joules.model_net_pj_per_byte),
        ] {
            let Some(energy) = energy.as_ref().filter(|_| bytes > 0) else { continue };
            let is_model = energy.class() == Class::Modelled;
            *(if is_model { modelled } else { counted }) = per_byte(energy);
        }
        Self { energy, net, ..joules }
    }

    /// The energy for a byte, as its class allows, in units of which a joule has `scale`.
    pub fn per_byte(&self, unit: &'static str, scale: f64) -> Option<Figure> {
        let bytes = self.energy_bytes.filter(|bytes| *bytes > 0)? as f64;
        self.energy.as_ref()?.figure(unit, |joules| joules * scale / bytes)
    }

    /// CPU seconds for a gigabyte and energy for a byte, for the last columns of a table.
    pub fn cells(&self) -> String {
        let cpu = self.cpu_s_per_gb.map_or_else(String::new, |cpu| format!("{cpu:.3}"));
        let energy = match (&self.energy, self.per_byte("nJ/B", 1e9)) {
            (_, Some(figure)) if figure.class() == Class::Measured => {
                format!("{figure} measured")
            }
            (_, Some(figure)) => figure.to_string(),
            (Some(energy), None) => energy.to_string(),
            (None, None) => String::new(),
        };
        format!("{cpu:>8}  {energy}")
    }
}

/// The head of [`Joules::cells`].
pub const HEAD: &str = "CPU s/GB  energy";
