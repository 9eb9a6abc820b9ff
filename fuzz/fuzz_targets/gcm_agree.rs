//! Every kernel of AES-GCM does what AWS-LC does: in place, apart, and in parts that are cut anywhere. A message with
//! one wrong bit is refused and leaves zeros.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wattlock_engine::crypto::gcm::{GcmKey, GcmStream};
use wattlock_engine::crypto::{AeadKey, Error, GcmKernel, NONCE_LEN, TAG_LEN};

fuzz_target!(|data: &[u8]| {
    let Some((head, content)) = data.split_first_chunk::<70>() else { return };
    let number = |at: usize| usize::from(u16::from_le_bytes([head[at], head[at + 1]]));
    // Small inputs stand for large ones.
    let bytes = |len| content.iter().chain(&[7]).copied().cycle().take(len).collect::<Vec<u8>>();
    let key = &head[..[16, 24, 32][usize::from(head[32]) % 3]];
    let message = Message {
        nonce: head[33..45].try_into().unwrap(),
        aad: bytes(usize::from(head[45])),
        text: bytes(number(46) % 20_000),
        skew: usize::from(head[48] % 64),
        cuts: head[49..57].try_into().unwrap(),
    };
    // No IV of 12 bytes; those have a way of their own.
    let long_iv = &head[..13 + usize::from(head[57]) % 20];
    let aws_lc = GcmKey::with_kernel(GcmKernel::AwsLc, key).unwrap();
    let sealed = message.seal(aws_lc.aead());
    let parts = message.parts(&aws_lc, &message.nonce, &message.text, GcmStream::encrypt);
    let long = message.parts(&aws_lc, long_iv, &message.text, GcmStream::encrypt);
    assert!(parts.text == sealed.text && parts.tags.last() == Some(&sealed.tag), "AWS-LC, parts");
    for kernel in GcmKernel::all() {
        let name = kernel.name();
        let key = GcmKey::with_kernel(kernel, key).unwrap();
        assert!(message.seal(key.aead()) == sealed, "{name}: seal");
        message.seal_apart(key.aead(), &sealed, name);
        message.open(key.aead(), &sealed, name);
        message.open_forged(key.aead(), &sealed, number(58), name);
        message.open_and_go_on(&key, aws_lc.aead(), &sealed, name);
        for (iv, expected) in [(&message.nonce[..], &parts), (long_iv, &long)] {
            let made = message.parts(&key, iv, &message.text, GcmStream::encrypt);
            assert!(made == *expected, "{name}: seal in parts, {} bytes of IV", iv.len());
            let made = message.parts(&key, iv, &expected.text, GcmStream::decrypt);
            let same = made.text == message.text && made.tags == expected.tags;
            assert!(same, "{name}: open in parts, {} bytes of IV", iv.len());
        }
    }
});

struct Message {
    nonce: [u8; NONCE_LEN],
    aad: Vec<u8>,
    text: Vec<u8>,
    /// Bytes in front of the text, which put it at any alignment.
    skew: usize,
    /// What the lengths of the parts are made of.
    cuts: [u8; 8],
}

#[derive(PartialEq)]
struct Sealed {
    text: Vec<u8>,
    tag: [u8; TAG_LEN],
}

/// A text that was worked on in parts, with the tag after each of them.
#[derive(PartialEq)]
struct Parts {
    text: Vec<u8>,
    tags: Vec<[u8; TAG_LEN]>,
}

impl Message {
    fn seal(&self, key: &AeadKey) -> Sealed {
        let mut tag = [0; TAG_LEN];
        let text = self.in_place(&self.text, |text| {
            tag = key.seal(self.nonce, &self.aad, text).unwrap();
        });
        Sealed { text, tag }
    }

    /// Into other memory, with the last byte behind the others and as one of them.
    fn seal_apart(&self, key: &AeadKey, sealed: &Sealed, name: &str) {
        let extra = self.text.split_last().map(|(last, before)| (before, Some(*last)));
        for (text, extra) in [(&self.text[..], None)].into_iter().chain(extra) {
            let made = self.in_place(&vec![0xee; self.text.len()], |target| {
                let tag = key.seal_into(self.nonce, &self.aad, text, extra, target).unwrap();
                assert!(tag == sealed.tag, "{name}: tag apart, an extra byte: {extra:?}");
            });
            assert!(made == sealed.text, "{name}: seal apart, an extra byte: {extra:?}");
        }
    }

    fn open(&self, key: &AeadKey, sealed: &Sealed, name: &str) {
        let opened = self.in_place(&sealed.text, |text| {
            key.open(self.nonce, &self.aad, text, &sealed.tag).unwrap();
        });
        assert!(opened == self.text, "{name}: open");
    }

    /// With one bit flipped of all that the tag covers, or of the tag.
    fn open_forged(&self, key: &AeadKey, sealed: &Sealed, bit: usize, name: &str) {
        let mut forged = [&sealed.tag[..], &self.nonce, &self.aad, &sealed.text].concat();
        let bit = bit % (8 * forged.len());
        forged[bit / 8] ^= 1 << (bit % 8);
        let (tag, rest) = forged.split_first_chunk().unwrap();
        let (nonce, rest) = rest.split_first_chunk().unwrap();
        let (aad, text) = rest.split_at(self.aad.len());
        let left = self.in_place(text, |text| {
            let opened = key.open(*nonce, aad, text, tag);
            assert!(matches!(opened, Err(Error::Authentication)), "{name}: bit {bit} flipped");
        });
        assert!(left.iter().all(|byte| *byte == 0), "{name}: text is left behind");
    }

    fn parts(
        &self,
        key: &GcmKey,
        iv: &[u8],
        text: &[u8],
        work: impl Fn(&mut GcmStream, &GcmKey, &mut [u8]) -> Result<(), Error>,
    ) -> Parts {
        let mut stream = key.begin(iv).unwrap();
        let mut tags = Vec::new();
        let (one, other) = self.aad.split_at(self.first_len(self.aad.len()));
        stream.aad(key, one).unwrap();
        stream.aad(key, other).unwrap();
        let text = self.in_place(text, |mut rest| {
            for cut in self.cuts {
                let part = rest.split_off_mut(..part_len(cut).min(rest.len())).unwrap();
                work(&mut stream, key, part).unwrap();
                tags.push(*stream.tag(key));
            }
            work(&mut stream, key, rest).unwrap();
            tags.push(*stream.tag(key));
        });
        Parts { text, tags }
    }

    /// Opens the beginning as if it were a message, which it could be, and the rest behind it.
    fn open_and_go_on(&self, key: &GcmKey, aws_lc: &AeadKey, sealed: &Sealed, name: &str) {
        let first = self.first_len(self.text.len());
        let tag = aws_lc.seal(self.nonce, &self.aad, &mut self.text[..first].to_vec()).unwrap();
        let mut stream = key.begin(&self.nonce).unwrap();
        stream.aad(key, &self.aad).unwrap();
        if stream.short_aad().is_none() {
            return;
        }
        let opened = self.in_place(&sealed.text, |text| {
            let (first, rest) = text.split_at_mut(first);
            stream.open(key, first, &tag).unwrap();
            stream.decrypt(key, rest).unwrap();
        });
        assert!(opened == self.text && *stream.tag(key) == sealed.tag, "{name}: open and go on");
    }

    fn first_len(&self, whole: usize) -> usize {
        part_len(self.cuts[0]).min(whole)
    }

    /// Works on a copy of some text between bytes that must stay as they are, and returns it.
    fn in_place(&self, text: &[u8], work: impl FnOnce(&mut [u8])) -> Vec<u8> {
        let around = [0x5a; 64];
        let mut memory = [&around[..self.skew], text, &around].concat();
        let (before, rest) = memory.split_at_mut(self.skew);
        let (place, behind) = rest.split_at_mut(text.len());
        work(place);
        assert!(before.iter().chain(&*behind).all(|byte| *byte == 0x5a), "written beyond the text");
        place.to_vec()
    }
}

/// Short parts of any length, and some around the longer ones for which kernels have other ways.
fn part_len(cut: u8) -> usize {
    let cut = usize::from(cut);
    if cut < 128 { cut } else { (cut - 127) * 31 }
}
