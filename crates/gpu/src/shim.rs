//! The kernels' text as plain C, lane by lane, as a device of the tests.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use libloading::{Library, Symbol};
use wattlock_engine::Operation;
use wattlock_engine::crypto::{AesKernel, AesKey, TAG_LEN};

use crate::agreement::{self, Cases};
use crate::check::{ByteRange, ChecksumSeed, Found, ROW, Sums};
use crate::kernels::{Tables, round_key_words};
use crate::piece_output::PieceOutput;
use crate::pipeline::Slot;
use crate::task::{Batch, Keys, Task};

/// Runs the shim, compiled from `tests/it/shim.c`, in the place of a GPU.
struct Shim {
    library: Library,
    tables: Tables,
    keys: Option<Arc<Keys>>,
    hash_key: Vec<u128>,
    output: Vec<u128>,
    start: usize,
    len: usize,
    tags: Vec<[u8; TAG_LEN]>,
    sums: Sums,
}

/// Groups and lanes that divide nothing evenly.
const GROUPS: u32 = 3;
const GROUP: u32 = 96;

#[test]
fn one_table_agrees_with_aes_soft() {
    if let Some(mut shim) = Shim::compile(Tables::T0, "one_table_agrees_with_aes_soft") {
        agreement::check(&mut shim, Cases::Short);
    }
}

#[test]
fn four_tables_agree_with_aes_soft() {
    if let Some(mut shim) = Shim::compile(Tables::T4, "four_tables_agree_with_aes_soft") {
        agreement::check(&mut shim, Cases::Short);
    }
}

#[test]
#[ignore = "takes long; `make test-all` runs it"]
fn soak_of_all_operations_in_c() {
    for tables in [Tables::T0, Tables::T4] {
        if let Some(mut shim) = Shim::compile(tables, "soak_of_all_operations_in_c") {
            agreement::check(&mut shim, Cases::All);
        }
    }
}

/// The study's granularities, from a lane a block to 256 blocks a lane.
#[test]
fn extended_blocks_are_ctr_too() {
    for tables in [Tables::T0, Tables::T4] {
        let Some(shim) = Shim::compile(tables, "extended_blocks_are_ctr_too") else { return };
        let key = AesKey::new(AesKernel::Soft, &[3; 24]).unwrap();
        let words = round_key_words(&key.encrypt_schedule());
        let mut iv = [0xff; 16];
        iv[15] = 0xf7;
        for lane_blocks in [1, 32, 64, 128, 256_u32] {
            let (start, end) = (5, 100_001);
            let mut bytes = pattern(end);
            let input = blocks_of(&bytes, 0);
            let mut output = input.clone();
            // SAFETY: the type is that of shim.c, and both buffers hold `end` bytes.
            #[allow(clippy::multiple_unsafe_ops_per_block)]
            unsafe {
                let launch: Symbol<
                    '_,
                    unsafe extern "C" fn(
                        u32,
                        u32,
                        *const u32,
                        u32,
                        *const u128,
                        *mut u128,
                        u64,
                        u64,
                        u64,
                        u64,
                        u32,
                        u32,
                    ),
                > = shim.symbol("wattlock_ctr_extended", true);
                let (input, output) = (input.as_ptr(), output.as_mut_ptr());
                let (high, low) = (u64::MAX, u64::MAX - 8);
                let (start, end) = (start as u64, end as u64);
                launch(
                    GROUPS,
                    GROUP,
                    words.as_ptr(),
                    12,
                    input,
                    output,
                    high,
                    low,
                    start,
                    end,
                    lane_blocks,
                    lane_blocks % GROUPS,
                );
            }
            key.ctr(&iv, start as u64, &mut bytes[start..]);
            assert!(bytes_of(&output)[..end] == bytes, "{tables:?}, {lane_blocks} blocks a lane");
        }
    }
}

impl Shim {
    /// Compiles it; `None`, and a line, where there is no C compiler.
    fn compile(tables: Tables, test: &str) -> Option<Self> {
        let Ok(folder) = tempfile::tempdir() else {
            wattlock_testing::skip("tmp", format_args!("{test}: no temporary directory"));
            return None;
        };
        let made = folder.path().join("shim.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/shim.c");
        let compiled = Command::new("cc")
            .args([
                "-O2",
                "-shared",
                "-fPIC",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-Wno-unused-function",
            ])
            .arg("-o")
            .arg(&made)
            .arg(source)
            .output();
        let compiled = match compiled {
            Ok(compiled) => compiled,
            Err(error) => {
                wattlock_testing::skip("cc", format_args!("{test}: cc is not installed ({error})"));
                return None;
            }
        };
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        // SAFETY: a library of plain functions without initialisers.
        let library = unsafe { Library::new(made) }.unwrap();
        Some(Self {
            library,
            tables,
            keys: None,
            hash_key: Vec::new(),
            output: Vec::new(),
            start: 0,
            len: 0,
            tags: Vec::new(),
            sums: Sums::default(),
        })
    }

    /// # Safety
    /// `T` is the type of the function in `shim.c`.
    unsafe fn symbol<T>(&self, kernel: &str, of_a_kind: bool) -> Symbol<'_, T> {
        let kind = if of_a_kind { format!("_{}", self.tables.suffix()) } else { String::new() };
        // SAFETY: the caller's promise.
        unsafe { self.library.get(format!("launch_{kernel}{kind}").as_bytes()) }.unwrap()
    }
}

impl Slot for Shim {
    type Error = String;

    fn load_key(&mut self, task: &Task<'_>) -> Result<bool, String> {
        let keys = &task.keys;
        let bytes: Vec<u8> = keys.hash_key.iter().flat_map(|word| word.to_ne_bytes()).collect();
        self.hash_key = blocks_of(&bytes, 0);
        self.keys = Some(keys.clone());
        Ok(true)
    }

    fn wipe_key(&mut self) {}

    fn start(
        &mut self,
        batch: &Arc<Batch>,
        input: &[u8],
        salt: Option<ChecksumSeed>,
    ) -> Result<(), String> {
        (self.start, self.len) = (batch.start(), input.len());
        let extent = ByteRange::of(batch, input.len());
        let input = blocks_of(input, self.start);
        let (output, tags) = self.compute(batch, &input, 0)?;
        if let Some(salt) = salt {
            let (again, again_tags) = self.compute(batch, &input, GROUPS / 2 + 1)?;
            let ivs = blocks_of(batch.ivs(), 0);
            let [first, second] = [&tags, &again_tags].map(|tags| {
                if tags.is_empty() { ivs.clone() } else { blocks_of(tags.as_flattened(), 0) }
            });
            self.sums = Sums {
                piece: self.compare(salt, extent, &input, &output, &again),
                side: self.compare(salt, ByteRange::side(batch), &ivs, &first, &second),
            };
        }
        (self.output, self.tags) = (output, tags);
        Ok(())
    }

    fn wait(&mut self, _: Duration) -> Result<PieceOutput<'_>, String> {
        let bytes = &bytes_of(&self.output)[self.start..][..self.len];
        Ok(PieceOutput { bytes, tags: &self.tags, sums: self.sums })
    }

    fn distrust(&self, _: &'static str) {}
}

impl Shim {
    fn compare(
        &self,
        salt: ChecksumSeed,
        extent: ByteRange,
        input: &[u128],
        first: &[u128],
        second: &[u128],
    ) -> Found {
        let ByteRange { start, end, stride } = extent;
        let [a, b, c, d] = salt.words();
        let mut sums = vec![0_u64; GROUPS as usize * ROW];
        let [input, first, second] = [input, first, second].map(<[u128]>::as_ptr);
        // SAFETY: the type is that of shim.c, and the buffers have the sizes that the kernels' README
        // asks for.
        #[allow(clippy::multiple_unsafe_ops_per_block)]
        unsafe {
            type Check = unsafe extern "C" fn(
                u32,
                u32,
                *const u128,
                *const u128,
                *const u128,
                *mut u64,
                u64,
                u64,
                u32,
                u64,
                u64,
                u64,
                u64,
            );
            let check = self.symbol::<Check>("wattlock_check", false);
            let sums = sums.as_mut_ptr();
            check(GROUPS, GROUP, input, first, second, sums, start, end, stride, a, b, c, d);
        }
        Found::of(&sums)
    }

    /// What the kernels make of `input`, where each group does what group `shift` further on would.
    fn compute(
        &self,
        batch: &Batch,
        input: &[u128],
        shift: u32,
    ) -> Result<(Vec<u128>, Vec<[u8; TAG_LEN]>), String> {
        let given = self.keys.as_ref().ok_or("no key")?;
        let mut tags = vec![[0; TAG_LEN]; batch.tags()];
        let mut output = vec![0; input.len()];
        let (keys, rounds) = (given.round_keys.as_ptr(), given.rounds);
        let (from, to) = (input.as_ptr(), output.as_mut_ptr());
        let ivs = blocks_of(batch.ivs(), 0);
        // SAFETY: in all of these, the types are those of shim.c, and the buffers have the sizes
        // that the kernels' README asks for.
        #[allow(clippy::multiple_unsafe_ops_per_block)]
        unsafe {
            match batch {
                Batch::Ctr { counter, start } => {
                    let (high, low) = ((counter >> 64) as u64, *counter as u64);
                    let end = (start + self.len) as u64;
                    self.symbol::<unsafe extern "C" fn(
                        u32,
                        u32,
                        *const u32,
                        u32,
                        *const u128,
                        *mut u128,
                        u64,
                        u64,
                        u64,
                        u64,
                        u32,
                    )>("wattlock_ctr", true)(
                        GROUPS,
                        GROUP,
                        keys,
                        rounds,
                        from,
                        to,
                        high,
                        low,
                        *start as u64,
                        end,
                        shift,
                    );
                }
                Batch::CtrExtended { .. } => return Err("has a test of its own".to_owned()),
                Batch::EcbEncrypt | Batch::EcbDecrypt => {
                    let name = match batch {
                        Batch::EcbEncrypt => "wattlock_ecb_encrypt",
                        _ => "wattlock_ecb_decrypt",
                    };
                    self.symbol::<unsafe extern "C" fn(
                        u32,
                        u32,
                        *const u32,
                        u32,
                        *const u128,
                        *mut u128,
                        u64,
                        u32,
                    )>(name, true)(
                        GROUPS,
                        GROUP,
                        keys,
                        rounds,
                        from,
                        to,
                        input.len() as u64,
                        shift,
                    );
                }
                Batch::CbcEncrypt { message_blocks, .. }
                | Batch::CbcDecrypt { message_blocks, .. } => {
                    let name = match batch {
                        Batch::CbcEncrypt { .. } => "wattlock_cbc_encrypt",
                        _ => "wattlock_cbc_decrypt",
                    };
                    self.symbol::<unsafe extern "C" fn(
                        u32,
                        u32,
                        *const u32,
                        u32,
                        *const u128,
                        *mut u128,
                        *const u128,
                        u64,
                        u32,
                        u32,
                    )>(name, true)(
                        GROUPS,
                        GROUP,
                        keys,
                        rounds,
                        from,
                        to,
                        ivs.as_ptr(),
                        input.len() as u64,
                        *message_blocks,
                        shift,
                    );
                }
                Batch::Gcm { operation, chunks, chunk_len, last_len, .. } => {
                    let mut masks = vec![0; *chunks as usize];
                    let mut partials = vec![0; *chunks as usize * 32];
                    self.symbol::<unsafe extern "C" fn(
                        u32,
                        u32,
                        *const u32,
                        u32,
                        *const u128,
                        *mut u128,
                        *const u128,
                        *mut u128,
                        u32,
                        u32,
                        u32,
                        u32,
                    )>("wattlock_gcm_ctr", true)(
                        GROUPS,
                        GROUP,
                        keys,
                        rounds,
                        from,
                        to,
                        ivs.as_ptr(),
                        masks.as_mut_ptr(),
                        *chunks,
                        *chunk_len,
                        *last_len,
                        shift,
                    );
                    let ciphertext = match operation {
                        Operation::Seal => to.cast_const(),
                        Operation::Open => from,
                    };
                    self.symbol::<unsafe extern "C" fn(
                        u32,
                        u32,
                        *const u128,
                        *const u128,
                        *mut u128,
                        u32,
                        u32,
                        u32,
                        u32,
                    )>("wattlock_ghash", false)(
                        GROUPS,
                        GROUP,
                        self.hash_key.as_ptr(),
                        ciphertext,
                        partials.as_mut_ptr(),
                        *chunks,
                        *chunk_len,
                        *last_len,
                        shift,
                    );
                    self.symbol::<unsafe extern "C" fn(
                        u32,
                        u32,
                        *const u128,
                        *const u128,
                        *mut u128,
                        u32,
                        u32,
                    )>("wattlock_gcm_tags", false)(
                        GROUPS,
                        GROUP,
                        partials.as_ptr(),
                        masks.as_ptr(),
                        tags.as_mut_ptr().cast(),
                        *chunks,
                        shift,
                    );
                }
            }
        }
        Ok((output, tags))
    }
}

/// `bytes` at `start`, in whole and aligned blocks.
fn blocks_of(bytes: &[u8], start: usize) -> Vec<u128> {
    let mut padded = vec![0; (start + bytes.len()).next_multiple_of(16)];
    padded[start..][..bytes.len()].copy_from_slice(bytes);
    padded.as_chunks().0.iter().map(|block| u128::from_ne_bytes(*block)).collect()
}

fn bytes_of(blocks: &[u128]) -> &[u8] {
    // SAFETY: any bytes of a number are bytes.
    unsafe { std::slice::from_raw_parts(blocks.as_ptr().cast(), size_of_val(blocks)) }
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i % 251) as u8).collect()
}
