//! Any number of bytes from a cipher that makes its key stream eight bytes at a time.

use zeroize::Zeroize;

/// Bytes of key stream in one word.
pub(super) const WORD: usize = 8;

/// The end of a word that was made but not asked for yet; wiped on drop.
pub(super) struct Unread {
    word: [u8; WORD],
    used: usize,
}

impl Unread {
    /// Nothing is left over.
    pub(super) fn none() -> Self {
        Self { word: [0; WORD], used: WORD }
    }

    /// XORs key stream onto `in_out`: first what is unread, then words that `xor_words` makes.
    pub(super) fn xor(&mut self, in_out: &mut [u8], mut xor_words: impl FnMut(&mut [[u8; WORD]])) {
        let ready = in_out.len().min(WORD - self.used);
        let (first, rest) = in_out.split_at_mut(ready);
        xor_bytes(first, &self.word[self.used..]);
        self.used += ready;

        let (words, last) = rest.as_chunks_mut();
        xor_words(words);
        if !last.is_empty() {
            self.word = [0; WORD];
            xor_words(std::slice::from_mut(&mut self.word));
            xor_bytes(last, &self.word);
            self.used = last.len();
        }
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        self.word.zeroize();
    }
}

/// XORs `keystream` onto `in_out`, up to the shorter of the two.
pub(super) fn xor_bytes(in_out: &mut [u8], keystream: &[u8]) {
    in_out.iter_mut().zip(keystream).for_each(|(byte, key)| *byte ^= key);
}
