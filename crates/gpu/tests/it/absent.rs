//! Without a driver there is no device, and no panic.

use std::process::Command;

use wattlock_gpu::opencl::{Error, choose, devices};

/// Runs the test `name` of this file again, in a process of its own that finds no driver.
fn again(name: &str, variables: &[(&str, &str)]) {
    let mut command = Command::new(std::env::current_exe().expect("a test is a file"));
    command.args([name, "--exact", "--ignored", "--nocapture"]);
    command.envs(variables.iter().copied());
    let run = command.output().expect("it ran once already");
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
fn no_driver_is_no_device() {
    let nowhere = "/nonexistent/vendors";
    again("absent::without_a_driver", &[("OCL_ICD_VENDORS", nowhere), ("OCL_ICD_FILENAMES", "")]);
}

#[test]
#[ignore = "run by the others, in a process that finds no driver"]
fn without_a_driver() {
    for _ in 0..2 {
        let none = devices().unwrap_err();
        assert!(matches!(none, Error::NoDevice(_)), "{none}");
        assert!(none.to_string().starts_with("no OpenCL device: "), "{none}");
    }
    assert!(matches!(choose(&[], None), Err(Error::NoDevice(_))));
    assert!(matches!(choose(&[], Some("0")), Err(Error::Unknown(_))));
}
