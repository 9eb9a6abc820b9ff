//! How large the header of a container may be.

/// No header may be longer: about 10,000 recipients. It bounds what a hostile file can make a
/// reader remember.
pub const MAX_HEADER_LEN: usize = 1 << 20;

/// Default limit of stanzas for writers and readers: each costs a key operation before any data is
/// known to be authentic.
pub const MAX_RECIPIENTS: usize = 1024;

/// As many stanzas of post-quantum recipients, 1,557 bytes each, fit into the longest header.
pub const MAX_POST_QUANTUM_RECIPIENTS: usize = 673;
