//! `wattlock-lab cipher`: a raw cipher from standard input to standard output.

pub mod list;
mod raw;

use std::io::{self, IsTerminal, Read, Write};
use std::process::ExitCode;

use anyhow::Context;
use wattlock_engine::crypto::{self, AeadAlgorithm, AeadKey, GcmKernel, pkcs7};
use wattlock_engine::{Direction, Engine};
use wattlock_host::exit::{self, Ended, authentication, usage};
use wattlock_host::invocation::is_read_and_appended_to;
use zeroize::Zeroizing;

use crate::args::{self, Padding};
use crate::study::{Algorithm, Error, aes};

pub use raw::{RawKey, RawStream};

/// `wattlock-lab cipher`.
pub fn run(args: &args::Cipher) -> Ended {
    if args.list {
        return list::print(args.json);
    }
    if args.json {
        return Err(usage("--json requires --list"));
    }
    exit::check_stdin()?;
    exit::check_stdout()?;
    let name = args.alg.as_deref().unwrap_or_default();
    if name == "parc4-reuse" {
        return Err(usage("parc4-reuse reuses its key stream: only `bench ciphers` runs it"));
    }
    // A goal that no policy minimizes makes no sense for any algorithm.
    let selection = args.spread.selection()?;
    let algorithm = Algorithm::named(name).ok_or_else(|| {
        let unknown = format!("unknown algorithm {name:?}");
        usage(exit::redact_value(&format!(
            "{unknown}; `wattlock-lab cipher --list` shows them all"
        )))
    })?;
    let bytes = |what: &str, given: &Option<String>| match given {
        Some(text) => hex(what, text).map(Some),
        None => Ok(None),
    };
    let key = bytes("--key", &args.key)?.unwrap_or_default();
    let iv = bytes("--iv", &args.iv)?.unwrap_or_default();
    let key2 = bytes("--key2", &args.key2)?;
    let aad = bytes("--aad", &args.aad)?;
    refuse_what_does_not_fit(args, algorithm)?;
    let lengths = algorithm.check_lengths(key.len(), iv.len());
    lengths.map_err(|error| match error {
        Error::KeyRange { .. } => usage(format!("{error}; a byte is two hexadecimal digits")),
        _ => usage(error.to_string()),
    })?;
    if let Algorithm::AesGcm { bits } = algorithm {
        let key = gcm_key(bits, &key, args.kernel.as_deref(), algorithm)?;
        check_ends(args.decrypt)?;
        return gcm(&key, &iv, aad.as_deref().map_or(&[], Vec::as_slice), args.decrypt);
    }
    let kernel = kernel(args.kernel.as_deref(), algorithm)?;
    let direction = if args.decrypt { Direction::Decrypt } else { Direction::Encrypt };
    let keyed = RawKey { key: &key, key2: key2.as_deref().map(Vec::as_slice), iv: &iv };
    let stream = RawStream::new(algorithm, kernel, keyed, direction)
        .map_err(|error| usage(error.to_string()))?
        .with_grain(args.block_size.map(|bytes| bytes as usize));
    let engine = selection.engine(args::threads(args.threads))?;
    check_ends(args.decrypt)?;
    let cutter = Cutter { algorithm, padding: args.pad, direction, window: WINDOW };
    let copied = cutter.copy(stream, &engine, &mut io::stdin().lock(), &mut io::stdout().lock());
    for (device, fault) in engine.faults() {
        exit::say_fault(&device, &fault.0);
    }
    copied?;
    Ok(ExitCode::SUCCESS)
}

/// Bytes that are read, worked on and written at a time; a multiple of every block length.
const WINDOW: usize = 8 << 20;

/// Refuses ends of the stream that the output would spoil.
fn check_ends(decrypt: bool) -> anyhow::Result<()> {
    // Plaintext may be text.
    if !decrypt && io::stdout().is_terminal() {
        return Err(usage("refusing to write binary data to a terminal; redirect it to a file"));
    }
    if is_read_and_appended_to() {
        return Err(usage("the output is appended to the input, and would never end"));
    }
    Ok(())
}

/// Flags that another algorithm would have taken.
fn refuse_what_does_not_fit(args: &args::Cipher, algorithm: Algorithm) -> anyhow::Result<()> {
    let gcm = matches!(algorithm, Algorithm::AesGcm { .. });
    if let Some(flag) = gcm.then(|| of_the_engine(args)).flatten() {
        return Err(usage(format!("{algorithm} runs on one CPU thread; {flag} cannot be used")));
    }
    let block_len = algorithm.block_len();
    let wrong = if args.key2.is_some() && algorithm != Algorithm::Rc4a {
        "--key2 is for rc4a"
    } else if args.aad.is_some() && !gcm {
        "--aad is for GCM: no other mode authenticates"
    } else if args.pad == Padding::Pkcs7 && block_len == 1 {
        "--pad is for ECB and CBC: this cipher takes messages of any length"
    } else if args.block_size.is_some() && gcm {
        "--block-size is not for GCM: its tag covers the whole message"
    } else if args.block_size == Some(0)
        || args.block_size.is_some_and(|size| size > WINDOW as u64 || size % grain(algorithm) != 0)
    {
        return Err(usage(match grain(algorithm) {
            1 => "--block-size must be 1 byte to 8M".to_owned(),
            grain => format!("--block-size must be a multiple of {grain} bytes, at most 8M"),
        }));
    } else {
        return Ok(());
    };
    Err(usage(format!("{algorithm}: {wrong}")))
}

/// A flag of the engine that was given. One thread of the CPU works on a message of GCM.
fn of_the_engine(args: &args::Cipher) -> Option<&'static str> {
    let spread = &args.spread;
    if spread.devices.iter().any(|name| name != "cpu") {
        Some("--device")
    } else if spread.policy.is_some() {
        Some("--policy")
    } else if spread.unchecked {
        Some("--verify none")
    } else if args.threads.is_some_and(|threads| threads > 1) {
        Some("--threads above 1")
    } else {
        None
    }
}

/// What a piece must be a multiple of, so that it starts at a block.
fn grain(algorithm: Algorithm) -> u64 {
    match algorithm {
        Algorithm::Aes(_) | Algorithm::AesGcm { .. } => 16,
        Algorithm::Blowfish(_) | Algorithm::PBlock(_) => 8,
        _ => 1,
    }
}

/// The kernel of AES that was asked for, or the best; other ciphers have one each.
pub fn kernel(name: Option<&str>, algorithm: Algorithm) -> anyhow::Result<aes::Kernel> {
    match name {
        Some(name) if matches!(algorithm, Algorithm::Aes(_)) => {
            aes::Kernel::named(name).map_err(|error| no_kernel(name, &error, algorithm))
        }
        Some(name) if !algorithm.kernels().contains(&name) => {
            Err(no_kernel(name, &crypto::Error::UnknownKernel(name.to_owned()), algorithm))
        }
        _ => Ok(aes::Kernel::best()),
    }
}

/// Why `algorithm` cannot have the kernel of that name.
fn no_kernel(name: &str, error: &crypto::Error, algorithm: Algorithm) -> anyhow::Error {
    let is_of_it = algorithm.kernels().contains(&name);
    let known = algorithm.kernels().join(", ");
    usage(match list::is_kernel(name) && !is_of_it {
        true => format!("{algorithm} cannot use the kernel {name}; its kernels are {known}"),
        false => exit::redact_value(&format!("{error}; {algorithm} has the kernels {known}")),
    })
}

/// The bytes that `text` spells. What it holds may be a key, so no error repeats it.
pub fn hex(what: &str, text: &str) -> anyhow::Result<Zeroizing<Vec<u8>>> {
    let digits = || text.chars().map(|c| c.to_digit(16));
    if digits().any(|digit| digit.is_none()) {
        return Err(usage(format!("{what} takes hexadecimal digits only")));
    }
    if text.len() % 2 == 1 {
        return Err(usage(format!("{what} has an odd number of hexadecimal digits")));
    }
    let digits: Zeroizing<Vec<u8>> = Zeroizing::new(digits().flatten().map(|d| d as u8).collect());
    Ok(Zeroizing::new(
        digits.as_chunks::<2>().0.iter().map(|[high, low]| high << 4 | low).collect(),
    ))
}

/// Cuts a stream into windows and takes care of its end.
struct Cutter {
    algorithm: Algorithm,
    padding: Padding,
    direction: Direction,
    window: usize,
}

impl Cutter {
    /// Reads one window ahead: the last one is padded, and its padding is taken off.
    fn copy(
        &self,
        mut stream: RawStream,
        engine: &Engine,
        input: &mut impl Read,
        output: &mut impl Write,
    ) -> anyhow::Result<()> {
        let (mut window, mut next) = (Zeroizing::new(Vec::new()), Zeroizing::new(Vec::new()));
        fill(input, self.window, &mut window)?;
        let mut before = 0_u64;
        loop {
            if window.len() == self.window {
                fill(input, self.window, &mut next)?;
            }
            let last = next.is_empty();
            if last {
                self.close(&mut window, before)?;
            }
            stream.apply(engine, &mut window).map_err(|error| {
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                anyhow::anyhow!("{}", cause.unwrap_or_else(|| error.to_string()))
            })?;
            if last && self.padding == Padding::Pkcs7 && self.direction == Direction::Decrypt {
                let block_len = self.algorithm.block_len();
                let start = window.len() - block_len;
                let kept = pkcs7::unpadded_len(&window[start..]).map_err(|error| {
                    authentication(format!("{error}: a wrong key, or a damaged message"))
                })?;
                window.truncate(start + kept);
            }
            output
                .write_all(&window)
                .and_then(|()| output.flush())
                .context("cannot write to standard output")?;
            if last {
                return Ok(());
            }
            before += window.len() as u64;
            std::mem::swap(&mut window, &mut next);
            next.clear();
        }
    }

    /// Makes the last window whole blocks, or refuses it.
    fn close(&self, window: &mut Vec<u8>, before: u64) -> anyhow::Result<()> {
        let block_len = self.algorithm.block_len();
        let padded = self.padding == Padding::Pkcs7;
        let len = before + window.len() as u64;
        match self.direction {
            Direction::Encrypt if padded => {
                window.extend(pkcs7::padding(window.len(), block_len)?);
                Ok(())
            }
            Direction::Decrypt if padded && len == 0 => {
                Err(authentication("the input is empty; a padded message has at least one block"))
            }
            _ if window.len().is_multiple_of(block_len) => Ok(()),
            _ => {
                let what = format!(
                    "{} takes whole blocks of {block_len} bytes; the input has {len} bytes",
                    self.algorithm
                );
                Err(match self.direction {
                    Direction::Encrypt => usage(what + "; use --pad pkcs7"),
                    Direction::Decrypt => {
                        authentication(what + ": it was cut, or another cipher made it")
                    }
                })
            }
        }
    }
}

/// Reads `len` bytes, or to the end.
fn fill(input: &mut impl Read, len: usize, window: &mut Vec<u8>) -> anyhow::Result<()> {
    window.clear();
    // Room for the padding as well, so that the plaintext is never moved and left behind.
    window.reserve_exact(len + 256);
    input.take(len as u64).read_to_end(window).context("cannot read standard input")?;
    Ok(())
}

/// A key for the kernel that was asked for, or the best.
fn gcm_key(
    bits: usize,
    key: &[u8],
    kernel: Option<&str>,
    algorithm: Algorithm,
) -> anyhow::Result<AeadKey> {
    let kernel = match kernel {
        None => GcmKernel::best(),
        Some(name) => GcmKernel::named(name).map_err(|error| no_kernel(name, &error, algorithm))?,
    };
    let aead = if bits == 128 { AeadAlgorithm::Aes128Gcm } else { AeadAlgorithm::Aes256Gcm };
    Ok(AeadKey::with_kernel(kernel, aead, key)?)
}

/// One message of AES-GCM, in memory: the tag comes last, and nothing is released before it.
fn gcm(key: &AeadKey, nonce: &[u8], aad: &[u8], decrypt: bool) -> Ended {
    let nonce: [u8; crypto::NONCE_LEN] = nonce.try_into()?;
    let mut message = Zeroizing::new(Vec::new());
    io::stdin().lock().read_to_end(&mut message).context("cannot read standard input")?;
    if decrypt {
        let Some((text, tag)) = message.split_last_chunk_mut::<{ crypto::TAG_LEN }>() else {
            return Err(authentication("the input is shorter than a tag"));
        };
        key.open(nonce, aad, text, tag).map_err(|error| authentication(error.to_string()))?;
        let len = text.len();
        message.truncate(len);
    } else {
        let tag = key.seal(nonce, aad, &mut message)?;
        message.extend_from_slice(&tag);
    }
    exit::print_bytes(&message)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows of one block length upwards give what one window gives.
    #[test]
    fn where_windows_end_does_not_show() {
        let engine = Engine::new(2);
        for algorithm in Algorithm::ALL {
            if matches!(algorithm, Algorithm::AesGcm { .. }) {
                continue;
            }
            let padding = if algorithm.block_len() > 1 { Padding::Pkcs7 } else { Padding::None };
            let key = vec![0x42; algorithm.key_len().0];
            let iv = vec![0xfe; algorithm.iv_len()];
            for len in [0, 1, 15, 16, 17, 1000, 4096] {
                let message: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
                let through = |direction, window, input: &[u8]| {
                    let keyed = RawKey { key: &key, key2: None, iv: &iv };
                    let kernel = aes::Kernel::best();
                    let stream = RawStream::new(algorithm, kernel, keyed, direction).unwrap();
                    let mut output = Vec::new();
                    Cutter { algorithm, padding, direction, window }
                        .copy(stream, &engine, &mut &*input, &mut output)
                        .unwrap();
                    output
                };
                let sealed = through(Direction::Encrypt, 1 << 16, &message);
                for window in [16, 48, 4096] {
                    let name = format!("{algorithm}, {len} bytes, windows of {window}");
                    assert_eq!(through(Direction::Encrypt, window, &message), sealed, "{name}");
                    assert_eq!(through(Direction::Decrypt, window, &sealed), message, "{name}");
                }
            }
        }
    }

    #[test]
    fn hexadecimal_digits() {
        assert_eq!(**hex("--key", "00fFa5").unwrap(), [0x00, 0xff, 0xa5]);
        for wrong in ["0", "0g", "+1", "0x00", "é1"] {
            let error = hex("--key", wrong).unwrap_err().to_string();
            assert!(!error.contains(wrong) || wrong == "0", "{error}");
        }
    }
}
