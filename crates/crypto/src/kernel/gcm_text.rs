//! The text of a message of AES-GCM, or of a part of one: where it is read and where it is written.

use std::marker::PhantomData;

/// The text of a message: in place, or from one place into another that is as long.
pub(crate) struct Text<'t> {
    source: *const u8,
    target: *mut u8,
    len: usize,
    #[cfg_attr(
        not(target_arch = "x86_64"),
        allow(dead_code, reason = "only kernels of our own look at it")
    )]
    extra: Option<u8>,
    lent: PhantomData<&'t mut [u8]>,
}

impl<'t> Text<'t> {
    /// Text that is replaced.
    pub fn in_place(in_out: &'t mut [u8]) -> Self {
        let (target, len) = (in_out.as_mut_ptr(), in_out.len());
        Self { source: target, target, len, extra: None, lent: PhantomData }
    }

    /// Text from elsewhere, and a byte that is sealed behind it. `None` if the target is not as long.
    pub fn apart(source: &'t [u8], extra: Option<u8>, target: &'t mut [u8]) -> Option<Self> {
        let len = source.len();
        let fits = target.len() == len + usize::from(extra.is_some());
        let (source, target) = (source.as_ptr(), target.as_mut_ptr());
        fits.then_some(Self { source, target, len, extra, lent: PhantomData })
    }

    /// Bytes that come from elsewhere.
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// What comes from elsewhere, or what was made of it, if that is in the same place.
    pub fn read(&self) -> &[u8] {
        // SAFETY: the source has so many bytes, which are lent.
        unsafe { std::slice::from_raw_parts(self.source, self.len) }
    }

    /// What lies in the target: of use once that was written.
    pub fn written(&self) -> &[u8] {
        // SAFETY: the target has so many bytes, which are lent.
        unsafe { std::slice::from_raw_parts(self.target, self.len) }
    }

    /// The target, with the source in it.
    pub fn joined(&mut self) -> &mut [u8] {
        if self.source != self.target.cast_const() {
            // SAFETY: both have so many bytes, and lie apart.
            unsafe { std::ptr::copy_nonoverlapping(self.source, self.target, self.len) };
        }
        // SAFETY: the target has so many bytes, which are lent.
        unsafe { std::slice::from_raw_parts_mut(self.target, self.len) }
    }
}

#[cfg(target_arch = "x86_64")]
impl Text<'_> {
    /// Takes bytes off the front, as many as there are at most.
    pub fn split_off(&mut self, len: usize) -> Self {
        let front = len.min(self.len);
        let split = Self { len: front, extra: None, ..*self };
        self.source = self.source.wrapping_add(front);
        self.target = self.target.wrapping_add(front);
        self.len -= front;
        split
    }

    /// Where `len` bytes can be read.
    pub(super) fn source(&self) -> *const u8 {
        self.source
    }

    /// Where `total` bytes can be written.
    pub(super) fn target(&self) -> *mut u8 {
        self.target
    }

    /// Bytes with the extra one.
    pub(super) fn total(&self) -> usize {
        self.len + usize::from(self.extra.is_some())
    }

    pub(super) fn extra(&self) -> Option<u8> {
        self.extra
    }
}
