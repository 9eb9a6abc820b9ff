//! The key schedule of wattlock v1, as `docs/spec/wattlock-v1.md` has it.
//!
//! file key (wrapped for the recipients) → data key (random, sealed under it) → payload and
//! metadata. Recipients change without the data key, and so without the payload.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD_NO_PAD as BASE64;
use wattlock_engine::crypto::{AeadAlgorithm, AeadKey, NONCE_LEN, Secret, TAG_LEN, hkdf, random};
use zeroize::Zeroizing;

use crate::cobblestone;
use crate::error::Error;
use crate::format::Format;
use crate::header::{Header, Stanza};
use crate::metadata::Metadata;
use crate::payload::Payload;

/// The context under which a payload is sealed. With it and the data key, any implementation of
/// Cobblestone-256 opens the payload.
pub const PAYLOAD_CONTEXT: &[u8] = b"wattlock/v1 payload";

/// A header with a new data key, and the payload that follows it.
pub(crate) fn seal(
    file_key: &Secret<16>,
    stanzas: &[Stanza],
    metadata: Option<&Metadata>,
) -> Result<(Vec<u8>, Payload), Error> {
    let data_key = random::secret::<32>()?;
    let mut fields = vec![seal_data_key(file_key, &data_key)?];
    if let Some(metadata) = metadata {
        fields.push(seal_metadata(&data_key, metadata)?);
    }
    let header = Header::encode(Format::WattlockV1, stanzas, &fields, &mac_key(file_key))?;
    Ok((header, cobblestone::seal(&data_key, PAYLOAD_CONTEXT)?))
}

/// A header that carries `data_key` and nothing else.
pub(crate) fn key_header(
    data_key: &Secret<32>,
    file_key: &Secret<16>,
    stanzas: &[Stanza],
) -> Result<Vec<u8>, Error> {
    let fields = [seal_data_key(file_key, data_key)?];
    Header::encode(Format::WattlockV1, stanzas, &fields, &mac_key(file_key))
}

/// A header for the data key of `old`, with new stanzas; the metadata stay as they are.
pub(crate) fn rekey(
    old: &Header,
    data_key: &Secret<32>,
    file_key: &Secret<16>,
    stanzas: &[Stanza],
) -> Result<Vec<u8>, Error> {
    let mut fields = vec![seal_data_key(file_key, data_key)?];
    for field in old.fields().iter().filter(|field| field.tag != DATA_KEY) {
        fields.push(field.clone());
    }
    Header::encode(Format::WattlockV1, stanzas, &fields, &mac_key(file_key))
}

/// The key of the header's MAC.
pub(crate) fn mac_key(file_key: &Secret<16>) -> Secret<32> {
    hkdf::sha256(file_key.expose(), b"", b"wattlock/v1 header")
}

/// The data key that `header` carries. The header's MAC was verified before.
pub(crate) fn data_key(header: &Header, file_key: &Secret<16>) -> Result<Secret<32>, Error> {
    let field = header
        .field(DATA_KEY)?
        .ok_or(Error::Header { line: 1, what: "there is no field data-key" })?;
    let key = data_key_key(file_key, &salt(field)?);
    let opened = open(&key, &field.body)?;
    let bytes: &[u8; 32] = opened.as_slice().try_into().map_err(|_| Error::HeaderAuthentication)?;
    Ok(Secret::init_with(|b| b.copy_from_slice(bytes)))
}

/// The metadata that `header` carries, if any.
pub(crate) fn metadata(header: &Header, data_key: &Secret<32>) -> Result<Option<Metadata>, Error> {
    let Some(field) = header.field(METADATA)? else { return Ok(None) };
    let opened = open(&metadata_key(data_key, &salt(field)?), &field.body)?;
    Ok(Some(Metadata::decode(&opened)?))
}

/// True if `header` carries metadata, sealed as they are.
pub(crate) fn has_metadata(header: &Header) -> bool {
    header.fields().iter().any(|field| field.tag == METADATA)
}

const DATA_KEY: &str = "data-key";
const METADATA: &str = "metadata";

/// Bytes of the salt of a field. It is random, so that the key under which a field is sealed is
/// used once, and its nonce can be zero.
const SALT_LEN: usize = 16;

fn seal_data_key(file_key: &Secret<16>, data_key: &Secret<32>) -> Result<Stanza, Error> {
    let salt = random::array::<SALT_LEN>()?;
    seal_field(DATA_KEY, &salt, &data_key_key(file_key, &salt), data_key.expose())
}

fn seal_metadata(data_key: &Secret<32>, metadata: &Metadata) -> Result<Stanza, Error> {
    let salt = random::array::<SALT_LEN>()?;
    seal_field(METADATA, &salt, &metadata_key(data_key, &salt), &metadata.encode())
}

fn data_key_key(file_key: &Secret<16>, salt: &[u8; SALT_LEN]) -> Secret<32> {
    hkdf::sha256(file_key.expose(), salt, b"wattlock/v1 data key")
}

fn metadata_key(data_key: &Secret<32>, salt: &[u8; SALT_LEN]) -> Secret<32> {
    hkdf::expand_sha512(data_key, &[b"wattlock/v1 metadata", &[0], salt])
}

fn seal_field(
    name: &str,
    salt: &[u8; SALT_LEN],
    key: &Secret<32>,
    plaintext: &[u8],
) -> Result<Stanza, Error> {
    let mut body = Zeroizing::new(plaintext.to_vec());
    let key = AeadKey::new(AeadAlgorithm::Aes256Gcm, key.expose())?;
    let tag = key.seal([0; NONCE_LEN], b"", &mut body)?;
    let body = [&body[..], &tag].concat();
    Ok(Stanza { tag: name.into(), args: vec![BASE64.encode(salt)], body })
}

fn open(key: &Secret<32>, sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, Error> {
    let (body, tag) = sealed.split_last_chunk::<TAG_LEN>().ok_or(Error::HeaderAuthentication)?;
    let mut body = Zeroizing::new(body.to_vec());
    AeadKey::new(AeadAlgorithm::Aes256Gcm, key.expose())?
        .open([0; NONCE_LEN], b"", &mut body, tag)
        .map_err(|_| Error::HeaderAuthentication)?;
    Ok(body)
}

fn salt(field: &Stanza) -> Result<[u8; SALT_LEN], Error> {
    let malformed = Error::Header { line: 1, what: "a field's salt is not 16 bytes of base64" };
    let [salt] = field.args.as_slice() else { return Err(malformed) };
    let salt = BASE64.decode(salt).ok().and_then(|salt| salt.try_into().ok());
    salt.ok_or(malformed)
}
