//! `wattlock restore`: puts back clocks that a killed program had set.

use std::process::ExitCode;

use wattlock_energy::restore::{self, Replay, replay};
use wattlock_energy::{Error, Root};
use wattlock_host::energy;
use wattlock_host::exit::{Ended, FAILURE, print};

use crate::args;

/// `wattlock restore`.
pub fn run(args: &args::Restore) -> Ended {
    let root = energy::root();
    if args.show {
        return show(&root);
    }
    if args.discard {
        let text = match restore::discard(&root)? {
            Some(path) => {
                format!("set the journal aside as {}; nothing was restored\n", path.display())
            }
            None => "there is no journal\n".into(),
        };
        print(&text)?;
        return Ok(ExitCode::SUCCESS);
    }
    let replayed = replay(&root)?;
    print(&format!("{replayed}\n"))?;
    let held = matches!(&replayed, Replay::Restored(restored) if restored.is_held());
    Ok(if held { FAILURE.into() } else { ExitCode::SUCCESS })
}

/// Prints the journal; one that is damaged as it is.
fn show(root: &Root) -> Ended {
    match restore::show(root) {
        Ok(Some(text)) => print(&format!("{text}\n"))?,
        Ok(None) => print("there is no journal\n")?,
        Err(error @ Error::Journal { .. }) => {
            print(&format!("{}\n", restore::raw(root).unwrap_or_default().trim_end()))?;
            return Err(error.into());
        }
        Err(error) => return Err(error.into()),
    }
    Ok(ExitCode::SUCCESS)
}
