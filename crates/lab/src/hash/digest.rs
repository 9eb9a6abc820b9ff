//! Digests of files: many at once on the lanes of a core, or one long one on all cores.

use std::fs::File;
use std::io::{self, Read};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use wattlock_engine::Engine;
use wattlock_engine::crypto::sha2::{self, Sha256Lane};
use wattlock_engine::crypto::sha3::{self, Sha3_256Lane};
use wattlock_engine::crypto::tree_hash::TreeHash;
use wattlock_engine::crypto::{HmacAlgorithm, KeccakKernel, ShaKernel};
use wattlock_file::Input;

use super::tree::TreeStream;
use crate::lock::lock;

/// Bytes of every digest here.
pub const DIGEST_LEN: usize = 32;

/// What is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DigestAlgorithm {
    /// SHA3-256 (FIPS 202): serial in one file, so files go side by side.
    Sha3_256(KeccakKernel),
    /// SHA-256 (FIPS 180-4): serial as well.
    Sha256(ShaKernel),
    /// A tree, whose leaves go side by side, so files go one after the other.
    Tree(TreeHash, KeccakKernel),
}

/// The digests of `inputs`, in their order; each is read once, from its beginning to its end.
///
/// # Errors
/// Those of the engine. An input that cannot be read is an error of its own.
pub fn digests(
    engine: &Engine,
    algorithm: DigestAlgorithm,
    inputs: &[Input],
) -> Result<Vec<io::Result<[u8; DIGEST_LEN]>>, wattlock_engine::Error> {
    match algorithm {
        DigestAlgorithm::Sha3_256(kernel) => side_by_side(engine, kernel, inputs),
        DigestAlgorithm::Sha256(kernel) => side_by_side(engine, kernel, inputs),
        DigestAlgorithm::Tree(hash, kernel) => {
            inputs.iter().map(|input| tree(engine, kernel, hash, input)).collect()
        }
    }
}

/// A hash whose messages go side by side.
trait SideBySide: Copy + Sync {
    /// The state of one message.
    type State: Default;

    /// Files that a worker has open: the lanes of a kernel.
    const LANES: usize;

    fn update(self, messages: &mut [(&mut Self::State, &[u8])]);

    fn finish(self, states: Vec<Self::State>) -> Vec<[u8; DIGEST_LEN]>;
}

impl SideBySide for KeccakKernel {
    type State = Sha3_256Lane;
    const LANES: usize = Self::LANES;

    fn update(self, messages: &mut [(&mut Sha3_256Lane, &[u8])]) {
        sha3::update_many(self, messages);
    }

    fn finish(self, states: Vec<Sha3_256Lane>) -> Vec<[u8; DIGEST_LEN]> {
        sha3::finish_many(self, states)
    }
}

impl SideBySide for ShaKernel {
    type State = Sha256Lane;
    const LANES: usize = HmacAlgorithm::Sha256.lanes();

    fn update(self, messages: &mut [(&mut Sha256Lane, &[u8])]) {
        sha2::update_many(self, messages);
    }

    fn finish(self, states: Vec<Sha256Lane>) -> Vec<[u8; DIGEST_LEN]> {
        sha2::finish_many(self, states)
    }
}

/// Bytes that are read of a file at a time; a multiple of SHA3-256's rate of 136, and of SHA-256's
/// block of 64.
const LANE_WINDOW: usize = 136 * 1024;

/// Bytes that are read of a long file at a time.
const TREE_WINDOW: usize = 8 << 20;

fn open(input: &Input) -> io::Result<Box<dyn Read>> {
    match input {
        Input::Stdin => Ok(Box::new(io::stdin())),
        Input::Path(path) => {
            let file = File::open(path)?;
            if file.metadata()?.is_dir() {
                return Err(io::ErrorKind::IsADirectory.into());
            }
            Ok(Box::new(file))
        }
        Input::Located(_) | Input::Remote(_) => Err(io::ErrorKind::Unsupported.into()),
    }
}

fn tree(
    engine: &Engine,
    kernel: KeccakKernel,
    hash: TreeHash,
    input: &Input,
) -> Result<io::Result<[u8; DIGEST_LEN]>, wattlock_engine::Error> {
    let mut reader = match open(input) {
        Ok(reader) => reader,
        Err(error) => return Ok(Err(error)),
    };
    let mut stream = TreeStream::new(hash, kernel);
    // A chaining value is up to 64 bytes, however short its chunk.
    let len = stream.window_len(TREE_WINDOW.min(hash.chunk_len().saturating_mul(1 << 13)));
    let mut window = Vec::new();
    loop {
        window.clear();
        if let Err(error) = reader.by_ref().take(len as u64).read_to_end(&mut window) {
            return Ok(Err(error));
        }
        if window.len() < len {
            let mut digest = [0; DIGEST_LEN];
            stream.finish(engine, &window, &mut digest)?;
            return Ok(Ok(digest));
        }
        stream.update(engine, &window)?;
    }
}

fn side_by_side<K: SideBySide>(
    engine: &Engine,
    kernel: K,
    inputs: &[Input],
) -> Result<Vec<io::Result<[u8; DIGEST_LEN]>>, wattlock_engine::Error> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(inputs.len()));
    let workers = vec![(); engine.threads().min(inputs.len().div_ceil(K::LANES)).max(1)];
    engine.for_each(&workers, |()| {
        let mut lanes = Vec::with_capacity(K::LANES);
        loop {
            while lanes.len() < K::LANES {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(input) = inputs.get(index) else { break };
                lanes.push(Lane::open(index, input));
            }
            if lanes.is_empty() {
                return;
            }
            let finished = advance(kernel, &mut lanes);
            lock(&done).extend(finished);
        }
    })?;
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(index, _)| *index);
    Ok(done.into_iter().map(|(_, digest)| digest).collect())
}

/// One file on its way.
struct Lane<S> {
    index: usize,
    reader: io::Result<Box<dyn Read>>,
    state: S,
    window: Vec<u8>,
    ended: bool,
}

impl<S: Default> Lane<S> {
    fn open(index: usize, input: &Input) -> Self {
        let reader = open(input);
        Self { index, reader, state: S::default(), window: Vec::new(), ended: false }
    }

    fn read(&mut self) {
        self.window.clear();
        let Ok(reader) = &mut self.reader else {
            self.ended = true;
            return;
        };
        match reader.by_ref().take(LANE_WINDOW as u64).read_to_end(&mut self.window) {
            Ok(len) => self.ended = len < LANE_WINDOW,
            Err(error) => {
                self.reader = Err(error);
                self.ended = true;
            }
        }
    }
}

/// Takes every lane a window further, and the ended ones out.
fn advance<K: SideBySide>(
    kernel: K,
    lanes: &mut Vec<Lane<K::State>>,
) -> Vec<(usize, io::Result<[u8; DIGEST_LEN]>)> {
    lanes.iter_mut().for_each(Lane::read);
    let mut data: Vec<_> =
        lanes.iter_mut().map(|lane| (&mut lane.state, lane.window.as_slice())).collect();
    kernel.update(&mut data);
    let ended = lanes.extract_if(.., |lane| lane.ended);
    let (readers, states): (Vec<_>, Vec<_>) =
        ended.map(|lane| ((lane.index, lane.reader), lane.state)).unzip();
    let digests = kernel.finish(states).into_iter();
    readers.into_iter().zip(digests).map(|((i, reader), d)| (i, reader.map(|_| d))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wattlock_engine::crypto::sha3::sha3_256_many;

    #[test]
    fn files_of_all_lengths_and_one_that_is_missing() {
        let directory = tempfile::tempdir().unwrap();
        let lengths = [0, 1, 135, 136, 137, LANE_WINDOW - 1, LANE_WINDOW, LANE_WINDOW + 1, 500_000];
        let contents: Vec<Vec<u8>> =
            (0..30).map(|i| (0..lengths[i % 9]).map(|j| ((i + j) % 251) as u8).collect()).collect();
        let mut inputs: Vec<_> = contents
            .iter()
            .enumerate()
            .map(|(index, content)| {
                let path = directory.path().join(index.to_string());
                std::fs::write(&path, content).unwrap();
                Input::Path(path)
            })
            .collect();
        inputs.insert(7, Input::Path(directory.path().join("missing")));
        inputs.insert(9, Input::Path(directory.path().to_owned()));
        let kernel = KeccakKernel::best();
        let expected =
            sha3_256_many(kernel, &contents.iter().map(Vec::as_slice).collect::<Vec<_>>());
        for threads in [1, 3] {
            let engine = Engine::new(threads);
            let mut found = digests(&engine, DigestAlgorithm::Sha3_256(kernel), &inputs).unwrap();
            assert_eq!(found.remove(9).unwrap_err().kind(), io::ErrorKind::IsADirectory);
            assert_eq!(found.remove(7).unwrap_err().kind(), io::ErrorKind::NotFound);
            let found: Vec<_> = found.into_iter().map(Result::unwrap).collect();
            assert_eq!(found, expected);
        }
    }
}
