//! The recipients of a run.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex};

use age::plugin::RecipientPluginV1;
use age_core::format::{FILE_KEY_BYTES, FileKey};
use wattlock_engine::crypto::Secret;

use super::prompt::Asking;
use super::recipient::Kind;
use super::{NoPrompt, Prompt, Recipient, plain};
use crate::error::Error;
use crate::header::{SCRYPT, Stanza};
use crate::limits::{MAX_POST_QUANTUM_RECIPIENTS, MAX_RECIPIENTS};
use crate::lock::lock;
use crate::post_quantum::POST_QUANTUM;

/// Whom a container is for.
pub struct Recipients {
    // The age crate's recipients may be sent to another thread, but not shared.
    list: Mutex<Vec<Box<dyn age::Recipient + Send>>>,
}

impl Recipients {
    /// These recipients, of any types.
    ///
    /// # Errors
    /// [`Error::Usage`] if there are none, or more than [`MAX_RECIPIENTS`], or if one needs a plugin
    /// whose program is not installed. Sealing fails for more than 673 post-quantum ones, too.
    pub fn new(list: Vec<Recipient>) -> Result<Self, Error> {
        let prompt: Arc<dyn Prompt> = Arc::new(NoPrompt);
        Self::with_prompt(list, &prompt)
    }

    /// The same; `prompt` asks what plugins want to know.
    ///
    /// # Errors
    /// As [`Recipients::new`].
    pub fn with_prompt(
        recipients: Vec<Recipient>,
        prompt: &Arc<dyn Prompt>,
    ) -> Result<Self, Error> {
        if recipients.is_empty() {
            return Err(Error::usage("there is no recipient"));
        }
        at_most_the_limit(recipients.len())?;
        let mut list = Vec::new();
        let (mut of_plugins, mut of_identities) = (Vec::new(), Vec::new());
        for recipient in recipients {
            match recipient.kind {
                Kind::Own(recipient) => list.push(recipient),
                Kind::Plugin(recipient) => of_plugins.push(recipient),
                Kind::PluginIdentity(identity) => of_identities.push(identity),
            }
        }
        let plugins = of_plugins.iter().map(|recipient| recipient.plugin());
        let plugins = plugins.chain(of_identities.iter().map(|identity| identity.plugin()));
        let asking = Asking::new(prompt);
        // Each is asked once for all of its recipients.
        for plugin in plugins.collect::<BTreeSet<_>>() {
            let plugin =
                RecipientPluginV1::new(plugin, &of_plugins, &of_identities, asking.clone());
            list.push(Box::new(plugin.map_err(|error| Error::usage(plain(&error)))?));
        }
        Ok(Self { list: Mutex::new(list) })
    }

    /// How many there are, all those of a plugin taken for one.
    pub(super) fn count(&self) -> usize {
        lock(&self.list).len()
    }

    /// Wraps `file_key` for each recipient.
    ///
    /// # Errors
    /// [`Error::Wrap`] if a recipient fails; [`Error::Usage`] if two may not stand in one header: age's
    /// label rule, which allows a passphrase only alone, and a post-quantum recipient only with its
    /// kind.
    pub(super) fn wrap(&self, file_key: &Secret<FILE_KEY_BYTES>) -> Result<Vec<Stanza>, Error> {
        let file_key = FileKey::init_with_mut(|bytes| bytes.copy_from_slice(file_key.expose()));
        let list = lock(&self.list);
        let mut stanzas = Vec::new();
        let mut common: Option<HashSet<String>> = None;
        for recipient in list.iter() {
            let (wrapped, labels) =
                recipient.wrap_file_key(&file_key).map_err(|error| Error::Wrap(plain(&error)))?;
            if common.as_ref().is_some_and(|common| *common != labels) {
                let wrapped = wrapped.iter().map(|stanza| &stanza.tag);
                let tags = stanzas.iter().map(|stanza: &Stanza| &stanza.tag).chain(wrapped);
                let is_there = |of: &dyn Fn(&str) -> bool| tags.clone().any(|tag| of(tag));
                return Err(Error::usage(if is_there(&|tag| tag == SCRYPT) {
                    "a passphrase cannot be combined with other recipients"
                } else if is_there(&|tag| tag.starts_with("mlkem768")) {
                    "post-quantum recipients cannot be combined with other recipients"
                } else {
                    "these recipients cannot be combined in one container"
                }));
            }
            common = Some(labels);
            stanzas.extend(wrapped.into_iter().map(Stanza::from_age));
        }
        // A plugin may give several.
        at_most_the_limit(stanzas.len())?;
        let post_quantum = stanzas.iter().filter(|stanza| stanza.tag == POST_QUANTUM).count();
        if post_quantum > MAX_POST_QUANTUM_RECIPIENTS {
            return Err(Error::usage(format!(
                "{post_quantum} recipients are too many: a container is for \
                 {MAX_POST_QUANTUM_RECIPIENTS} post-quantum recipients at most"
            )));
        }
        Ok(stanzas)
    }
}

fn at_most_the_limit(count: usize) -> Result<(), Error> {
    match count {
        ..=MAX_RECIPIENTS => Ok(()),
        _ => Err(Error::usage(format!(
            "{count} recipients are too many: a container is for {MAX_RECIPIENTS} at most"
        ))),
    }
}
