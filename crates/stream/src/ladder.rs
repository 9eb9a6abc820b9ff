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
}

impl Ladder {
    /// Sorts `rungs` by speed. `None` if there is none, or one whose speed or rate is not above
    /// zero.
    pub fn new(mut rungs: Vec<Rung>) -> Option<Self> {
        let sound = |rung: &Rung| rung.speed > 0.0 && rung.rate > 0.0;
        if rungs.is_empty() || !rungs.iter().all(sound) {
            return None;
        }
        rungs.sort_by(|one, other| one.speed.total_cmp(&other.speed));
        let hull = hull(&rungs);
        Some(Self { rungs, hull })
    }

    /// All rungs.
    pub fn rungs(&self) -> &[Rung] {
        &self.rungs
    }

    /// The index of the fastest.
    pub fn top(&self) -> usize {
        self.rungs.len() - 1
    }

    /// The rungs that are worth to be set: those on the lower convex hull of power over rate. What
    /// lies above it, two of these do for less, taken in turns.
    pub fn hull(&self) -> &[usize] {
        &self.hull
    }

    /// What the window's used share has to reach for the next rung (Eq. 9): one threshold between
    /// two rungs each.
    pub fn thresholds(&self) -> impl Iterator<Item = f64> {
        let top = self.rungs[self.top()].speed;
        self.rungs[..self.top()].iter().map(move |rung| rung.speed / top)
    }
}

/// The lower convex hull of (rate, power when busy), by Andrew's monotone chain.
fn hull(rungs: &[Rung]) -> Vec<usize> {
    let mut hull: Vec<usize> = Vec::new();
    let point = |index: usize| (rungs[index].rate, rungs[index].busy());
    for index in 0..rungs.len() {
        while let [.., before, last] = hull[..] {
            let ((x0, y0), (x1, y1), (x2, y2)) = (point(before), point(last), point(index));
            if (x1 - x0) * (y2 - y0) > (x2 - x0) * (y1 - y0) {
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
    use super::*;

    pub(crate) fn rung(speed: f64, floor: f64) -> Rung {
        Rung { name: speed.to_string(), speed, rate: speed * 1e6, floor, joules_per_byte: 1e-7 }
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
        assert!(Ladder::new(Vec::new()).is_none());
        assert!(Ladder::new(vec![rung(0.0, 1.0)]).is_none());
    }
}
