//! The buffers of one update: an input, and an output that may be the same, apart, or overlap.

use std::marker::PhantomData;
use std::ptr;

use crate::error::Error;

/// Input and output of one call.
///
/// Most work is done in the output, in place, after the input was moved there: so that it does not
/// matter how the two lie to each other. [`Buffers::places`] is for work that needs no move.
pub(crate) struct Buffers<'a> {
    out: *mut u8,
    room: usize,
    input: *const u8,
    len: usize,
    _borrowed: PhantomData<&'a mut [u8]>,
}

/// Where work that keeps the length reads and writes.
pub(crate) enum Places<'a> {
    /// In the output, which has the input.
    Same(&'a mut [u8]),
    /// As many bytes each, which do not overlap. The output may be all zeros or anything else.
    Apart { input: &'a [u8], output: &'a mut [u8] },
}

impl<'a> Buffers<'a> {
    /// # Safety
    /// `out` must be null or good for writing `room` bytes, `input` be null or good for reading
    /// `len`, during `'a`, and no other code may use them.
    ///
    /// EVP takes lengths as an `int` and hands a negative one on as a number near the end of
    /// memory: that is an error, and nothing of it is read.
    pub(crate) unsafe fn new(
        out: *mut u8,
        room: usize,
        input: *const u8,
        len: usize,
    ) -> Result<Self, Error> {
        if isize::try_from(len).is_err() {
            return Err(Error::Length);
        }
        let len = if input.is_null() { 0 } else { len };
        let room = if out.is_null() { 0 } else { room };
        Ok(Self { out, room, input, len, _borrowed: PhantomData })
    }

    /// Bytes of the input.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// True if there is no input, not even an empty one.
    pub(crate) fn no_input(&self) -> bool {
        self.input.is_null()
    }

    /// True if there is nowhere to write.
    pub(crate) fn no_output(&self) -> bool {
        self.out.is_null()
    }

    /// True if the output is where the input is.
    pub(crate) fn in_place(&self) -> bool {
        ptr::eq(self.out, self.input)
    }

    /// The input, where there is no output that could overlap it.
    pub(crate) fn input(&self) -> &'a [u8] {
        if !self.no_output() || self.len == 0 {
            return &[];
        }
        // SAFETY: `new` asked for it, and no exclusive reference was or will be made to it.
        unsafe { std::slice::from_raw_parts(self.input, self.len) }
    }

    /// Where as many bytes are read and written.
    #[inline(always)]
    pub(crate) fn places(self) -> Result<Places<'a>, Error> {
        let (out, input) = (self.out.addr(), self.input.addr());
        let len = self.len;
        if len > self.room {
            return Err(Error::OutputTooSmall);
        }
        if len == 0 {
            return Ok(Places::Same(&mut []));
        }
        if out == input {
            // SAFETY: `new` asked for it, and `self` is used up.
            return Ok(Places::Same(unsafe { std::slice::from_raw_parts_mut(self.out, len) }));
        }
        let apart = out.wrapping_sub(input) >= len && input.wrapping_sub(out) >= len;
        if !apart {
            return self.output(&[], len).map(Places::Same);
        }
        // SAFETY: `new` asked for it, and they do not overlap.
        let output = unsafe { std::slice::from_raw_parts_mut(self.out, len) };
        // SAFETY: as above.
        let input = unsafe { std::slice::from_raw_parts(self.input, len) };
        Ok(Places::Apart { input, output })
    }

    /// The output, with all of the input in it.
    #[inline(always)]
    pub(crate) fn joined(self) -> Result<&'a mut [u8], Error> {
        match self.places()? {
            Places::Same(in_out) => Ok(in_out),
            Places::Apart { input, output } => {
                output.copy_from_slice(input);
                Ok(output)
            }
        }
    }

    /// Copies input from byte `from` on into `to`.
    pub(crate) fn peek(&self, from: usize, to: &mut [u8]) {
        assert!(from <= self.len && to.len() <= self.len - from, "a peek beyond the input");
        if to.is_empty() {
            return;
        }
        let from = self.input.wrapping_add(from);
        // SAFETY: the bytes are inside the input; `to` is ours and so apart from it.
        unsafe { ptr::copy_nonoverlapping(from, to.as_mut_ptr(), to.len()) };
    }

    /// An output of `len` bytes: `before`, as much of the input from its start on as fits behind
    /// it, and zeros.
    pub(crate) fn output(self, before: &[u8], len: usize) -> Result<&'a mut [u8], Error> {
        if len > self.room {
            return Err(Error::OutputTooSmall);
        }
        if len == 0 {
            return Ok(&mut []);
        }
        let before = &before[..before.len().min(len)];
        let moved = self.len.min(len - before.len());
        let to = self.out.wrapping_add(before.len());
        if moved > 0 && !ptr::eq(to, self.input) {
            // SAFETY: both are inside their buffers, which may overlap.
            unsafe { ptr::copy(self.input, to, moved) };
        }
        let rest = len - before.len() - moved;
        // SAFETY: the rest lies inside the output.
        unsafe { ptr::write_bytes(to.wrapping_add(moved), 0, rest) };
        // SAFETY: it fits, and `before` is ours and so apart from the output.
        unsafe { ptr::copy_nonoverlapping(before.as_ptr(), self.out, before.len()) };
        // SAFETY: `new` asked for it, `self` is used up, and every byte was written or is input.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.out, len) })
    }
}
