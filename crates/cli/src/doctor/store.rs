//! `wattlock doctor s3://…`: uploads that were neither completed nor aborted.

use std::path::Path;
use std::process::ExitCode;
use std::time::UNIX_EPOCH;

use serde::Serialize;
use wattlock_file::{Format, Shown};
use wattlock_host::exit::{Ended, FAILURE, print};
use wattlock_object::{Address, Client, UnfinishedUpload};
use wattlock_report::date::rfc3339;

use crate::args;

/// The report in JSON.
#[derive(Serialize)]
struct Document {
    schema: &'static str,
    address: String,
    unfinished_uploads: Vec<Upload>,
}

/// An unfinished upload.
#[derive(Serialize)]
struct Upload {
    object: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    begun: Option<String>,
    aborted: bool,
}

/// Lists the unfinished uploads of containers below `address`, and aborts those that are old enough.
pub fn run(args: &args::Doctor, address: &Path) -> Ended {
    let client = Client::new()?;
    let address = Address::parse(address)?;
    let mut uploads = Vec::new();
    let mut ended = 0;
    for upload in client.unfinished(&address)?.iter().filter(|upload| is_container(upload)) {
        let mut aborted = args.clean_uploads.is_some_and(|hours| is_old(upload, hours));
        if aborted && let Err(error) = client.abort(upload) {
            say!("{error}");
            (aborted, ended) = (false, FAILURE);
        }
        let begun = upload.begun.map(rfc3339);
        uploads.push(Upload { object: upload.name().display().to_string(), begun, aborted });
    }
    let address = address.to_path().display().to_string();
    let document =
        Document { schema: "wattlock-doctor-store/1", address, unfinished_uploads: uploads };
    let text =
        if args.json { serde_json::to_string_pretty(&document)? + "\n" } else { document.text() };
    print(&text)?;
    Ok(ExitCode::from(ended))
}

/// True for an upload of what this program makes.
fn is_container(upload: &UnfinishedUpload) -> bool {
    let name = upload.name();
    let end = name.extension().and_then(|end| end.to_str());
    end.is_some_and(|end| Format::ALL.iter().any(|format| format.suffix() == end))
}

fn is_old(upload: &UnfinishedUpload, hours: u64) -> bool {
    let now = UNIX_EPOCH.elapsed().unwrap_or_default().as_secs() as i64;
    // One whose age is not known is taken for a new one.
    let seconds = now - upload.begun.unwrap_or(now);
    seconds >= i64::try_from(hours.saturating_mul(3600)).unwrap_or(i64::MAX)
}

impl Document {
    fn text(&self) -> String {
        let Self { address, unfinished_uploads: uploads, .. } = self;
        let mut text = match uploads.len() {
            0 => format!("{address}: no unfinished uploads of .wlk and .age objects\n"),
            count => format!("{address}: unfinished uploads: {count}\n"),
        };
        for Upload { object, begun, aborted } in uploads {
            let begun = begun.as_ref().map(|begun| format!(", begun {begun}")).unwrap_or_default();
            let what = if *aborted { ": aborted" } else { "" };
            text += &format!("  {}{begun}{what}\n", Shown(Path::new(object)));
        }
        if uploads.iter().any(|upload| !upload.aborted) {
            text += "  to abort uploads older than 24 hours: --clean-uploads; or --clean-uploads=HOURS\n";
        }
        text
    }
}
