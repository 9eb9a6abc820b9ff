//! Listings without the keys that no [`Key`] can be: with an empty part, `.` or `..`, a control character, or bytes that
//! are not UTF-8. The library fails on the whole page of a listing where one is in it.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use object_store::path::Path as Key;

use crate::address::Address;

/// An object whose key no address can name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignObject {
    /// Its bucket and its key, to be shown with care: it may hold any byte.
    pub name: PathBuf,
    /// Which rule of addresses the key breaks.
    pub why: &'static str,
}

/// Its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ForeignKey {
    /// Its bytes, as far as the listing gives them.
    key: Vec<u8>,
    why: &'static str,
}

impl ForeignKey {
    /// The object in the bucket of `address`.
    pub fn at(self, address: &Address) -> ForeignObject {
        let mut name = OsString::from(address.bucket_name());
        name.push("/");
        name.push(OsString::from_vec(self.key));
        ForeignObject { name: name.into(), why: self.why }
    }
}

/// An answer to a listing, in two.
pub(crate) struct Usable {
    /// The answer with only the keys that can be used.
    pub text: Vec<u8>,
    /// The others.
    pub foreign: Vec<ForeignKey>,
}

/// True for the query of a listing: of S3 and Google, or of Azure.
pub(crate) fn is_one(query: Option<&str>) -> bool {
    let is_listing = |part: &str| part == "list-type=2" || part == "comp=list";
    query.is_some_and(|query| query.split('&').any(is_listing))
}

/// Splits an answer in XML, which has an element `Contents` or, of Azure, `Blob` for each object.
pub(crate) fn usable(answer: &[u8]) -> Usable {
    let element = match find(answer, S3.open) {
        Some(_) => S3,
        None => AZURE,
    };
    let mut usable = Usable { text: Vec::with_capacity(answer.len()), foreign: Vec::new() };
    let mut rest = answer;
    while let Some(start) = find(rest, element.open)
        && let Some(len) = find(&rest[start..], element.close)
    {
        let (before, from) = rest.split_at(start);
        let (entry, after) = from.split_at(len + element.close.len());
        usable.text.extend_from_slice(before);
        match foreign(entry, element.name) {
            Some(foreign) => usable.foreign.push(foreign),
            None => usable.text.extend_from_slice(entry),
        }
        rest = after;
    }
    usable.text.extend_from_slice(rest);
    usable
}

/// The element of an object in a listing.
#[derive(Clone, Copy)]
struct Element {
    open: &'static [u8],
    close: &'static [u8],
    /// How the element in it begins that holds the key.
    name: &'static [u8],
}

const S3: Element = Element { open: b"<Contents>", close: b"</Contents>", name: b"<Key" };
const AZURE: Element = Element { open: b"<Blob>", close: b"</Blob>", name: b"<Name" };

/// The key of an object's element, if it cannot be used.
fn foreign(entry: &[u8], name: &[u8]) -> Option<ForeignKey> {
    let (_, rest) = split(entry, name)?;
    // Azure encodes the names that XML cannot hold, and says so in an attribute.
    let (attributes, rest) = split(rest, b">")?;
    let (text, _) = split(rest, b"</")?;
    let key = unescaped(text);
    let why = if !attributes.is_empty() {
        "its key has a character that an address cannot hold"
    } else {
        broken_rule(&key)?
    };
    Some(ForeignKey { key, why })
}

/// Which rule of addresses a key breaks.
fn broken_rule(key: &[u8]) -> Option<&'static str> {
    let Ok(text) = str::from_utf8(key) else { return Some("its key is not UTF-8") };
    if text.bytes().any(|byte| byte.is_ascii_control()) {
        return Some("its key has a control character");
    }
    // One that ends with a slash stands for a folder.
    let parts = text.strip_suffix('/').unwrap_or(text);
    if parts.split('/').any(str::is_empty) {
        return Some("its key has an empty part (//)");
    }
    if parts.split('/').any(|part| [".", ".."].contains(&part)) {
        return Some("its key has a part . or ..");
    }
    let is_same = Key::parse(text).is_ok_and(|key| key.as_ref() == parts);
    (!is_same).then_some("its key cannot be written as an address")
}

/// The bytes that a text of XML stands for.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = split(rest, b"&") {
        bytes.extend_from_slice(before);
        // The longest is `&#x10FFFF;`, with some zeros in front.
        let near = &after[..after.len().min(16)];
        let reference = split(near, b";").and_then(|(name, _)| {
            Some((referenced(str::from_utf8(name).ok()?)?, &after[name.len() + 1..]))
        });
        match reference {
            Some((character, after)) => {
                bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                rest = after;
            }
            None => {
                bytes.push(b'&');
                rest = after;
            }
        }
    }
    bytes.extend_from_slice(rest);
    bytes
}

/// The character of a reference, which is written `&name;`.
fn referenced(name: &str) -> Option<char> {
    let number = match name.strip_prefix('#') {
        Some(number) => match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok()?,
            None => number.parse().ok()?,
        },
        None => {
            let names = [("lt", '<'), ("gt", '>'), ("amp", '&'), ("quot", '"'), ("apos", '\'')];
            return names.iter().find(|(known, _)| *known == name).map(|(_, character)| *character);
        }
    };
    char::from_u32(number)
}

/// What is before and after `mark`.
fn split<'a>(text: &'a [u8], mark: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = find(text, mark)?;
    Some((&text[..at], &text[at + mark.len()..]))
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(keys: &[&[u8]]) -> Vec<u8> {
        let mut text = b"<ListBucketResult><Name>b</Name>".to_vec();
        for key in keys {
            text.extend_from_slice(b"<Contents><Key>");
            text.extend_from_slice(key);
            text.extend_from_slice(b"</Key><Size>1</Size></Contents>");
        }
        text.extend_from_slice(b"</ListBucketResult>");
        text
    }

    #[test]
    fn keys_without_an_address_are_left_out() {
        let good: [&[u8]; 5] = [b"a", b"d/a &amp; b.wlk", b"50%/\xc3\xbc", b"folder/", b"a&apos;b"];
        let bad: [(&[u8], &[u8], &str); 8] = [
            (b"x//y", b"x//y", "empty part"),
            (b"/x", b"/x", "empty part"),
            (b"x//", b"x//", "empty part"),
            (b"a/../b", b"a/../b", ". or .."),
            (b"./a", b"./a", ". or .."),
            (b"a&#x1b;[31m", b"a\x1b[31m", "control"),
            (b"a&#10;b", b"a\nb", "control"),
            (b"a\xff", b"a\xff", "UTF-8"),
        ];
        let all: Vec<&[u8]> = good.into_iter().chain(bad.map(|(text, _, _)| text)).collect();
        let usable = usable(&listed(&all));
        assert_eq!(usable.text, listed(&good));
        assert_eq!(usable.foreign.len(), bad.len());
        for (foreign, (_, key, why)) in usable.foreign.iter().zip(bad) {
            assert_eq!(foreign.key, key);
            assert!(foreign.why.contains(why), "{foreign:?}");
        }
    }

    #[test]
    fn listings_of_azure_are_split_too() {
        let blob = |name: &str| format!("<Blob>{name}<Properties/></Blob>");
        let (good, bad) = (blob("<Name>a/b</Name>"), blob("<Name Encoded=\"true\">a%01</Name>"));
        let text = |blobs: &str| {
            format!("<EnumerationResults><Blobs>{blobs}</Blobs></EnumerationResults>")
        };
        let usable = usable(text(&format!("{bad}{good}{}", blob("<Name>c//d</Name>"))).as_bytes());
        assert_eq!(usable.text, text(&good).as_bytes());
        assert_eq!(usable.foreign.len(), 2);
    }

    #[test]
    fn cut_answers_stay_as_they_are() {
        for text in ["", "<Contents>", "<Contents><Key>a//b", "<Contents></Contents>", "no XML"] {
            let usable = usable(text.as_bytes());
            assert_eq!((usable.text, usable.foreign.len()), (text.as_bytes().to_vec(), 0));
        }
        assert!(
            is_one(Some("list-type=2&prefix=a")) && is_one(Some("restype=container&comp=list"))
        );
        assert!(!is_one(Some("prefix=list-type=2x")) && !is_one(None));
    }
}
