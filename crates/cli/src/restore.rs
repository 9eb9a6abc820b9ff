//! `wattlock restore`, which is also the guardian of whoever sets clocks.

use std::process::ExitCode;

use wattlock_energy::restore::{Replay, replay};
use wattlock_energy::{Root, guardian};

use crate::args;
use crate::energy;
use crate::exit::{Ended, print};

/// `wattlock restore`.
pub fn run(args: &args::Restore) -> Ended {
    if args.guardian {
        return watch(&energy::quiet_root());
    }
    let replayed = replay(&energy::root())?;
    print(&format!("{replayed}\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// What a lease starts: waits for its death, and says only what it had to put back then.
fn watch(root: &Root) -> Ended {
    match guardian::watch(root)? {
        Replay::Nothing => {}
        replayed => tell!("wattlock: clocks were put back:\n{replayed}"),
    }
    Ok(ExitCode::SUCCESS)
}
