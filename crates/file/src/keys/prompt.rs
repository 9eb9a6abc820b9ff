//! Questions to the user that come up while keys are read and used.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use age::Callbacks;
use age::secrecy::SecretString;

use super::{Passphrase, plain};

/// Asks the user what a key needs to be used: the passphrase of a protected key, or what a plugin wants
/// to know. A question that a program does not implement is declined.
pub trait Prompt: Send + Sync {
    /// Shows a message, such as "touch your token".
    fn message(&self, message: &str) {
        let _ = message;
    }

    /// Asks for a decision: `Some(true)` is `yes`; without `no` there is one answer only. `None` if it
    /// cannot be asked.
    fn confirm(&self, question: &str, yes: &str, no: Option<&str>) -> Option<bool> {
        let _ = (question, yes, no);
        None
    }

    /// Asks for a line of text that is no secret; `None` if there is no answer.
    fn text(&self, question: &str) -> Option<String> {
        let _ = question;
        None
    }

    /// Asks for a passphrase; `None` if there is no answer.
    fn passphrase(&self, question: &str) -> Option<Passphrase> {
        let _ = question;
        None
    }
}

/// Asks nothing: keys that need an answer cannot be used.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoPrompt;

impl Prompt for NoPrompt {}

/// A prompt as the age crate calls it.
#[derive(Clone)]
pub(super) struct Asking {
    prompt: Arc<dyn Prompt>,
    /// True once there was no answer to the question for a passphrase.
    is_unanswered: Arc<AtomicBool>,
}

impl Asking {
    pub fn new(prompt: &Arc<dyn Prompt>) -> Self {
        Self { prompt: Arc::clone(prompt), is_unanswered: Arc::default() }
    }

    /// True once a passphrase was asked for in vain.
    pub fn is_unanswered(&self) -> bool {
        self.is_unanswered.load(Ordering::SeqCst)
    }
}

/// Travels inside an [`std::io::Error`] of the age crate: a protected key whose passphrase nobody gave.
#[derive(Debug, thiserror::Error)]
#[error("the passphrase of {name} is needed")]
pub(super) struct Unanswered {
    pub name: String,
}

impl Callbacks for Asking {
    fn display_message(&self, message: &str) {
        self.prompt.message(&plain(&message));
    }

    fn confirm(&self, message: &str, yes: &str, no: Option<&str>) -> Option<bool> {
        self.prompt.confirm(&plain(&message), yes, no)
    }

    fn request_public_string(&self, description: &str) -> Option<String> {
        self.prompt.text(&plain(&description))
    }

    fn request_passphrase(&self, description: &str) -> Option<SecretString> {
        let answer = self.prompt.passphrase(&plain(&description));
        self.is_unanswered.fetch_or(answer.is_none(), Ordering::SeqCst);
        answer.map(Passphrase::into_age)
    }
}
