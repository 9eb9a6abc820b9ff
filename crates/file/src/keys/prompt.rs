//! Questions to the user that come up while keys are read and used.

use std::sync::Arc;

use age::Callbacks;
use age::secrecy::SecretString;

use super::Passphrase;

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
pub(super) struct Asking(pub Arc<dyn Prompt>);

impl Callbacks for Asking {
    fn display_message(&self, message: &str) {
        self.0.message(message);
    }

    fn confirm(&self, message: &str, yes: &str, no: Option<&str>) -> Option<bool> {
        self.0.confirm(message, yes, no)
    }

    fn request_public_string(&self, description: &str) -> Option<String> {
        self.0.text(description)
    }

    fn request_passphrase(&self, description: &str) -> Option<SecretString> {
        self.0.passphrase(description).map(Passphrase::into_age)
    }
}
