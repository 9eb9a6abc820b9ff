//! Streams, windows and policies in virtual time.
