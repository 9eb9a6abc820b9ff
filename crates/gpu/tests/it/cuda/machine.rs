//! A machine that is a directory with a driver's library in it.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;
use std::{fs, io};

use libloading::Library;
use wattlock_engine::crypto::{AesKernel, AesKey};
use wattlock_engine::{Cipher, Data, Engine, Job, Loaded, Policy, Report, Stores, Transfer};
use wattlock_gpu::cuda::{Cuda, Error, Options};

use super::library;

pub struct Machine(tempfile::TempDir);

impl Machine {
    pub fn new() -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        fs::copy(library::fake(), machine.library()).unwrap();
        machine
    }

    /// One whose launches run the kernels' text as a C compiler has compiled it, in the place of the
    /// interpreter: for many runs. `None` without a compiler.
    pub fn native() -> Option<Self> {
        let machine = Self::new();
        fs::copy(library::kernels()?, machine.0.path().join("kernels.so")).unwrap();
        Some(machine)
    }

    /// As [`Machine::native`], or with the interpreter where there is no compiler.
    pub fn quick() -> Self {
        Self::native().unwrap_or_else(Self::new)
    }

    /// Opens the FIFO for which a call that is late waits.
    pub fn release(&self) {
        drop(fs::OpenOptions::new().write(true).open(self.fifo()).unwrap());
    }

    /// The FIFO for which a call that is late waits.
    pub fn fifo(&self) -> PathBuf {
        self.0.path().join("release")
    }

    /// One whose library lacks `symbol`.
    pub fn without(symbol: &str) -> Self {
        let machine = Self::new();
        let mut bytes = fs::read(machine.library()).unwrap();
        let name = format!("\0{symbol}\0").into_bytes();
        let at = bytes.windows(name.len()).position(|window| window == name).unwrap();
        bytes[at + name.len() - 2] = b'?';
        fs::write(machine.library(), bytes).unwrap();
        machine
    }

    pub fn library(&self) -> PathBuf {
        self.0.path().join("libcuda.so.1")
    }

    /// From now on, the library fails as these lines say.
    pub fn fails(&self, faults: &str) -> &Self {
        fs::write(self.0.path().join("faults"), faults).unwrap();
        self
    }

    pub fn open(&self) -> Result<Cuda, Error> {
        self.open_as(OPTIONS)
    }

    pub fn open_as(&self, options: Options) -> Result<Cuda, Error> {
        Cuda::open_from(&self.library(), "cuda", options)
    }

    /// What was wrong, and what is left.
    pub fn report(&self) -> Vec<String> {
        // SAFETY: the library is the one that the tests compiled.
        let library = unsafe { Library::new(self.library()) }.unwrap();
        // SAFETY: that is its type.
        let report =
            unsafe { library.get::<unsafe extern "C" fn(*mut u8, usize) -> usize>(c"fake_report") }
                .unwrap();
        let mut text = vec![0; 1 << 16];
        // SAFETY: the text has room for its length.
        let len = unsafe { report(text.as_mut_ptr(), text.len()) };
        text.truncate(len);
        String::from_utf8(text).unwrap().lines().map(str::to_owned).collect()
    }

    /// Asserts that nothing was wrong, and nothing is left.
    pub fn assert_clean(&self) {
        let report = self.report();
        let (left, wrong): (Vec<_>, Vec<_>) = report
            .iter()
            .partition(|line| line.starts_with("left: ") || line.starts_with("launches"));
        assert_eq!(wrong, Vec::<&String>::new());
        let left: Vec<_> = left.iter().filter(|line| line.starts_with("left: ")).collect();
        assert!(left.iter().all(|line| line.starts_with("left: 0 ")), "{left:?}");
    }

    /// True if a key is on the device.
    pub fn holds_a_key(&self) -> bool {
        !self.report().contains(&"left: 0 keys".to_owned())
    }
}

/// Small, so that a job of a test has many pieces; and patient, as the interpreter is slow.
pub const OPTIONS: Options = Options {
    slots: 3,
    piece_bytes: 1 << 18,
    tables: None,
    verify: true,
    timeout: Some(Duration::from_secs(600)),
};

pub fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n % 251) as u8).collect()
}

pub fn aes(bits: usize) -> AesKey {
    AesKey::new(AesKernel::best(), &pattern(bits / 8)).unwrap()
}

/// A file in memory.
pub struct File {
    pub input: Vec<u8>,
    pub output: Mutex<Vec<u8>>,
    pub stores: Stores,
    pub slot_len: usize,
}

impl File {
    pub fn new(input: Vec<u8>, slot_len: usize, stores: Stores) -> Self {
        let output = Mutex::new(vec![0; input.len()]);
        Self { input, output, stores, slot_len }
    }
}

impl Transfer for File {
    fn chunks(&self) -> Option<Range<u64>> {
        Some(0..self.input.len().div_ceil(self.slot_len) as u64)
    }

    fn stores(&self) -> Stores {
        self.stores
    }

    fn load(&self, wanted: Range<u64>, slots: &mut [u8]) -> io::Result<Loaded> {
        let start = wanted.start as usize * self.slot_len;
        let end = (wanted.end as usize * self.slot_len).min(self.input.len());
        slots[..end - start].copy_from_slice(&self.input[start..end]);
        Ok(Loaded { len: end - start, last: end == self.input.len() })
    }

    fn store(&self, first: u64, slots: &[u8]) -> io::Result<()> {
        let mut output = self.output.lock().unwrap();
        output[first as usize * self.slot_len..][..slots.len()].copy_from_slice(slots);
        Ok(())
    }

    fn take_back(&self, _: Range<u64>, _: usize) -> bool {
        true
    }
}

/// Has the CPU and `device` encipher `data` by CTR.
pub fn ctr(device: Cuda, policy: Policy, data: &mut [u8]) -> Report {
    let engine = Engine::new(1).with_device(Box::new(device)).with_policy(policy);
    let key = aes(256);
    let cipher = Cipher::Ctr { key: &key, iv: [0xff; 16] };
    let file = File::new(data.to_vec(), 4096, Stores::Together);
    let report = engine
        .run(Job { cipher, chunk_len: 4096, data: Data::Moved(&file), deadline: None })
        .unwrap();
    data.copy_from_slice(&file.output.lock().unwrap());
    report
}

/// What [`ctr`] has to make of it.
pub fn ctr_by_cpu(data: &mut [u8]) {
    aes(256).ctr(&[0xff; 16], 0, data);
}

/// Bytes that the device of that name did.
pub fn by(report: &Report, name: &str) -> u64 {
    report.devices().filter(|device| device.name == name).map(|device| device.bytes).sum()
}
