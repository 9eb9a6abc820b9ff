//! What the records of TLS 1.0 to 1.2 have in common (RFC 5246, 6.2).

use wattlock_engine::Aad;

/// Bytes of the additional data: sequence number, type, version, length.
pub const AAD_LEN: usize = 13;
/// Bytes of a record's header: type, version, length.
pub const HEADER_LEN: usize = 5;
/// Bytes of the longest payload.
pub const MAX_PAYLOAD: usize = 1 << 14;

/// Bytes of a block of AES.
pub const BLOCK: usize = 16;

/// What a record has in addition to its header and payload.
#[derive(Clone, Copy, Debug)]
pub enum Overhead {
    /// As many bytes for every payload.
    Fixed(usize),
    /// An explicit IV, a MAC and padding, of CBC in TLS 1.1 and 1.2.
    Cbc {
        /// Bytes of the MAC.
        mac_len: usize,
    },
}

impl Overhead {
    /// Bytes of a sealed record with `payload` bytes of payload, without its header.
    pub fn sealed(self, payload: usize) -> usize {
        match self {
            Self::Fixed(overhead) => payload + overhead,
            Self::Cbc { mac_len } => BLOCK + Self::padded(payload, mac_len),
        }
    }

    /// Bytes of payload, MAC and padding under CBC.
    pub fn padded(payload: usize, mac_len: usize) -> usize {
        ((payload + mac_len) / BLOCK + 1) * BLOCK
    }
}

/// Whether `len` bytes of ciphertext are a whole record of TLS 1.3, by the header in `aad`
/// (RFC 8446, 5.2): type 23, version 0x0303, and the length with the tag.
#[inline]
pub fn is_whole_1_3(aad: Option<&[u8]>, len: usize) -> bool {
    const TAG_LEN: usize = 16;
    match aad {
        Some(&[23, 3, 3, high, low]) => {
            usize::from(u16::from_be_bytes([high, low])) == len + TAG_LEN
        }
        _ => false,
    }
}

/// Bytes of the explicit IV that begins a record under CBC: none before TLS 1.1.
pub fn explicit_iv_len(version: u16) -> usize {
    if version < 0x0302 { 0 } else { BLOCK }
}

/// Fills `padding`, at most 256 bytes: n bytes of the value n - 1 (RFC 5246, 6.2.3.2).
pub fn pad(padding: &mut [u8]) {
    padding.fill((padding.len().wrapping_sub(1)) as u8);
}

/// The additional data of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordAad([u8; AAD_LEN]);

impl RecordAad {
    /// From the bytes that OpenSSL and RFC 5246 have.
    pub fn new(bytes: [u8; AAD_LEN]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub fn bytes(self) -> [u8; AAD_LEN] {
        self.0
    }

    /// The type of the record's content.
    pub fn content_type(self) -> u8 {
        self.0[8]
    }

    /// 0x0303 for TLS 1.2.
    pub fn version(self) -> u16 {
        u16::from_be_bytes([self.0[9], self.0[10]])
    }

    /// Bytes of the payload.
    #[allow(clippy::len_without_is_empty, reason = "it is the length that a record says it has")]
    pub fn len(self) -> usize {
        usize::from(u16::from_be_bytes([self.0[11], self.0[12]]))
    }

    /// The same for a payload that is `by` bytes shorter; `None` if it is not that long.
    pub fn shorter(self, by: usize) -> Option<Self> {
        Some(self.later(0, self.len().checked_sub(by)?))
    }

    /// The rule for a run of records that starts with this one.
    pub fn rule(self) -> Aad<'static> {
        let mut sequence = [0; 8];
        sequence.copy_from_slice(&self.0[..8]);
        let first = u64::from_be_bytes(sequence);
        Aad::Tls12 { first, content_type: self.content_type(), version: self.version() }
    }

    /// The same for the record that comes `records` later and has `len` bytes of payload.
    pub fn later(self, records: usize, len: usize) -> Self {
        let mut aad = self.0;
        let mut sequence = [0; 8];
        sequence.copy_from_slice(&aad[..8]);
        let sequence = u64::from_be_bytes(sequence).wrapping_add(records as u64);
        aad[..8].copy_from_slice(&sequence.to_be_bytes());
        aad[11..].copy_from_slice(&(len as u16).to_be_bytes());
        Self(aad)
    }

    /// The header of the record, followed by `sealed` bytes.
    pub fn header(self, sealed: usize) -> [u8; HEADER_LEN] {
        let [high, low] = (sealed as u16).to_be_bytes();
        [self.0[8], self.0[9], self.0[10], high, low]
    }
}
