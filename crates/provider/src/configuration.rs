//! Writes the settings with which OpenSSL and nginx use the provider.

mod system;

use std::fmt::Write;
use std::path::{Path, PathBuf};

use system::Sections;
pub use system::System;

/// An `openssl.cnf` with the provider, and OpenSSL's own for all that it has not.
pub struct Configuration<'a> {
    /// The provider's file, an absolute path.
    pub module: &'a Path,
    /// The name under which it counts, or where a table for its counts is.
    pub statistics: Option<&'a str>,
    /// More of its settings, by name.
    pub settings: &'a [(&'static str, String)],
    /// The system's configuration, which is included with its policies; without it, the file stands alone.
    pub system: Option<&'a System>,
}

impl Configuration<'_> {
    /// The file.
    ///
    /// # Errors
    /// A path that cannot be written in it.
    pub fn text(&self) -> Result<String, String> {
        let mut text = String::from(HEAD);
        let sections = match self.system {
            Some(system) => {
                let file = value(&system.file)?;
                let _ = writeln!(text, "{INCLUDED}.include {file}\n");
                system.sections.clone()
            }
            None => Sections::own(),
        };
        let Sections { init, is_own, providers, default, algorithms, properties, sets_random } =
            sections;
        if is_own {
            // An included file ends in a section of its own.
            let _ = writeln!(text, "[default]\nopenssl_conf = {init}\n");
        }
        let _ = write!(text, "[{init}]\nproviders = {providers}\nalg_section = {algorithms}\n");
        if sets_random {
            text += "random = wattlock_random\n";
        }
        let _ =
            write!(text, "\n[{providers}]\ndefault = {default}\nwattlock = wattlock_provider\n");
        let _ = write!(text, "{DEFAULT}[{default}]\nactivate = 1\n");
        let _ =
            write!(text, "\n[wattlock_provider]\nactivate = 1\nmodule = {}\n", value(self.module)?);
        if let Some(name) = self.statistics {
            let _ = writeln!(text, "statistics = {}", value(Path::new(name))?);
        }
        for (name, setting) in self.settings {
            let _ = writeln!(text, "{name} = {}", value(Path::new(setting))?);
        }
        let _ = write!(text, "{PREFER}[{algorithms}]\ndefault_properties = {properties}\n");
        if sets_random {
            text += RANDOM;
        }
        Ok(text)
    }
}

/// A path as a value, `config(5)`: quotes, comments and variables are taken away by a backslash.
fn value(path: &Path) -> Result<String, String> {
    let text = path.to_str().filter(|text| !text.chars().any(char::is_control));
    let text = text.ok_or_else(|| {
        format!("{} cannot be written in an openssl.cnf; choose another path", path.display())
    })?;
    let mut value = String::new();
    for character in text.chars() {
        if "\\\"'`#$".contains(character) {
            value.push('\\');
        }
        value.push(character);
    }
    Ok(value)
}

const HEAD: &str = "\
# Makes OpenSSL use Wattlock's ciphers. Save this file and set OPENSSL_CONF=FILE in the environment
# of one service only, never for the whole system. It takes the place of the system's openssl.cnf there.
#
# Who gains most: nginx with the settings of `wattlock provider config --nginx`, and programs that
# write 64 KiB or more at once in TLS 1.2; there, all records of a write are sealed in one call.
# Other programs (Apache, HAProxy, stunnel, openssl s_server), and TLS 1.3, encrypt one record or
# message at a time. With AES-GCM they gain much against OpenSSL 3.0, and less against 3.5 and later;
# updates of less than 256 bytes can be slower there.

";

const INCLUDED: &str = "\
# The system's configuration, with its policies such as MinProtocol and CipherString; what follows is
# added to it. A service in a chroot needs this file there as well: OpenSSL passes over a missing one.
";

const DEFAULT: &str = "
# OpenSSL's own provider supplies everything else.
";

const PREFER: &str = "
# Prefer Wattlock's ciphers, and fall back to OpenSSL's. Do not use ?provider=wattlock: it has no effect
# in programs that select a provider, such as stunnel.
";

const RANDOM: &str = "
# Without this section, OpenSSL before 3.5 uses Wattlock's AES-256-CTR for its random numbers.
[wattlock_random]
random = HASH-DRBG
digest = SHA2-256
";

/// What nginx wants besides an `OPENSSL_CONF` in its environment.
pub const NGINX: &str = "\
# In the environment of nginx, which reads it before it forks; with systemd, in
# /etc/systemd/system/nginx.service.d/wattlock.conf under [Service]:
#   Environment=OPENSSL_CONF=/etc/nginx/wattlock.cnf
#   Environment=GLIBC_TUNABLES=glibc.malloc.mmap_threshold=4194304:glibc.malloc.trim_threshold=16777216
# The second keeps the C library from asking the kernel for the large buffers again and again.

# In nginx.conf under `http`: libssl hands over several records at once only where a write has at
# least 64 KiB, in TLS 1.2.
ssl_buffer_size 124k;
output_buffers 1 124k;

# Needed for CBC suites, which send several records at once only without Encrypt-then-MAC:
ssl_conf_command Options -EncryptThenMac;
";

/// The C library's tunables of [`NGINX`], for a server that is started here.
pub const TUNABLES: &str =
    "glibc.malloc.mmap_threshold=4194304:glibc.malloc.trim_threshold=16777216";

/// Returns the file of the provider: `asked`, or else the one next to this program, or where a package
/// that installs the program puts OpenSSL's modules.
///
/// # Errors
/// Where it was looked for, and what to do.
pub fn find(asked: Option<&Path>) -> Result<PathBuf, String> {
    if let Some(path) = asked {
        let found = path.canonicalize().map_err(|error| {
            format!("no provider at {}: {error}; --provider names its file", path.display())
        })?;
        return if found.is_file() {
            Ok(found)
        } else {
            Err(format!("no provider at {}: it is not a file", path.display()))
        };
    }
    let own = std::env::current_exe().and_then(|own| own.canonicalize());
    let own = own.map_err(|error| format!("this program does not know where it is: {error}"))?;
    installed(&own).ok_or_else(|| {
        format!(
            "no provider at {}; `cargo build --release -p wattlock-provider` makes it, and \
             --provider names one elsewhere",
            own.with_file_name(FILE_NAME).display()
        )
    })
}

/// The provider that was installed with the program `own`.
fn installed(own: &Path) -> Option<PathBuf> {
    let prefix = own.parent()?.parent()?;
    let of_debian = format!("lib/{}-linux-gnu", std::env::consts::ARCH);
    let folders = [of_debian.as_str(), "lib64", "lib"];
    let modules = folders.map(|folder| prefix.join(folder).join("ossl-modules").join(MODULE_NAME));
    std::iter::once(own.with_file_name(FILE_NAME)).chain(modules).find(|file| file.is_file())
}

const FILE_NAME: &str = "libwattlock_provider.so";

/// Its file among OpenSSL's modules, whose name says the provider's.
const MODULE_NAME: &str = "wattlock.so";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_provider_is_beside_the_program_or_among_openssls_modules() {
        let place = tempfile::tempdir().unwrap();
        let own = place.path().join("usr/bin/wattlock");
        assert_eq!(installed(&own), None);
        let arch = std::env::consts::ARCH;
        let module = format!("usr/lib/{arch}-linux-gnu/ossl-modules/wattlock.so");
        for file in
            ["usr/lib64/ossl-modules/wattlock.so", &module, "usr/bin/libwattlock_provider.so"]
        {
            let file = place.path().join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, "").unwrap();
            assert_eq!(installed(&own), Some(file));
        }
    }

    #[test]
    fn odd_paths_are_written_so_that_openssl_reads_them() {
        let configuration = Configuration {
            module: Path::new("/a b/$x#\"lib'.so"),
            statistics: Some("nginx"),
            settings: &[("multiblock", "0".into())],
            system: None,
        };
        let text = configuration.text().unwrap_or_default();
        assert!(text.contains("module = /a b/\\$x\\#\\\"lib\\'.so\n"), "{text}");
        assert!(text.contains("statistics = nginx\nmultiblock = 0\n"), "{text}");
        let newline = Configuration { module: Path::new("/a\nb"), ..configuration };
        assert!(newline.text().is_err());
    }

    #[test]
    fn the_tunables_are_those_that_are_shown() {
        assert!(NGINX.contains(&format!("GLIBC_TUNABLES={TUNABLES}\n")));
    }
}
