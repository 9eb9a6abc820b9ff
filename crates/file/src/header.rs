//! The text in front of a payload: version line, stanzas, fields, MAC.
//!
//! The grammar is age's, <https://c2sp.org/age#encrypted-file-format>, with one addition for
//! wattlock v1: *fields*, written as stanzas that start with `=>` and stand after the recipients'.

use std::io::{self, BufRead, Read};
use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD_NO_PAD as BASE64;
use wattlock_engine::crypto::Secret;
use wattlock_engine::crypto::hmac::{self, MAC_LEN};

use crate::error::{Damage, Error};
use crate::format::Format;
use crate::limits::MAX_HEADER_LEN;

/// What a recipient, or a field, has in a header: a type, arguments and a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stanza {
    /// Its type.
    pub tag: String,
    /// What follows the type on its first line.
    pub args: Vec<String>,
    /// Its bytes, which stand on the lines below, in base64.
    pub body: Vec<u8>,
}

impl Stanza {
    pub(crate) fn from_age(stanza: age_core::format::Stanza) -> Self {
        let age_core::format::Stanza { tag, args, body } = stanza;
        Self { tag, args, body }
    }

    pub(crate) fn to_age(&self) -> age_core::format::Stanza {
        let Self { tag, args, body } = self.clone();
        age_core::format::Stanza { tag, args, body }
    }
}

/// A header as it was read.
#[derive(Debug)]
pub struct Header {
    format: Format,
    stanzas: Vec<Stanza>,
    fields: Vec<Stanza>,
    /// Everything that the MAC covers: up to and including `---`.
    signed: Vec<u8>,
    mac: [u8; MAC_LEN],
    len: usize,
}

impl Header {
    /// Reads a header and leaves `reader` at the first byte of the payload.
    ///
    /// # Errors
    /// [`Error::NotAContainer`], [`Error::SealedStream`], [`Error::HeaderCut`], [`Error::HeaderTooLong`] and
    /// [`Error::Header`]. The MAC is not checked yet: that takes the file key.
    pub fn read(reader: &mut impl BufRead) -> Result<Self, Error> {
        let mut lines = Lines { reader, read: Vec::new(), number: 0 };
        let format = version(&mut lines)?;
        let mut stanzas = Vec::new();
        let mut fields = Vec::new();
        let signed_mac = loop {
            let start = lines.read.len();
            let line = lines.next()?;
            match line.split_at_checked(3) {
                Some((b"-> ", rest)) => {
                    if !fields.is_empty() {
                        return Err(lines.broken("a recipient stanza stands after a field"));
                    }
                    let rest = rest.to_vec();
                    stanzas.push(stanza(&rest, &mut lines)?);
                }
                Some((b"=> ", rest)) if format == Format::WattlockV1 => {
                    let rest = rest.to_vec();
                    fields.push(stanza(&rest, &mut lines)?);
                }
                Some((b"---", rest)) => {
                    let mac = rest
                        .strip_prefix(b" ")
                        .and_then(decode)
                        .and_then(|mac| <[u8; MAC_LEN]>::try_from(mac).ok());
                    match mac {
                        Some(mac) => break (start + 3, mac),
                        None => return Err(lines.broken("the MAC is not 32 bytes of base64")),
                    }
                }
                _ => return Err(lines.broken("neither a stanza nor the MAC")),
            }
        };
        if stanzas.is_empty() {
            return Err(lines.broken("there is no recipient stanza"));
        }
        if stanzas.iter().any(|stanza| stanza.tag == SCRYPT) && stanzas.len() > 1 {
            return Err(lines.broken("a passphrase stanza must stand alone"));
        }
        let len = lines.read.len();
        let mut signed = lines.read;
        signed.truncate(signed_mac.0);
        Ok(Self { format, stanzas, fields, signed, mac: signed_mac.1, len })
    }

    /// The bytes of a header with these stanzas and fields, under `mac_key`.
    ///
    /// # Errors
    /// [`Error::Usage`] if it is longer than readers allow.
    pub fn encode(
        format: Format,
        stanzas: &[Stanza],
        fields: &[Stanza],
        mac_key: &Secret<32>,
    ) -> Result<Vec<u8>, Error> {
        let mut out = format!("{}\n", format.version_line());
        stanzas.iter().for_each(|stanza| write_stanza(&mut out, "->", stanza));
        fields.iter().for_each(|field| write_stanza(&mut out, "=>", field));
        out.push_str("---");
        let mac = hmac::sha256(mac_key, out.as_bytes());
        out.push(' ');
        out.push_str(&BASE64.encode(mac));
        out.push('\n');
        if out.len() > MAX_HEADER_LEN {
            return Err(Error::usage(format!(
                "the header for {} recipients has {} bytes, and {MAX_HEADER_LEN} are allowed; \
                 give fewer recipients",
                stanzas.len(),
                out.len()
            )));
        }
        Ok(out.into_bytes())
    }

    /// Checks the MAC.
    ///
    /// # Errors
    /// [`Error::HeaderAuthentication`].
    pub fn verify(&self, mac_key: &Secret<32>) -> Result<(), Error> {
        hmac::verify_sha256(mac_key, &self.signed, &self.mac)
            .map_err(|_| Error::HeaderAuthentication)
    }

    /// The container's format.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The recipients' stanzas.
    pub fn stanzas(&self) -> &[Stanza] {
        &self.stanzas
    }

    /// The fields of a wattlock v1 header.
    pub fn fields(&self) -> &[Stanza] {
        &self.fields
    }

    /// The one field of that name, or `None`.
    ///
    /// # Errors
    /// [`Error::Header`] if it stands there twice.
    pub(crate) fn field(&self, name: &str) -> Result<Option<&Stanza>, Error> {
        let mut found = self.fields.iter().filter(|field| field.tag == name);
        let field = found.next();
        match found.next() {
            None => Ok(field),
            Some(_) => Err(Error::Header { line: 1, what: "a field stands there twice" }),
        }
    }

    /// Bytes of the header, its last newline included.
    pub fn len(&self) -> u64 {
        self.len as u64
    }

    /// Never: a header has at least its version line.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The types of the stanzas, each once, for messages.
    pub(crate) fn recipient_types(&self) -> String {
        let mut types: Vec<String> = Vec::new();
        for stanza in &self.stanzas {
            let kind = match stanza.tag.as_str() {
                "X25519" => "an age key (X25519)".to_owned(),
                "mlkem768x25519" => "a post-quantum age key (mlkem768x25519)".to_owned(),
                tag @ ("ssh-ed25519" | "ssh-rsa") => format!("an SSH key ({tag})"),
                tag => format!("a recipient of type {tag}"),
            };
            if !types.contains(&kind) {
                types.push(kind);
            }
        }
        types.join(" and ")
    }
}

/// The tag of a passphrase stanza.
pub(crate) const SCRYPT: &str = "scrypt";

/// Characters of a full body line: 48 bytes of base64.
const COLUMNS: usize = 64;

/// Reads lines and remembers every byte, for the MAC.
struct Lines<'a, R> {
    reader: &'a mut R,
    read: Vec<u8>,
    number: usize,
}

impl<R: BufRead> Lines<'_, R> {
    /// The next line without its newline.
    fn next(&mut self) -> Result<&[u8], Error> {
        let start = self.read.len();
        self.number += 1;
        let room = (MAX_HEADER_LEN - start) as u64;
        self.reader.take(room).read_until(b'\n', &mut self.read).map_err(unreadable)?;
        match self.read[start..].split_last() {
            Some((b'\n', line)) => Ok(line),
            _ if self.read.len() >= MAX_HEADER_LEN => Err(Error::HeaderTooLong),
            _ => Err(Error::HeaderCut),
        }
    }

    fn broken(&self, what: &'static str) -> Error {
        Error::Header { line: self.number, what }
    }
}

/// Reads the version line, byte by byte as far as it can still become one: any other input is not
/// a container.
fn version<R: BufRead>(lines: &mut Lines<'_, R>) -> Result<Format, Error> {
    lines.number = 1;
    loop {
        if let Some(format) = Format::sniff(&lines.read) {
            return Ok(format);
        }
        let possible =
            Format::ALL.iter().any(|f| f.version_line().as_bytes().starts_with(&lines.read));
        if !possible {
            let is_version = NAMES.iter().any(|name| lines.read.starts_with(name));
            return Err(if is_version {
                Error::UnknownVersion
            } else if is_stream(lines)? {
                Error::SealedStream
            } else {
                Error::NotAContainer
            });
        }
        let mut byte = [0];
        match lines.reader.read(&mut byte).map_err(unreadable)? {
            1 => lines.read.push(byte[0]),
            _ if lines.read.is_empty() => return Err(Error::NotAContainer),
            _ => return Err(Error::HeaderCut),
        }
    }
}

/// True if the input starts like a sealed stream, after what was read of it.
fn is_stream<R: BufRead>(lines: &mut Lines<'_, R>) -> Result<bool, Error> {
    while STREAM.starts_with(&lines.read) && lines.read.len() < STREAM.len() {
        let mut byte = [0];
        if lines.reader.read(&mut byte).map_err(unreadable)? == 0 {
            return Ok(false);
        }
        lines.read.push(byte[0]);
    }
    Ok(lines.read.starts_with(STREAM))
}

/// What every sealed stream starts with.
const STREAM: &[u8] = b"wattlock-stream/";

/// What the version line of every version starts with.
const NAMES: [&[u8]; 2] = [b"wattlock/", b"age-encryption.org/"];

/// An input that ends in the middle of its armor, or cannot be read at all.
fn unreadable(error: io::Error) -> Error {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Damage>()) {
        Some(damage) => (*damage).into(),
        None => Error::io("read", Path::new("the header"))(error),
    }
}

/// A stanza whose first line, after its arrow, is `first`.
fn stanza<R: BufRead>(first: &[u8], lines: &mut Lines<'_, R>) -> Result<Stanza, Error> {
    let mut words = Vec::new();
    for word in first.split(|&byte| byte == b' ') {
        if word.is_empty() || !word.iter().all(|byte| (33..=126).contains(byte)) {
            return Err(lines.broken("a stanza's words must be visible ASCII, one space apart"));
        }
        words.push(String::from_utf8_lossy(word).into_owned());
    }
    let tag = words.remove(0);
    let mut body = Vec::new();
    loop {
        let line = lines.next()?;
        let full = line.len() == COLUMNS;
        match decode(line) {
            Some(bytes) if line.len() <= COLUMNS => body.extend_from_slice(&bytes),
            _ => return Err(lines.broken("a stanza's body must be canonical base64 in 64 columns")),
        }
        if !full {
            return Ok(Stanza { tag, args: words, body });
        }
    }
}

fn write_stanza(out: &mut String, arrow: &str, stanza: &Stanza) {
    out.push_str(arrow);
    for word in std::iter::once(&stanza.tag).chain(&stanza.args) {
        out.push(' ');
        out.push_str(word);
    }
    out.push('\n');
    let body = BASE64.encode(&stanza.body);
    for line in body.as_bytes().chunks(COLUMNS) {
        out.extend(line.iter().map(|&byte| char::from(byte)));
        out.push('\n');
    }
    // The last line is short, and so empty after a body of full lines.
    if body.len().is_multiple_of(COLUMNS) {
        out.push('\n');
    }
}

/// Unpadded base64 with no other spelling of the same bytes.
fn decode(text: &[u8]) -> Option<Vec<u8>> {
    BASE64.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key() -> Secret<32> {
        Secret::init_with(|b| b.fill(1))
    }

    fn read(bytes: &[u8]) -> Result<Header, Error> {
        Header::read(&mut &bytes[..])
    }

    fn example() -> Vec<u8> {
        let stanza = Stanza { tag: "X25519".into(), args: vec!["abc".into()], body: vec![7; 32] };
        let field = Stanza { tag: "data-key".into(), args: vec![], body: vec![9; 48] };
        Header::encode(Format::WattlockV1, &[stanza], &[field], &key()).unwrap()
    }

    #[test]
    fn the_payload_starts_after_the_mac() {
        let mut bytes = example();
        let len = bytes.len() as u64;
        bytes.extend_from_slice(b"payload");
        let mut reader = &bytes[..];
        let header = Header::read(&mut reader).unwrap();
        assert_eq!(header.len(), len);
        assert_eq!(reader, b"payload");
        header.verify(&key()).unwrap();
    }

    #[test]
    fn a_header_cut_anywhere_says_so() {
        let bytes = example();
        for len in 1..bytes.len() {
            assert!(matches!(read(&bytes[..len]), Err(Error::HeaderCut)), "{len} bytes");
        }
        assert!(matches!(read(b""), Err(Error::NotAContainer)));
    }

    #[test]
    fn a_flipped_bit_never_verifies() {
        let bytes = example();
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let verified = read(&flipped).and_then(|header| header.verify(&key()));
            assert!(verified.is_err(), "bit {bit}");
        }
    }

    #[test]
    fn an_endless_header_is_refused() {
        let mut endless = b"wattlock/v1\n-> X25519 abc\n".to_vec();
        endless.resize(MAX_HEADER_LEN * 2, b'A');
        assert!(matches!(read(&endless), Err(Error::HeaderTooLong)));
    }

    #[test]
    fn what_no_reader_would_take_is_not_written() {
        let stanza = || Stanza { tag: "long".into(), args: vec!["x".repeat(1500)], body: vec![] };
        let stanzas = |count| (0..count).map(|_| stanza()).collect::<Vec<_>>();
        let encode = |count| Header::encode(Format::AgeV1, &stanzas(count), &[], &key());
        let bytes = encode(600).unwrap();
        assert_eq!(read(&bytes).unwrap().stanzas().len(), 600);
        assert!(matches!(encode(700), Err(Error::Usage { .. })));
    }

    #[test]
    fn a_passphrase_stands_alone() {
        let scrypt = || Stanza { tag: SCRYPT.into(), args: vec![], body: vec![0; 32] };
        let bytes = Header::encode(Format::AgeV1, &[scrypt(), scrypt()], &[], &key()).unwrap();
        assert!(matches!(read(&bytes), Err(Error::Header { .. })));
    }

    proptest! {
        #[test]
        fn stanzas_round_trip(
            tag in "[!-~]{1,20}",
            args in proptest::collection::vec("[!-~]{1,70}", 0..4),
            body in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            prop_assume!(tag != SCRYPT);
            let stanza = || Stanza { tag: tag.clone(), args: args.clone(), body: body.clone() };
            let field = Stanza { tag: "metadata".into(), ..stanza() };
            let stanzas = [stanza(), stanza()];
            let bytes = Header::encode(Format::WattlockV1, &stanzas, &[field], &key()).unwrap();
            let header = read(&bytes).unwrap();
            prop_assert_eq!(header.stanzas(), &[stanza(), stanza()][..]);
            prop_assert_eq!(&header.field("metadata").unwrap().unwrap().body, &body);
            header.verify(&key()).unwrap();
        }

        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = read(&bytes);
            let mut with_version = b"wattlock/v1\n-> ".to_vec();
            with_version.extend_from_slice(&bytes);
            let _ = read(&with_version);
        }
    }
}
