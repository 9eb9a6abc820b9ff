//! The three attacks of section 4.1 of the SEFPS paper, at each of their places.

use wattlock_engine::crypto::AesKey;
use wattlock_engine::crypto::sha3::DIGEST_LEN;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Attack {
    Alter,
    Delete,
    Add,
}

impl Attack {
    pub fn name(self) -> &'static str {
        match self {
            Self::Alter => "altering",
            Self::Delete => "deleting",
            Self::Add => "adding",
        }
    }

    /// The bytes after the attack on the groups at these places, in rising order: a bit of each is
    /// altered, or the group is taken out, or another is put before it.
    pub fn on(self, bytes: &[u8], places: &[usize]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        for &at in places.iter().rev() {
            match self {
                Self::Alter => bytes[at] ^= 1,
                Self::Delete => drop(bytes.drain(at..at + GROUP)),
                Self::Add => drop(bytes.splice(at..at, [0x5a; GROUP])),
            }
        }
        bytes
    }
}

/// What is attacked: the encrypted data and padding, the encrypted digest, or both.
#[derive(Clone, Copy)]
pub enum Place {
    Data,
    Digest,
    Both,
}

impl Place {
    pub fn name(self) -> &'static str {
        match self {
            Self::Data => "c(m)",
            Self::Digest => "c(d)",
            Self::Both => "both",
        }
    }

    /// The groups of each attack on a container of that length: of the data the first, one in the
    /// middle and the last; of the digest each; for both, each of the former with each of the latter.
    pub fn of(self, container: usize) -> Vec<Vec<usize>> {
        let digest = container - DIGEST_LEN;
        let data = [0, digest / GROUP / 2 * GROUP, digest - GROUP];
        let digests = [digest, digest + GROUP];
        match self {
            Self::Data => data.map(|at| vec![at]).into(),
            Self::Digest => digests.map(|at| vec![at]).into(),
            Self::Both => {
                data.into_iter().flat_map(|at| digests.map(|digest| vec![at, digest])).collect()
            }
        }
    }
}

const GROUP: usize = AesKey::BLOCK_LEN;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_groups_of_the_container() {
        assert_eq!(Place::Data.of(176), [[0], [64], [128]]);
        assert_eq!(Place::Digest.of(176), [[144], [160]]);
        assert_eq!(Place::Both.of(176).len(), 6);
        assert_eq!(Attack::Delete.on(&[7; 176], &[0, 160]).len(), 144);
        assert_eq!(Attack::Add.on(&[7; 176], &[0, 160]).len(), 208);
    }
}
