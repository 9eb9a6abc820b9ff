//! Records on a device that knows no additional data, or nothing but CBC: the caller does the rest.

use wattlock_engine::crypto::{AeadAlgorithm, AeadKey, AesKernel, AesKey};
use wattlock_engine::fake::Fake;
use wattlock_engine::{
    Aad, Cipher, CoverReason, Data, Engine, Job, Lane, Migration, Nonces, Operation, Outcome,
    Records, Rest, Transform,
};

use super::{HOUR, pattern, settings};

/// An engine whose accelerator does what `supports` says.
fn with(supports: fn(&Cipher<'_>) -> bool) -> Engine {
    let open = move || Ok(Box::new(Fake { supports, ..Fake::default() }) as _);
    Engine::new(1).with_lanes(settings(0, Migration::Sooner), open)
}

fn knows_no_aad(cipher: &Cipher<'_>) -> bool {
    matches!(cipher, Cipher::Aead { aad: Aad::None, .. })
}

fn seal(engine: &Engine, key: &AeadKey, input: &[u8], places: &mut [u8]) -> Outcome {
    let nonces = Nonces::Counted { first: [9; 12] };
    let aad = Aad::Tls12 { first: u64::MAX, content_type: 23, version: 0x0303 };
    let cipher = Cipher::Aead { operation: Operation::Seal, key, nonces, aad };
    let data = Data::Records(Records { input: Some(input), places, front: 13, extra: None });
    engine.run_in_time(Job { cipher, chunk_len: 1000, data, deadline: Some(HOUR) }).unwrap()
}

#[test]
fn additional_data_gets_into_tags_that_were_made_without() {
    let key = AeadKey::new(AeadAlgorithm::Aes256Gcm, &[7; 32]).unwrap();
    for last in [1, 500, 1000] {
        let input = pattern(3000 + last, 0);
        let empty = vec![0xee; 3 * (13 + 1000 + 16) + 13 + last + 16];
        let (mut by_device, mut by_cpu) = (empty.clone(), empty);
        let outcome = seal(&with(knows_no_aad), &key, &input, &mut by_device);
        assert_eq!((outcome.lane, outcome.covered), (Lane::Accelerator, None));
        assert_eq!(outcome.bytes, (3000 + last + 4 * 16) as u64);
        let outcome = seal(&with(|_| false), &key, &input, &mut by_cpu);
        assert_eq!((outcome.lane, outcome.covered), (Lane::Cpu, Some(CoverReason::Unsupported)));
        assert!(by_device == by_cpu, "a last record of {last} bytes");
        assert!(by_device.chunks(1029).all(|place| place[..13] == [0xee; 13]));
    }
}

#[test]
fn what_was_sealed_with_additional_data_is_opened_by_the_cpu() {
    let key = AeadKey::new(AeadAlgorithm::Aes256Gcm, &[7; 32]).unwrap();
    let cipher = |operation| {
        let nonces = Nonces::XorIndex { base: [9; 12] };
        Cipher::Aead { operation, key: &key, nonces, aad: Aad::Same(b"aad") }
    };
    let engine = with(knows_no_aad);
    let mut slots = vec![5; 2 * 116];
    let mut run = |operation| {
        let data = Data::InPlace { slots: &mut slots };
        let cipher = cipher(operation);
        engine.run_in_time(Job { cipher, chunk_len: 100, data, deadline: Some(HOUR) }).unwrap()
    };
    assert_eq!(run(Operation::Seal).lane, Lane::Accelerator);
    assert_eq!(run(Operation::Open).covered, Some(CoverReason::Unsupported));
    assert!(slots.chunks(116).all(|slot| slot[..100] == [5; 100]));
}

/// Writes a one before each message, and enciphers the rest of it.
struct Marked<'a> {
    key: &'a AesKey,
    ivs: &'a [[u8; 16]],
}

impl Transform for Marked<'_> {
    fn apply(
        &self,
        offset: u64,
        in_out: &mut [u8],
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        self.prepare(in_out);
        for (iv, place) in self.ivs[offset as usize / 33..].iter().zip(in_out.chunks_mut(33)) {
            self.key.cbc_encrypt(iv, &mut place[1..])?;
        }
        Ok(())
    }

    fn rest(&self) -> Option<Rest<'_>> {
        Some(Rest { cipher: Cipher::CbcEncrypt { key: self.key, ivs: self.ivs }, front: 1 })
    }

    fn prepare(&self, in_out: &mut [u8]) {
        in_out.chunks_mut(33).for_each(|place| place[0] = 1);
    }
}

#[test]
fn a_device_does_the_cipher_of_a_transform() {
    let key = AesKey::new(AesKernel::best(), &[7; 32]).unwrap();
    let ivs = [[1; 16], [2; 16], [3; 16]];
    let transform = Marked { key: &key, ivs: &ivs };
    let run = |engine: &Engine| {
        let mut slots = pattern(3 * 33, 0);
        let (cipher, data) = (Cipher::Other(&transform), Data::InPlace { slots: &mut slots });
        let job = Job { cipher, chunk_len: 33, data, deadline: Some(HOUR) };
        let lane = engine.run_in_time(job).unwrap().lane;
        (lane, slots)
    };
    let (lane, by_device) = run(&with(|cipher| matches!(cipher, Cipher::CbcEncrypt { .. })));
    assert_eq!(lane, Lane::Accelerator);
    let (lane, by_cpu) = run(&with(|_| false));
    assert_eq!(lane, Lane::Cpu);
    assert_eq!(by_device, by_cpu);
}
