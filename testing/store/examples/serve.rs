//! Serves a bucket for tests in other languages, as long as standard input is open.
//!
//! The first line that it prints is the endpoint, the second the folder of the bucket. A line of standard input asks for the
//! requests since the last one: a line of method, bytes of the answer, and path with query for each, then an empty line.

use std::io::{self, BufRead, Write};

use wattlock_testing_store::StoreServer;

fn main() -> io::Result<()> {
    let server = StoreServer::new();
    let mut out = io::stdout().lock();
    writeln!(out, "{}\n{}", server.endpoint(), server.path("").display())?;
    out.flush()?;
    for line in io::stdin().lock().lines() {
        line?;
        for seen in server.take_requests() {
            writeln!(out, "{} {} {}", seen.method, seen.answered, seen.target)?;
        }
        writeln!(out)?;
        out.flush()?;
    }
    Ok(())
}
