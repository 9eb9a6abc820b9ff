//! Seconds since 1970 as people read them.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

/// The minute in UTC, of seconds since 1970.
pub fn utc(unix_s: u64) -> String {
    let time = i64::try_from(unix_s).ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
    time.map_or_else(
        || format!("{unix_s} s after 1970"),
        |time| time.strftime("%Y-%m-%d %H:%M UTC").to_string(),
    )
}

/// The second in UTC as RFC 3339 has it, of seconds since 1970.
pub fn rfc3339(unix_s: i64) -> String {
    let time = Timestamp::from_second(unix_s);
    time.map_or_else(|_| format!("{unix_s} s after 1970"), |time| time.to_string())
}

/// Microseconds since 1970 of a time as RFC 3339 has it, of a date, which begins at midnight UTC, or of `@` and seconds
/// since 1970. `None` for other text, and for times before 1970.
pub fn parse_us(text: &str) -> Option<u64> {
    let time = match text.strip_prefix('@') {
        Some(seconds) => Timestamp::from_second(seconds.parse().ok()?).ok()?,
        None => match text.parse::<Timestamp>() {
            Ok(time) => time,
            Err(_) => {
                let is_date = text.len() == 10;
                let date = text.parse::<Date>().ok().filter(|_| is_date)?;
                date.to_zoned(TimeZone::UTC).ok()?.timestamp()
            }
        },
    };
    time.as_microsecond().try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_of_the_calendar() {
        for (unix_s, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (981_173_106, "2001-02-03T04:05:06Z"),
            (i64::MAX, "9223372036854775807 s after 1970"),
        ] {
            assert_eq!(rfc3339(unix_s), text);
        }
    }

    #[test]
    fn times_are_read_in_three_forms() {
        for (text, us) in [
            ("1970-01-01T00:00:01Z", Some(1_000_000)),
            ("1970-01-01T01:00:00.5+01:00", Some(500_000)),
            ("1970-01-02", Some(86_400_000_000)),
            ("@12", Some(12_000_000)),
            ("@-1", None),
            ("1969-12-31", None),
            ("1970-01-01T00:00:01", None),
            ("yesterday", None),
            ("", None),
        ] {
            assert_eq!(parse_us(text), us, "{text}");
        }
    }

    #[test]
    fn minutes_of_the_calendar() {
        for (unix_s, text) in [
            (0, "1970-01-01 00:00 UTC"),
            (951_782_399, "2000-02-28 23:59 UTC"),
            (951_782_400, "2000-02-29 00:00 UTC"),
            (1_709_251_200, "2024-03-01 00:00 UTC"),
            (1_735_689_599, "2024-12-31 23:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00 UTC"),
            (u64::MAX, "18446744073709551615 s after 1970"),
        ] {
            assert_eq!(utc(unix_s), text);
        }
    }
}
