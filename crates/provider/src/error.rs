//! What can go wrong in a call, as a reason and a text that OpenSSL prints.

use std::ffi::{CStr, c_uint};

use crate::abi::reason;

macro_rules! errors {
    ($($(#[$doc:meta])* $name:ident = $reason:ident, $text:literal;)*) => {
        /// Why a call failed. OpenSSL shows its own reason for such an error, and the text behind it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
        #[non_exhaustive]
        // As wide as a length: a `Result` of the two is then stored and loaded at one width, and
        // a CPU can pass the store on to the load. A call of 16 bytes gains a tenth to a quarter.
        #[repr(u64)]
        pub enum Error {
            $($(#[$doc])* #[error("{}", self.text())] $name,)*
        }

        impl Error {
            fn text(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }

            /// The text for C, without a place for arguments.
            pub(crate) fn c_text(self) -> &'static CStr {
                match self {
                    $(Self::$name => const { c_text_of(concat!($text, "\0")) },)*
                }
            }

            /// Returns the reason under which OpenSSL lists it.
            ///
            /// The provider has no reasons of its own: OpenSSL forgets those when it frees a provider, and
            /// 3.0 crashes there if it has cleaned up before, as when a library's destructor frees
            /// an `SSL_CTX`.
            pub(crate) fn reason(self) -> c_uint {
                match self {
                    $(Self::$name => reason::$reason,)*
                }
            }
        }
    };
}

errors! {
    /// A panic was caught. It is an error of this provider.
    Internal = INTERNAL_ERROR, "internal error of the wattlock provider, please report it";
    /// `EVP_CipherInit` has not been given a key yet.
    NoKey = NO_KEY_SET, "no key is set";
    /// A key of another length than the cipher's.
    KeyLength = INVALID_KEY_LENGTH, "invalid key length";
    /// An IV of another length than the cipher's.
    IvLength = INVALID_IV_LENGTH, "invalid iv length";
    /// The output does not fit.
    OutputTooSmall = OUTPUT_BUFFER_TOO_SMALL, "output buffer too small";
    /// The message of a block mode without padding is not whole blocks.
    PartialBlock = WRONG_FINAL_BLOCK_LENGTH, "wrong final block length: the message is not whole blocks";
    /// The end of a message is no padding. Says nothing more.
    BadDecrypt = BAD_DECRYPT, "bad decrypt";
    /// A parameter has a type or size that it cannot have.
    Parameter = FAILED_TO_GET_PARAMETER, "a parameter has a wrong type or size";
    /// A value does not fit into the place that the caller gave.
    ParameterPlace = FAILED_TO_SET_PARAMETER, "the buffer of a parameter is too small for its value";
    /// `num` without key stream that could have been used.
    NoKeyStream = PASSED_INVALID_ARGUMENT, "num cannot be set: the cipher has no key stream yet";
    /// A tag that is empty, too long, or set while sealing or read while opening.
    Tag = INVALID_TAG, "invalid tag";
    /// Opening ended before the tag was set.
    NoTag = TAG_NOT_SET, "no tag is set";
    /// A tag or MAC did not match. Says nothing more.
    Authentication = CIPHER_OPERATION_FAILED, "authentication failed";
    /// No IV, or the IV was used to the end already.
    NoIv = CIPHER_OPERATION_FAILED, "no iv is set, or it has been used";
    /// More bytes than the cipher permits under one IV.
    TooLong = INVALID_INPUT_LENGTH, "too many bytes for one iv";
    /// Additional data after the message began.
    AadLate = INVALID_AAD, "additional data must come before the message";
    /// A TLS record that no peer that keeps to the standard makes.
    Record = INVALID_DATA, "invalid tls record";
    /// Additional data of a TLS record that is none.
    RecordAad = INVALID_AAD, "invalid additional data of a tls record";
    /// As many records as the standard permits were sealed with a key.
    TooManyRecords = TOO_MANY_RECORDS, "too many records under one key";
    /// The system's random generator failed.
    Random = RANDOM_LIBRARY, "the system's random generator failed";
    /// libssl used the multiblock protocol in a way that this provider does not know.
    Multiblock = INVALID_DATA, "unknown use of tls multiblock: set multiblock = 0 in the provider's section";
    /// The setting `statistics` names neither a service nor a table.
    Statistics = INVALID_CONFIG_DATA, "the setting statistics must be a service name of 1 to 200 bytes, or /proc/PID/fd/N of a table";
    /// The setting `accelerator` names none.
    Accelerator = INVALID_CONFIG_DATA, "the setting accelerator is neither none, nor a device such as cuda:0, nor simulated[:NAME=VALUE,...]";
    /// The setting `threshold` is no number.
    Threshold = INVALID_CONFIG_DATA, "the setting threshold is neither auto nor a number of bytes";
    /// The setting `migration` names no rule.
    Migration = INVALID_CONFIG_DATA, "the setting migration is neither paper nor sooner nor never";
    /// An input of less than no bytes, which EVP hands on.
    Length = INVALID_INPUT_LENGTH, "a length is below zero";
    /// The call failed, and no reason is put into the queue, as by OpenSSL's own cipher:
    /// `SSL_get_error` would later take it for an error of the connection.
    Unspecified = CIPHER_OPERATION_FAILED, "the call failed";
    /// The setting `self_check` is none.
    SelfCheck = INVALID_CONFIG_DATA, "the setting self_check is none of 1, fail-at-load, fail-in-write, refuse-plan and refuse-write";
}

impl Error {
    /// The same, without a reason unless it is this provider's fault or the caller's buffer's.
    pub(crate) fn unsaid(self) -> Self {
        match self {
            Self::Internal | Self::Random | Self::OutputTooSmall | Self::Length => self,
            _ => Self::Unspecified,
        }
    }
}

/// A text for C, which goes where OpenSSL takes a format.
const fn c_text_of(text: &'static str) -> &'static CStr {
    let mut at = 0;
    while at < text.len() {
        assert!(text.as_bytes()[at] != b'%', "the text of an error has a place for an argument");
        at += 1;
    }
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("the text of an error has a zero inside"),
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
