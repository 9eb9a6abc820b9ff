//! Streams from a file: when each message came and how long it was.

use super::streams::Arrival;

/// A line of a trace that cannot be used. What it holds is not said, for the file may be another than
/// was meant, such as a key.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct BadTrace {
    /// Counted from one.
    pub line: usize,
    /// What it should be.
    pub what: String,
}

/// Reads a trace: a line `seconds bytes` for each message, in the order of time. Lines that are
/// empty or begin with `#` do not count. Time begins with the first message.
///
/// # Errors
/// The first line that cannot be used; messages longer than `window` bytes are of them.
pub fn trace(text: &str, window: u64) -> Result<Vec<Arrival>, BadTrace> {
    let mut arrivals: Vec<Arrival> = Vec::new();
    let mut begin = None;
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let bad = |what: String| BadTrace { line: at + 1, what };
        let mut words = line.split_ascii_whitespace();
        let (Some(seconds), Some(bytes), None) = (words.next(), words.next(), words.next()) else {
            return Err(bad("is not \"seconds bytes\"".into()));
        };
        let seconds = seconds.parse().ok().filter(|seconds: &f64| seconds.is_finite());
        let seconds =
            seconds.ok_or_else(|| bad("does not begin with a number of seconds".into()))?;
        let bytes: u32 =
            bytes.parse().map_err(|_| bad("does not end with a number of bytes".into()))?;
        if bytes == 0 || u64::from(bytes) > window {
            return Err(bad(format!("a message has 1 to {window} bytes, the window")));
        }
        let at = seconds - *begin.get_or_insert(seconds);
        if arrivals.last().map_or(0.0, |before| before.at) > at {
            return Err(bad("comes before the message above it".into()));
        }
        if at > LONGEST {
            return Err(bad(format!("is more than {LONGEST} s after the first message")));
        }
        arrivals.push(Arrival { at, bytes });
    }
    if arrivals.is_empty() {
        let line = text.lines().count().max(1);
        return Err(BadTrace { line, what: "a trace needs at least one message".into() });
    }
    Ok(arrivals)
}

/// Seconds: three years, in which a 64-bit float still resolves tens of nanoseconds.
const LONGEST: f64 = 1e8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_begins_with_its_first_message() {
        let text = "# seconds bytes\n\n 10.5  100 \n10.5 7\n1.1e1\t8\r\n";
        let expected = [(0.0, 100), (0.0, 7), (0.5, 8)];
        assert_eq!(trace(text, 100).unwrap(), expected.map(|(at, bytes)| Arrival { at, bytes }));
    }

    #[test]
    fn errors_name_the_line() {
        for (line, text, what) in [
            (1, "", "at least one message"),
            (3, "# none\n\n#\n", "at least one message"),
            (2, "0 1\n1\n", "is not \"seconds bytes\""),
            (1, "0 1 2\n", "is not \"seconds bytes\""),
            (1, "now 1\n", "a number of seconds"),
            (1, "nan 1\n", "a number of seconds"),
            (1, "0 -1\n", "a number of bytes"),
            (1, "0 0\n", "1 to 100 bytes"),
            (1, "0 101\n", "1 to 100 bytes"),
            (3, "5 1\n6 1\n5.9 1\n", "before the message above"),
            (2, "-1 1\n1e8 1\n", "is more than 100000000 s after"),
        ] {
            let error = trace(text, 100).unwrap_err();
            assert!(error.line == line && error.what.contains(what), "{error} for {text:?}");
        }
    }

    #[test]
    fn what_a_line_holds_is_not_said() {
        for text in ["\x1b[2J", "\x1b[2J 1", "1 \x1b[2J", "0 271828"] {
            let error = trace(text, 100).unwrap_err().to_string();
            assert!(
                !["[2J", "\x1b", "271828"].iter().any(|held| error.contains(held)),
                "{error:?}"
            );
        }
    }
}
