//! `wattlock simulate lecpaes`: the LECPAES paper's experiment, beside its printed numbers.

use crate::args;
use crate::exit::Ended;

/// `wattlock simulate lecpaes`.
pub fn run(args: &args::SimulateLecpaes) -> Ended {
    anyhow::bail!("the experiment is not built yet (seed {}, paper: {})", args.seed, args.paper)
}
