//! What the rows of the stream bench are called, and the delays in them.

use clap::ValueEnum;
use wattlock_report::results::Delays;

use crate::args::StreamAlgorithm;

/// The name in rows and flags.
pub fn name(algorithm: StreamAlgorithm) -> String {
    let value = algorithm.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Whose row it is.
pub fn tool(algorithm: StreamAlgorithm) -> String {
    format!("wattlock {}", name(algorithm))
}

/// What a row is called.
pub fn case(latency_us: u32) -> String {
    format!("latency {latency_us} µs")
}

/// How long messages took through streams.
pub fn of_streams(streams: &[wattlock_stream::Delays]) -> Delays {
    Delays::of(|share| streams.iter().map(|delays| delays.quantile(share)).collect())
}
