//! Rows of numbers and claims that the paper itself contradicts.

use super::{Row, Verdict};

impl Row {
    /// Not held to the paper, as its printed numbers or arithmetic contradict it.
    #[must_use]
    pub fn false_in_print(self, why: &str) -> Self {
        self.exempt(&format!("{FALSE_IN_PRINT}{why}"))
    }

    /// Not held to the paper, as another passage of it contradicts it.
    #[must_use]
    pub fn contradicted(self, why: &str) -> Self {
        self.exempt(&format!("{CONTRADICTS_ITSELF}{why}"))
    }

    /// Whether it is exempt as the paper's own numbers or words contradict it.
    pub(crate) fn is_contradicted(&self) -> bool {
        let says = |start| self.why.starts_with(start);
        self.verdict == Verdict::Exempt && (says(FALSE_IN_PRINT) || says(CONTRADICTS_ITSELF))
    }
}

/// How the reason of a row begins that the paper itself contradicts.
const FALSE_IN_PRINT: &str = "false in print: ";
const CONTRADICTS_ITSELF: &str = "contradicts itself: ";
