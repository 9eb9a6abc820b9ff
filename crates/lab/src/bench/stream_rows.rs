//! What the rows of streams are called, and the delays in them.

use wattlock_report::results::Delays;

/// The product's algorithm.
pub const PACED: &str = "paced";

/// Whose row it is.
pub fn tool(algorithm: &str) -> String {
    format!("wattlock {algorithm}")
}

/// What a row is called.
pub fn case(latency_us: u32) -> String {
    format!("latency {latency_us} µs")
}

/// How long messages took through streams.
pub fn of_streams(streams: &[wattlock_stream::Delays]) -> Delays {
    Delays::of(|share| streams.iter().map(|delays| delays.quantile(share)).collect())
}
