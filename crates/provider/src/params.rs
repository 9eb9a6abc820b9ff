//! Arrays of `OSSL_PARAM` as values of Rust, to read and to answer.

use std::ffi::{CStr, c_char, c_uint, c_void};
use std::marker::PhantomData;
use std::ptr;

use crate::abi::Param;
use crate::error::Error;

/// An array of parameters that a caller gave for the time of a call; null is an empty one.
pub(crate) struct Params<'a> {
    first: *mut Param,
    _borrowed: PhantomData<&'a mut [Param]>,
}

/// One of them.
pub(crate) struct Value<'a> {
    param: *mut Param,
    _borrowed: PhantomData<&'a mut Param>,
}

impl<'a> Params<'a> {
    /// # Safety
    /// `first` must be null or begin an array that ends with a null key, whose keys are texts
    /// that end and whose data are as large as their types and sizes say, but for what
    /// [`Value::declared`] is about. All must live, and be used only here, during `'a`.
    pub(crate) unsafe fn new(first: *mut Param) -> Self {
        Self { first, _borrowed: PhantomData }
    }

    /// True if there is none.
    pub(crate) fn is_empty(&self) -> bool {
        // SAFETY: an array that is not null has an entry, if only the one that ends it.
        self.first.is_null() || unsafe { (*self.first).key.is_null() }
    }

    /// The one parameter, if it is the only one: a call for each record has no others.
    #[inline]
    pub(crate) fn only(&self) -> Option<Value<'a>> {
        if self.is_empty() {
            return None;
        }
        let next = self.first.wrapping_add(1);
        // SAFETY: the first is not the end, so that there is one behind it.
        let is_end = unsafe { (*next).key.is_null() };
        is_end.then_some(Value { param: self.first, _borrowed: PhantomData })
    }

    /// The first parameter of that name.
    pub(crate) fn find(&self, name: &CStr) -> Option<Value<'a>> {
        let mut param = self.first;
        while !param.is_null() {
            // SAFETY: the array goes on until a null key, and this is not behind it.
            let key = unsafe { (*param).key };
            if key.is_null() {
                return None;
            }
            // SAFETY: keys are texts that end.
            if unsafe { is(key, name) } {
                return Some(Value { param, _borrowed: PhantomData });
            }
            param = param.wrapping_add(1);
        }
        None
    }

    /// An unsigned number of that name, if it is there.
    pub(crate) fn unsigned(&self, name: &CStr) -> Result<Option<u64>, Error> {
        self.find(name).map(|value| value.unsigned()).transpose()
    }

    /// Answers a question for the number `name`, if it was asked.
    pub(crate) fn answer(&self, name: &CStr, number: usize) -> Result<(), Error> {
        match self.find(name) {
            Some(value) => value.set_unsigned(number as u64),
            None => Ok(()),
        }
    }

    /// Answers a question for bytes. A caller that asked for a pointer is given one to `bytes`,
    /// which therefore have to be where they are as long as the context.
    pub(crate) fn answer_octets(&self, name: &CStr, bytes: &[u8]) -> Result<(), Error> {
        match self.find(name) {
            Some(value) => value.set_octets(bytes),
            None => Ok(()),
        }
    }
}

/// Whether two texts are equal, without a look for their ends first: this is asked ten times for
/// every record.
///
/// # Safety
/// `key` must be a text that ends.
#[inline]
unsafe fn is(key: *const c_char, name: &CStr) -> bool {
    name.to_bytes_with_nul().iter().enumerate().all(|(index, &byte)| {
        // SAFETY: no byte before this differed, so that the end of `key` was not passed.
        unsafe { key.wrapping_add(index).cast::<u8>().read() == byte }
    })
}

impl<'a> Value<'a> {
    /// Whether it has that name.
    #[inline]
    pub(crate) fn is(&self, name: &CStr) -> bool {
        // SAFETY: it is an entry of the caller's array.
        let key = unsafe { (*self.param).key };
        // SAFETY: whose keys are texts that end.
        unsafe { is(key, name) }
    }

    fn fields(&self) -> (c_uint, *mut c_void, usize) {
        // SAFETY: `Params::find` made this from an entry of the caller's array.
        let param = unsafe { &*self.param };
        (param.data_type, param.data, param.data_size)
    }

    fn answered(&self, size: usize) {
        // SAFETY: as above, and the entry is used only here.
        unsafe { (*self.param).return_size = size };
    }

    /// A number that is not negative.
    pub(crate) fn unsigned(&self) -> Result<u64, Error> {
        let (data_type, data, size) = self.fields();
        let number = match (data_type, size) {
            _ if data.is_null() => return Err(Error::Parameter),
            (Param::UNSIGNED_INTEGER, 4) => {
                // SAFETY: the type and the size say that it is a `u32`.
                i64::from(unsafe { data.cast::<u32>().read_unaligned() })
            }
            (Param::INTEGER, 4) => {
                // SAFETY: the type and the size say that it is an `i32`.
                i64::from(unsafe { data.cast::<i32>().read_unaligned() })
            }
            (Param::UNSIGNED_INTEGER | Param::INTEGER, 8) => {
                // SAFETY: the type and the size say that these are 64 bits.
                unsafe { data.cast::<i64>().read_unaligned() }
            }
            _ => return Err(Error::Parameter),
        };
        // Above 2^63 there is no length and no number of anything here.
        u64::try_from(number).map_err(|_| Error::Parameter)
    }

    pub(crate) fn set_unsigned(&self, number: u64) -> Result<(), Error> {
        let (data_type, data, size) = self.fields();
        match (data_type, size) {
            (Param::UNSIGNED_INTEGER | Param::INTEGER, _) if data.is_null() => {
                self.answered(size_of::<usize>());
                return Ok(());
            }
            (Param::UNSIGNED_INTEGER | Param::INTEGER, 4) => {
                // Nothing here is above `i32::MAX`, so that the sign does not matter.
                let number = i32::try_from(number).map_err(|_| Error::ParameterPlace)?;
                // SAFETY: the type and the size say that there is room for 32 bits.
                unsafe { data.cast::<i32>().write_unaligned(number) };
            }
            (Param::UNSIGNED_INTEGER | Param::INTEGER, 8) => {
                // SAFETY: the type and the size say that there is room for 64 bits.
                unsafe { data.cast::<u64>().write_unaligned(number) };
            }
            _ => return Err(Error::ParameterPlace),
        }
        self.answered(size);
        Ok(())
    }

    /// All bytes of a string of octets.
    pub(crate) fn octets(&self) -> Result<&'a [u8], Error> {
        let (data_type, data, size) = self.fields();
        let sound = data_type == Param::OCTET_STRING && size <= isize::MAX as usize;
        match (sound, data.is_null()) {
            (true, true) if size == 0 => Ok(&[]),
            // SAFETY: `data` holds `size` bytes during `'a`.
            (true, false) => Ok(unsafe { std::slice::from_raw_parts(data.cast(), size) }),
            _ => Err(Error::Parameter),
        }
    }

    /// The first `N` bytes of a string of octets whose declared size may be something else, and
    /// that size: libssl gives 13 bytes of additional data under the length of the payload, and
    /// an IV under the length -1.
    ///
    /// # Safety
    /// The caller must know that `N` bytes are there.
    pub(crate) unsafe fn declared<const N: usize>(&self) -> Result<([u8; N], usize), Error> {
        let (data_type, data, size) = self.fields();
        if data_type != Param::OCTET_STRING || data.is_null() {
            return Err(Error::Parameter);
        }
        // SAFETY: by the caller's word.
        let bytes = unsafe { data.cast::<[u8; N]>().read_unaligned() };
        Ok((bytes, size))
    }

    /// Where a string of octets is, and its declared size, for buffers of the caller that are
    /// larger than they say.
    pub(crate) fn place(&self) -> Result<(*mut u8, usize), Error> {
        let (data_type, data, size) = self.fields();
        let is_octets = data_type == Param::OCTET_STRING && !data.is_null();
        if is_octets { Ok((data.cast(), size)) } else { Err(Error::Parameter) }
    }

    /// Bytes of the place that was given for an answer; `None` if only the size is asked for.
    pub(crate) fn room(&self) -> Option<usize> {
        let (_, data, size) = self.fields();
        (!data.is_null()).then_some(size)
    }

    #[inline]
    pub(crate) fn set_octets(&self, bytes: &[u8]) -> Result<(), Error> {
        let (data_type, data, size) = self.fields();
        match data_type {
            Param::OCTET_STRING if data.is_null() => {}
            Param::OCTET_STRING if size >= bytes.len() => {
                // SAFETY: the size says that there is room for `bytes`, and the caller's memory
                // does not overlap them.
                unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), data.cast(), bytes.len()) };
            }
            Param::OCTET_PTR if !data.is_null() => {
                // SAFETY: the type says that there is room for a pointer.
                unsafe { data.cast::<*const u8>().write_unaligned(bytes.as_ptr()) };
            }
            _ => return Err(Error::ParameterPlace),
        }
        self.answered(bytes.len());
        Ok(())
    }

    /// Answers with bytes for which the caller has room, even if the declared size is smaller.
    ///
    /// # Safety
    /// The caller must know that there is room.
    pub(crate) unsafe fn set_beyond_size(&self, bytes: &[u8]) -> Result<(), Error> {
        let (place, _) = self.place()?;
        // SAFETY: by the caller's word; the place is the caller's and so no part of `bytes`.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len()) };
        self.answered(bytes.len());
        Ok(())
    }

    pub(crate) fn set_text(&self, text: &'static CStr) -> Result<(), Error> {
        let (data_type, data, _) = self.fields();
        if data_type != Param::UTF8_PTR || data.is_null() {
            return Err(Error::ParameterPlace);
        }
        // SAFETY: the type says that there is room for a pointer.
        unsafe { data.cast::<*const c_char>().write_unaligned(text.as_ptr()) };
        self.answered(text.count_bytes());
        Ok(())
    }
}
