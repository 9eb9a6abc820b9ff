//! `cargo xtask openssl [VERSION...]`: other OpenSSLs than the system's, and for each an nginx that is linked to it,
//! from the sources that crates carry. Each is built once into the user's cache folder; `openssl-VERSION` in the
//! target folder is a link to it, where the tests look for them and to which `--openssl` of the benches is pointed.

use std::collections::hash_map::DefaultHasher;
use std::fs::{self, File};
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, bail};
use cargo_metadata::MetadataCommand;

/// A release whose sources a crate carries.
struct Release {
    /// As it is asked for, and part of the link's name.
    name: &'static str,
    /// The folder of a manifest that pins the sources. Cargo.lock has one of these crates at a time.
    manifest: Option<&'static str>,
    /// Features left out besides [`WITHOUT`]: every release refuses names that it does not know.
    without: &'static str,
}

/// Debian 13's, the last of OpenSSL 3, and the newest.
const RELEASES: [Release; 3] = [
    Release { name: "3.5", manifest: Some("xtask/openssl-3.5"), without: "engine" },
    Release { name: "3.6", manifest: Some("xtask/openssl-3.6"), without: "engine" },
    Release { name: "4.0", manifest: None, without: WITHOUT_4 },
];

/// What `make test` needs beside the system's.
const USUAL: &str = "3.5";

/// Builds what is not there yet of the releases that are named, of "all", or of none the usual one.
///
/// # Errors
/// A name that is none, what is missing, or the last lines of a build.
pub fn build(names: &[String]) -> anyhow::Result<()> {
    let known = || RELEASES.map(|release| release.name).join(", ");
    let usual = [USUAL.to_owned()];
    let names = if names.is_empty() { &usual } else { names };
    let all = names.iter().any(|name| name == "all");
    if let Some(name) = names.iter().find(|name| *name != "all" && !known().contains(*name)) {
        bail!("no OpenSSL {name}: the releases are {}, or all", known());
    }
    let metadata = MetadataCommand::new().no_deps().exec().context("reading cargo metadata")?;
    let workspace = metadata.workspace_root.as_std_path();
    let nginx = crate_sources(workspace, "xtask/nginx", "nginx-src")?;
    let target = PathBuf::from(metadata.target_directory);
    for release in &RELEASES {
        if all || names.iter().any(|name| name == release.name) {
            release.build(workspace, &target, &nginx)?;
        }
    }
    Ok(())
}

impl Release {
    fn build(&self, workspace: &Path, target: &Path, nginx: &Sources) -> anyhow::Result<()> {
        let openssl = match self.manifest {
            Some(manifest) => crate_sources(workspace, manifest, "openssl-src")?,
            None => Sources {
                folder: openssl_src::source_dir(),
                version: openssl_src::version().to_owned(),
            },
        };
        let without = format!("{WITHOUT} {}", self.without);
        let made_of = format!(
            "openssl-src {}\nwithout {without}\nnginx-src {}\n{NGINX}\n",
            openssl.version, nginx.version
        );
        let folder = cache(target).join(format!("openssl-{:016x}", hash(&made_of)));
        fs::create_dir_all(&folder)?;
        // Another run of this builds the same.
        let lock = File::create(folder.join("lock"))?;
        lock.lock()?;
        let text = format!("{made_of}in {}\n", folder.display());
        let stamp = Stamp { file: folder.join("stamp-openssl"), text: text.clone() };
        stamp.unless_there(|| {
            // It is linked to what is built anew.
            let _ = fs::remove_file(folder.join("stamp-nginx"));
            build_openssl(&folder, &openssl, &without)
        })?;
        let stamp = Stamp { file: folder.join("stamp-nginx"), text };
        stamp.unless_there(|| build_nginx(&folder, &nginx.folder))?;
        link(&folder, &target.join(format!("openssl-{}", self.name)))?;
        eprintln!("openssl: {} is in {}", self.name, folder.display());
        Ok(())
    }
}

/// The folder for what is built once for all checkouts: the user's cache, or else the target folder.
pub fn cache(target: &Path) -> PathBuf {
    let own = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let cache = own.or(home).filter(|cache| cache.is_absolute());
    let folder = cache.map(|cache| cache.join("wattlock-openssl"));
    folder.filter(|folder| fs::create_dir_all(folder).is_ok()).unwrap_or_else(|| target.into())
}

fn hash(text: &str) -> u64 {
    let mut state = DefaultHasher::new();
    text.hash(&mut state);
    state.finish()
}

/// Makes `name` a link to `folder`, in place of what had that name.
pub fn link(folder: &Path, name: &Path) -> anyhow::Result<()> {
    if fs::read_link(name).is_ok_and(|there| there == folder) {
        return Ok(());
    }
    if name.symlink_metadata().is_ok_and(|there| there.is_dir()) {
        fs::remove_dir_all(name)?;
    } else if name.symlink_metadata().is_ok() {
        fs::remove_file(name)?;
    }
    Ok(std::os::unix::fs::symlink(folder, name)?)
}

/// Says what was built, and is written last.
struct Stamp {
    file: PathBuf,
    text: String,
}

impl Stamp {
    fn unless_there(&self, build: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
        if fs::read_to_string(&self.file).is_ok_and(|text| text == self.text) {
            return Ok(());
        }
        let _ = fs::remove_file(&self.file);
        let started = Instant::now();
        build()?;
        eprintln!("openssl: built in {} s", started.elapsed().as_secs());
        Ok(fs::write(&self.file, &self.text)?)
    }
}

/// Static libraries, of which every file is compiled once, linked as shared ones: OpenSSL's own rules
/// for shared libraries compile everything twice, and want scripts that the crate leaves out.
fn build_openssl(folder: &Path, sources: &Sources, without: &str) -> anyhow::Result<()> {
    let version = sources.version.split_once('+').map_or("", |(_, openssl)| openssl);
    eprintln!("openssl: building OpenSSL {version} from source, some minutes");
    let build = emptied(folder.join("build-openssl"))?;
    let log = folder.join("openssl.log");
    let steps = Steps { build: &build, log: &log };
    let source = &sources.folder;
    let mut configure = Command::new("perl");
    configure.arg(source.join("Configure")).arg("--libdir=lib");
    configure.arg(format!("--prefix={}", folder.display()));
    configure.arg(format!("--openssldir={}", folder.join("ssl").display()));
    configure.args(without.split_whitespace().map(|feature| format!("no-{feature}")));
    configure.arg(format!("-Wl,-rpath,{}", folder.join("lib").display()));
    steps.run(&mut configure)?;
    steps.make(&["build_libs"])?;
    let major = version.split('.').next().filter(|major| !major.is_empty());
    let major = major.context("openssl-src does not name OpenSSL's version")?;
    for (library, needs) in [("libcrypto", &["-ldl", "-pthread"][..]), ("libssl", &["-lcrypto"])] {
        let file = format!("{library}.so.{major}");
        let mut link = Command::new("cc");
        link.args(["-shared", "-Wl,-Bsymbolic,-z,defs,-z,nodelete", "-o", &file]);
        link.arg(format!("-Wl,-soname,{file},-rpath,{}", folder.join("lib").display()));
        link.arg(format!("-Wl,--whole-archive,{library}.a,--no-whole-archive"));
        link.arg("-L.").args(needs);
        steps.run(&mut link)?;
        let name = format!("{library}.so");
        std::os::unix::fs::symlink(&file, build.join(&name))?;
        let lib = folder.join("lib");
        fs::create_dir_all(&lib)?;
        fs::copy(build.join(&file), lib.join(&file))?;
        let _ = fs::remove_file(lib.join(&name));
        std::os::unix::fs::symlink(&file, lib.join(&name))?;
    }
    // Links the program to the shared libraries, which now lie next to the static ones.
    steps.make(&["build_programs"])?;
    fs::create_dir_all(folder.join("bin"))?;
    fs::copy(build.join("apps/openssl"), folder.join("bin/openssl"))?;
    // The crate leaves out the default configuration of `openssl req`.
    fs::create_dir_all(folder.join("ssl"))?;
    fs::write(folder.join("ssl/openssl.cnf"), REQUESTS)?;
    let include = emptied(folder.join("include"))?.join("openssl");
    fs::create_dir_all(&include)?;
    for headers in [source.join("include/openssl"), build.join("include/openssl")] {
        for header in fs::read_dir(headers)? {
            let header = header?;
            if header.path().extension().is_some_and(|extension| extension == "h") {
                fs::copy(header.path(), include.join(header.file_name()))?;
            }
        }
    }
    Ok(fs::remove_dir_all(&build)?)
}

fn build_nginx(folder: &Path, source: &Path) -> anyhow::Result<()> {
    eprintln!("openssl: building nginx from source, less than a minute");
    let build = emptied(folder.join("build-nginx"))?;
    copy(source, &build)?;
    let log = folder.join("nginx.log");
    let steps = Steps { build: &build, log: &log };
    let mut configure = Command::new("sh");
    configure.arg("auto/configure").args(NGINX.split_whitespace());
    configure.arg(format!("--prefix={}", folder.join("nginx").display()));
    configure.arg(format!("--with-cc-opt=-O2 -Wno-error -I{}", folder.join("include").display()));
    let lib = folder.join("lib");
    configure.arg(format!("--with-ld-opt=-L{0} -Wl,-rpath,{0}", lib.display()));
    steps.run(&mut configure)?;
    steps.make(&[])?;
    fs::copy(build.join("objs/nginx"), folder.join("bin/nginx"))?;
    Ok(fs::remove_dir_all(&build)?)
}

/// The sources that a crate carries.
struct Sources {
    folder: PathBuf,
    /// That of the crate; behind a plus sign is what it carries.
    version: String,
}

/// Where cargo has the sources that a manifest of ours pins: in a folder of the crate that is called as the crate is.
fn crate_sources(workspace: &Path, manifest: &str, name: &str) -> anyhow::Result<Sources> {
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let metadata = MetadataCommand::new()
        .manifest_path(workspace.join(manifest).join("Cargo.toml"))
        .other_options(["--locked".to_owned(), format!("--filter-platform={platform}")])
        .exec()
        .with_context(|| format!("asking cargo for the sources of {name}"))?;
    let package = metadata.packages.iter().find(|package| package.name.as_str() == name);
    let package = package.with_context(|| format!("{manifest} does not name {name}"))?;
    let folder = package.manifest_path.parent().with_context(|| format!("{name} lies nowhere"))?;
    let folder = folder.join(name.trim_end_matches("-src")).into();
    Ok(Sources { folder, version: package.version.to_string() })
}

/// Programs that run in a folder, and what they say.
struct Steps<'a> {
    build: &'a Path,
    log: &'a Path,
}

impl Steps<'_> {
    fn make(&self, targets: &[&str]) -> anyhow::Result<()> {
        let jobs = std::thread::available_parallelism()?;
        self.run(Command::new("make").arg(format!("-j{jobs}")).args(targets))
    }

    /// Runs one to its end.
    fn run(&self, command: &mut Command) -> anyhow::Result<()> {
        let said = File::options().create(true).append(true).open(self.log)?;
        command.current_dir(self.build).stdin(Stdio::null());
        command.stdout(said.try_clone()?).stderr(said);
        // An outer make passes its own settings on by these variables.
        for name in ["MAKEFLAGS", "MFLAGS", "MAKELEVEL", "OPENSSL_CONF", "CFLAGS", "LDFLAGS"] {
            command.env_remove(name);
        }
        let name = command.get_program().to_string_lossy().into_owned();
        let ended = command.status().with_context(|| format!("cannot run {name}"))?;
        if !ended.success() {
            let text = fs::read(self.log).unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            let from = text.lines().count().saturating_sub(LAST_LINES);
            let last: Vec<&str> = text.lines().skip(from).collect();
            bail!("{name} failed; the end of {}:\n{}", self.log.display(), last.join("\n"));
        }
        Ok(())
    }
}

/// The folder, with nothing in it.
fn emptied(folder: PathBuf) -> anyhow::Result<PathBuf> {
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    for entry in walkdir::WalkDir::new(from) {
        let entry = entry?;
        let to = to.join(entry.path().strip_prefix(from)?);
        if entry.file_type().is_dir() {
            fs::create_dir_all(to)?;
        } else {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}

/// Lines shown of a failed build.
const LAST_LINES: usize = 20;

/// Features that no test or bench needs. The assembler, multiblock, QUIC, CMS and the loading of modules stay.
const WITHOUT: &str = "\
    shared module acvp-tests argon2 aria bf blake2 camellia cast cmp comp ct des docs dsa ec2m idea legacy makedepend \
    md4 mdc2 ml-dsa ml-kem nextprotoneg ocb ocsp psk rc2 rc4 rc5 rfc3779 rmd160 scrypt seed siphash siv slh-dsa sm2 \
    sm3 sm4 srp srtp ssl-trace sslkeylog tests ts whirlpool";

/// The same of 4.0, whose names the others do not know.
const WITHOUT_4: &str =
    "ech hmac-drbg-kdf kbkdf krb5kdf lms pvkkdf snmpkdf srtpkdf sshkdf x942kdf x963kdf";

/// What makes a certificate that signs itself.
const REQUESTS: &str = "\
[req]
distinguished_name = name
x509_extensions = authority
[name]
[authority]
basicConstraints = critical, CA:true
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid:always, issuer
";

/// Pages by HTTPS; the modules that stay have temporary folders, which every configuration that is
/// to run elsewhere, too, has to name.
const NGINX: &str = "\
    --with-http_ssl_module --without-pcre --without-http_gzip_module --without-http_rewrite_module \
    --without-http_ssi_module --without-http_charset_module --without-http_userid_module \
    --without-http_auth_basic_module --without-http_mirror_module --without-http_autoindex_module \
    --without-http_geo_module --without-http_map_module --without-http_split_clients_module \
    --without-http_referer_module --without-http_grpc_module --without-http_memcached_module \
    --without-http_limit_conn_module --without-http_limit_req_module \
    --without-http_empty_gif_module --without-http_browser_module";
