//! An external meter, read by a command or from a URL: `docs/spec/meter.md`.
//!
//! A thread keeps the latest reading with the time of its arrival. A sample returns that reading,
//! held until the next; one that is too old is a gap. The refresh of the meter is the interval
//! between two readings, measured when it is opened.

mod command;
mod feed;
mod line;
mod url;

use std::convert::Infallible;
use std::str::FromStr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use self::feed::{Failure, Feed};
use self::line::Line;
use crate::accumulator::Counter;
use crate::amount::Microjoules;
use crate::candidate::Candidate;
use crate::integrator::Sensor;
use crate::meter::{Extent, Gap, Info, Kind, Meter, Reading, Sample, asleep};
use crate::obstacle::Obstacle;

pub(crate) const SOURCE: &str = "external";

/// Where the readings come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum External {
    /// A command for `sh -c`, whose output is readings.
    Command(String),
    /// An `http://` URL whose content is a reading; its fragment may say where in JSON.
    Url(String),
}

impl FromStr for External {
    type Err = Infallible;

    /// Takes what begins as a URL for one, of any scheme, and everything else for a command.
    fn from_str(text: &str) -> Result<Self, Infallible> {
        let text = text.trim();
        let is_scheme = |scheme: &str| {
            scheme.starts_with(|first: char| first.is_ascii_alphabetic())
                && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
        };
        Ok(match text.split_once("://") {
            Some((scheme, _)) if is_scheme(scheme) => Self::Url(text.to_owned()),
            _ => Self::Command(text.to_owned()),
        })
    }
}

/// What is said where there is none.
pub(crate) fn absent() -> Candidate {
    Candidate::absent(
        SOURCE,
        "wall",
        "not given",
        Some("use --meter COMMAND|URL (docs/spec/meter.md)"),
    )
}

/// Listens to it for as long as its first readings take.
pub(crate) fn discover(external: &External) -> Vec<Candidate> {
    let meter = open(external).map(|wall| Box::new(wall) as Box<dyn Meter>);
    let extent = Some(Extent::Wall);
    vec![Candidate { source: SOURCE, domain: DOMAIN.into(), path: None, extent, meter }]
}

/// Shows what the thread heard last.
struct Wall {
    info: Info,
    listening: Listening,
    /// A reading that is older says nothing.
    stale: Duration,
}

impl Wall {
    fn read(&self, now: Instant) -> Result<(Reading, Duration), Gap> {
        let (at, line) = self.listening.0.latest().map_err(|why| Gap { why })?;
        let age = now.saturating_duration_since(at);
        if age > self.stale {
            Err(Gap { why: format!("the meter's last reading is {:.0} s old", age.as_secs_f64()) })
        } else {
            Ok((line.reading, age))
        }
    }
}

impl Meter for Wall {
    fn info(&self) -> &Info {
        &self.info
    }

    fn sample(&mut self) -> Sample {
        let before = Instant::now();
        let (value, age) = match self.read(before) {
            Ok((reading, age)) => (Ok(reading), age),
            Err(gap) => (Err(gap), Duration::ZERO),
        };
        Sample { before, after: Instant::now(), age, asleep: asleep(), value }
    }
}

/// Ends the thread, and the command with all that it started.
struct Listening(Arc<Feed>);

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.stop();
    }
}

fn open(external: &External) -> Result<Wall, Obstacle> {
    let feed = Arc::new(Feed::default());
    let ear = Arc::clone(&feed);
    let tried;
    let listen: Box<dyn FnOnce() + Send> = match external {
        External::Command(command) if command.trim().is_empty() => {
            return Err(Obstacle::unavailable("no command is given"));
        }
        External::Command(command) => {
            let command = command.clone();
            tried = command::tried(&command);
            Box::new(move || command::listen(&command, &ear))
        }
        External::Url(url) => {
            let source = url::Source::parse(url)?;
            tried = source.tried();
            Box::new(move || source.listen(&ear))
        }
    };
    let listening = Listening(feed);
    let thread = thread::Builder::new().name("external meter".into()).spawn(listen);
    thread.map_err(|error| Obstacle::unavailable(format!("cannot listen to it: {error}")))?;
    let feed = &listening.0;
    let wrong = |failure: Failure| {
        Obstacle::unavailable(failure.why()).fix(match failure {
            Failure::Form(_) => FIX.to_owned(),
            Failure::Silence(_) => tried.clone(),
        })
    };
    let first = feed.wait_for(1, FIRST_READING).map_err(wrong)?;
    let Some(first) = first.last() else {
        let seconds = FIRST_READING.as_secs();
        let why = format!("it did not answer: no reading within {seconds} s");
        return Err(wrong(Failure::Silence(why)));
    };
    let two = feed.wait_for(2, SECOND_READING).map_err(wrong)?;
    let refresh = match two[..] {
        [(first, _), (second, _), ..] => second - first,
        _ => UNKNOWN_REFRESH,
    };
    let kind = kind(first.1, two.last().map(|(_, line)| *line), refresh);
    let info = Info { domain: DOMAIN.into(), source: SOURCE, extent: Extent::Wall, kind };
    Ok(Wall { info, stale: LEAST_STALE.max(refresh * 5), listening })
}

/// Counter or sensor, by its first readings.
fn kind(first: Line, second: Option<Line>, refresh: Duration) -> Kind {
    let second = second.unwrap_or(first);
    match first.reading {
        Reading::Energy(_) => Kind::Counter(Counter {
            // Where it goes round is not known, and never soon: going back is a reset.
            range: Some(Microjoules(u64::MAX)),
            // A zero at the end may be left out, so the finer of the two is its last digit.
            resolution: first.resolution.min(second.resolution),
            refresh,
            p_max: line::MOST_POWER,
        }),
        Reading::Power(_) => {
            let share = |line: Line| line.accuracy.unwrap_or(ACCURACY);
            let accuracy = share(first).max(share(second));
            Kind::Sensor(Sensor { refresh, accuracy, p_max: line::MOST_POWER })
        }
    }
}

const DOMAIN: &str = "wall";

const FIX: &str = "docs/spec/meter.md says what a meter prints";

/// Timeout for the first reading.
const FIRST_READING: Duration = Duration::from_secs(5);

/// Timeout for the second reading, which shows the interval.
const SECOND_READING: Duration = Duration::from_secs(5);

/// The refresh of a meter without a second reading by then.
const UNKNOWN_REFRESH: Duration = Duration::from_secs(10);

/// A reading holds at least so long.
const LEAST_STALE: Duration = Duration::from_secs(5);

/// Assumed if a meter does not report its own: between a power analyser and a smart plug.
const ACCURACY: f64 = 0.02;

/// Between two runs of a command that ends, and two requests.
const PAUSE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_and_commands() {
        for url in ["http://plug/", "HTTPS://plug/meter#/watts=W", " http://plug ", "ftp://plug/"] {
            assert_eq!(url.parse(), Ok(External::Url(url.trim().to_owned())));
        }
        for command in ["curl http://plug/", "./meter", "/a://b", "U=http://plug/ meter", ""] {
            assert_eq!(command.parse(), Ok(External::Command(command.to_owned())));
        }
    }
}
