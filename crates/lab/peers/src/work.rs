//! The three shapes that nearly every piece of work has, made from closures.

use crate::Work;

/// Work that is a function of IV and buffer.
pub(crate) fn plain(
    run: impl FnMut(&[u8; 16], &mut [u8]) -> [u8; 32] + 'static,
) -> Option<Box<dyn Work>> {
    Some(Box::new(Plain(run)))
}

/// Opening with a tag: `open` decrypts in place and says whether the tag was right.
pub(crate) fn opening(
    open: impl FnMut(&[u8; 16], &mut [u8], &[u8; 16]) -> bool + 'static,
) -> Option<Box<dyn Work>> {
    Some(Box::new(Opening { open, tag: [0; 16] }))
}

/// Sealing under a key that can be replaced: `seal` encrypts in place and returns the tag.
pub(crate) fn sealing<S: 'static>(
    state: S,
    seal: fn(&mut S, &[u8; 16], &mut [u8]) -> [u8; 16],
    set_key: fn(&mut S, &[u8]),
) -> Option<Box<dyn Work>> {
    Some(Box::new(Sealing { state, seal, set_key }))
}

/// A tag as the result of a run.
pub(crate) fn tag_and_zeros(tag: [u8; 16]) -> [u8; 32] {
    let mut result = [0; 32];
    result[..16].copy_from_slice(&tag);
    result
}

/// The result of an operation that has none.
pub(crate) const NOTHING: [u8; 32] = [0; 32];

struct Plain<F>(F);

impl<F: FnMut(&[u8; 16], &mut [u8]) -> [u8; 32]> Work for Plain<F> {
    fn run(&mut self, iv: &[u8; 16], in_out: &mut [u8]) -> [u8; 32] {
        (self.0)(iv, in_out)
    }
}

struct Opening<F> {
    open: F,
    tag: [u8; 16],
}

impl<F: FnMut(&[u8; 16], &mut [u8], &[u8; 16]) -> bool> Work for Opening<F> {
    fn run(&mut self, iv: &[u8; 16], in_out: &mut [u8]) -> [u8; 32] {
        if (self.open)(iv, in_out, &self.tag) { tag_and_zeros(self.tag) } else { NOTHING }
    }

    fn expect_tag(&mut self, tag: [u8; 16]) {
        self.tag = tag;
    }
}

struct Sealing<S> {
    state: S,
    seal: fn(&mut S, &[u8; 16], &mut [u8]) -> [u8; 16],
    set_key: fn(&mut S, &[u8]),
}

impl<S> Work for Sealing<S> {
    fn run(&mut self, iv: &[u8; 16], in_out: &mut [u8]) -> [u8; 32] {
        tag_and_zeros((self.seal)(&mut self.state, iv, in_out))
    }

    fn set_key(&mut self, key: &[u8]) -> bool {
        (self.set_key)(&mut self.state, key);
        true
    }
}
