//! Streams of messages: thirteen kinds, each with parameters to tune policies with and others to
//! report them with.

use super::platform::MIB;
use super::random::SplitMix64;

/// A message as it comes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrival {
    /// Seconds since the stream began.
    pub at: f64,
    /// Its length.
    pub bytes: u32,
}

/// A kind of stream with its parameters. Rates are in MiB/s, times in seconds; messages are
/// uniformly 35 to 150 KiB long, as in the LECPAES paper.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stream {
    /// Its name in tables.
    pub name: &'static str,
    /// True if its rate changes within a second.
    pub bursty: bool,
    /// True if gaps are exponential, false if messages come as evenly as the rate allows.
    pub poisson: bool,
    /// How its rate goes.
    pub shape: Shape,
}

/// How the rate of a stream goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// Always the same.
    Steady(f64),
    /// A sine between two rates.
    Diurnal {
        /// The rate at night, when it begins.
        low: f64,
        /// The rate at noon.
        high: f64,
        /// From one night to the next.
        day: f64,
    },
    /// Phases of fixed length.
    OnOff {
        /// The rate while on, and for how long.
        on: (f64, f64),
        /// The rate while off, and for how long.
        off: (f64, f64),
    },
    /// Phases of exponential length.
    RandomOnOff {
        /// The rate while on, and for how long on average.
        on: (f64, f64),
        /// The rate while off, and for how long on average.
        off: (f64, f64),
    },
    /// A steady rate with spikes on it, at exponential distances.
    Spikes {
        /// The rate between spikes.
        base: f64,
        /// The mean time between two.
        every: f64,
        /// MiB of each.
        mib: f64,
        /// How long each takes.
        within: f64,
    },
    /// A first-order autoregressive process in the logarithm of the rate.
    Noise {
        /// The median rate.
        median: f64,
        /// The highest rate.
        high: f64,
        /// The standard deviation of the logarithm.
        sigma: f64,
        /// The time in which a deviation falls to 1/e.
        memory: f64,
    },
    /// Many sources that are on and off for times of Pareto's distribution: together they are as
    /// bursty over seconds as over milliseconds.
    Sources {
        /// How many.
        count: usize,
        /// The rate of one while on.
        each: f64,
        /// The mean time of being on, and of being off.
        phases: (f64, f64),
    },
}

/// To report with.
pub const REPORTING: [Stream; 13] = [
    steady("steady-light", 45.0),
    steady("steady-half", 118.0),
    steady("steady-heavy", 235.0),
    poisson("poisson-light", 55.0),
    poisson("poisson-half", 140.0),
    poisson("poisson-heavy", 250.0),
    Stream {
        name: "diurnal",
        bursty: false,
        poisson: true,
        shape: Shape::Diurnal { low: 20.0, high: 270.0, day: 20.0 },
    },
    bursty("on-off-short", Shape::OnOff { on: (220.0, 0.08), off: (15.0, 0.16) }),
    bursty("on-off-long", Shape::OnOff { on: (270.0, 2.5), off: (30.0, 3.5) }),
    bursty("on-off-random", Shape::RandomOnOff { on: (240.0, 0.4), off: (20.0, 0.8) }),
    bursty("spikes", Shape::Spikes { base: 70.0, every: 1.2, mib: 6.0, within: 0.03 }),
    bursty("noise", Shape::Noise { median: 100.0, high: 280.0, sigma: 0.5, memory: 0.3 }),
    bursty("sources", Shape::Sources { count: 40, each: 6.0, phases: (0.5, 0.7) }),
];

/// To tune with: of the same kinds, with other loads and times.
pub const TUNING: [Stream; 13] = [
    steady("steady-light", 70.0),
    steady("steady-half", 125.0),
    steady("steady-heavy", 200.0),
    poisson("poisson-light", 35.0),
    poisson("poisson-half", 115.0),
    poisson("poisson-heavy", 215.0),
    Stream {
        name: "diurnal",
        bursty: false,
        poisson: true,
        shape: Shape::Diurnal { low: 40.0, high: 240.0, day: 12.0 },
    },
    bursty("on-off-short", Shape::OnOff { on: (260.0, 0.05), off: (10.0, 0.12) }),
    bursty("on-off-long", Shape::OnOff { on: (240.0, 4.0), off: (15.0, 4.0) }),
    bursty("on-off-random", Shape::RandomOnOff { on: (270.0, 0.2), off: (30.0, 0.5) }),
    bursty("spikes", Shape::Spikes { base: 50.0, every: 0.7, mib: 5.0, within: 0.02 }),
    bursty("noise", Shape::Noise { median: 85.0, high: 270.0, sigma: 0.6, memory: 0.15 }),
    bursty("sources", Shape::Sources { count: 25, each: 9.0, phases: (0.3, 0.5) }),
];

/// As many streams as `count`, of all kinds in turn, with parameters that follow from a seed: no policy
/// was tuned with them.
pub fn unseen(seed: u64, count: usize) -> Vec<Stream> {
    let mut random = SplitMix64::new(seed ^ 0x756e_7365_656e);
    let mut between = |low: f64, high: f64| low + (high - low) * random.uniform();
    let draw = |at: usize| match at % 8 {
        0 => steady("steady", between(20.0, 270.0)),
        1 => poisson("poisson", between(20.0, 260.0)),
        2 => {
            let (low, high) = (between(5.0, 60.0), between(150.0, 280.0));
            let shape = Shape::Diurnal { low, high, day: between(5.0, 20.0) };
            Stream { bursty: false, ..bursty("diurnal", shape) }
        }
        3 => {
            let on = (between(150.0, 280.0), between(0.03, 3.0));
            let off = (between(5.0, 60.0), between(0.05, 4.0));
            bursty("on-off", Shape::OnOff { on, off })
        }
        4 => {
            let on = (between(150.0, 275.0), between(0.1, 1.0));
            let off = (between(5.0, 60.0), between(0.2, 1.5));
            bursty("on-off-random", Shape::RandomOnOff { on, off })
        }
        5 => {
            let (base, every) = (between(20.0, 90.0), between(0.3, 3.0));
            let (mib, within) = (between(2.0, 6.0), between(0.01, 0.05));
            bursty("spikes", Shape::Spikes { base, every, mib, within })
        }
        6 => {
            let (median, sigma) = (between(50.0, 130.0), between(0.2, 0.7));
            bursty("noise", Shape::Noise { median, high: 275.0, sigma, memory: between(0.1, 1.0) })
        }
        _ => {
            let (each, phases) = (between(3.0, 8.0), (between(0.2, 1.0), between(0.3, 1.5)));
            bursty("sources", Shape::Sources { count: 30, each, phases })
        }
    };
    (0..count).map(draw).collect()
}

const fn steady(name: &'static str, rate: f64) -> Stream {
    Stream { name, bursty: false, poisson: false, shape: Shape::Steady(rate) }
}

const fn poisson(name: &'static str, rate: f64) -> Stream {
    Stream { name, bursty: false, poisson: true, shape: Shape::Steady(rate) }
}

const fn bursty(name: &'static str, shape: Shape) -> Stream {
    Stream { name, bursty: true, poisson: true, shape }
}

impl Stream {
    /// Bytes of the longest message.
    pub const LONGEST: u64 = LONGEST;

    /// Its messages in the first `seconds`, the same for the same seed.
    pub fn arrivals(&self, seconds: f64, seed: u64) -> Vec<Arrival> {
        let of_name = |seed, byte| SplitMix64::new(seed ^ u64::from(byte)).draw();
        let mut random = SplitMix64::new(self.name.bytes().fold(seed, of_name));
        let steps = (seconds / STEP).round() as usize;
        let rates = self.shape.rates(steps, &mut random);
        let mut arrivals = Vec::new();
        let mean = (SHORTEST + LONGEST) as f64 / 2.0;
        // The stream runs through its messages at `rate / mean` a second; each takes its gap, which
        // is 1 on average.
        let gap =
            |random: &mut SplitMix64| if self.poisson { random.exponential(1.0) } else { 1.0 };
        let mut left = gap(&mut random);
        for (step, rate) in rates.into_iter().enumerate() {
            let pace = rate * MIB / mean;
            let mut at = 0.0;
            while pace > 0.0 && at + left / pace <= STEP {
                at += left / pace;
                let bytes = random.between(SHORTEST, LONGEST) as u32;
                arrivals.push(Arrival { at: step as f64 * STEP + at, bytes });
                left = gap(&mut random);
            }
            left -= (STEP - at) * pace;
        }
        arrivals
    }
}

impl Shape {
    /// MiB/s in each [`STEP`].
    fn rates(self, steps: usize, random: &mut SplitMix64) -> Vec<f64> {
        let time = |step: usize| (step as f64 + 0.5) * STEP;
        let each = |rate: &dyn Fn(f64) -> f64| (0..steps).map(|step| rate(time(step))).collect();
        match self {
            Self::Steady(rate) => vec![rate; steps],
            Self::Diurnal { low, high, day } => each(&|time| {
                let height = (1.0 - (std::f64::consts::TAU * time / day).cos()) / 2.0;
                low + (high - low) * height
            }),
            Self::OnOff { on, off } => {
                each(&|time| if time % (on.1 + off.1) < on.1 { on.0 } else { off.0 })
            }
            Self::RandomOnOff { on, off } => {
                let is_on =
                    phases(steps, |is_on| random.exponential(if is_on { on.1 } else { off.1 }));
                is_on.map(|is_on| if is_on { on.0 } else { off.0 }).collect()
            }
            Self::Spikes { base, every, mib, within } => {
                let in_spike =
                    phases(steps, |is_on| if is_on { within } else { random.exponential(every) });
                in_spike.map(|is| if is { base + mib / within } else { base }).collect()
            }
            Self::Noise { median, high, sigma, memory } => {
                let keep = (-STEP / memory).exp();
                let fresh = sigma * (1.0 - keep * keep).sqrt();
                let mut deviation = sigma * random.normal();
                let mut next = || {
                    deviation = keep * deviation + fresh * random.normal();
                    (median * deviation.exp()).min(high)
                };
                (0..steps).map(|_| next()).collect()
            }
            Self::Sources { count, each, phases: (on, off) } => {
                let mut rates = vec![0.0; steps];
                for _ in 0..count {
                    let mean = |is_on| if is_on { on } else { off };
                    let is_on = phases(steps, |is_on| random.pareto(mean(is_on)));
                    rates.iter_mut().zip(is_on).filter(|(_, is_on)| *is_on).for_each(
                        |(rate, _)| {
                            *rate += each;
                        },
                    );
                }
                rates
            }
        }
    }
}

/// Whether it is on in each step, off first, by how long each phase takes.
fn phases(steps: usize, mut length: impl FnMut(bool) -> f64) -> impl Iterator<Item = bool> {
    let mut is_on = false;
    let mut left = length(is_on);
    (0..steps).map(move |_| {
        while left <= 0.0 {
            is_on = !is_on;
            left += length(is_on);
        }
        left -= STEP;
        is_on
    })
}

const SHORTEST: u64 = 35 << 10;
const LONGEST: u64 = 150 << 10;

/// The rate of a stream changes once in as many seconds at most.
const STEP: f64 = 0.001;

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes a second.
    fn load(stream: &Stream, seed: u64) -> f64 {
        let bytes: f64 = stream.arrivals(100.0, seed).iter().map(|a| f64::from(a.bytes)).sum();
        bytes / 100.0 / MIB
    }

    #[test]
    fn a_seed_gives_the_same_stream_and_another_seed_another() {
        for stream in REPORTING.iter().chain(&TUNING) {
            let one = stream.arrivals(3.0, 1);
            assert_eq!(one, stream.arrivals(3.0, 1), "{}", stream.name);
            assert_ne!(one, stream.arrivals(3.0, 2), "{}", stream.name);
            assert!(one.is_sorted_by_key(|arrival| arrival.at), "{}", stream.name);
            assert!(one.iter().all(|arrival| (0.0..3.0).contains(&arrival.at)), "{}", stream.name);
            let lengths = |a: &Arrival| (SHORTEST..=LONGEST).contains(&u64::from(a.bytes));
            assert!(one.iter().all(lengths), "{}", stream.name);
        }
    }

    #[test]
    fn loads_are_those_that_the_parameters_say() {
        let on_off = |(on, on_s): (f64, f64), (off, off_s): (f64, f64)| {
            (on * on_s + off * off_s) / (on_s + off_s)
        };
        for stream in REPORTING.iter().chain(&TUNING) {
            let (expected, within) = match stream.shape {
                Shape::Steady(rate) => (rate, 0.02),
                Shape::Diurnal { low, high, .. } => ((low + high) / 2.0, 0.05),
                Shape::OnOff { on, off } => (on_off(on, off), 0.06),
                Shape::RandomOnOff { on, off } => (on_off(on, off), 0.25),
                Shape::Spikes { base, every, mib, within } => (base + mib / (every + within), 0.08),
                // The mean of a lognormal rate, a little less for being cut off.
                Shape::Noise { median, sigma, .. } => (median * (sigma * sigma / 2.0).exp(), 0.2),
                Shape::Sources { count, each, phases: (on, off) } => {
                    (count as f64 * each * on / (on + off), 0.35)
                }
            };
            let load = load(stream, 3);
            assert!((load / expected - 1.0).abs() < within, "{}: {load} {expected}", stream.name);
        }
    }

    #[test]
    fn the_two_sets_have_the_same_kinds_with_other_parameters() {
        for (one, other) in REPORTING.iter().zip(&TUNING) {
            assert_eq!(
                (one.name, one.bursty, one.poisson),
                (other.name, other.bursty, other.poisson)
            );
            assert_ne!(one.shape, other.shape, "{}", one.name);
        }
    }

    #[test]
    fn gaps_are_even_or_exponential() {
        // The squared coefficient of variation: 0 for even gaps, 1 for exponential ones.
        for (stream, least, most) in [(&REPORTING[2], 0.0, 1e-6), (&REPORTING[5], 0.9, 1.1)] {
            let arrivals = stream.arrivals(20.0, 5);
            let gaps: Vec<_> = arrivals.windows(2).map(|pair| pair[1].at - pair[0].at).collect();
            let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
            let variance =
                gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
            let variation = variance / (mean * mean);
            assert!((least..=most).contains(&variation), "{}: {variation}", stream.name);
        }
    }
}
