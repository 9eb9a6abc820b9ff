//! Names that leave no room for a suffix.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::ffi::OsStr;
use std::fs;

use crate::support::{Place, assert_exit, pattern, stderr};

#[test]
fn a_name_without_room_for_the_suffix_is_named_and_the_others_are_done() {
    let place = Place::new();
    let name = |len: usize| format!("{:x<len$}", len);
    for len in [3, 251, 252, 255] {
        place.write(format!("d/{}", name(len)), &pattern(1000));
    }
    let folder = place.path("d");
    let args = [OsStr::new("--recursive"), OsStr::new("--replace"), folder.as_os_str()];
    let made = place.protect(&args);
    assert_exit(&made, 1);
    let said = stderr(&made);
    assert_eq!(said.matches("255 are allowed").count(), 2, "{said}");
    for len in [252, 255] {
        assert!(said.contains(&format!("the name has {} bytes", len + 4)), "{said}");
        assert!(said.contains(&name(len)) && said.contains("with -o"), "{said}");
    }
    let mut left = [name(252), name(255), name(251) + ".wlk", name(3) + ".wlk"];
    left.sort();
    assert_eq!(place.names(), left);
    // By itself, with a name that is given, it can be done and comes back.
    let (long, sealed) = (folder.join(name(255)), place.path("short.wlk"));
    let args = [long.as_os_str(), OsStr::new("-o"), sealed.as_os_str()];
    assert_exit(&place.protect(&args), 0);
    fs::remove_file(&long).unwrap();
    let args = [sealed.as_os_str(), OsStr::new("-o"), long.as_os_str()];
    assert_exit(&place.open("unprotect", &args), 0);
    assert!(fs::read(&long).unwrap() == pattern(1000));
    // age's suffix is as long.
    let args = [OsStr::new("--format=age"), long.as_os_str()];
    assert!(stderr(&place.protect(&args)).contains("with .age"));
}
