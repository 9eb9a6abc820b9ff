//! Checks and chores of this repository: `cargo xtask structure`.
#![forbid(unsafe_code)]

mod structure;

fn main() -> anyhow::Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("structure") => structure::check(),
        _ => anyhow::bail!("usage: cargo xtask structure"),
    }
}
