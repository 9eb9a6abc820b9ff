//! Who may open a container: recipients, for whom a file key is wrapped, and identities, which unwrap it.
//!
//! The types of age's keys come from the age crate, and none of its types is in what this crate
//! offers.

mod identities;
mod identity;
mod identity_file;
mod passphrase;
mod prompt;
mod recipient;
mod recipients;
mod text;
mod wrapping;

pub use identities::Identities;
pub use identity::{Identity, NativeIdentity};
pub use identity_file::IdentityFile;
pub use passphrase::Passphrase;
pub use prompt::{NoPrompt, Prompt};
pub use recipient::{Recipient, RecipientList, UnusableKey};
pub use recipients::Recipients;
pub use text::without_byte_order_mark;
pub use wrapping::Wrapping;

use crate::shown::holds_key;

/// `Debug` of types that hold secrets, or know who holds them: their names alone.
macro_rules! opaque {
    ($($type:ty),*) => {$(
        impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(concat!(stringify!($type), "(…)"))
            }
        }
    )*};
}

opaque!(
    Identities,
    Identity,
    IdentityFile,
    NativeIdentity,
    Passphrase,
    Recipient,
    Recipients,
    Wrapping
);

/// True for what looks like a private key, which must not be repeated on a screen.
pub fn looks_private(text: &str) -> bool {
    // Identities of plugins are upper case, their programs' names are lower case.
    holds_key(text)
        || ["age-secret-key-", "AGE-PLUGIN-", "-----BEGIN"].iter().any(|start| text.contains(start))
}

/// True for what starts like a public key, of age and its plugins or of SSH.
pub fn looks_public(text: &str) -> bool {
    let text = text.trim();
    text.starts_with(AGE) || text.starts_with(SSH)
}

/// What the public keys of age start with, plugins' too.
const AGE: &str = "age1";

/// What the public keys of SSH start with, of the types that can be recipients and others.
const SSH: &str = "ssh-";

/// What the age crate says, on one line, without the invisible marks around the values in it.
fn plain(error: &impl std::fmt::Display) -> String {
    let text = error.to_string().replace(['\u{2068}', '\u{2069}'], "").replace('\n', " ");
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}
