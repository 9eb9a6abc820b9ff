//! Who may send, and for which tenant: the file of --tenants.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use wattlock_engine::crypto::sha2::Sha256;
use wattlock_file::Shown;
use wattlock_host::exit::usage;
use wattlock_stream::gateway::{Admission, Caller, TokenCheck, Welcome};

use super::Way;
use super::key::read_hex;
use crate::args::parse_tenant;

/// Who may send, and for which tenant.
#[derive(Default)]
pub struct Tenants {
    /// By a name in their certificate.
    by_certificate: HashMap<String, String>,
    /// By the SHA-256 of their token.
    by_token: HashMap<[u8; 32], String>,
}

impl Tenants {
    /// Reads a file: a line for each certificate or token, `TENANT cert NAME` or `TENANT token SHA256`.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let text = fs::read_to_string(path);
        let text = text.with_context(|| format!("cannot read {}", Shown(path)))?;
        let mut tenants = Self::default();
        for (number, line) in (1..).zip(text.lines()) {
            let wrong = |why: &str| usage(format!("{}, line {number}: {why}", Shown(path)));
            // A URI may have a number sign in it, but no space.
            let words: Vec<_> =
                line.split_whitespace().take_while(|word| !word.starts_with('#')).collect();
            if words.is_empty() {
                continue;
            }
            let [tenant, kind, value] = words[..] else {
                return Err(wrong("expected TENANT cert NAME, or TENANT token SHA256"));
            };
            let tenant = parse_tenant(tenant).map_err(|why| wrong(&why))?;
            let other = match kind {
                "cert" => tenants.by_certificate.insert(normal(value), tenant.clone()),
                "token" => {
                    let mut hash = [0; 32];
                    read_hex(value.as_bytes(), &mut hash).ok_or_else(|| {
                        wrong(
                            "write the SHA-256 of the token, 64 hexadecimal digits, not the token",
                        )
                    })?;
                    tenants.by_token.insert(hash, tenant.clone())
                }
                _ => return Err(wrong("the second word must be cert or token")),
            };
            if other.is_some_and(|other| other != tenant) {
                return Err(wrong(
                    "this certificate name or token belongs to another tenant already",
                ));
            }
        }
        if tenants.names().is_empty() {
            return Err(usage(format!("{} names no tenant", Shown(path))));
        }
        Ok(tenants)
    }

    /// All tenants.
    pub fn names(&self) -> BTreeSet<&str> {
        self.by_certificate.values().chain(self.by_token.values()).map(String::as_str).collect()
    }

    /// True if some show a token, and no certificate.
    pub fn have_tokens(&self) -> bool {
        !self.by_token.is_empty()
    }

    /// True if some show a certificate.
    pub fn have_certificates(&self) -> bool {
        !self.by_certificate.is_empty()
    }

    /// The tenant that a certificate with these names belongs to, if any.
    ///
    /// # Errors
    /// That it belongs to several.
    pub fn of_certificate(&self, names: &[String]) -> Result<Option<&str>, &'static str> {
        let tenants = names.iter().filter_map(|name| self.by_certificate.get(&normal(name)));
        let tenants: BTreeSet<&str> = tenants.map(String::as_str).collect();
        match tenants.len() {
            0 | 1 => Ok(tenants.first().copied()),
            _ => Err("its certificate has names of several tenants"),
        }
    }

    fn of_token(&self, token: &[u8]) -> Option<&str> {
        let mut hasher = Sha256::new();
        hasher.update(token);
        self.by_token.get(&hasher.finish()).map(String::as_str)
    }
}

/// A name in a certificate as it is compared: case does not matter in the name of a host, and does in a URI.
fn normal(name: &str) -> String {
    match name.contains(':') {
        true => name.to_owned(),
        false => name.to_ascii_lowercase(),
    }
}

/// Lets senders in.
pub struct Host {
    pub way: Way,
    /// All may send if there is no list.
    pub tenants: Option<Arc<Tenants>>,
}

impl Welcome for Host {
    fn admit(&self, caller: &Caller) -> Admission {
        let Some(tenants) = &self.tenants else { return self.inlet("", caller) };
        match tenants.of_certificate(&caller.certificate) {
            Ok(Some(tenant)) => return self.inlet(tenant, caller),
            Ok(None) => {}
            Err(why) => return Admission::Refused(why),
        }
        match &caller.token {
            _ if !tenants.have_tokens() => {
                Admission::Refused("its certificate is not in the list of tenants")
            }
            None => Admission::TokenWanted,
            Some(token) => match tenants.of_token(token) {
                Some(tenant) => self.inlet(tenant, caller),
                None => Admission::Refused("its token is not in the list of tenants"),
            },
        }
    }

    fn token_check(&self, caller: &Caller) -> Option<Box<TokenCheck>> {
        let tenants = self.tenants.clone().filter(|tenants| tenants.have_tokens())?;
        let tenant = self.of_certificate(caller)?.to_owned();
        Some(Box::new(move |token| tenants.of_token(token) == Some(&tenant)))
    }
}

impl Host {
    /// The tenant that a caller shows by its certificate.
    fn of_certificate(&self, caller: &Caller) -> Option<&str> {
        self.tenants.as_ref()?.of_certificate(&caller.certificate).ok()?
    }

    fn inlet(&self, tenant: &str, caller: &Caller) -> Admission {
        match self.way.inlet(tenant, caller.name.clone()) {
            Some(inlet) => Admission::Admitted(inlet),
            None => Admission::Refused("its tenant has no folder"),
        }
    }
}
