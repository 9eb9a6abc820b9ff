//! Velocity policies: pure functions of how full the window is and how old its messages are.

use crate::ladder::Ladder;

/// What a policy may look at when it decides.
///
/// It is taken each time a device asks for its next batch, before the window releases the one that
/// was sealed last; and when nothing is left to seal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sense {
    /// Bytes in the window that no device has taken yet.
    pub buffered: u64,
    /// Bytes in the window that a device works on, or that it has not released yet.
    pub in_flight: u64,
    /// Bytes that senders have written and that wait in front of the window to be read.
    pub unread: u64,
    /// Bytes that the window holds.
    pub size: u64,
    /// The rung that is set.
    pub rung: usize,
    /// Bytes a second at which all messages in the window are sealed within nine tenths of the
    /// deadline, as old as they are; infinite if one is late.
    pub asked: f64,
}

/// How a rung is chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Velocity {
    /// Algorithm 1 to the letter: Eq. 7 on what is buffered after the head moved; batches of all
    /// that is buffered; the clock is set by the thread that seals, before it seals.
    LecpaesLiteral,
    /// Eq. 7 on all that is in the window, in flight or not, and what waits in front of it.
    Lecpaes,
    /// Always the same rung.
    Fixed(usize),
    /// The fastest rung while there is anything to do, the one that draws least at rest otherwise.
    RaceToIdle,
    /// The slowest rung worth setting at which no message misses the deadline, as old as each is; the
    /// fastest where the window may become full.
    Paced {
        /// In seconds.
        deadline: f64,
    },
}

impl Velocity {
    /// The policies by name, in the order of reports: the study's first.
    pub const NAMES: [&str; 5] = ["lecpaes-literal", "lecpaes", "fixed", "race-to-idle", "paced"];

    /// How each is made of a ladder and a deadline in seconds, its name, and a line of help; the one
    /// to try first is the first. `fixed` stays on the fastest rung.
    pub const CHOICES: &[(fn(&Ladder, f64) -> Self, &str, &str)] = &[
        (
            |_, deadline| Self::Paced { deadline },
            "paced",
            "The lowest speed that seals each message by its deadline",
        ),
        (|_, _| Self::Lecpaes, "lecpaes", "The LECPAES study's: speed by how full the window is"),
        (
            |_, _| Self::LecpaesLiteral,
            "lecpaes-literal",
            "As lecpaes, without counting messages in progress",
        ),
        (|_, _| Self::RaceToIdle, "race-to-idle", "Full speed while there is work"),
        (|ladder, _| Self::Fixed(ladder.top()), "fixed", "Full speed, always"),
    ];

    /// The policy of that name among [`Velocity::CHOICES`].
    pub fn named(name: &str, ladder: &Ladder, deadline: f64) -> Option<Self> {
        let (make, ..) = Self::CHOICES.iter().find(|(_, named, _)| *named == name)?;
        Some(make(ladder, deadline))
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::LecpaesLiteral => "lecpaes-literal",
            Self::Lecpaes => "lecpaes",
            Self::Fixed(_) => "fixed",
            Self::RaceToIdle => "race-to-idle",
            Self::Paced { .. } => "paced",
        }
    }

    /// The rung to set now.
    pub fn rung(&self, sense: &Sense, ladder: &Ladder) -> usize {
        let backlog = sense.buffered + sense.in_flight + sense.unread;
        match *self {
            Self::LecpaesLiteral => by_thresholds(sense.buffered, sense.size, ladder),
            Self::Lecpaes => by_thresholds(backlog, sense.size, ladder),
            Self::Fixed(rung) => rung.min(ladder.top()),
            Self::RaceToIdle | Self::Paced { .. } if backlog == 0 => ladder.idle(),
            Self::RaceToIdle => ladder.top(),
            Self::Paced { .. } => {
                let fills = backlog as f64 >= FULL_ENOUGH * sense.size as f64;
                let asked = if fills { f64::INFINITY } else { sense.asked };
                let fast = |&rung: &usize| ladder.rungs()[rung].rate >= asked;
                let hull = ladder.hull();
                hull.iter().copied().find(fast).unwrap_or(hull[hull.len() - 1])
            }
        }
    }

    /// Bytes that a device takes at once from a window of `window` bytes, at most; though one message
    /// at least. A policy decides once a batch, so that `paced` takes small ones.
    pub fn batch(&self, window: u64) -> u64 {
        match self {
            Self::Paced { .. } => (window / BATCHES_PER_WINDOW).max(1),
            _ => window,
        }
    }

    /// True if the thread that seals sets the clock too, and waits for it.
    pub fn waits_for_clock(&self) -> bool {
        matches!(self, Self::LecpaesLiteral)
    }

    /// False if a machine that takes `settle` seconds from one rung to the next is too slow for the
    /// policy's deadline: what it sets comes too late then.
    pub fn has_time_to_settle(&self, settle: f64) -> bool {
        match *self {
            Self::Paced { deadline } => deadline >= SETTLES_PER_DEADLINE * settle,
            _ => true,
        }
    }
}

/// Eq. 7.
fn by_thresholds(used: u64, size: u64, ladder: &Ladder) -> usize {
    let share = used as f64 / size as f64;
    ladder.thresholds().take_while(|threshold| share >= *threshold).count()
}

/// The used share of a window from which on it may become full before a faster rung is in force.
pub(crate) const FULL_ENOUGH: f64 = 0.6;

const BATCHES_PER_WINDOW: u64 = 16;

const SETTLES_PER_DEADLINE: f64 = 10.0;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ladder::Rung;

    const MIB: u64 = 1 << 20;

    /// The study's GPU: the memory is slow at its lowest clock, which saves 24 W.
    fn k20m() -> Ladder {
        let rung = |core: u32| {
            let (rate, floor) = match core {
                324 => (135.0, 50.7),
                core => (312.0 * (0.7 + 0.3 * f64::from(core) / 705.0), 74.8),
            };
            let (name, rate) = (format!("{core} MHz"), rate * MIB as f64);
            Rung { name, speed: core.into(), rate, floor, joules_per_byte: 0.098 / MIB as f64 }
        };
        Ladder::new([324, 614, 640, 666, 705, 758].map(rung).into()).unwrap()
    }
    const PACED: Velocity = Velocity::Paced { deadline: 0.05 };

    fn sense(buffered: u64, in_flight: u64, size: u64) -> Sense {
        Sense { buffered, in_flight, unread: 0, size, rung: 0, asked: 0.0 }
    }

    #[test]
    fn the_papers_conditions_for_its_clocks() {
        // Table 1 of the paper with exact ratios, in a window of 758 bytes: the threshold is the
        // clock itself.
        let k20m = k20m();
        for (used, rung) in [
            (0, 0),
            (323, 0),
            (324, 1),
            (613, 1),
            (614, 2),
            (639, 2),
            (640, 3),
            (665, 3),
            (666, 4),
            (704, 4),
            (705, 5),
            (757, 5),
            (758, 5),
        ] {
            assert_eq!(Velocity::Lecpaes.rung(&sense(used, 0, 758), &k20m), rung, "{used}");
            assert_eq!(Velocity::LecpaesLiteral.rung(&sense(used, 0, 758), &k20m), rung, "{used}");
        }
    }

    #[test]
    fn what_waits_to_be_read_counts_as_what_is_buffered_but_for_the_letter_of_the_paper() {
        let k20m = k20m();
        for (buffered, unread, literal, counted) in
            [(0, 0, 0, 0), (0, 324, 0, 1), (300, 314, 0, 2), (324, 1 << 40, 1, 5)]
        {
            let sense = Sense { unread, ..sense(buffered, 0, 758) };
            let rungs = [Velocity::LecpaesLiteral, Velocity::Lecpaes];
            assert_eq!(rungs.map(|rule| rule.rung(&sense, &k20m)), [literal, counted], "{sense:?}");
        }
        // Nothing is in the window, and yet there is something to do.
        let waits = Sense { unread: 1, ..sense(0, 0, 758) };
        assert_eq!(Velocity::RaceToIdle.rung(&waits, &k20m), k20m.top());
        assert_eq!(PACED.rung(&waits, &k20m), k20m.hull()[0]);
        let many = Sense { unread: 455, ..waits };
        assert_eq!(PACED.rung(&many, &k20m), k20m.hull()[k20m.hull().len() - 1]);
    }

    #[test]
    fn what_is_in_flight_counts_but_for_the_letter_of_the_paper() {
        let k20m = k20m();
        for (buffered, in_flight, literal, counted) in
            [(0, 758, 0, 5), (300, 24, 0, 1), (324, 290, 1, 2), (705, 53, 5, 5), (379, 379, 1, 5)]
        {
            let sense = sense(buffered, in_flight, 758);
            let rungs =
                [Velocity::LecpaesLiteral, Velocity::Lecpaes].map(|v| v.rung(&sense, &k20m));
            assert_eq!(rungs, [literal, counted], "{buffered} {in_flight}");
        }
    }

    #[test]
    fn paced_takes_the_slowest_rung_that_does_what_is_asked() {
        // Only the slowest and the fastest are on the hull.
        let k20m = k20m();
        assert_eq!(k20m.hull(), [0, 5]);
        let just = (135 * MIB) as f64;
        for (buffered, asked, rung) in [
            (0, 0.0, 0),
            (1, 0.0, 0),
            (1, just, 0),
            (1, just + 1.0, 5),
            (1, 1e12, 5),
            (1, f64::INFINITY, 5),
            (9 * MIB, just, 0),
            (10 * MIB, just, 5),
        ] {
            let sense = Sense { asked, ..sense(buffered, 0, 16 * MIB) };
            assert_eq!(PACED.rung(&sense, &k20m), rung, "{buffered} {asked}");
        }
    }

    #[test]
    fn races_rests_and_stays() {
        let k20m = k20m();
        for (buffered, in_flight, race) in [(0, 0, 0), (1, 0, 5), (0, 1, 5), (100, 0, 5)] {
            let sense = sense(buffered, in_flight, 100);
            assert_eq!(Velocity::RaceToIdle.rung(&sense, &k20m), race);
            assert_eq!(Velocity::Fixed(4).rung(&sense, &k20m), 4);
            assert_eq!(Velocity::Fixed(9).rung(&sense, &k20m), 5, "no rung above the top");
        }
    }

    #[test]
    fn a_ladder_of_one_rung_leaves_no_choice() {
        let only = k20m().rungs()[0].clone();
        let ladder = Ladder::new(vec![only]).unwrap();
        for name in Velocity::NAMES {
            let velocity = Velocity::named(name, &ladder, 0.05).unwrap();
            for used in [0, 1, 50, 100] {
                assert_eq!(velocity.rung(&sense(used, 0, 100), &ladder), 0, "{name}");
            }
        }
    }

    #[test]
    fn names_lead_there_and_back() {
        let k20m = k20m();
        let mut choices: Vec<_> = Velocity::CHOICES.iter().map(|(_, name, _)| *name).collect();
        choices.sort_unstable();
        let mut names = Velocity::NAMES;
        names.sort_unstable();
        assert_eq!(choices, names);
        for name in Velocity::NAMES {
            assert_eq!(Velocity::named(name, &k20m, 0.05).unwrap().name(), name);
        }
        assert_eq!(Velocity::named("fixed", &k20m, 0.05), Some(Velocity::Fixed(5)));
        assert_eq!(Velocity::named("fastest", &k20m, 0.05), None);
    }

    #[test]
    fn batches_are_whole_windows_but_for_paced() {
        for (velocity, window, batch) in [
            (Velocity::LecpaesLiteral, 16, 16),
            (Velocity::Lecpaes, 16, 16),
            (PACED, 160, 10),
            (PACED, 16 * MIB, MIB),
            (PACED, 3, 1),
        ] {
            assert_eq!(velocity.batch(window), batch, "{velocity:?} {window}");
        }
    }

    #[test]
    fn a_deadline_has_to_hold_ten_settling_times() {
        for (settle, enough) in [(0.0, true), (0.001, true), (0.005, true), (0.0051, false)] {
            assert_eq!(PACED.has_time_to_settle(settle), enough, "{settle}");
            assert!(Velocity::Lecpaes.has_time_to_settle(settle));
        }
    }

    proptest! {
        #[test]
        fn more_in_the_window_never_means_a_slower_rung(
            rungs in prop::collection::vec((1.0..1e3, 1.0..100.0, 0.0..50.0, 0.0..2.0), 1..8),
            deadline in 0.001..1.0,
            size in 1..10_000u64,
            mut used in prop::collection::vec((0.0..1.0f64, 0.0..1.0f64), 2..20),
        ) {
            let rungs = rungs.into_iter().map(|(speed, rate, floor, joules_per_byte)| {
                Rung { name: String::new(), speed, rate, floor, joules_per_byte }
            });
            let ladder = Ladder::new(rungs.collect()).unwrap();
            let rate = |rung: usize| ladder.rungs()[rung].rate;
            let paced = Velocity::Paced { deadline };
            used.sort_by(|a, b| a.0.total_cmp(&b.0));
            let sense = |&(share, in_flight): &(f64, f64)| {
                let used = (share * size as f64) as u64;
                let in_flight = (in_flight * used as f64) as u64;
                let asked = used as f64 / deadline;
                Sense { buffered: used - in_flight, in_flight, unread: 0, size, rung: 0, asked }
            };
            let mut least = (0, 0.0);
            for sense in used.iter().map(sense) {
                let (by_thresholds, rung) =
                    (Velocity::Lecpaes.rung(&sense, &ladder), paced.rung(&sense, &ladder));
                prop_assert!(by_thresholds >= least.0);
                least.0 = by_thresholds;
                if sense.buffered + sense.in_flight > 0 {
                    prop_assert!(rate(rung) >= least.1, "{sense:?}");
                    prop_assert!(ladder.hull().contains(&rung));
                    least.1 = rate(rung);
                } else {
                    prop_assert_eq!(rung, ladder.idle());
                }
            }
            let full = Sense { buffered: size, in_flight: 0, unread: 0, size, rung: 0, asked: f64::INFINITY };
            prop_assert_eq!(Velocity::Lecpaes.rung(&full, &ladder), ladder.top());
            prop_assert_eq!(rate(paced.rung(&full, &ladder)), ladder.highest_rate());
        }
    }
}
