//! Checks and chores of this repository: `cargo xtask structure`, `cargo xtask openssl`.
#![forbid(unsafe_code)]

mod openssl;
mod structure;

fn main() -> anyhow::Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("structure") => structure::check(),
        Some("openssl") => openssl::build(),
        _ => anyhow::bail!("usage: cargo xtask structure | openssl"),
    }
}
