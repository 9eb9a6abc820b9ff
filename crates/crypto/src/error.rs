//! What goes wrong, and with what.

/// What can go wrong in a primitive.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A tag or a MAC did not match. Deliberately says nothing more.
    #[error("authentication failed")]
    Authentication,
    /// The operating system gave no random bytes.
    #[error("the system's random generator failed")]
    Random,
    /// A key has no length that the algorithm takes.
    #[error("{algorithm} takes no key of {len} bytes")]
    KeyLength {
        /// The algorithm.
        algorithm: &'static str,
        /// Bytes of the key.
        len: usize,
    },
    /// An IV or nonce has the wrong length.
    #[error("{algorithm} takes an IV of {expected} bytes, not {len} bytes")]
    IvLength {
        /// The algorithm.
        algorithm: String,
        /// Bytes of the IV.
        len: usize,
        /// Bytes that it should have.
        expected: usize,
    },
    /// Something that comes in whole blocks, chunks or chaining values ends within one.
    #[error("{len} bytes are not whole blocks of {block_len}")]
    PartialBlock {
        /// Bytes of the message.
        len: usize,
        /// Bytes of a block.
        block_len: usize,
    },
    /// A buffer for a ciphertext, a tag or a chaining value is too short or too long.
    #[error("a buffer has {len} bytes instead of {expected}")]
    BufferLength {
        /// Bytes of the buffer.
        len: usize,
        /// Bytes that it should have.
        expected: usize,
    },
    /// PKCS#7 pads to blocks of 1 to 255 bytes (RFC 5652, section 6.3).
    #[error("PKCS#7 knows no blocks of {0} bytes")]
    BlockLength(usize),
    /// The parts of a message came in another order than that of the message.
    #[error("a part of the message came twice, or too late")]
    PartOrder,
    /// A message whose tag can only be had after its parts.
    #[error(
        "this message can be opened only in parts: its IV is not 96 bits long, its additional data is long, or a part came before"
    )]
    OnlyInParts,
    /// A message that is to get a tag has no room for it.
    #[error("{len} bytes have no room for the payload and a tag of {tag_len} bytes")]
    NoRoom {
        /// Bytes of the message.
        len: usize,
        /// Bytes of the tag.
        tag_len: usize,
    },
    /// The end of a message is no padding: the key or the message is wrong.
    #[error("the padding is wrong")]
    Padding,
    /// No kernel has that name.
    #[error("there is no kernel named {0:?}")]
    UnknownKernel(String),
    /// The CPU lacks what a kernel needs.
    #[error("this CPU cannot run {kernel}: it needs {needs}")]
    KernelAbsent {
        /// The kernel's name.
        kernel: String,
        /// The instruction sets.
        needs: &'static str,
    },
    /// The message is longer than the algorithm permits for one nonce.
    #[error("a message of {0} bytes is too long for this AEAD")]
    MessageTooLong(usize),
}
