//! Walks the folders of test vectors; for tests only.
#![forbid(unsafe_code)]
