//! Deals messages of unequal length to lanes, for all that works on many at once: CBC, HMAC, and both
//! in one loop.
//!
//! All lanes go as far as the shortest stage of any, and a lane that is done takes the next message.
//! Which lane goes how far depends on lengths alone.

/// Lanes, and the messages that wait for them.
pub(crate) trait Lanes {
    /// Puts the next message onto a lane that has none. Returns the steps of its first stage, or
    /// `None` if no message is left.
    fn begin(&mut self, lane: usize) -> Option<usize>;

    /// Takes each of the first `busy` lanes `steps` steps further.
    fn advance(&mut self, busy: usize, steps: usize);

    /// Follows the last step of a stage. Returns the steps of the next stage, or `None` if the message
    /// is done.
    fn next_stage(&mut self, lane: usize) -> Option<usize>;

    /// Moves a message to a lane that has none.
    fn relocate(&mut self, from: usize, to: usize);
}

/// Lanes of the widest kernel.
pub(crate) const MOST_LANES: usize = 32;

/// Works on all messages, on the first `most` lanes.
#[inline]
pub(crate) fn run(lanes: &mut impl Lanes, most: usize) {
    let mut left = [0; MOST_LANES];
    let mut busy = 0;
    loop {
        while busy < most
            && let Some(steps) = lanes.begin(busy)
        {
            left[busy] = steps;
            busy += 1;
        }
        let Some(&steps) = left[..busy].iter().min() else { return };
        lanes.advance(busy, steps);
        // Backwards, so that the last lane, which takes the place of one that is done, has had its turn.
        for lane in (0..busy).rev() {
            left[lane] -= steps;
            while left[lane] == 0 {
                if let Some(steps) = lanes.next_stage(lane) {
                    left[lane] = steps;
                    continue;
                }
                busy -= 1;
                if lane < busy {
                    lanes.relocate(busy, lane);
                    left[lane] = left[busy];
                }
                break;
            }
        }
    }
}
