//! The clocks that LECPAES asks a GPU for: locked on lease with `--set-clocks`, or only counted.

use anyhow::Context as _;
use wattlock_energy::{Gpu, Lease, Megahertz, Root, Setting};
use wattlock_host::clocks;
use wattlock_stream::{Knob, Ladder, Rung};

/// The clocks of one GPU, unlocked again at the end.
pub struct GpuClocks {
    lease: Option<Lease>,
    knob: String,
    clocks: Vec<Megahertz>,
}

impl GpuClocks {
    /// Takes the lease of the GPU of that UUID; nothing is set yet.
    ///
    /// # Errors
    /// Fails if there is no such GPU, its driver reports no clocks, or another process holds a lease.
    pub fn new(root: &Root, uuid: &str) -> anyhow::Result<Self> {
        let gpu = Gpu::by_uuid(root, uuid).with_context(|| format!("{uuid}: invalid GPU UUID"))?;
        let clocks = gpu.ladder()?;
        let knob = wattlock_energy::Knob::id(&gpu.locked_clocks()).to_owned();
        Ok(Self { lease: Some(clocks::lease(root)?), knob, clocks })
    }

    /// What Eq. 9 makes thresholds of.
    pub fn ladder(&self) -> Option<Ladder> {
        ladder(self.clocks.iter().map(|clock| f64::from(clock.0)))
    }
}

impl Knob for GpuClocks {
    fn set(&mut self, index: usize, _: &Rung) -> Result<(), Box<dyn std::error::Error>> {
        if let Some((lease, clock)) = self.lease.as_mut().zip(self.clocks.get(index)) {
            let setting = Setting::new(&clock.0.to_string()).ok_or("a clock that is no setting")?;
            lease.set(&self.knob, &setting)?;
        }
        Ok(())
    }
}

impl Drop for GpuClocks {
    fn drop(&mut self) {
        if let Some(lease) = self.lease.take()
            && let Err(error) = lease.restore()
        {
            say!("cannot restore the GPU's clock: {error}; try `wattlock restore`");
        }
    }
}

/// A knob of a device whose clocks are not touched: it counts on the stream's side what would be
/// set.
pub struct Would;

impl Knob for Would {
    fn set(&mut self, _: usize, _: &Rung) -> Result<(), Box<dyn std::error::Error>> {
        Ok(())
    }
}

/// Core clocks of the study's K20M in MHz: the rungs of LECPAES where no GPU lets its clocks be set.
const K20M_MHZ: [f64; 6] = [324.0, 614.0, 640.0, 666.0, 705.0, 758.0];

/// The rungs of Table 1.
pub fn k20m() -> Option<Ladder> {
    ladder(K20M_MHZ.into_iter())
}

/// Rungs of clocks in MHz; what they draw and do is not asked for by the study's policy.
fn ladder(clocks: impl Iterator<Item = f64>) -> Option<Ladder> {
    Ladder::of_speeds(clocks.map(|megahertz| (format!("{megahertz} MHz"), megahertz)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_that_is_not_there_has_no_clocks_and_no_lease_is_taken() {
        let machine = tempfile::tempdir().unwrap();
        let root = Root::new(machine.path());
        let uuid = "GPU-00000000-0000-0000-0000-000000000000";
        for (uuid, why) in [(uuid, "libnvidia-ml"), ("cuda:0", "invalid GPU UUID")] {
            let error = GpuClocks::new(&root, uuid).err().unwrap();
            assert!(format!("{error:#}").contains(why), "{error:#}");
        }
        assert!(!machine.path().join("run").exists());
        assert_eq!(k20m().unwrap().rungs().len(), 6);
    }
}
