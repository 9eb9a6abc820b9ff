//! How the additional data of a chunk follows from its index.

use crate::crypto::TAG_LEN;

/// The additional data of the chunks of a run: what a tag covers and the chunk does not hold.
#[derive(Clone, Copy, Debug, Default)]
pub enum Aad<'a> {
    /// None.
    #[default]
    None,
    /// The same for each.
    Same(&'a [u8]),
    /// What TLS 1.2 has for the chunk as a record (RFC 5246, section 6.2.3.3): its sequence number,
    /// its type, the version, and its length.
    Tls12 {
        /// The sequence number of chunk 0; those of the others count on.
        first: u64,
        /// The type of what the records hold.
        content_type: u8,
        /// 0x0303 for TLS 1.2.
        version: u16,
    },
    /// What TLS 1.3 has (RFC 8446, section 5.2): the header of the record, which has its length.
    Tls13,
}

/// Room for the additional data of a chunk of any rule but [`Aad::Same`].
pub(crate) type AadRoom = [u8; 13];

impl<'a> Aad<'a> {
    /// That of chunk `index`, which has `len` bytes of plaintext. It may be made in `room`.
    pub(crate) fn of_chunk<'r>(&self, index: u64, len: usize, room: &'r mut AadRoom) -> &'r [u8]
    where
        'a: 'r,
    {
        match *self {
            Self::None => &[],
            Self::Same(aad) => aad,
            Self::Tls12 { first, content_type, version } => {
                room[..8].copy_from_slice(&first.wrapping_add(index).to_be_bytes());
                room[8] = content_type;
                room[9..11].copy_from_slice(&version.to_be_bytes());
                room[11..].copy_from_slice(&(len as u16).to_be_bytes());
                room
            }
            Self::Tls13 => {
                let sealed = (len + TAG_LEN) as u16;
                room[..3].copy_from_slice(&[23, 3, 3]);
                room[3..5].copy_from_slice(&sealed.to_be_bytes());
                &room[..5]
            }
        }
    }

    /// True if no chunk has any.
    pub fn is_none(&self) -> bool {
        matches!(self, Self::None | Self::Same([]))
    }
}
