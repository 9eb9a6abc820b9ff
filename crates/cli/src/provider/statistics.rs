//! Prints what processes with the provider have counted; `wattlock_provider::statistics` reads it.

use std::fmt::Write;

use serde_json::{Value, json};
use wattlock_provider::statistics::{
    Counts, Found, LANES, Loaded, Multiblock, Service, Statistics,
};
use wattlock_report::columns::Columns;

/// One service, for people.
pub fn service(service: &Service) -> String {
    let versions: Vec<_> = service.loaded.iter().map(|one| one.openssl.as_str()).collect();
    let mut text = format!("service {}, OpenSSL {}\n", service.name, versions.join(" and "));
    for Loaded { openssl, multiblock } in &service.loaded {
        let Some(multiblock) = multiblock else { continue };
        let of = if versions.len() > 1 { format!(" of OpenSSL {openssl}") } else { String::new() };
        let _ = writeln!(text, "  writes of several records{of}: {}", offer(*multiblock, openssl));
    }
    for one in &service.processes {
        text += &format!("process {}\n{}", one.process, counts(one));
    }
    if service.earlier.sum() != Counts::default() {
        text += &format!("earlier processes\n{}", counts(&service.earlier));
    }
    text
}

/// Whether one write may seal many records, and why not.
pub fn offer(multiblock: Multiblock, openssl: &str) -> String {
    match multiblock {
        Multiblock::Offered => "on".into(),
        Multiblock::Off => "off, by the setting multiblock = 0".into(),
        Multiblock::Untested => format!(
            "off, because OpenSSL {openssl} is not tested (3.0, 3.5, 3.6 and 4.0 are); to turn them on anyway, set \
             multiblock = 1"
        ),
        Multiblock::Disagreed => {
            "off, because the self-check at load failed; please report it".into()
        }
    }
}

/// Counts of a process, for people.
fn counts(statistics: &Statistics) -> String {
    let mut paths = Columns::new("<>").indented();
    paths.row(["path", "calls", "records", "bytes"]);
    for (name, Counts { calls, records, bytes }) in statistics.paths() {
        paths.row([name.to_string(), calls.to_string(), records.to_string(), bytes.to_string()]);
    }
    let mut text = paths.to_string();
    let Some((device, threshold)) = statistics.device.as_ref().zip(statistics.threshold()) else {
        return text;
    };
    let rule = match threshold {
        u64::MAX => "nothing, as it is never sooner done".into(),
        bytes => format!("requests above {bytes} bytes"),
    };
    let _ = writeln!(text, "  accelerator: {device}, for {rule}");
    let mut lanes = Columns::new("<>").indented();
    lanes.row(["", "calls", "bytes"]);
    for lane in LANES {
        let counts = statistics.lane(lane);
        lanes.row([
            format!("by {}", lane.name()),
            counts.calls.to_string(),
            counts.bytes.to_string(),
        ]);
    }
    for (name, times) in statistics.events().filter(|(_, times)| *times > 0) {
        lanes.row([name.to_string(), times.to_string()]);
    }
    text + &lanes.to_string()
}

/// `wattlock-provider-stats/3`.
pub fn document(found: &Found) -> Value {
    let multiblock = |loaded: &Loaded| loaded.multiblock.map(Multiblock::name);
    let services: Vec<Value> = found
        .services
        .iter()
        .map(|service| {
            json!({
                "name": service.name,
                "openssl": service.loaded.first().map_or("", |last| &last.openssl),
                "multiblock": service.loaded.first().and_then(multiblock),
                "earlier_openssl": service.loaded.get(1).map(|earlier| json!({
                    "openssl": earlier.openssl,
                    "multiblock": multiblock(earlier),
                })),
                "processes": service.processes,
                "earlier": { "paths": service.earlier.paths() },
            })
        })
        .collect();
    json!({
        "schema": "wattlock-provider-stats/3",
        "services": services,
        "skipped": found.skipped,
        "hidden_processes": found.hidden,
    })
}
