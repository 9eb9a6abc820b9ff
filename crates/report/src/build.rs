//! How the program was built: times of a build without optimisation say nothing.

use serde::{Deserialize, Serialize};

/// How the program was built.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    /// Cargo's profile, or the one that it inherits from: "release" or "debug".
    pub profile: String,
    /// The compiler, as it names itself.
    pub rustc: String,
}

impl Build {
    /// That of this program.
    pub fn here() -> Self {
        Self { profile: env!("BUILD_PROFILE").to_owned(), rustc: env!("BUILD_RUSTC").to_owned() }
    }

    /// What to be careful of, if it is not optimised.
    pub fn warning(&self) -> Option<String> {
        let is_optimised = self.profile == "release";
        (!is_optimised)
            .then(|| "this is a build without optimisation: its times say nothing".to_owned())
    }
}
