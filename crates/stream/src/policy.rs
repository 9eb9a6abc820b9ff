//! Velocity policies: pure functions of how full the window is.

use crate::Ladder;

/// What a policy may look at when it decides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sense {
    /// Bytes in the window that no device has taken yet.
    pub buffered: u64,
    /// Bytes in the window that a device works on.
    pub in_flight: u64,
    /// Bytes that the window holds.
    pub size: u64,
    /// The rung that is set.
    pub rung: usize,
}

/// How a rung is chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Velocity {
    /// Algorithm 1 to the letter: Eq. 7 on what is buffered after the head moved.
    LecpaesLiteral,
    /// Eq. 7 on all that is in the window, in flight or not.
    Lecpaes,
    /// Always the same rung.
    Fixed(usize),
    /// The fastest rung while there is anything to do, the slowest otherwise.
    RaceToIdle,
    /// The slowest rung worth setting that clears the backlog within a third of the deadline.
    Paced {
        /// In seconds.
        deadline: f64,
    },
}

impl Velocity {
    /// The rung to set now.
    pub fn rung(&self, sense: &Sense, ladder: &Ladder) -> usize {
        let backlog = sense.buffered + sense.in_flight;
        match *self {
            Self::LecpaesLiteral => by_thresholds(sense.buffered, sense.size, ladder),
            Self::Lecpaes => by_thresholds(backlog, sense.size, ladder),
            Self::Fixed(rung) => rung.min(ladder.top()),
            Self::RaceToIdle if backlog == 0 => 0,
            Self::RaceToIdle => ladder.top(),
            Self::Paced { deadline } => {
                let asked = backlog as f64 / (deadline / 3.0);
                let fast = |rung: &&usize| ladder.rungs()[**rung].rate >= asked;
                ladder.hull().iter().find(fast).copied().unwrap_or(ladder.top())
            }
        }
    }
}

/// Eq. 7.
fn by_thresholds(used: u64, size: u64, ladder: &Ladder) -> usize {
    let share = used as f64 / size as f64;
    ladder.thresholds().take_while(|threshold| share >= *threshold).count()
}
