//! Memory, a queue and kernels of an OpenCL device for one piece at a time, as the thread sees them that
//! calls the driver.

use std::ffi::CString;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wattlock_engine::Operation;
use wattlock_engine::crypto::TAG_LEN;
use zeroize::Zeroizing;

use super::Error;
use super::handle::{Argument, Buffer, Context, Event, Kernel, Pinned, Program, Queue, wait};
use crate::check::{ByteRange, ChecksumSeed, Found, ROW, Sums};
use crate::host_memory::HostMemory;
use crate::kernels::{HASH_KEY_WORDS, ROUND_KEY_WORDS, Tables};
use crate::task::{BLOCK, Batch, Keys, Pass};

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

/// One piece, in the words of the driver's thread. Its bytes are in the staging memory.
#[derive(Clone)]
pub(super) struct Order {
    pub batch: Arc<Batch>,
    pub keys: Arc<Keys>,
    pub len: usize,
    /// With it, the piece is computed twice, and compared.
    pub salt: Option<ChecksumSeed>,
}

/// The result of an order, without the bytes in the staging memory.
#[derive(Default)]
pub(super) struct Finished {
    pub tags: Vec<[u8; TAG_LEN]>,
    pub sums: Sums,
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
    /// Groups that compared the piece, and its side data.
    rows: [usize; 2],
    failed: Option<Error>,
}

/// What a piece needs, as large as the largest so far.
struct PieceMemory {
    staging: Pinned,
    input: Buffer,
    ivs: Buffer,
    sums: [Buffer; 2],
    /// What the first and the second time it is worked on go to.
    made: [MadeMemory; 2],
}

/// Where kernels put what they make.
struct MadeMemory {
    output: Buffer,
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
    check: Kernel,
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
            rows: [0; 2],
            failed: None,
        })
    }

    /// Makes room for `bytes` bytes and `chunks` chunks with IVs, nonces or tags, and lends the
    /// staging memory.
    pub fn make_room(&mut self, bytes: usize, chunks: usize) -> Result<HostMemory, Error> {
        let mut most_bytes = bytes.next_multiple_of(BLOCK).max(BLOCK);
        let mut most_chunks = chunks.max(1);
        if let Some(memory) = &self.memory {
            most_bytes = most_bytes.max(memory.input.len());
            most_chunks = most_chunks.max(memory.ivs.len() / BLOCK);
        }
        self.clear_memory();
        self.memory = None;
        let (context, queue) = (&self.context, &self.queue);
        let made = || {
            Ok::<_, Error>(MadeMemory {
                output: context.buffer(most_bytes)?,
                masks: context.buffer(most_chunks * BLOCK)?,
                partials: context.buffer(most_chunks * 32 * BLOCK)?,
                tags: context.buffer(most_chunks * BLOCK)?,
            })
        };
        let sums = || context.buffer(8 * ROW * self.grid.groups);
        let memory = self.memory.insert(PieceMemory {
            staging: context.pinned(queue, most_bytes)?,
            input: context.buffer(most_bytes)?,
            ivs: context.buffer(most_chunks * BLOCK)?,
            sums: [sums()?, sums()?],
            made: [made()?, made()?],
        });
        let staging = memory.staging.bytes();
        // SAFETY: mapped until the memory is replaced, which only this function does, and then the
        // window is, too.
        unsafe { HostMemory::new(staging.as_mut_ptr(), staging.len()) }.ok_or(Error::Call {
            call: "clEnqueueMapBuffer",
            name: "no address".into(),
            code: 0,
        })
    }

    /// Puts zeros over what pieces have left on the device, as far as it still obeys.
    fn clear_memory(&mut self) {
        let Some(memory) = &self.memory else { return };
        drop(self.queue.clear(&memory.input));
        for MadeMemory { output, masks, partials, .. } in &memory.made {
            for buffer in [output, masks, partials] {
                drop(self.queue.clear(buffer));
            }
        }
        let _ = self.queue.finish();
    }

    /// Sends the key to the kernels' buffers, reads it back and compares.
    pub fn load(&mut self, keys: &Keys) -> Result<(), Error> {
        for (buffer, words) in
            [(&self.round_keys, &keys.round_keys), (&self.hash_key, &keys.hash_key)]
        {
            let mut bytes = Zeroizing::new(Vec::with_capacity(4 * words.len()));
            words.iter().for_each(|word| bytes.extend_from_slice(&word.to_ne_bytes()));
            self.queue.write(buffer, &bytes)?;
            let mut back = Zeroizing::new(vec![0; bytes.len()]);
            self.queue.read(buffer, &mut back)?;
            if !bool::from(subtle::ConstantTimeEq::ct_eq(&back[..], &bytes[..])) {
                return Err(Error::Wrong("its copy of the key differs from what was sent"));
            }
        }
        Ok(())
    }

    /// Puts zeros where the keys were, if that can still be done.
    pub fn unload(&mut self) {
        for key in [&self.round_keys, &self.hash_key] {
            drop(self.queue.clear(key));
        }
        let _ = self.queue.finish();
    }

    /// Starts everything for a piece in the staging memory.
    pub fn start(&mut self, order: &Order) {
        let started = self.upload(order).and_then(|()| {
            self.launch(order, if order.salt.is_some() { Pass::First } else { Pass::Only })?;
            self.compare(order)?;
            self.download(order)?;
            self.queue.flush()
        });
        self.failed = started.err();
    }

    /// Waits until everything that was started has run.
    pub fn finish(&mut self, order: &Order) -> Result<Finished, Error> {
        let waited = match self.failed.take() {
            Some(error) => Err(error),
            None => wait(&self.events),
        };
        self.events.clear();
        // Nothing may run on after an error either.
        let finished = self.queue.finish();
        waited.and(finished)?;
        let mut tags = vec![[0; TAG_LEN]; order.batch.tags()];
        let Some(memory) = &mut self.memory else { return Ok(Finished::default()) };
        self.queue.read(&memory.made[0].tags, tags.as_flattened_mut())?;
        let mut sums = Sums::default();
        for (found, (buffer, rows)) in
            [&mut sums.piece, &mut sums.side].into_iter().zip(memory.sums.iter().zip(self.rows))
        {
            let mut bytes = vec![0; 8 * ROW * rows];
            self.queue.read(buffer, &mut bytes)?;
            let words: Vec<_> =
                bytes.as_chunks().0.iter().map(|w| u64::from_ne_bytes(*w)).collect();
            *found = Found::of(&words);
        }
        Ok(Finished { tags, sums })
    }

    /// Starts to copy the piece to the device.
    fn upload(&mut self, order: &Order) -> Result<(), Error> {
        let Some(memory) = &mut self.memory else { return Ok(()) };
        self.queue.write(&memory.ivs, order.batch.ivs())?;
        let start = order.batch.start();
        // SAFETY: the staging memory is left alone until `finish` has waited.
        self.events.push(unsafe { memory.staging.write_to(&memory.input, start, order.len) }?);
        Ok(())
    }

    /// Starts to copy the result back.
    fn download(&mut self, order: &Order) -> Result<(), Error> {
        let Some(memory) = &mut self.memory else { return Ok(()) };
        let (start, output) = (order.batch.start(), &memory.made[0].output);
        // SAFETY: the staging memory is left alone until `finish` has waited.
        self.events.push(unsafe { memory.staging.read_from(output, start, order.len) }?);
        Ok(())
    }

    /// Has the piece computed again by other groups, and both results compared; what was read and
    /// what was made is summed.
    fn compare(&mut self, order: &Order) -> Result<(), Error> {
        self.rows = [0; 2];
        let Some(salt) = order.salt else { return Ok(()) };
        self.launch(order, Pass::Second)?;
        let batch = &*order.batch;
        let extents = [ByteRange::of(batch, order.len), ByteRange::side(batch)];
        let rows = extents.map(|extent| match extent.end {
            0 => 0,
            end => self.groups(end.div_ceil(BLOCK as u64) as usize),
        });
        let Some(memory) = &self.memory else { return Ok(()) };
        let [first, second] = &memory.made;
        let side = match batch.tags() {
            // Without tags, IVs stand in their place.
            0 => [&memory.ivs; 3],
            _ => [&memory.ivs, &first.tags, &second.tags],
        };
        let ranges = [[&memory.input, &first.output, &second.output], side];
        for (n, (buffers, ByteRange { start, end, stride })) in
            ranges.into_iter().zip(extents).enumerate()
        {
            if rows[n] == 0 {
                continue;
            }
            let [input, first, second] = buffers.map(Argument::Buffer);
            let [a, b, c, d] = salt.words().map(Argument::U64);
            let (sums, stride) = (Argument::Buffer(&memory.sums[n]), Argument::U32(stride));
            let (start, end) = (Argument::U64(start), Argument::U64(end));
            let arguments = [input, first, second, sums, start, end, stride, a, b, c, d];
            let kernel = &mut self.kernels.check;
            let group = self.grid.group;
            // SAFETY: the README's parameters; the buffers hold `end` bytes, and there is room for a
            // row of sums of each group.
            let event = unsafe { kernel.launch(&self.queue, rows[n], group, &arguments) }?;
            self.events.push(event);
        }
        self.rows = rows;
        Ok(())
    }

    /// Starts the kernels, the only, the first or the second time.
    fn launch(&mut self, order: &Order, turn: Pass) -> Result<(), Error> {
        let batch = &*order.batch;
        let (start, end) = (batch.start(), batch.start() + order.len);
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
        let made = &memory.made[usize::from(turn == Pass::Second)];
        let (input, output) = (Argument::Buffer(&memory.input), Argument::Buffer(&made.output));
        let (keys, rounds) = (Argument::Buffer(&self.round_keys), Argument::U32(order.keys.rounds));
        let kernels = &mut self.kernels;
        let queue = Launcher { queue: &self.queue, grid: self.grid, turn };
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
                self.events.push(unsafe { queue.launch(kernel, groups, arguments) }?);
            }
            Batch::EcbEncrypt | Batch::EcbDecrypt => {
                let kernel = match batch {
                    Batch::EcbEncrypt => &mut kernels.ecb_encrypt,
                    _ => &mut kernels.ecb_decrypt,
                };
                let arguments = vec![keys, rounds, input, output, Argument::U64(blocks as u64)];
                // SAFETY: the README's parameters; both buffers hold `blocks` blocks.
                self.events.push(unsafe { queue.launch(kernel, groups, arguments) }?);
            }
            Batch::CbcEncrypt { message_blocks, .. } | Batch::CbcDecrypt { message_blocks, .. } => {
                let ivs = Argument::Buffer(&memory.ivs);
                let blocks = Argument::U64(blocks as u64);
                let messages = Argument::U32(*message_blocks);
                let arguments = vec![keys, rounds, input, output, ivs, blocks, messages];
                let kernel = match batch {
                    Batch::CbcEncrypt { .. } => &mut kernels.cbc_encrypt,
                    _ => &mut kernels.cbc_decrypt,
                };
                // SAFETY: the README's parameters; both buffers hold `blocks` blocks, and there is
                // an IV for each message.
                self.events.push(unsafe { queue.launch(kernel, groups, arguments) }?);
            }
            Batch::Gcm { operation, chunks, chunk_len, last_len, .. } => {
                let sizes = || [*chunks, *chunk_len, *last_len].map(Argument::U32);
                let masks = || Argument::Buffer(&made.masks);
                let partials = || Argument::Buffer(&made.partials);
                let ciphertext = Argument::Buffer(match operation {
                    Operation::Seal => &made.output,
                    Operation::Open => &memory.input,
                });
                let [n, each, last] = sizes();
                let nonces = Argument::Buffer(&memory.ivs);
                let arguments = vec![keys, rounds, input, output, nonces, masks(), n, each, last];
                let kernel = &mut kernels.gcm_ctr;
                // SAFETY: the README's parameters; both buffers hold the slots of all chunks, and
                // there are a nonce and room for a mask for each.
                self.events.push(unsafe { queue.launch(kernel, groups, arguments) }?);
                let [n, each, last] = sizes();
                let hash_key = Argument::Buffer(&self.hash_key);
                let arguments = vec![hash_key, ciphertext, partials(), n, each, last];
                let kernel = &mut kernels.ghash;
                // SAFETY: the README's parameters; there is room for 32 parts of each chunk.
                self.events.push(unsafe { queue.launch(kernel, ghash_groups, arguments) }?);
                let tags = Argument::Buffer(&made.tags);
                let arguments = vec![partials(), masks(), tags, Argument::U32(*chunks)];
                let kernel = &mut kernels.gcm_tags;
                // SAFETY: the README's parameters; there is room for a tag of each chunk.
                self.events.push(unsafe { queue.launch(kernel, tag_groups, arguments) }?);
            }
        }
        Ok(())
    }

    /// As [`OpenClSlot::start`], waiting after each phase, and how long each took. Nothing is checked.
    pub fn start_timed(&mut self, order: &Order) -> Result<Phases, Error> {
        let mut phases = Phases::default();
        self.rows = [0; 2];
        let started = Instant::now();
        self.upload(order)?;
        self.queue.finish()?;
        phases.upload = started.elapsed();
        let started = Instant::now();
        self.launch(order, Pass::Only)?;
        self.queue.finish()?;
        phases.kernels = started.elapsed();
        let started = Instant::now();
        self.download(order)?;
        self.queue.finish()?;
        phases.download = started.elapsed();
        Ok(phases)
    }

    fn groups(&self, lanes: usize) -> usize {
        lanes.div_ceil(self.grid.group).clamp(1, self.grid.groups)
    }
}

impl Drop for OpenClSlot {
    fn drop(&mut self) {
        let _ = self.queue.finish();
        self.unload();
        self.clear_memory();
    }
}

/// A queue, the size of its groups, and whether all is done twice.
struct Launcher<'a> {
    queue: &'a Queue,
    grid: Grid,
    turn: Pass,
}

impl Launcher<'_> {
    /// # Safety
    /// As [`Kernel::launch`], with the arguments but the last, the shift.
    unsafe fn launch(
        &self,
        kernel: &mut Kernel,
        groups: usize,
        mut arguments: Vec<Argument<'_>>,
    ) -> Result<Event, Error> {
        let groups = groups.max(self.turn.least_groups(self.grid.groups));
        arguments.push(Argument::U32(self.turn.shift(groups) as u32));
        // SAFETY: the caller's promise.
        unsafe { kernel.launch(self.queue, groups, self.grid.group, &arguments) }
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
            check: plain("wattlock_check")?,
        })
    }
}
