//! HKDF, RFC 5869, with the two hashes that the file formats ask for.

use aws_lc_rs::hkdf::{HKDF_SHA256, HKDF_SHA512, KeyType, Okm, Prk, Salt};

use crate::secret::Secret;

/// Extract and expand with SHA-256: `ikm`, `salt` and `info` to `N` bytes, at most 8160.
pub fn sha256<const N: usize>(ikm: &[u8], salt: &[u8], info: &[u8]) -> Secret<N> {
    const { assert!(N <= 255 * 32, "RFC 5869, section 2.3: at most 255 digests") };
    let info = [info];
    let prk = Salt::new(HKDF_SHA256, salt).extract(ikm);
    fill(prk.expand(&info, Length(N)))
}

/// Expand only, with SHA-256, to `N` bytes, at most 8160: `prk` is already a uniform key, the parts of `info` are
/// joined.
pub fn expand_sha256<const N: usize>(prk: &Secret<32>, info: &[&[u8]]) -> Secret<N> {
    const { assert!(N <= 255 * 32, "RFC 5869, section 2.3: at most 255 digests") };
    let prk = Prk::new_less_safe(HKDF_SHA256, prk.expose());
    fill(prk.expand(info, Length(N)))
}

/// Expand only, with SHA-512, to `N` bytes, at most 16,320: `prk` is already a uniform key, the parts of `info` are
/// joined.
pub fn expand_sha512<const N: usize>(prk: &Secret<32>, info: &[&[u8]]) -> Secret<N> {
    const { assert!(N <= 255 * 64, "RFC 5869, section 2.3: at most 255 digests") };
    let prk = Prk::new_less_safe(HKDF_SHA512, prk.expose());
    fill(prk.expand(info, Length(N)))
}

fn fill<const N: usize>(okm: Result<Okm<'_, Length>, aws_lc_rs::error::Unspecified>) -> Secret<N> {
    // Both steps fail only above 255 hash lengths, which the callers' `N` cannot be.
    let okm = okm.expect("the output is shorter than 255 hash lengths");
    Secret::init_with(|bytes| okm.fill(bytes).expect("the buffer has the length asked for"))
}

struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 5869, appendix A.1.
    #[test]
    fn rfc5869_case_1() {
        let salt: Vec<u8> = (0..=0x0c).collect();
        let info: Vec<u8> = (0xf0..=0xf9).collect();
        let okm = sha256::<42>(&[0x0b; 22], &salt, &info);
        let expected = "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf\
                        34007208d5b887185865";
        assert_eq!(hex(okm.expose()), expected);
    }

    /// RFC 5869, appendix A.1: its second step.
    #[test]
    fn expanding_alone_is_the_second_step() {
        let prk = "077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5";
        let prk = Secret::init_with(|bytes: &mut [u8; 32]| {
            for (byte, digits) in bytes.iter_mut().zip(prk.as_bytes().chunks(2)) {
                *byte = u8::from_str_radix(std::str::from_utf8(digits).unwrap(), 16).unwrap();
            }
        });
        let info: Vec<u8> = (0xf0..=0xf9).collect();
        let okm = expand_sha256::<42>(&prk, &[&info[..3], &info[3..]]);
        assert_eq!(&hex(okm.expose())[..20], "3cb25f25faacd57a9043");
    }

    #[test]
    fn the_parts_of_info_are_joined() {
        let prk = Secret::init_with(|b| b.fill(3));
        let joined = expand_sha512::<56>(&prk, &[b"wattlock/v1"]);
        assert!(joined == expand_sha512::<56>(&prk, &[b"watt", b"", b"lock/v1"]));
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|b| format!("{b:02x}")).collect()
    }
}
