//! Asks the URL of an external meter, about every second.
//!
//! Plain HTTP only: a smart plug has no certificate that could be checked. For other protocols, use
//! a command.

use std::time::Duration;

use super::PAUSE;
use super::feed::{Failure, Feed};
use super::line::{Line, parse, quoted};
use crate::obstacle::Obstacle;

/// What is asked, and where in the answer the reading is.
pub(super) struct Source {
    agent: ureq::Agent,
    url: String,
    value: Option<Value>,
}

/// A value in JSON: RFC 6901's pointer to it, and the unit that it lacks.
#[derive(Debug, PartialEq, Eq)]
struct Value {
    pointer: String,
    unit: String,
}

impl Source {
    /// Takes a URL apart.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(url: &str) -> Result<Self, Obstacle> {
        let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme).to_ascii_lowercase();
        if scheme != "http" {
            let why = match scheme.as_str() {
                "https" => "https is not supported".to_owned(),
                other => format!("{}:// is not supported", quoted(other)),
            };
            return Err(Obstacle::unavailable(why)
                .fix("use a command: --meter 'curl -sS --max-time 2 URL'"));
        }
        let (url, value) = match url.split_once('#') {
            Some((url, fragment)) => (url, Some(Value::parse(fragment)?)),
            None => (url, None),
        };
        let agent = ureq::Agent::config_builder()
            .timeout_global(Some(TIMEOUT))
            .max_redirects(3)
            // A meter is on the local network; a proxy must not see its URL.
            .proxy(None)
            .build()
            .new_agent();
        Ok(Self { agent, url: url.to_owned(), value })
    }

    /// Asks until the feed is stopped.
    pub fn listen(&self, feed: &Feed) {
        loop {
            match self.ask() {
                Ok(line) => feed.put(line),
                Err(why) => feed.fail(why),
            }
            if !feed.rest(PAUSE) {
                return;
            }
        }
    }

    /// What was tried, for a person: the host alone, since the rest may hold a password.
    pub fn tried(&self) -> String {
        let place = self.url.split_once("://").map_or(self.url.as_str(), |(_, place)| place);
        let host = place.split(['/', '?']).next().unwrap_or_default();
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        format!("tried to ask http://{}; check that the meter is on, and its address", quoted(host))
    }

    fn ask(&self) -> Result<Line, Failure> {
        let wrong = |error: ureq::Error| {
            Failure::Silence(match error {
                ureq::Error::StatusCode(code) => format!("it answered with the status {code}"),
                error => format!("it did not answer: {}", quoted(&error.to_string())),
            })
        };
        let mut response = self.agent.get(&self.url).call().map_err(wrong)?;
        let body = response.body_mut().with_config().limit(LONGEST_BODY).read_to_vec();
        let body = body.map_err(wrong)?;
        match &self.value {
            Some(value) => value.find(&body),
            None => latest(&String::from_utf8_lossy(&body)),
        }
        .map_err(Failure::Form)
    }
}

impl Value {
    fn parse(fragment: &str) -> Result<Self, Obstacle> {
        let wrong = || {
            Obstacle::unavailable("what follows # has to be a JSON pointer and a unit: #/apower=W")
        };
        let (pointer, unit) = fragment.rsplit_once('=').ok_or_else(wrong)?;
        // The number is not known yet, but the unit is.
        if !(pointer.is_empty() || pointer.starts_with('/')) || parse(&format!("1 {unit}")).is_err()
        {
            return Err(wrong());
        }
        Ok(Self { pointer: pointer.to_owned(), unit: unit.to_owned() })
    }

    fn find(&self, body: &[u8]) -> Result<Line, String> {
        let said = || quoted(&String::from_utf8_lossy(body));
        let json: serde_json::Value = serde_json::from_slice(body)
            .map_err(|error| format!("it said \"{}\", which is no JSON: {error}", said()))?;
        let number = match json.pointer(&self.pointer) {
            Some(serde_json::Value::Number(number)) => number.to_string(),
            Some(serde_json::Value::String(text)) => text.clone(),
            _ => return Err(format!("it said \"{}\", without {}", said(), quoted(&self.pointer))),
        };
        let line = parse(&format!("{number} {}", self.unit))?;
        line.ok_or_else(|| format!("it said \"{}\", which is no number", quoted(&number)))
    }
}

/// The last reading of a text.
fn latest(text: &str) -> Result<Line, String> {
    let lines: Result<Vec<_>, _> = text.lines().map(parse).collect();
    lines?.into_iter().flatten().next_back().ok_or_else(|| "it answered without a reading".into())
}

const TIMEOUT: Duration = Duration::from_secs(2);

/// More than any plug answers.
const LONGEST_BODY: u64 = 65_536;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amount::Watts;
    use crate::meter::Reading;

    #[test]
    fn fragments() {
        let value =
            |pointer: &str, unit: &str| Value { pointer: pointer.into(), unit: unit.into() };
        assert_eq!(Value::parse("/apower=W"), Ok(value("/apower", "W")));
        assert_eq!(Value::parse("/a=b/0=kWh"), Ok(value("/a=b/0", "kWh")));
        assert_eq!(Value::parse("=W ± 1%"), Ok(value("", "W ± 1%")));
        for wrong in ["", "/apower", "apower=W", "/apower=", "/apower=V", "/apower=W=W±x"] {
            assert!(Value::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn values() {
        let value = Value { pointer: "/StatusSNS/ENERGY/Power".into(), unit: "W".into() };
        for body in [
            r#"{"StatusSNS":{"ENERGY":{"Power":12.5}}}"#,
            r#"{"StatusSNS":{"ENERGY":{"Power":"12.5"}}}"#,
        ] {
            assert_eq!(value.find(body.as_bytes()).unwrap().reading, Reading::Power(Watts(12.5)));
        }
        for (body, why) in [
            ("", "no JSON"),
            ("<html>", "no JSON"),
            ("{}", "without"),
            (r#"{"StatusSNS":{"ENERGY":{"Power":null}}}"#, "without"),
            (r#"{"StatusSNS":{"ENERGY":{"Power":[1]}}}"#, "without"),
            (r#"{"StatusSNS":{"ENERGY":{"Power":-1}}}"#, "less than zero"),
            (r#"{"StatusSNS":{"ENERGY":{"Power":1e300}}}"#, "more than any machine"),
            (r#"{"StatusSNS":{"ENERGY":{"Power":""}}}"#, "is not a reading"),
            (r#"{"StatusSNS":{"ENERGY":{"Power":"5 W\n6"}}}"#, "is not a reading"),
        ] {
            let error = value.find(body.as_bytes()).unwrap_err();
            assert!(error.contains(why), "{body}: {error}");
        }
    }

    #[test]
    fn texts() {
        assert_eq!(latest("# plug\n5 W\n6 W\n").unwrap().reading, Reading::Power(Watts(6.0)));
        assert!(latest("").is_err() && latest("# plug").is_err() && latest("5 W\nx").is_err());
    }
}
