//! What a container shows without a key, and what it shows with one.

use crate::container::Sealed;
use crate::error::Error;
use crate::format::Format;
use crate::header::Stanza;
use crate::input::Input;
use crate::keys::Identities;
use crate::metadata::Metadata;
use crate::post_quantum::POST_QUANTUM;
use crate::wattlock_v1;

/// What is known of a container.
#[derive(Debug)]
pub struct Inspection {
    /// Its format.
    pub format: Format,
    /// True if it is age's ASCII armor.
    pub armored: bool,
    /// The type and, for a passphrase, the work factor of each stanza.
    pub recipients: Vec<String>,
    /// The types alone.
    pub stanza_types: Vec<String>,
    /// True if each stanza is of a type that withstands quantum computers.
    pub post_quantum: bool,
    /// Bytes of the header.
    pub header_len: u64,
    /// Bytes of everything behind the header, if the container is a file.
    pub payload_len: Option<u64>,
    /// Bytes of the plaintext, by the container's length, which nothing proves yet.
    pub plain_len: Option<u64>,
    /// Chunks of the payload.
    pub chunks: Option<u64>,
    /// True if metadata are sealed in the header.
    pub has_metadata: bool,
    /// The metadata and an authentic header, if an identity was given.
    pub metadata: Option<Metadata>,
}

/// Reads the header of `input`, and opens it if there are identities. The payload is not read.
///
/// # Errors
/// Anything in [`Error`]; among them a payload whose length no payload has.
pub fn inspect(input: &Input, identities: &Identities) -> Result<Inspection, Error> {
    let sealed = Sealed::read(input)?;
    let format = sealed.header.format();
    let payload_len = sealed.payload_range().map(|range| range.end.saturating_sub(range.start));
    let layout = format.layout();
    let plain_len = payload_len
        .map(|len| layout.plain_len(len.saturating_sub(format.prefix_len() as u64)))
        .transpose()?;
    let mut inspection = Inspection {
        format,
        armored: sealed.armored,
        recipients: sealed.header.stanzas().iter().map(describe).collect(),
        stanza_types: sealed.header.stanzas().iter().map(|stanza| stanza.tag.clone()).collect(),
        post_quantum: sealed.header.stanzas().iter().all(|s| QUANTUM_SAFE.contains(&&*s.tag)),
        header_len: sealed.header.len(),
        payload_len,
        plain_len,
        chunks: plain_len.map(|len| layout.chunks(len)),
        has_metadata: wattlock_v1::has_metadata(&sealed.header),
        metadata: None,
    };
    if !identities.is_empty() {
        inspection.metadata = Some(sealed.unlock(identities)?.metadata);
    }
    Ok(inspection)
}

/// age's hybrid types, of keys in files and on tokens; and passphrases, as hard to guess as ever.
const QUANTUM_SAFE: [&str; 3] = [POST_QUANTUM, "mlkem768p256tag", crate::header::SCRYPT];

/// The type of the recipient of a stanza.
pub(crate) fn describe(stanza: &Stanza) -> String {
    match (stanza.tag.as_str(), stanza.args.as_slice()) {
        (crate::header::SCRYPT, [_, work]) => format!("scrypt (2^{work})"),
        (tag, _) => tag.to_owned(),
    }
}
