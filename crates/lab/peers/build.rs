//! Passes the versions of the compiled peers to the crate, and builds OpenSSL on request.

use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    export_versions();
    #[cfg(feature = "openssl-vendored")]
    build_openssl();
}

/// Sets `VERSION_<crate>` for each peer crate to the version that Cargo.lock pins, since crates do
/// not report their version at run time. If several lock files may apply and disagree, the version
/// is unknown.
fn export_versions() {
    let locks = lock_files();
    for path in &locks {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    let texts: Vec<_> =
        locks.iter().filter_map(|path| std::fs::read_to_string(path).ok()).collect();
    for (name, series) in PEER_CRATES {
        let mut found = texts.iter().map(|text| pinned(text, name, series));
        let first = found.next().flatten();
        let version = first.filter(|_| found.all(|other| other == first));
        let variable = name.replace('-', "_");
        println!("cargo::rustc-env=VERSION_{variable}={}", version.unwrap_or("(unknown version)"));
    }
}

/// The lock files that may be in force. A target folder usually lies in the workspace that is
/// being built: a lock file there which also stands above this crate is the one. Otherwise all
/// that are near.
fn lock_files() -> Vec<PathBuf> {
    let above = |variable| -> Vec<PathBuf> {
        let folder = PathBuf::from(std::env::var_os(variable).expect("cargo sets it"));
        let locks = folder.ancestors().map(|at| at.join("Cargo.lock"));
        locks.filter(|path| path.is_file()).collect()
    };
    let mut of_crate = above("CARGO_MANIFEST_DIR");
    match above("OUT_DIR").into_iter().next() {
        Some(of_build) if of_crate.contains(&of_build) => vec![of_build],
        of_build => {
            of_crate.extend(of_build);
            of_crate
        }
    }
}

/// The version of `name` in the text of a lock file that begins with `series`: a workspace may
/// well pin two versions of one crate.
fn pinned<'lock>(lock: &'lock str, name: &str, series: &str) -> Option<&'lock str> {
    let wanted = format!("name = \"{name}\"");
    let mut lines = lock.lines();
    while let Some(line) = lines.next() {
        if line != wanted {
            continue;
        }
        let version = lines.next()?.strip_prefix("version = \"")?.strip_suffix('"')?;
        if version.starts_with(series) {
            return Some(version);
        }
    }
    None
}

/// Builds libcrypto as a static archive, once per version, and links it. openssl-src itself leaves
/// shared objects and tests out; the legacy provider is compiled into the archive.
#[cfg(feature = "openssl-vendored")]
fn build_openssl() {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let folder = out.join(format!("openssl-{}", openssl_src::version()));
    let archive = folder.join("install/lib/libcrypto.a");
    if !archive.is_file() {
        openssl_src::Build::new().out_dir(&folder).build();
    }
    println!("cargo::rustc-link-search=native={}", folder.join("install/lib").display());
    println!("cargo::rustc-link-lib=static=crypto");
}

/// Peer crates and the series that Cargo.toml asks for.
const PEER_CRATES: [(&str, &str); 11] = [
    ("rustls", "0.23."),
    ("aws-lc-rs", "1."),
    ("aws-lc-sys", "0."),
    ("aes", "0.9."),
    ("ctr", "0.10."),
    ("cbc", "0.2."),
    ("aes-gcm", "0.11."),
    ("sha3", "0.12."),
    ("k12", "0.5."),
    ("blowfish", "0.10."),
    ("rc4", "0.2."),
];
