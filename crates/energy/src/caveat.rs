//! Doubts about a number, by name, each with a line of advice.

use serde::{Deserialize, Serialize};

/// A doubt about a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Caveat {
    /// The counter knows the machine, not the command.
    WholeMachine,
    /// The uncertainty is more than a tenth of the value, or the counter did not move at all.
    BelowResolution,
    /// A domain that belongs to the sum could not be read.
    DomainMissing,
    /// A GPU's energy could not be read, and is not in the sum.
    AcceleratorMissing,
    /// Power was sampled.
    Sampled,
    /// The idle power before was not that after, or more than the power at work.
    IdleDrift,
    /// A read failed.
    Gap,
    /// The counter may have wrapped more than once between two reads.
    Ambiguous,
    /// The counter went back, and no wrap explains it.
    Reset,
    /// The machine was suspended meanwhile.
    Suspended,
    /// The counter stood still for longer than any machine does.
    Stuck,
    /// The counter ran faster than any machine does.
    Implausible,
    /// The model knows utilisation and time only.
    UtilisationOnly,
    /// The CPU's design power is not known, so that a wide range was taken.
    TdpAssumed,
    /// The counters were read below a root that is not this machine's.
    OtherRoot,
    /// A hypervisor computes the counter, as this guest's share of the host's energy.
    GuestShare,
    /// A meter did not answer in time.
    Silent,
    /// A counter of the whole showed less than its parts.
    PartExceedsWhole,
    /// A GPU's energy may be in the whole already, or not.
    GpuOverlapUnknown,
}

impl Caveat {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::WholeMachine => "whole-machine",
            Self::BelowResolution => "below-resolution",
            Self::DomainMissing => "domain-missing",
            Self::AcceleratorMissing => "accelerator-missing",
            Self::Sampled => "sampled",
            Self::IdleDrift => "idle-drift",
            Self::Gap => "gap",
            Self::Ambiguous => "ambiguous",
            Self::Reset => "reset",
            Self::Suspended => "suspended",
            Self::Stuck => "stuck",
            Self::Implausible => "implausible",
            Self::UtilisationOnly => "utilisation-only",
            Self::TdpAssumed => "tdp-assumed",
            Self::OtherRoot => "other-root",
            Self::GuestShare => "guest-share",
            Self::Silent => "silent",
            Self::PartExceedsWhole => "part-exceeds-whole",
            Self::GpuOverlapUnknown => "gpu-overlap-unknown",
        }
    }

    /// What it means and what can be done.
    pub fn advice(self) -> &'static str {
        match self {
            Self::WholeMachine => {
                "the counters see everything that runs; measure on an otherwise idle machine"
            }
            Self::BelowResolution => "the run is too short for the meter; measure a longer one",
            Self::DomainMissing => {
                "a domain could not be read, and a sum does not include it; see wattlock doctor"
            }
            Self::AcceleratorMissing => {
                "a GPU is here whose energy cannot be read, and the sum is without it"
            }
            Self::Sampled => "power was sampled: what it did between two samples is not known",
            Self::IdleDrift => {
                "the idle power before and after differ by more than a tenth, or exceed that of the \
                 work; let the machine rest, and measure again"
            }
            Self::Gap => "a read of the counter failed; see wattlock doctor, and measure again",
            Self::Ambiguous => {
                "the counter was not read in time and may have wrapped unseen; measure again"
            }
            Self::Reset => "the counter was set back, as by a suspend; measure again",
            Self::Suspended => {
                "the machine was suspended meanwhile, which sets counters back; measure again"
            }
            Self::Stuck => "the counter does not count, as in some virtual machines; do not use it",
            Self::Implausible => "the counter jumped further than any machine can; measure again",
            Self::UtilisationOnly => {
                "the model knows time and utilisation only: it cannot rank ciphers"
            }
            Self::TdpAssumed => {
                "the CPU's design power is not known; --tdp WATTS gives a closer model"
            }
            Self::OtherRoot => {
                "this was not read from this machine but from files given in its place"
            }
            Self::GuestShare => {
                "a virtual machine's counter is a share that the host computes, not a measurement; \
                 measure on the host itself"
            }
            Self::Silent => {
                "a meter did not answer in time; see wattlock doctor, and look for errors in dmesg"
            }
            Self::PartExceedsWhole => {
                "psys or a whole-machine meter read less than a component; its reading is not used"
            }
            Self::GpuOverlapUnknown => {
                "it is unknown whether psys includes the GPU; the energy range covers both cases"
            }
        }
    }
}
