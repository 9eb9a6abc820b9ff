//! The handbook shows commands and options that the program has.

use std::path::Path;

#[test]
fn the_commands_of_the_handbook_exist() {
    let program = Path::new(env!("CARGO_BIN_EXE_wattlock-lab"));
    wattlock_testing::handbook::assert_commands_exist(program, 20);
}
