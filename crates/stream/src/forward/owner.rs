//! To whom the folder of an identity belongs in a store.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use crate::gateway::Certificate;
use crate::segment::name_new;

/// Refuses a forwarder whose certificate is another than the one that first used the folder. That one is noted in the
/// folder; until then, whoever comes may use it.
///
/// # Errors
/// [`io::ErrorKind::PermissionDenied`]; that the system refuses something.
pub(super) fn check(folder: &Path, certificate: Option<&Certificate>) -> io::Result<()> {
    let path = folder.join(OWNER);
    let own = certificate.map(text_of);
    let owner = match fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let Some(own) = &own else { return Ok(()) };
            claim(folder, &path, own)?
        }
        owner => owner?,
    };
    if own.as_deref() == Some(&*owner) {
        return Ok(());
    }
    let names: Vec<_> = owner.lines().map(|line| line.escape_debug().to_string()).collect();
    let shown = match &own {
        None => "this connection has none",
        Some(_) => "this is another",
    };
    let why = format!(
        "the folder belongs to the certificate of {}, and {shown}; use that certificate, give the forwarder's folder \
         an `id` of its own, or remove the file `owner` in the store's folder to hand it over",
        names.join(", ")
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

/// Notes the owner, unless another connection did. Returns who it is.
fn claim(folder: &Path, path: &Path, own: &str) -> io::Result<String> {
    let lock = File::open(folder)?;
    // A file system without locks does without: the link is exclusive, too.
    let _ = lock.lock();
    let new = folder.join(format!(".{OWNER}.new"));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(&new)?;
    file.write_all(own.as_bytes())?;
    file.sync_all()?;
    match name_new(&new, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => fs::read_to_string(path),
        linked => linked.and_then(|()| lock.sync_all()).map(|()| own.to_owned()),
    }
}

/// A certificate as the file has it: its names, in order, which a renewed one has, too; without any, its checksum.
fn text_of(certificate: &Certificate) -> String {
    let mut names: Vec<String> = certificate
        .names
        .iter()
        .map(|name| match name.contains(':') {
            true => name.clone(),
            // The case of a host's name does not matter, and that of a URI does.
            false => name.to_ascii_lowercase(),
        })
        .collect();
    names.sort();
    names.dedup();
    if names.is_empty() {
        let digits: String = certificate.sha256.iter().map(|byte| format!("{byte:02x}")).collect();
        names.push(format!("sha256 {digits}"));
    }
    names.into_iter().map(|name| name + "\n").collect()
}

/// The file that says it.
const OWNER: &str = "owner";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_certificate_owns_the_folder() {
        let place = tempfile::tempdir().unwrap();
        let certificate = |names: &[&str], sha256| Certificate {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            sha256: [sha256; 32],
        };
        let is_let_in =
            |certificate: Option<&Certificate>| check(place.path(), certificate).is_ok();
        assert!(is_let_in(None), "it belongs to nobody yet");
        let first = certificate(&["a.example", "spiffe://a/A"], 1);
        assert!(is_let_in(Some(&first)));
        assert!(is_let_in(Some(&certificate(&["spiffe://a/A", "A.example"], 2))), "it was renewed");
        for other in [&["a.example"][..], &["b.example"], &["a.example", "spiffe://a/a"], &[]] {
            assert!(!is_let_in(Some(&certificate(other, 1))), "{other:?}");
        }
        assert!(!is_let_in(None));
        fs::remove_file(place.path().join(OWNER)).unwrap();
        assert!(is_let_in(Some(&certificate(&[], 1))) && !is_let_in(Some(&certificate(&[], 2))));
    }
}
