//! A store of segments takes any bytes from a forwarder, and writes nothing outside that forwarder's folder.
#![no_main]

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use wattlock_stream::forward::{Sender, Store};

/// A forwarder that says this and hears nothing.
struct Forwarder<'a>(&'a [u8]);

impl Read for Forwarder<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.0.read(to)
    }
}

impl Write for Forwarder<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Whether it is a number with one of these endings.
fn is_numbered(name: &str, endings: &[&str]) -> bool {
    name.split_once('.').is_some_and(|(digits, ending)| {
        endings.contains(&ending) && digits.len() >= 6 && digits.bytes().all(|b| b.is_ascii_digit())
    })
}

/// The name of the key file that this one is kept beside, as in `000001.key.2`; its own if it is the first.
fn first_of_epoch(name: &str) -> &str {
    let beside = name.rsplit_once('.').filter(|(_, end)| end.bytes().all(|b| b.is_ascii_digit()));
    beside.map_or(name, |(first, _)| first)
}

fuzz_target!(|data: &[u8]| {
    // Where syncs take no time.
    let place = tempfile::tempdir_in("/dev/shm").unwrap();
    let inside = place.path().join("store");
    fs::create_dir(&inside).unwrap();
    let said = [b"wattlock-forward/v1\n", &[7; 16][..], data].concat();
    let _ = Store::new(&inside).serve(Forwarder(&said), Sender::default(), &|_| {});
    assert_eq!(names(place.path()), ["store"]);
    assert_eq!(names(&inside), ["07".repeat(16)]);
    let folder = inside.join("07".repeat(16));
    assert!(names(&folder).iter().all(|name| name == "keys" || is_numbered(name, &["wls"])));
    let keys = names(&folder.join("keys"));
    assert!(keys.iter().all(|name| is_numbered(first_of_epoch(name), &["key", "salt"])));
});
