//! `wattlock inspect`: what a container is.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use wattlock_file::{Identities, Input, Inspection, Shown, inspect, name_bytes};
use wattlock_host::exit::{Ended, code_of, print, say_file_error};
use wattlock_host::summary::human;
use wattlock_report::columns::Columns;
use wattlock_report::date::rfc3339;

use crate::args;
use crate::keys;
use crate::rekey::no_directory;
use crate::stores::{self, Stores};
use crate::stream::stored::{self, Description};

/// One container in JSON.
#[derive(Serialize)]
struct Document {
    file: String,
    /// In base64, if the name is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    file_name_bytes: Option<String>,
    format: &'static str,
    version: u8,
    armored: bool,
    recipients: Vec<String>,
    post_quantum: bool,
    header_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plaintext_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chunks: Option<u64>,
    chunk_bytes: usize,
    aead: &'static str,
    metadata: &'static str,
    header_authentic: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sealed: Option<Sealed>,
}

/// The metadata in JSON.
#[derive(Serialize)]
struct Sealed {
    name: Option<String>,
    /// In base64, if the name is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    name_bytes: Option<String>,
    mode: Option<String>,
    modified_unix_s: Option<i64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    sparse: bool,
}

/// `wattlock inspect`.
pub fn run(args: &args::Inspect) -> Ended {
    let passphrase = keys::passphrase(&args.passphrase, false)?;
    let stdin = || vec![PathBuf::from("-")];
    let files = if args.files.is_empty() { stdin() } else { args.files.clone() };
    let stdin_is_data = files.iter().any(|file| file.as_os_str().as_bytes() == b"-");
    let identities: Identities =
        keys::identities(&keys::named(&args.identities), passphrase, stdin_is_data, args.limits)?;
    let stores = Stores::default();
    let mut exit_code = 0;
    let mut documents = Vec::new();
    for file in files {
        if stored::is_stream(&file) {
            match stored::describe(&file) {
                Ok(found) if args.json => documents.push(serde_json::to_value(found)?),
                Ok(found) => print(&describe_stream(&found))?,
                Err(error) => {
                    say_file_error(&file, &error);
                    exit_code = exit_code.max(code_of(&error));
                }
            }
            continue;
        }
        let input = match file.as_os_str().as_bytes() {
            b"-" => Input::Stdin,
            _ => match stores.input(&stores::local(&file), None) {
                Ok(input) => input,
                Err(error) => {
                    say_file_error(&file, &error);
                    exit_code = exit_code.max(code_of(&error));
                    continue;
                }
            },
        };
        match inspect(&input, &identities) {
            Ok(inspection) if args.json => {
                documents.push(serde_json::to_value(Document::new(&input, inspection))?);
            }
            Ok(inspection) => print(&describe(&input, &inspection))?,
            Err(error) => {
                let error = no_directory(error);
                say_file_error(input.name(), &error);
                exit_code = exit_code.max(code_of(&error));
            }
        }
    }
    if args.json {
        print(&(serde_json::to_string_pretty(&documents)? + "\n"))?;
    }
    Ok(ExitCode::from(exit_code))
}

impl Document {
    fn new(input: &Input, inspection: Inspection) -> Self {
        Self {
            file: input.name().display().to_string(),
            file_name_bytes: name_bytes(input.name()),
            format: inspection.format.name(),
            version: 1,
            armored: inspection.armored,
            recipients: inspection.recipients,
            post_quantum: inspection.post_quantum,
            header_bytes: inspection.header_len,
            payload_bytes: inspection.payload_len,
            plaintext_bytes: inspection.plain_len,
            chunks: inspection.chunks,
            chunk_bytes: inspection.format.layout().chunk_len,
            aead: inspection.format.aead().name(),
            metadata: if inspection.has_metadata { "sealed" } else { "none" },
            header_authentic: inspection.metadata.as_ref().map(|_| true),
            sealed: inspection.metadata.filter(|_| inspection.has_metadata).map(|m| Sealed {
                name: m.name.as_ref().map(|name| name.to_string_lossy().into_owned()),
                name_bytes: m.name.as_ref().and_then(|name| name_bytes(Path::new(name))),
                mode: m.mode.map(|mode| format!("{mode:04o}")),
                modified_unix_s: m.modified.map(unix_seconds),
                sparse: m.sparse,
            }),
        }
    }
}

/// The same of sealed streams.
fn describe_stream(found: &Description) -> String {
    let mut table = Columns::new("<").indented();
    let mut row = |name: &str, value: String| table.row([name.to_owned(), value]);
    row("format", format!("wattlock stream v{}", found.version));
    row(
        "recipients",
        match &found.recipients {
            Some(kinds) => kinds.iter().map(|kind| in_words(kind)).collect::<Vec<_>>().join(", "),
            None if found.epochs.is_empty()
                || found.epochs_without_key.len() < found.epochs.len() =>
            {
                "those who have the --key-file".into()
            }
            None => "none: the key was removed".into(),
        },
    );
    row("bytes", format!("{} ({})", found.bytes, human(found.bytes as f64)));
    if let Some(segments) = found.segments {
        let incomplete = found.incomplete.unwrap_or_default();
        row("segments", format!("{segments}, of which {incomplete} without an index"));
    }
    let numbers = |epochs: &[u32]| epochs.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    if !found.epochs.is_empty() {
        row("epochs", numbers(&found.epochs));
    }
    if !found.epochs_without_key.is_empty() {
        row("without key", numbers(&found.epochs_without_key));
    }
    if let Some(tenant) = &found.tenant {
        row("tenant", tenant.clone());
    }
    if let Some(writer) = &found.writer {
        row("writer", writer.clone());
    }
    if let Some(end) = found.end {
        row(
            "end",
            match end {
                "complete" => "complete, with an index".into(),
                "recovered" => "its writer was killed; a later run noted where it ended".into(),
                "written" => "still being written".into(),
                _ => "cut: its writer was killed".into(),
            },
        );
    }
    format!("{}\n{table}", Shown(Path::new(&found.file)))
}

/// What people read.
fn describe(input: &Input, inspection: &Inspection) -> String {
    let mut table = Columns::new("<").indented();
    let mut row = |name: &str, value: String| table.row([name.to_owned(), value]);
    let armor = if inspection.armored { ", ASCII armor" } else { "" };
    row("format", format!("{} v1{armor}", inspection.format));
    let recipients: Vec<String> = inspection.recipients.iter().map(|kind| in_words(kind)).collect();
    row("recipients", recipients.join(", "));
    row("header", format!("{} bytes", inspection.header_len));
    match (inspection.plain_len, inspection.payload_len, inspection.chunks) {
        (Some(plain), Some(payload), Some(chunks)) => {
            let size = human(plain as f64);
            let how = "worked out from the container's length, not verified";
            row("plaintext", format!("{plain} bytes ({size}), {how}"));
            row(
                "payload",
                format!("{payload} bytes in {chunks} chunk{}", if chunks == 1 { "" } else { "s" }),
            );
        }
        _ => row("plaintext", "unknown: the input is a stream".into()),
    }
    row("cipher", inspection.format.aead().name().into());
    if inspection.metadata.is_some() {
        row("header", "authentic".into());
    }
    match &inspection.metadata {
        _ if !inspection.has_metadata => row("metadata", "none".into()),
        None => row("metadata", "sealed; -i or -p shows it".into()),
        Some(metadata) => {
            if let Some(name) = &metadata.name {
                row("name", Shown(Path::new(name)).to_string());
            }
            if let Some(mode) = metadata.mode {
                row("mode", format!("{mode:04o}"));
            }
            if let Some(modified) = metadata.modified {
                row("modified", rfc3339(unix_seconds(modified)));
            }
            if metadata.sparse {
                row("sparse", "yes: its holes are kept".into());
            }
        }
    }
    format!("{}\n{table}", Shown(input.name()))
}

/// The type of a recipient as messages name it; `kind` is what the format calls it.
fn in_words(kind: &str) -> String {
    match kind {
        "X25519" => format!("age key ({kind})"),
        "mlkem768x25519" => format!("post-quantum age key ({kind})"),
        "ssh-ed25519" | "ssh-rsa" => format!("SSH key ({kind})"),
        _ => match kind.strip_prefix("scrypt (").and_then(|rest| rest.strip_suffix(')')) {
            Some(work) => format!("passphrase (scrypt, {work})"),
            None => kind.to_owned(),
        },
    }
}

fn unix_seconds(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => after.as_secs().try_into().unwrap_or(i64::MAX),
        Err(before) => -(before.duration().as_secs() as i64),
    }
}
