//! How the key files of a folder are opened.

/// How a key file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// By its recipients: it is a container of the key.
    Container,
    /// With a key that is shared beforehand: the session key follows from both.
    Salt,
}

impl KeyKind {
    /// What the name of a key file ends with.
    pub(super) fn extension(self) -> &'static str {
        match self {
            Self::Container => "key",
            Self::Salt => "salt",
        }
    }

    /// The other kind.
    pub(super) fn other(self) -> Self {
        match self {
            Self::Container => Self::Salt,
            Self::Salt => Self::Container,
        }
    }
}
