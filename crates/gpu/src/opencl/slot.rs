//! Memory, a queue and kernels of an OpenCL device for one piece at a time.

use std::ffi::CString;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wattlock_engine::Operation;
use wattlock_engine::crypto::TAG_LEN;
use zeroize::Zeroize;

use super::Error;
use super::handle::{Argument, Buffer, Context, Event, Kernel, Pinned, Program, Queue, wait};
use crate::kernels::{HASH_KEY_WORDS, ROUND_KEY_WORDS, Tables};
use crate::pipeline::Slot;
use crate::task::{BLOCK, Batch, Task};

/// The sizes that a device wants its kernels launched with.
#[derive(Clone, Copy)]
pub(super) struct Grid {
    /// Lanes of a group.
    pub group: usize,
    /// Groups at most.
    pub groups: usize,
}

/// Where the time of one batch goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Phases {
    /// Copying to memory of the device.
    pub upload: Duration,
    /// Working on what lies there.
    pub kernels: Duration,
    /// Copying back.
    pub download: Duration,
}

/// One piece's place on the device.
pub(super) struct OpenClSlot {
    context: Arc<Context>,
    queue: Arc<Queue>,
    kernels: Kernels,
    grid: Grid,
    round_keys: Buffer,
    hash_key: Buffer,
    memory: Option<PieceMemory>,
    /// What was started and not waited for.
    events: Vec<Event>,
    /// The range of its bytes in the memory, and its tags.
    start: usize,
    len: usize,
    tags: Vec<[u8; TAG_LEN]>,
    tag_count: usize,
}

/// What a piece needs, as large as the largest so far.
struct PieceMemory {
    staging: Pinned,
    input: Buffer,
    output: Buffer,
    beside: Buffer,
    masks: Buffer,
    partials: Buffer,
    tags: Buffer,
}

struct Kernels {
    ctr: Kernel,
    ctr_extended: Kernel,
    ecb_encrypt: Kernel,
    ecb_decrypt: Kernel,
    cbc_encrypt: Kernel,
    cbc_decrypt: Kernel,
    gcm_ctr: Kernel,
    ghash: Kernel,
    gcm_tags: Kernel,
}

impl OpenClSlot {
    pub fn new(
        context: &Arc<Context>,
        queue: Arc<Queue>,
        program: &Program,
        tables: Tables,
        grid: Grid,
    ) -> Result<Self, Error> {
        Ok(Self {
            context: context.clone(),
            queue,
            kernels: Kernels::of(program, tables)?,
            grid,
            round_keys: context.buffer(4 * ROUND_KEY_WORDS)?,
            hash_key: context.buffer(4 * HASH_KEY_WORDS)?,
            memory: None,
            events: Vec::new(),
            start: 0,
            len: 0,
            tags: Vec::new(),
            tag_count: 0,
        })
    }

    /// Makes room for `bytes` bytes and `chunks` chunks with IVs, nonces or tags.
    fn make_room(&mut self, bytes: usize, chunks: usize) -> Result<(), Error> {
        let bytes = bytes.next_multiple_of(BLOCK).max(BLOCK);
        let chunks = chunks.max(1);
        let (mut most_bytes, mut most_chunks) = (bytes, chunks);
        if let Some(memory) = &self.memory {
            let (has_bytes, has_chunks) = (memory.input.len(), memory.beside.len() / BLOCK);
            if has_bytes >= bytes && has_chunks >= chunks && memory.staging.len() >= bytes {
                return Ok(());
            }
            (most_bytes, most_chunks) = (bytes.max(has_bytes), chunks.max(has_chunks));
        }
        self.clear_memory();
        self.memory = None;
        self.memory = Some(PieceMemory {
            staging: self.context.pinned(&self.queue, most_bytes)?,
            input: self.context.buffer(most_bytes)?,
            output: self.context.buffer(most_bytes)?,
            beside: self.context.buffer(most_chunks * BLOCK)?,
            masks: self.context.buffer(most_chunks * BLOCK)?,
            partials: self.context.buffer(most_chunks * 32 * BLOCK)?,
            tags: self.context.buffer(most_chunks * BLOCK)?,
        });
        Ok(())
    }

    /// Puts zeros over what pieces have left on the device, as far as it still obeys.
    fn clear_memory(&mut self) {
        let Some(memory) = &self.memory else { return };
        let PieceMemory { input, output, masks, partials, .. } = memory;
        for buffer in [input, output, masks, partials] {
            drop(self.queue.clear(buffer));
        }
        let _ = self.queue.finish();
    }

    /// Starts to copy `input` to the device.
    fn upload(&mut self, batch: &Batch, input: &[u8]) -> Result<(), Error> {
        let (start, len) = (batch.start(), input.len());
        (self.start, self.len, self.tag_count) = (start, len, batch.tags());
        self.make_room(start + len, batch.beside().len() / BLOCK)?;
        let Some(memory) = &mut self.memory else { return Ok(()) };
        if len == 0 {
            return Ok(());
        }
        memory.staging.bytes()[start..][..len].copy_from_slice(input);
        self.queue.write(&memory.beside, batch.beside())?;
        // SAFETY: the staging memory is left alone until `wait` has waited.
        self.events.push(unsafe { memory.staging.write_to(&memory.input, start, len) }?);
        Ok(())
    }

    /// Starts to copy the result back.
    fn download(&mut self) -> Result<(), Error> {
        let (start, len) = (self.start, self.len);
        let Some(memory) = &mut self.memory else { return Ok(()) };
        if len == 0 {
            return Ok(());
        }
        // SAFETY: the staging memory is left alone until `wait` has waited.
        self.events.push(unsafe { memory.staging.read_from(&memory.output, start, len) }?);
        Ok(())
    }

    /// Starts the kernels.
    fn launch(&mut self, task: &Task<'_>, batch: &Batch) -> Result<(), Error> {
        let (start, end) = (self.start, self.start + self.len);
        if self.len == 0 {
            return Ok(());
        }
        let blocks = end.div_ceil(BLOCK);
        // 32 lanes share 256 blocks, or a chunk; otherwise a lane has its own.
        let groups = match batch {
            Batch::Ctr { .. } => self.groups((blocks / 256 + 2) * 32),
            Batch::CtrExtended { lane_blocks, .. } => {
                self.groups(blocks.div_ceil(*lane_blocks as usize))
            }
            Batch::Gcm { .. } => self.groups((blocks / 256 + 1) * 32),
            Batch::CbcEncrypt { message_blocks, .. } => {
                self.groups(blocks.div_ceil(*message_blocks as usize))
            }
            _ => self.groups(blocks),
        };
        let (ghash_groups, tag_groups) =
            (self.groups(batch.tags() * 32), self.groups(batch.tags()));
        let Some(memory) = &self.memory else { return Ok(()) };
        let (input, output) = (Argument::Buffer(&memory.input), Argument::Buffer(&memory.output));
        let (keys, rounds) = (Argument::Buffer(&self.round_keys), Argument::U32(task.rounds));
        let kernels = &mut self.kernels;
        let queue = Launcher { queue: &self.queue, group: self.grid.group };
        match batch {
            Batch::Ctr { counter, .. } | Batch::CtrExtended { counter, .. } => {
                let mut arguments = vec![
                    keys,
                    rounds,
                    input,
                    output,
                    Argument::U64((counter >> 64) as u64),
                    Argument::U64(*counter as u64),
                    Argument::U64(start as u64),
                    Argument::U64(end as u64),
                ];
                let kernel = match batch {
                    Batch::CtrExtended { lane_blocks, .. } => {
                        arguments.push(Argument::U32(*lane_blocks));
                        &mut kernels.ctr_extended
                    }
                    _ => &mut kernels.ctr,
                };
                // SAFETY: the README's parameters; both buffers hold `end` bytes.
                self.events.push(unsafe { queue.launch(kernel, groups, &arguments) }?);
            }
            Batch::EcbEncrypt | Batch::EcbDecrypt => {
                let kernel = match batch {
                    Batch::EcbEncrypt => &mut kernels.ecb_encrypt,
                    _ => &mut kernels.ecb_decrypt,
                };
                let arguments = [keys, rounds, input, output, Argument::U64(blocks as u64)];
                // SAFETY: the README's parameters; both buffers hold so many blocks.
                self.events.push(unsafe { queue.launch(kernel, groups, &arguments) }?);
            }
            Batch::CbcEncrypt { message_blocks, .. } | Batch::CbcDecrypt { message_blocks, .. } => {
                let ivs = Argument::Buffer(&memory.beside);
                let blocks = Argument::U64(blocks as u64);
                let messages = Argument::U32(*message_blocks);
                let arguments = [keys, rounds, input, output, ivs, blocks, messages];
                let kernel = match batch {
                    Batch::CbcEncrypt { .. } => &mut kernels.cbc_encrypt,
                    _ => &mut kernels.cbc_decrypt,
                };
                // SAFETY: the README's parameters; both buffers hold so many blocks, and there is
                // an IV for each message.
                self.events.push(unsafe { queue.launch(kernel, groups, &arguments) }?);
            }
            Batch::Gcm { operation, chunks, chunk_len, last_len, .. } => {
                let sizes = || [*chunks, *chunk_len, *last_len].map(Argument::U32);
                let masks = || Argument::Buffer(&memory.masks);
                let partials = || Argument::Buffer(&memory.partials);
                let ciphertext = Argument::Buffer(match operation {
                    Operation::Seal => &memory.output,
                    Operation::Open => &memory.input,
                });
                let [n, each, last] = sizes();
                let nonces = Argument::Buffer(&memory.beside);
                let arguments = [keys, rounds, input, output, nonces, masks(), n, each, last];
                let kernel = &mut kernels.gcm_ctr;
                // SAFETY: the README's parameters; both buffers hold the slots of all chunks, and
                // there are a nonce and room for a mask for each.
                self.events.push(unsafe { queue.launch(kernel, groups, &arguments) }?);
                let [n, each, last] = sizes();
                let hash_key = Argument::Buffer(&self.hash_key);
                let arguments = [hash_key, ciphertext, partials(), n, each, last];
                let kernel = &mut kernels.ghash;
                // SAFETY: the README's parameters; there is room for 32 parts of each chunk.
                self.events.push(unsafe { queue.launch(kernel, ghash_groups, &arguments) }?);
                let tags = Argument::Buffer(&memory.tags);
                let arguments = [partials(), masks(), tags, Argument::U32(*chunks)];
                let kernel = &mut kernels.gcm_tags;
                // SAFETY: the README's parameters; there is room for a tag of each chunk.
                self.events.push(unsafe { queue.launch(kernel, tag_groups, &arguments) }?);
            }
        }
        Ok(())
    }

    /// As [`Slot::start`], waiting after each phase, and how long each took.
    pub fn start_timed(
        &mut self,
        task: &Task<'_>,
        batch: &Batch,
        input: &[u8],
    ) -> Result<Phases, Error> {
        let mut phases = Phases::default();
        let started = Instant::now();
        self.upload(batch, input)?;
        self.queue.finish()?;
        phases.upload = started.elapsed();
        let started = Instant::now();
        self.launch(task, batch)?;
        self.queue.finish()?;
        phases.kernels = started.elapsed();
        let started = Instant::now();
        self.download()?;
        self.queue.finish()?;
        phases.download = started.elapsed();
        Ok(phases)
    }

    fn groups(&self, lanes: usize) -> usize {
        lanes.div_ceil(self.grid.group).clamp(1, self.grid.groups)
    }
}

impl Slot for OpenClSlot {
    type Error = Error;

    fn load_key(&mut self, task: &Task<'_>) -> Result<(), Error> {
        let bytes = |words: &[u32]| -> zeroize::Zeroizing<Vec<u8>> {
            let mut bytes = zeroize::Zeroizing::new(Vec::with_capacity(4 * words.len()));
            words.iter().for_each(|word| bytes.extend_from_slice(&word.to_ne_bytes()));
            bytes
        };
        self.queue.write(&self.round_keys, &bytes(&task.round_keys))?;
        self.queue.write(&self.hash_key, &bytes(&task.hash_key))
    }

    fn wipe_key(&mut self) {
        for key in [&self.round_keys, &self.hash_key] {
            drop(self.queue.clear(key));
        }
        let _ = self.queue.finish();
    }

    fn start(&mut self, task: &Task<'_>, batch: &Batch, input: &[u8]) -> Result<(), Error> {
        self.upload(batch, input)?;
        self.launch(task, batch)?;
        self.download()?;
        self.queue.flush()
    }

    fn wait(&mut self) -> Result<(&[u8], &[[u8; TAG_LEN]]), Error> {
        let waited = wait(&self.events);
        self.events.clear();
        // Nothing may run on after an error either.
        let finished = self.queue.finish();
        waited.and(finished)?;
        self.tags.resize(self.tag_count, [0; TAG_LEN]);
        let Some(memory) = &mut self.memory else { return Ok((&[], &[])) };
        self.queue.read(&memory.tags, self.tags.as_flattened_mut())?;
        Ok((&memory.staging.bytes()[self.start..][..self.len], &self.tags))
    }
}

impl Drop for OpenClSlot {
    fn drop(&mut self) {
        let _ = self.queue.finish();
        self.wipe_key();
        self.clear_memory();
        self.tags.as_flattened_mut().zeroize();
    }
}

/// A queue and the size of its groups.
struct Launcher<'a> {
    queue: &'a Queue,
    group: usize,
}

impl Launcher<'_> {
    /// # Safety
    /// As [`Kernel::launch`].
    unsafe fn launch(
        &self,
        kernel: &mut Kernel,
        groups: usize,
        arguments: &[Argument<'_>],
    ) -> Result<Event, Error> {
        // SAFETY: the caller's promise.
        unsafe { kernel.launch(self.queue, groups, self.group, arguments) }
    }
}

impl Kernels {
    fn of(program: &Program, tables: Tables) -> Result<Self, Error> {
        let plain = |name: &str| {
            let name = CString::new(name).unwrap_or_default();
            program.kernel(&name)
        };
        let kernel = |name: &str| plain(&format!("{name}_{}", tables.suffix()));
        Ok(Self {
            ctr: kernel("wattlock_ctr")?,
            ctr_extended: kernel("wattlock_ctr_extended")?,
            ecb_encrypt: kernel("wattlock_ecb_encrypt")?,
            ecb_decrypt: kernel("wattlock_ecb_decrypt")?,
            cbc_encrypt: kernel("wattlock_cbc_encrypt")?,
            cbc_decrypt: kernel("wattlock_cbc_decrypt")?,
            gcm_ctr: kernel("wattlock_gcm_ctr")?,
            ghash: plain("wattlock_ghash")?,
            gcm_tags: plain("wattlock_gcm_tags")?,
        })
    }
}
