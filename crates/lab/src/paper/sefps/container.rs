//! Section 3.1 of the SEFPS paper and Figures 1 and 2: padding, digest and order of the steps.

use wattlock_engine::crypto::AesKey;
use wattlock_engine::crypto::sha3::DIGEST_LEN;
use wattlock_file::{Damage, Error};
use wattlock_report::paper::{Row, Rule, Section};

use super::printed::quoted;
use super::rows::{COUNT, contradicted, count, exact, given, untested};
use super::security::Victim;
use crate::sefps::format::container_len;

/// # Errors
/// A file that cannot be written.
pub fn sections(victim: &Victim<'_>) -> anyhow::Result<Vec<Section>> {
    let sound = victim.holds_data_padding_and_digest()?;
    let closed = victim.releases_nothing_altered()?;
    let kept = victim.keeps_any_bytes()?;
    Ok(vec![
        Section::new("Section 3.1", "what a container holds", rows(sound, kept)),
        Section::new("Figure 1", "work flow of protecting", figure_1(sound)),
        Section::new("Figure 2", "work flow of unprotecting", figure_2(closed)),
    ])
}

const DIGEST: u64 = DIGEST_LEN as u64;

fn rows(sound: bool, kept: bool) -> Vec<Row> {
    let example = quoted("S3.1-example-bytes") as u64;
    let padded = container_len(example) - DIGEST;
    let zeros = padded - 16 - example;
    let formula = (0..64).all(|len| container_len(len) - DIGEST - len == 32 - len % 16);
    let warning = Error::from(Damage::Altered).to_string();
    vec![
        exact(
            Rule::Value,
            "all types of files can be protected",
            "it deals files as binary format",
            "random bytes of nine lengths from 0 to 1000 come back, in ECB by CSP and in CTR by CPP",
            kept,
        ),
        count("bytes of a group", quoted("S3.1-block"), AesKey::BLOCK_LEN as f64, "bytes"),
        exact(
            Rule::Value,
            "bytes that are padded",
            "32 - X mod 16",
            "17 to 32, for all X mod 16",
            formula,
        ),
        count(
            "example: padded bytes",
            quoted("S3.1-example-padding"),
            (padded - example) as f64,
            "bytes",
        ),
        count("example: bytes with padding", quoted("S3.1-example-padded"), padded as f64, "bytes"),
        count("example: zeros", quoted("S3.1-example-zeros"), zeros as f64, "bytes"),
        count(
            "example: bytes that say how many",
            quoted("S3.1-example-counts"),
            (padded - example - zeros) as f64,
            "bytes",
        ),
        count("digest", quoted("S3.1-digest"), DIGEST as f64, "bytes"),
        exact(
            Rule::Value,
            "the digest covers data and padding",
            "the first Y - 32 bytes",
            "a container made here, decrypted by AES alone, ends in the digest of what is before it",
            sound,
        ),
        contradicted(
            "where unprotecting reads how much was padded",
            "Plaintext[Y - 32]",
            "Y - 32 is the first byte of the digest; the count ends at Y - 33. The listings read cipher[cipherLen - 1], the \
             digest's last byte",
        ),
        exact(
            Rule::Value,
            "what users are told if the digests differ",
            "The data may be altered or decrypted with wrong password",
            &warning,
            warning == "The data may be altered or decrypted with wrong password",
        ),
        untested(
            "SHA3-256 compromises performance and security",
            "the reason for 256 bits",
            "a reason, no number",
        ),
    ]
}

fn figure_1(sound: bool) -> Vec<Row> {
    let steps = quoted("S3.1-steps-protect");
    vec![
        given("steps", steps, "steps", COUNT),
        exact(
            Rule::Order,
            "order of the steps",
            "pad, hash and attach the digest, encrypt",
            "the same: a container decrypted by AES alone is data, padding and digest",
            sound,
        ),
    ]
}

fn figure_2(closed: bool) -> Vec<Row> {
    let steps = quoted("S3.1-steps-unprotect");
    vec![
        given("steps", steps, "steps", COUNT),
        exact(
            Rule::Order,
            "order of the steps",
            "decrypt, hash and compare, cut the digest and the padding",
            "the same: of an altered container nothing is released",
            closed,
        ),
    ]
}
