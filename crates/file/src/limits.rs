//! How large the header of a container may be.

/// No header may be longer: about 10,000 recipients. It bounds what a hostile file can make a
/// reader remember.
pub const MAX_HEADER_LEN: usize = 1 << 20;

/// Writers make no more stanzas, and readers try no more unless told so: each costs them a key
/// operation, before anything is known to be authentic.
pub const MAX_RECIPIENTS: usize = 1024;
