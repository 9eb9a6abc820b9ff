//! What requests take on a device that is already open, measured with a few of them.

use std::time::{Duration, Instant};

use super::exchange::exchange;
use crate::crypto::{AeadAlgorithm, AeadKey, AesKernel, AesKey};
use crate::device::{Device, Fault};
use crate::fit::{Fit, fit};
use crate::job::{Aad, Cipher, Data, Job, Nonces, Operation};

/// The line of `device` for requests of AES-256-GCM, or of AES-256-CTR where it has no GCM, to be
/// compared with a CPU's by [`crate::Threshold::crossing`]. Some tens of requests of records, up to
/// half a megabyte: milliseconds on a GPU.
///
/// `None` if there is no line through its times: larger requests do not take longer.
///
/// # Errors
/// What the device says when it fails, or that it does neither.
pub fn device_line(device: &dyn Device) -> Result<Option<Fit>, Fault> {
    let failed = |error: crate::crypto::Error| Fault(error.to_string());
    let aead = AeadKey::new(AeadAlgorithm::Aes256Gcm, &[0x42; 32]).map_err(failed)?;
    let aes = AesKey::new(AesKernel::best(), &[0x42; 32]).map_err(failed)?;
    let nonces = Nonces::XorIndex { base: [0; 12] };
    let gcm = Cipher::Aead { operation: Operation::Seal, key: &aead, nonces, aad: Aad::None };
    let ctr = Cipher::Ctr { key: &aes, iv: [0; AesKey::BLOCK_LEN] };
    let Some(cipher) = [gcm, ctr].into_iter().find(|cipher| device.supports(cipher)) else {
        return Err(Fault("it does neither AES-GCM nor AES-CTR".into()));
    };
    let mut samples = Vec::new();
    for round in 0..=ROUNDS {
        for records in RECORDS {
            let job = Job {
                cipher,
                chunk_len: RECORD,
                data: Data::InPlace { slots: &mut [] },
                deadline: None,
            };
            let mut slots = vec![0; records * job.slot_len()];
            let started = Instant::now();
            let found = exchange(device, &job, &mut slots, PATIENCE, |_| ());
            let spent = started.elapsed();
            let found = found.map_err(|error| Fault(error.to_string()))?;
            if found.was_covered {
                let silent = || Fault("it left a request of records undone".into());
                return Err(found.fault.unwrap_or_else(silent));
            }
            // In the first round buffers are made.
            if round > 0 {
                samples.push(((records * RECORD) as u64, spent.as_nanos() as u64));
            }
        }
    }
    Ok(fit(&samples))
}

/// Bytes of a record, as libssl cuts eight from 124 KiB.
const RECORD: usize = 15_872;
const RECORDS: [usize; 4] = [1, 4, 8, 32];
const ROUNDS: usize = 5;

/// Timeout of one request, which no caller waits for.
const PATIENCE: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::Fake;

    #[test]
    fn a_device_without_gcm_is_measured_with_ctr() {
        // What its line is, is the machine's business.
        assert!(device_line(&Fake::default()).is_ok());
        let ctr = |cipher: &Cipher<'_>| matches!(cipher, Cipher::Ctr { .. });
        assert!(device_line(&Fake { supports: ctr, ..Fake::default() }).is_ok());
        let ecb = |cipher: &Cipher<'_>| matches!(cipher, Cipher::EcbEncrypt(_));
        assert!(device_line(&Fake { supports: ecb, ..Fake::default() }).is_err());
    }

    #[test]
    fn a_device_that_fails_or_does_nothing_has_no_line() {
        let failing = Fake { pieces_before_fault: Some(0), ..Fake::default() };
        assert_eq!(device_line(&failing).unwrap_err().0, "the fake device failed on demand");
        let unable = Fake { supports: |_| false, ..Fake::default() };
        assert!(device_line(&unable).unwrap_err().0.contains("neither"));
    }
}
