//! The handbook shows commands and options that the program has.

#[test]
fn the_commands_of_the_handbook_exist() {
    wattlock_testing::handbook::assert_commands_exist(&wattlock_testing::wattlock_path(), 50);
}
