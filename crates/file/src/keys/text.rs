//! Files of keys as editors of other systems write them.

use crate::error::Error;

/// The text in a file of keys, without the byte order mark that some editors put in front of UTF-8.
///
/// # Errors
/// [`Error::Usage`] for text in UTF-16, as PowerShell writes it; it says what *it* is, the file.
pub fn without_byte_order_mark(bytes: &[u8]) -> Result<&[u8], Error> {
    match bytes {
        [0xef, 0xbb, 0xbf, text @ ..] => Ok(text),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => {
            Err(Error::usage("it is text in UTF-16; save it as UTF-8"))
        }
        text => Ok(text),
    }
}
