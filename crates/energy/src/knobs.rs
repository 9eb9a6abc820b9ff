//! The settings of the machine that can be changed for a while, each by a name that outlives the program.
//!
//! A lease writes the names into its journal, and a replay of that journal finds the knobs by
//! them. So a name has one exact form for each kind of knob, and anything else is refused:
//! a journal must not lead a program that runs as root to other files.

use crate::cpufreq;
use crate::found::Found;
use crate::knob::Knob;
use crate::nvml_knob::{self, ApplicationsClocks, LockedClocks, PowerLimit};
use crate::root::Root;

/// The knob of that name, if the name has the exact form of one; it may still be missing here.
pub fn by_id(root: &Root, id: &str) -> Option<Box<dyn Knob>> {
    match id.split_once('/')? {
        ("cpufreq", rest) => Some(Box::new(cpufreq::Attribute::by_name(root, rest)?)),
        ("nvml", rest) => {
            if let Some(knob) = LockedClocks::by_name(root, rest) {
                return Some(Box::new(knob));
            }
            if let Some(knob) = ApplicationsClocks::by_name(root, rest) {
                return Some(Box::new(knob));
            }
            Some(Box::new(PowerLimit::by_name(root, rest)?))
        }
        _ => None,
    }
}

/// What can be set and what cannot, for people.
pub fn found(root: &Root) -> Vec<Found> {
    cpufreq::found(root).into_iter().chain(nvml_knob::found(root)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_exact_names_are_knobs() {
        let root = Root::new("/nowhere");
        for id in [
            "cpufreq/policy0/scaling_max_freq",
            "cpufreq/policy12/scaling_min_freq",
            "cpufreq/policy127/energy_performance_preference",
        ] {
            assert_eq!(by_id(&root, id).unwrap().id(), id);
        }
        for forged in [
            "",
            "cpufreq",
            "cpufreq/",
            "cpufreq/policy0",
            "cpufreq/../../etc/passwd",
            "cpufreq/policy0/../../../../etc/passwd",
            "cpufreq/policy0/scaling_governor",
            "cpufreq/policy0/scaling_max_freq/",
            "cpufreq//policy0/scaling_max_freq",
            "cpufreq/policy00/scaling_max_freq",
            "cpufreq/policy+1/scaling_max_freq",
            "cpufreq/policy/scaling_max_freq",
            "cpufreq/policy99999999999/scaling_max_freq",
            "cpufreq/policy0/scaling_max_freq\n",
            "/cpufreq/policy0/scaling_max_freq",
            "../cpufreq/policy0/scaling_max_freq",
            "nvml/GPU-0/anything",
        ] {
            assert!(by_id(&root, forged).is_none(), "{forged:?}");
        }
    }
}
