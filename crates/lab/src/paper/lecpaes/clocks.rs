//! The clocks that LECPAES asks a GPU for: set on lease with `--set-clocks`, or only counted.

use wattlock_stream::{Ladder, Rung, SpeedControl};

/// A control of a device whose clocks are not touched: it counts on the stream's side what would be
/// set.
pub struct Would;

impl SpeedControl for Would {
    fn set(&mut self, _: usize, _: &Rung) -> Result<(), Box<dyn std::error::Error>> {
        Ok(())
    }
}

/// Clocks of cores and memory of the study's K20M in MHz: the rungs of LECPAES where no GPU lets its
/// clocks be set.
const K20M_MHZ: [(u32, u32); 6] =
    [(324, 324), (614, 2600), (640, 2600), (666, 2600), (705, 2600), (758, 2600)];

/// The rungs of Table 1.
pub fn k20m() -> Option<Ladder> {
    let rung = |(core, memory)| (format!("{core}/{memory} MHz"), f64::from(core));
    Ladder::of_speeds(K20M_MHZ.into_iter().map(rung))
}

#[cfg(test)]
mod tests {
    use wattlock_energy::Root;
    use wattlock_host::clocks;

    use super::*;

    #[test]
    fn a_gpu_that_is_not_there_has_no_clocks_and_no_lease_is_taken() {
        let machine = tempfile::tempdir().unwrap();
        let root = Root::new(machine.path());
        let uuid = "GPU-00000000-0000-0000-0000-000000000000";
        for (uuid, why) in [(uuid, "libnvidia-ml"), ("cuda:0", "invalid GPU UUID")] {
            let error = clocks::of_gpu(&root, uuid).err().unwrap();
            assert!(format!("{error:#}").contains(why), "{error:#}");
        }
        assert!(!machine.path().join("run").exists());
        assert_eq!(k20m().unwrap().rungs().len(), 6);
    }
}
