//! `wattlock provider check`: what of the provider really runs in the system's OpenSSL, or in
//! another.

use std::process::ExitCode;

use anyhow::Context;
use serde_json::json;
use wattlock_host::exit::{Ended, FAILURE, print, unavailable};
use wattlock_host::signals;
use wattlock_provider::statistics::Multiblock;
use wattlock_report::columns::Columns;

use super::agreement::{Checked, OpenSsl};
use super::{statistics, tls};
use crate::args;

/// Runs it.
pub fn run(args: &args::ProviderCheck) -> Ended {
    let module = super::find(args.provider.as_deref()).map_err(unavailable)?;
    let directory = tempfile::Builder::new()
        .prefix("wattlock-check-")
        .tempdir()
        .context("cannot make a temporary directory")?;
    signals::clean_up_and_remove(directory.path().to_owned())?;
    let openssl = OpenSsl::with(args.openssl.as_deref(), &module, directory.path())?;
    let ciphers = openssl.ciphers()?;
    let mut checked = Vec::new();
    let mut only_tls = Vec::new();
    for cipher in &ciphers {
        match openssl.check(cipher)? {
            Some(one) => checked.push(one),
            None => only_tls.push(cipher.clone()),
        }
    }
    checked.extend(tls::check(&openssl, &ciphers)?);
    let all_checked = only_tls.iter().all(|cipher| tls::uses(cipher));
    let self_check = !openssl.disagreed();
    let loaded = openssl.loaded()?;
    let multiblock = loaded.as_ref().and_then(|loaded| loaded.multiblock);
    let all_right =
        !checked.is_empty() && all_checked && self_check && checked.iter().all(Checked::is_right);
    if args.json {
        let rows: Vec<_> =
            checked.iter().map(|one| json!({ "checked": one, "right": one.is_right() })).collect();
        let document = json!({
            "schema": "wattlock-provider-check/1",
            "provider": module,
            "openssl": openssl.version,
            "rows": rows,
            "only_in_tls": only_tls,
            "self_check": self_check,
            "multiblock": multiblock.map(Multiblock::name),
            "right": all_right,
        });
        print(&(serde_json::to_string_pretty(&document)? + "\n"))?;
    } else {
        let mut text = format!("{}, {}\n", openssl.version, module.display());
        let mut table = Columns::new("<");
        for one in &checked {
            table.row([one.name.to_string(), one.how.to_string(), one.verdict().to_string()]);
        }
        for cipher in &only_tls {
            let how =
                if tls::uses(cipher) { "checked by the TLS suites above" } else { "NOT CHECKED" };
            table.row([cipher.to_string(), how.to_owned()]);
        }
        text += &table.to_string();
        if let Some((multiblock, loaded)) = multiblock.zip(loaded) {
            let offer = statistics::offer(multiblock, &loaded.openssl);
            text += &format!("writes of several records: {offer}\n");
        }
        if !ciphers.iter().any(|cipher| cipher.ends_with("-GCM")) {
            text += WITHOUT_GCM;
        }
        if !self_check {
            text +=
                "the provider's self-check FAILED: it seals records one by one; please report it\n";
        }
        text += NODE;
        if all_right {
            text += "all ciphers agree\n";
        }
        print(&text)?;
    }
    if all_right {
        return Ok(ExitCode::SUCCESS);
    }
    if checked.is_empty() {
        say!("OpenSSL uses no cipher of the provider");
    }
    Ok(FAILURE.into())
}

/// What is said of a program that loads no provider, and says nothing.
const NODE: &str = "\
Node.js ignores this configuration without a message, because it reads the section nodejs_conf: start it
with node --openssl-shared-config.
";

/// What is said of AES-GCM where OpenSSL keeps it.
const WITHOUT_GCM: &str = "\
AES-GCM is left to OpenSSL: on this kind of CPU nobody has measured that Wattlock is faster. To use it
anyway, set gcm = 1 in the provider's section.
";
