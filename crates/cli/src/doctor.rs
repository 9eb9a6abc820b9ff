//! `wattlock doctor`: what can be used on this machine, why the rest cannot, and what would help.

mod store;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;
use wattlock_energy::{External, Found, Root, STATIC, Sources, Status};
use wattlock_engine::crypto::{CpuFeature, cpu_features};
use wattlock_file::Shown;
use wattlock_host::energy::{other, root};
use wattlock_host::exit::{Ended, print};
use wattlock_host::gpus;
use wattlock_host::kernels::{Kernel, kernels};
use wattlock_report::columns::Columns;

use crate::args;

/// The report in JSON.
#[derive(Serialize)]
struct Document {
    schema: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<String>,
    energy: Vec<Source>,
    knobs: Vec<Source>,
    cpu_features: Vec<Feature>,
    kernels: Vec<Kernel>,
    gpu_runtimes: Vec<Source>,
    openssl: Vec<Source>,
}

/// Something that can be used, or not.
#[derive(Serialize)]
struct Source {
    source: &'static str,
    domain: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    status: &'static str,
    why: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

/// An instruction set.
#[derive(Serialize)]
struct Feature {
    name: &'static str,
    here: bool,
    /// What it is for.
    used_by: String,
}

/// `wattlock doctor`.
pub fn run(args: &args::Doctor) -> Ended {
    if let Some(address) = &args.address {
        return store::run(args, address);
    }
    let root = root();
    let external = args.meter.as_deref().map(str::parse::<External>).map(|Ok(external)| external);
    let document = Document {
        schema: "wattlock-doctor/1",
        root: other(&root).map(|root| root.display().to_string()),
        energy: Sources::open_with(&root, external.as_ref()).found().iter().map(source).collect(),
        knobs: wattlock_energy::knobs::found(&root).iter().map(source).collect(),
        cpu_features: features(),
        kernels: kernels(),
        gpu_runtimes: gpus::runtimes(&root).iter().map(source).collect(),
        openssl: openssl(&root).iter().map(source).collect(),
    };
    let text =
        if args.json { serde_json::to_string_pretty(&document)? + "\n" } else { document.text() };
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn source(found: &Found) -> Source {
    Source {
        source: found.source,
        domain: found.domain.clone(),
        path: found.path.as_ref().map(|path| path.display().to_string()),
        status: found.status.name(),
        why: found.why.clone(),
        fix: found.fix.clone(),
    }
}

impl Document {
    fn text(&self) -> String {
        let mut text = rows("energy", &self.energy);
        text += &rows("\nclocks", &self.knobs);
        let mut table = Columns::new("<").indented();
        for Feature { name, here, used_by } in &self.cpu_features {
            let status = if *here { "present" } else { "absent" };
            // The document has always had these words.
            let used_by = if used_by == "nothing of Wattlock yet" { "not used" } else { used_by };
            table.row([name, status, used_by]);
        }
        text += &format!("\nCPU features\n{table}");
        let mut table = Columns::new("<").indented();
        for kernel in &self.kernels {
            let here = match &kernel.why_not {
                Some(why) => format!("unavailable: {why}"),
                None if kernel.chosen && kernel.measured == Some(false) => {
                    "used; unmeasured on this class of CPU".into()
                }
                None if kernel.chosen => "used".into(),
                None if kernel.measured == Some(false) => {
                    "available; unmeasured on this class of CPU".into()
                }
                None => "available; a faster one is used".into(),
            };
            table.row([kernel.algorithm.to_owned(), kernel.name.to_owned(), here]);
        }
        text += &format!("\nkernels\n{table}");
        text + &rows("\nGPU runtimes", &self.gpu_runtimes) + &rows("\nOpenSSL", &self.openssl)
    }
}

fn rows(title: &str, sources: &[Source]) -> String {
    let mut table = Columns::new("<").indented();
    for source in sources {
        // A domain's name is a file's text, which a terminal might obey.
        let domain = Shown(Path::new(&source.domain)).to_string();
        table.row([source.source.to_owned(), domain, source.status.to_string()]);
    }
    let mut text = format!("{title}\n");
    for (source, line) in sources.iter().zip(table.to_string().lines()) {
        text += &format!("{line}\n");
        if let Some(path) = &source.path {
            text += &format!("    where: {}\n", Shown(Path::new(path)));
        }
        text += &format!("    why:   {}\n", Shown(Path::new(&source.why)));
        if let Some(fix) = &source.fix {
            text += &format!("    fix:   {fix}\n");
        }
    }
    text
}

/// The features of the CPU that kernels need.
fn features() -> Vec<Feature> {
    let feature = |CpuFeature { name, here, used_by, .. }| Feature { name, here, used_by };
    cpu_features().into_iter().map(feature).collect()
}

/// Whether programs that use OpenSSL can use Wattlock.
fn openssl(root: &Root) -> Vec<Found> {
    let program = match crate::provider::version() {
        Ok(version) => (Status::Used, version, None),
        Err(why) => (Status::Unavailable, why, Some("install openssl".to_owned())),
    };
    let (status, why, fix) = program;
    let found = |domain: &str, status, why, fix| Found {
        source: "openssl",
        domain: domain.into(),
        path: None,
        status,
        why,
        fix,
    };
    let (path, loaded) = provider(root);
    let provider = match loaded {
        Ok((status, why)) => found("provider", status, why, None),
        Err((why, fix)) => found("provider", Status::Unavailable, why, Some(fix)),
    };
    vec![found("program", status, why, fix), Found { path, ..provider }]
}

/// Where the provider is, and whether the program openssl loads it; else why not, and what to do.
/// Below another root it is not asked, as it would be this machine's that answers.
fn provider(root: &Root) -> (Option<PathBuf>, Result<(Status, String), (String, String)>) {
    if STATIC {
        let why = "this build of the program is static, and comes without the provider";
        return (None, Err((why.to_owned(), "use the Debian package".to_owned())));
    }
    let module = match wattlock_provider::configuration::find(None) {
        Ok(module) => module,
        // What to do is said with it.
        Err(why) => {
            let (why, fix) = why.split_once("; ").unwrap_or((&why, "build it"));
            return (None, Err((why.to_owned(), fix.to_owned())));
        }
    };
    let loaded = if *root == Root::default() {
        crate::provider::loaded(&module).map(|told| (Status::Used, told))
    } else {
        Ok((Status::Ignored, "it is there, and not asked".into()))
    };
    let fix = "wattlock provider check tells more".to_owned();
    (Some(module), loaded.map_err(|why| (why, fix)))
}
