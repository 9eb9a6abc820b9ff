//! Known answers that a device has to give before it is used.

use crate::crypto::{AesKernel, AesKey};
use crate::device::{Device, Fault, Stop};
use crate::error::Error;
use crate::job::{Cipher, Data, Job};
use crate::policy::Terms;
use crate::run::{Progress, Run, Seat};
use crate::tally::Tally;

/// Lets `device` do a little of everything that it says it supports, and compares with the plain
/// code, which cites FIPS 197 and SP 800-38A: AES of every key length in CTR, whose counter wraps
/// inside the first blocks, ECB both ways, and CBC decryption. AES-GCM is the device's to test.
///
/// Call it after opening a device, before giving it to an engine.
///
/// # Errors
/// What the device says when it fails, and what it got wrong.
pub(crate) fn self_test(device: &dyn Device) -> Result<(), Fault> {
    for bits in [128, 192, 256] {
        let material: [u8; 32] = std::array::from_fn(|i| (i * 7 + 3) as u8);
        let key = AesKey::new(AesKernel::Soft, &material[..bits / 8]);
        let key = key.map_err(|error| Fault(error.to_string()))?;
        let mut iv = [0xff; AesKey::BLOCK_LEN];
        iv[15] = 0xfd;
        let ivs = [[0x5a; AesKey::BLOCK_LEN]; CHUNKS];
        let ciphers = [
            ("ctr", Cipher::Ctr { key: &key, iv }),
            ("ecb encrypt", Cipher::EcbEncrypt(&key)),
            ("ecb decrypt", Cipher::EcbDecrypt(&key)),
            ("cbc decrypt", Cipher::CbcDecrypt { key: &key, ivs: &ivs }),
        ];
        for (mode, cipher) in ciphers {
            if device.supports(&cipher) {
                agrees(device, cipher)
                    .map_err(|Fault(why)| Fault(format!("aes-{bits}-{mode}: {why}")))?;
            }
        }
    }
    Ok(())
}

/// That the device gives what the CPU gives.
fn agrees(device: &dyn Device, cipher: Cipher<'_>) -> Result<(), Fault> {
    // No multiple of 256, so that swapped lanes never look alike.
    let mut given: Vec<u8> = (0..CHUNKS * CHUNK_LEN).map(|i| (i % 251) as u8).collect();
    let mut expected = given.clone();
    let job = Job {
        cipher,
        chunk_len: CHUNK_LEN,
        data: Data::InPlace { slots: &mut [] },
        deadline: None,
    };
    let failed = |error: Error| Fault(error.to_string());
    job.apply(0, true, &mut expected).map_err(failed)?;
    let terms = Terms { full: 5, least: 1, slots: 2, may_decline: false, times: None };
    let name = device.name().to_owned();
    let seats = vec![Seat { name, terms, workers: 1, progress: Progress::default(), line: None }];
    let run = Run::new(&job, Some(&mut given), CHUNKS, Some(0), seats);
    let mut tally = Tally::default();
    match device.work(&run, &mut tally) {
        Ok(()) => {}
        Err(Stop::Fault(fault) | Stop::Wrong(fault)) => return Err(fault),
        Err(Stop::Job(error)) => return Err(failed(error)),
    }
    if run.pending() {
        return Err(Fault(format!("it stopped after {} bytes", tally.bytes)));
    }
    drop(run);
    if given != expected {
        return Err(Fault("it gives another result than the plain code".into()));
    }
    Ok(())
}

/// Several pieces, and in each more blocks than a warp has threads.
const CHUNKS: usize = 13;
const CHUNK_LEN: usize = 1008;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::Fake;

    #[test]
    fn a_device_is_right_or_named() {
        assert_eq!(self_test(&Fake::default()), Ok(()));
        let wrong = self_test(&Fake { wrong: true, ..Fake::default() }).unwrap_err();
        assert_eq!(wrong.0, "aes-128-ctr: it gives another result than the plain code");
        let failing = Fake { pieces_before_fault: Some(1), ..Fake::default() };
        assert_eq!(
            self_test(&failing).unwrap_err().0,
            "aes-128-ctr: the fake device failed on demand"
        );
        let unable = Fake { supports: |_| false, wrong: true, ..Fake::default() };
        assert_eq!(self_test(&unable), Ok(()), "it is never asked");
    }
}
