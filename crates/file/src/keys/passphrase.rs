//! A passphrase.

use age::cli_common;
use age::secrecy::{ExposeSecret, SecretString};
use rand_core::OsRng;
use zeroize::Zeroizing;

/// A passphrase. It is wiped from memory when it is dropped, and `Debug` does not show it.
#[derive(Clone)]
pub struct Passphrase(SecretString);

impl Passphrase {
    /// A new passphrase of ten words, as hard to guess as a key of 110 bits.
    pub fn generate() -> Self {
        match cli_common::Passphrase::random(OsRng) {
            cli_common::Passphrase::Generated(words) | cli_common::Passphrase::Typed(words) => {
                Self(words)
            }
        }
    }

    /// Its text.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    pub(super) fn for_age(&self) -> SecretString {
        self.0.clone()
    }

    pub(super) fn into_age(self) -> SecretString {
        self.0
    }
}

impl From<String> for Passphrase {
    fn from(text: String) -> Self {
        Self::from(Zeroizing::new(text).as_str())
    }
}

impl From<&str> for Passphrase {
    fn from(text: &str) -> Self {
        // Exactly as long, so that it is not moved, which would leave a copy.
        let mut own = String::with_capacity(text.len());
        own.push_str(text);
        Self(SecretString::from(own))
    }
}
