//! What can go wrong in a call, as a reason that OpenSSL prints.

use std::ffi::{CStr, c_uint};

use crate::abi::Item;

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $text:literal;)*) => {
        /// Why a call failed. OpenSSL shows the text as the reason of an error of this provider.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
        #[non_exhaustive]
        // As wide as a length: a `Result` of the two is then stored and loaded at one width, and
        // a CPU can pass the store on to the load. A call of 16 bytes gains a tenth to a quarter.
        #[repr(u64)]
        pub enum Error {
            $($(#[$doc])* #[error("{}", self.text())] $name = $number,)*
        }

        impl Error {
            fn text(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }

            /// The text for C.
            pub(crate) fn c_text(self) -> &'static CStr {
                match self {
                    $(Self::$name => const { with_end(concat!($text, "\0")) },)*
                }
            }
        }

        /// Numbers and texts, as OpenSSL asks for them.
        pub(crate) static REASONS: &[Item] = &[
            $(Item { id: $number, text: with_end(concat!($text, "\0")).as_ptr() },)*
            Item { id: 0, text: std::ptr::null() },
        ];
    };
}

reasons! {
    /// A panic was caught. It is an error of this provider.
    Internal = 1, "internal error of the wattlock provider, please report it";
    /// `EVP_CipherInit` has not been given a key yet.
    NoKey = 2, "no key is set";
    /// A key of another length than the cipher's.
    KeyLength = 3, "invalid key length";
    /// An IV of another length than the cipher's.
    IvLength = 4, "invalid iv length";
    /// The output does not fit.
    OutputTooSmall = 5, "output buffer too small";
    /// The message of a block mode without padding is not whole blocks.
    PartialBlock = 6, "wrong final block length: the message is not whole blocks";
    /// The end of a message is no padding. Says nothing more.
    BadDecrypt = 7, "bad decrypt";
    /// A parameter has a type or size that it cannot have.
    Parameter = 8, "a parameter has a wrong type or size";
    /// A value does not fit into the place that the caller gave.
    ParameterPlace = 9, "a parameter cannot hold the value";
    /// `num` without key stream that could have been used.
    NoKeyStream = 10, "num has no key stream to count in";
    /// A tag that is empty, too long, or set while sealing or read while opening.
    Tag = 11, "invalid tag";
    /// Opening ended before the tag was set.
    NoTag = 12, "no tag is set";
    /// A tag or MAC did not match. Says nothing more.
    Authentication = 13, "authentication failed";
    /// No IV, or the IV was used to the end already.
    NoIv = 14, "no iv is set, or it has been used";
    /// More bytes than the cipher permits under one IV.
    TooLong = 15, "too many bytes for one iv";
    /// Additional data after the message began.
    AadLate = 16, "additional data must come before the message";
    /// A TLS record that no peer that keeps to the standard makes.
    Record = 17, "invalid tls record";
    /// Additional data of a TLS record that is none.
    RecordAad = 18, "invalid additional data of a tls record";
    /// As many records as the standard permits were sealed with a key.
    TooManyRecords = 19, "too many records under one key";
    /// The system's random generator failed.
    Random = 20, "the system's random generator failed";
    /// libssl used the multiblock protocol in a way that this provider does not know.
    Multiblock = 21, "unknown use of tls multiblock: set multiblock = 0 in the provider's section";
    /// The setting `statistics` names neither a service nor a table.
    Statistics = 22, "the setting statistics must be a service name of 1 to 200 bytes, or /proc/PID/fd/N of a table";
    /// The setting `accelerator` names none.
    Accelerator = 23, "the setting accelerator is neither none, nor a device such as cuda:0, nor simulated[:NAME=VALUE,...]";
    /// The setting `threshold` is no number.
    Threshold = 24, "the setting threshold is neither auto nor a number of bytes";
    /// The setting `migration` names no rule.
    Migration = 25, "the setting migration is neither paper nor sooner nor never";
    /// An input of less than no bytes, which EVP hands on.
    Length = 30, "a length is below zero";
    /// The call failed, and no reason is put into the queue, as by OpenSSL's own cipher:
    /// `SSL_get_error` would later take it for an error of the connection.
    Unspecified = 32, "the call failed";
    /// The setting `self_check` is none.
    SelfCheck = 31, "the setting self_check is none of 1, fail-at-load, fail-in-write, refuse-plan and refuse-write";
}

impl Error {
    /// The same, without a reason unless it is this provider's fault or the caller's buffer's.
    pub(crate) fn unsaid(self) -> Self {
        match self {
            Self::Internal | Self::Random | Self::OutputTooSmall | Self::Length => self,
            _ => Self::Unspecified,
        }
    }

    /// The number under which [`REASONS`] lists it.
    pub(crate) fn reason(self) -> c_uint {
        self as c_uint
    }
}

const fn with_end(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("a reason has a zero inside"),
    }
}

impl From<wattlock_engine::Error> for Error {
    fn from(error: wattlock_engine::Error) -> Self {
        match error {
            wattlock_engine::Error::Cipher { source, .. } => source.into(),
            wattlock_engine::Error::Other { source, .. } => source
                .downcast::<wattlock_crypto::Error>()
                .map_or(Self::Internal, |source| (*source).into()),
            wattlock_engine::Error::Authentication { .. } => Self::Authentication,
            _ => Self::Internal,
        }
    }
}

impl From<wattlock_crypto::Error> for Error {
    fn from(error: wattlock_crypto::Error) -> Self {
        match error {
            wattlock_crypto::Error::Authentication => Self::Authentication,
            wattlock_crypto::Error::Random => Self::Random,
            wattlock_crypto::Error::KeyLength { .. } => Self::KeyLength,
            wattlock_crypto::Error::IvLength { .. } => Self::IvLength,
            wattlock_crypto::Error::PartialBlock { .. } => Self::PartialBlock,
            wattlock_crypto::Error::Padding => Self::BadDecrypt,
            wattlock_crypto::Error::MessageTooLong(_) => Self::TooLong,
            _ => Self::Internal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_has_a_place_for_arguments() {
        for item in REASONS.iter().filter(|item| !item.text.is_null()) {
            // SAFETY: all texts of the table end.
            let text = unsafe { CStr::from_ptr(item.text) };
            assert!(!text.to_bytes().contains(&b'%'), "{text:?}");
        }
    }
}
