//! What a machine can be set to, from slow to fast, with what each costs.

/// One setting of a machine: a clock of a GPU, a cap of the CPUs' clock, a number of workers.
#[derive(Clone, Debug, PartialEq)]
pub struct Rung {
    /// As people name it: `705/2600 MHz`, `2 workers`.
    pub name: String,
    /// What thresholds are made of (Eq. 9): the clock, or the number of workers.
    pub speed: f64,
    /// Bytes that it seals in a second.
    pub rate: f64,
    /// Watts that are drawn as long as the rung is set, at rest as well.
    pub floor: f64,
    /// Joules for each byte, on top of the floor.
    pub joules_per_byte: f64,
}

impl Rung {
    /// Watts while it seals all the time.
    pub fn busy(&self) -> f64 {
        self.floor + self.joules_per_byte * self.rate
    }
}

/// Rungs in ascending order of their speed, at least one.
#[derive(Clone, Debug, PartialEq)]
pub struct Ladder {
    rungs: Vec<Rung>,
    hull: Vec<usize>,
    idle: usize,
}

impl Ladder {
    /// Sorts `rungs` by speed. `None` if there is none, or one whose speed or rate is not above
    /// zero, or whose power is below it.
    pub fn new(mut rungs: Vec<Rung>) -> Option<Self> {
        let positive = |number: f64| number > 0.0 && number.is_finite();
        let cost = |number: f64| number >= 0.0 && number.is_finite();
        let sound = |rung: &Rung| {
            positive(rung.speed)
                && positive(rung.rate)
                && cost(rung.floor)
                && cost(rung.joules_per_byte)
        };
        if !rungs.iter().all(sound) {
            return None;
        }
        rungs.sort_by(|one, other| one.speed.total_cmp(&other.speed));
        let idle = (0..rungs.len()).min_by(|&a, &b| rungs[a].floor.total_cmp(&rungs[b].floor))?;
        let hull = hull(&rungs, rungs[idle].floor);
        Some(Self { rungs, hull, idle })
    }

    /// Of rungs of which nothing is known but their names and speeds: rates are as the speeds are,
    /// and nothing costs anything.
    pub fn of_speeds(speeds: impl IntoIterator<Item = (String, f64)>) -> Option<Self> {
        let rung =
            |(name, speed)| Rung { name, speed, rate: speed, floor: 0.0, joules_per_byte: 0.0 };
        Self::new(speeds.into_iter().map(rung).collect())
    }

    /// All rungs.
    pub fn rungs(&self) -> &[Rung] {
        &self.rungs
    }

    /// The index of the fastest.
    pub fn top(&self) -> usize {
        self.rungs.len() - 1
    }

    /// The index of the rung that draws least at rest, the slowest of them.
    pub fn idle(&self) -> usize {
        self.idle
    }

    /// The rungs that are worth to be set while there is something to seal, in ascending order of
    /// their rate, at least one: those on the lower convex hull of power over rate, which begins at
    /// rest on [`idle`](Self::idle). What lies above it, two of these do for less, taken in turns.
    pub fn hull(&self) -> &[usize] {
        &self.hull
    }

    /// What the window's used share has to reach for the next rung (Eq. 9): one threshold between
    /// two rungs each.
    pub fn thresholds(&self) -> impl Iterator<Item = f64> {
        let top = self.rungs[self.top()].speed;
        self.rungs[..self.top()].iter().map(move |rung| rung.speed / top)
    }

    /// Bytes that a window should hold for messages that may wait `deadline` seconds: what the
    /// highest rate seals in that time. A larger one keeps what is late already.
    pub fn window(&self, deadline: f64) -> u64 {
        (self.highest_rate() * deadline) as u64
    }

    /// Bytes in a second of the rung that seals most.
    pub fn highest_rate(&self) -> f64 {
        self.rungs.iter().map(|rung| rung.rate).fold(0.0, f64::max)
    }

    /// The least watts that seal `rate` bytes in a second, rungs being mixed in any proportion and
    /// at rest in between: the hull itself. `None` above the highest rate.
    pub fn least_power(&self, rate: f64) -> Option<f64> {
        let mut before = (0.0, self.rungs[self.idle].floor);
        for &index in &self.hull {
            let after = (self.rungs[index].rate, self.rungs[index].busy());
            if rate <= after.0 {
                let share = (rate - before.0) / (after.0 - before.0);
                return Some(before.1 + share * (after.1 - before.1));
            }
            before = after;
        }
        None
    }
}

/// The lower convex hull of (rate, power when busy) from `(0, idle)` to the highest rate, by
/// Andrew's monotone chain. Points on its edges stay: they cost no more than its corners.
fn hull(rungs: &[Rung], idle: f64) -> Vec<usize> {
    let point = |index: usize| (rungs[index].rate, rungs[index].busy());
    let mut order: Vec<_> = (0..rungs.len()).collect();
    order.sort_by(|&a, &b| {
        let (a, b) = (point(a), point(b));
        a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    order.dedup_by(|after, before| point(*after).0 == point(*before).0);
    let mut hull: Vec<usize> = Vec::new();
    for index in order {
        let (x2, y2) = point(index);
        while let Some(&last) = hull.last() {
            let (x0, y0) = hull.len().checked_sub(2).map_or((0.0, idle), |at| point(hull[at]));
            let (x1, y1) = point(last);
            let (edge, chord) = ((x2 - x0) * (y1 - y0), (x1 - x0) * (y2 - y0));
            if edge <= chord + 1e-9 * chord.abs() {
                break;
            }
            hull.pop();
        }
        hull.push(index);
    }
    hull
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rung(speed: f64, floor: f64) -> Rung {
        Rung { name: speed.to_string(), speed, rate: speed * 1e6, floor, joules_per_byte: 1e-7 }
    }

    /// Rungs by (rate, floor, busy).
    fn ladder(rungs: &[(f64, f64, f64)]) -> Ladder {
        let rung = |(at, &(rate, floor, busy)): (usize, &(f64, f64, f64))| Rung {
            name: at.to_string(),
            speed: at as f64 + 1.0,
            rate,
            floor,
            joules_per_byte: (busy - floor) / rate,
        };
        Ladder::new(rungs.iter().enumerate().map(rung).collect()).unwrap()
    }

    #[test]
    fn thresholds_are_the_ratios_that_the_paper_prints() {
        let clocks = [324.0, 614.0, 640.0, 666.0, 705.0, 758.0];
        let ladder = Ladder::new(clocks.map(|clock| rung(clock, 50.0)).into()).unwrap();
        let thresholds: Vec<_> =
            ladder.thresholds().map(|threshold| (threshold * 100.0).round() as u32).collect();
        assert_eq!(thresholds, [43, 81, 84, 88, 93]);
    }

    #[test]
    fn only_what_two_others_cannot_do_for_less_is_on_the_hull() {
        let rungs = vec![rung(1.0, 10.0), rung(2.0, 40.0), rung(3.0, 41.0), rung(4.0, 60.0)];
        assert_eq!(Ladder::new(rungs).unwrap().hull(), [0, 2, 3]);
    }

    #[test]
    fn hulls_of_odd_ladders() {
        for (rungs, hull, idle, why) in [
            (&[(1.0, 5.0, 9.0)][..], &[0][..], 0, "one rung"),
            (&[(1.0, 0.0, 0.0), (2.0, 0.0, 0.0), (3.0, 0.0, 0.0)], &[0, 1, 2], 0, "no cost known"),
            (&[(1.0, 1.0, 2.0), (2.0, 1.0, 3.0), (3.0, 1.0, 4.0)], &[0, 1, 2], 0, "all on a line"),
            (&[(50.0, 10.0, 60.0), (100.0, 12.0, 30.0)], &[1], 0, "a rung to rest on only"),
            (&[(50.0, 20.0, 30.0), (100.0, 10.0, 20.0)], &[1], 1, "the faster is the thriftier"),
            (&[(50.0, 10.0, 20.0), (50.0, 10.0, 30.0)], &[0], 0, "two of the same rate"),
            (&[(50.0, 10.0, 20.0), (90.0, 12.0, 40.0), (70.0, 14.0, 90.0)], &[0, 1], 0, "slower"),
        ] {
            let ladder = ladder(rungs);
            assert_eq!((ladder.hull(), ladder.idle()), (hull, idle), "{why}");
        }
    }

    #[test]
    fn no_ladder_is_made_of_nothing_or_of_what_cannot_be() {
        assert!(Ladder::new(Vec::new()).is_none());
        for (speed, floor, joules_per_byte) in
            [(0.0, 1.0, 1.0), (f64::NAN, 1.0, 1.0), (1.0, -1.0, 1.0), (1.0, 1.0, f64::INFINITY)]
        {
            assert!(
                Ladder::new(vec![Rung { joules_per_byte, ..rung(speed, floor) }]).is_none(),
                "{speed} {floor} {joules_per_byte}"
            );
        }
    }

    #[test]
    fn the_least_power_mixes_two_rungs() {
        let ladder = ladder(&[(100.0, 50.0, 60.0), (200.0, 80.0, 100.0)]);
        for (rate, watts) in
            [(0.0, Some(50.0)), (50.0, Some(55.0)), (100.0, Some(60.0)), (150.0, Some(80.0))]
                .into_iter()
                .chain([(200.0, Some(100.0)), (201.0, None)])
        {
            assert_eq!(ladder.least_power(rate), watts, "{rate}");
        }
        assert_eq!(ladder.window(0.5), 100);
    }

    proptest! {
        #[test]
        fn no_rung_does_a_rate_for_less_than_the_least_power(
            rungs in prop::collection::vec((1.0..100.0, 0.0..50.0, 0.0..2.0), 1..8),
            share in 0.0..1.0,
        ) {
            let rungs = rungs.iter().enumerate().map(|(at, &(rate, floor, joules_per_byte))| {
                Rung { name: String::new(), speed: at as f64 + 1.0, rate, floor, joules_per_byte }
            });
            let ladder = Ladder::new(rungs.collect()).unwrap();
            for rung in ladder.rungs() {
                let rate = share * rung.rate;
                let least = ladder.least_power(rate).unwrap();
                prop_assert!(least <= rung.floor + rung.joules_per_byte * rate + 1e-6);
            }
            let rates: Vec<_> = ladder.hull().iter().map(|&at| ladder.rungs()[at].rate).collect();
            prop_assert!(rates.is_sorted() && *rates.last().unwrap() == ladder.highest_rate());
        }
    }
}
