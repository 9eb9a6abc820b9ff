//! One piece on its way to the device and back, as the thread sees it that calls the driver.

use std::sync::Arc;

use super::Error;
use super::driver::Context;
use super::kernels::MOST_ROWS;
use super::keys::{Keyring, Lease};
use super::launch::{Comparison, Placed, Side};
use super::memory::{DeviceMemory, PinnedMemory};
use super::stream::{Event, Stream};
use crate::check::{ByteRange, ChecksumSeed, ROW};
use crate::task::{BLOCK, Batch, Keys, Pass};

/// A stream of its own, and memory for one piece on either side.
pub(super) struct CudaSlot {
    /// First, so that nothing is under way any more when the memory is freed.
    stream: Waiting,
    done: Event,
    keyring: Arc<Keyring>,
    lease: Option<Lease>,
    context: Arc<Context>,
    pub staging: PinnedMemory,
    piece: DeviceMemory,
    /// For kernels that cannot work in place, and for checked pieces.
    output: Option<DeviceMemory>,
    checks: Option<Checks>,
    /// The side data of each chunk (IVs, nonces, tags), on the host and on the device.
    pub side_staging: PinnedMemory,
    side: DeviceMemory,
    bytes: usize,
    /// The first error of the orders since the last [`CudaSlot::finish`].
    failed: Option<Error>,
    rows: Rows,
}

/// What it takes to work on a piece twice, and to compare.
struct Checks {
    second: DeviceMemory,
    second_side: DeviceMemory,
    sums: DeviceMemory,
    sums_staging: PinnedMemory,
}

/// Rows of sums that a comparison wrote: for the piece, and for its side data.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rows {
    pub piece: usize,
    pub side: usize,
}

/// One piece, in the words of the driver's thread.
pub(super) struct Order {
    pub batch: Arc<Batch>,
    pub keys: Arc<Keys>,
    /// Bytes before the first, in its block.
    pub skip: usize,
    pub len: usize,
    /// With it, the piece is computed twice, and compared.
    pub salt: Option<ChecksumSeed>,
}

/// A stream that is waited for before it goes.
struct Waiting(Stream);

impl Drop for Waiting {
    fn drop(&mut self) {
        // After a refusal the device is lost, and writes no more.
        let _ = self.0.synchronize();
    }
}

impl CudaSlot {
    /// One for pieces of at most `bytes`, which are checked or not.
    pub fn new(
        context: &Arc<Context>,
        keyring: &Arc<Keyring>,
        bytes: usize,
        checked: bool,
    ) -> Result<Self, Error> {
        let room = || DeviceMemory::new(context, bytes + MARGIN);
        let checks = || {
            Ok::<_, Error>(Checks {
                second: room()?,
                second_side: DeviceMemory::new(context, bytes / SIDE_SHARE)?,
                sums: DeviceMemory::new(context, SUMS_LEN)?,
                sums_staging: PinnedMemory::new(context, SUMS_LEN)?,
            })
        };
        Ok(Self {
            stream: Waiting(Stream::new(context)?),
            done: Event::to_wait_for(context)?,
            keyring: keyring.clone(),
            lease: None,
            context: context.clone(),
            staging: PinnedMemory::new(context, bytes + MARGIN)?,
            piece: room()?,
            output: checked.then(room).transpose()?,
            checks: checked.then(checks).transpose()?,
            side_staging: PinnedMemory::new(context, bytes / SIDE_SHARE)?,
            side: DeviceMemory::new(context, bytes / SIDE_SHARE)?,
            bytes,
            failed: None,
            rows: Rows::default(),
        })
    }

    /// Bytes of device memory that a slot for pieces of `bytes` takes, the second buffer included.
    pub fn device_bytes(bytes: usize, checked: bool) -> usize {
        if checked {
            3 * (bytes + MARGIN) + 2 * (bytes / SIDE_SHARE) + SUMS_LEN
        } else {
            2 * (bytes + MARGIN) + bytes / SIDE_SHARE
        }
    }

    /// The most bytes of a piece under `keys` in slots of `slot_len`; 0 where not one chunk fits.
    pub fn most_bytes(keys: &Keys, slot_len: usize, bytes: usize) -> usize {
        let by_side = (bytes / SIDE_SHARE).checked_div(Side::len_of(keys));
        (bytes / slot_len).min(by_side.unwrap_or(usize::MAX)) * slot_len
    }

    /// The memory of sums on the host, if pieces are checked.
    pub fn sums_staging(&mut self) -> Option<&mut PinnedMemory> {
        self.checks.as_mut().map(|checks| &mut checks.sums_staging)
    }

    /// Takes the key; false where others have all places.
    pub fn load(&mut self, keys: &Keys) -> Result<bool, Error> {
        // The one before goes first, for it may be the only one that is left.
        self.lease = None;
        self.lease = self.keyring.lease(keys)?;
        Ok(self.lease.is_some())
    }

    /// Wipes the key.
    pub fn unload(&mut self) {
        self.lease = None;
    }

    /// Copies `len` bytes of the staging memory at `at` to the same place of the device.
    pub fn copy_in(&mut self, at: usize, len: usize) {
        if self.failed.is_some() {
            return;
        }
        // SAFETY: within the buffer, as the worker that filled it has checked.
        let start = unsafe { self.staging.as_ptr().add(at) };
        // SAFETY: as above; it changes only after the stream was waited for.
        let copied = unsafe { self.stream.0.copy_in(&self.piece, at, start, len) };
        self.failed = copied.err();
    }

    /// Starts kernels, and copies what they make back.
    pub fn work(&mut self, order: &Order) {
        if self.failed.is_none() {
            self.failed = self.begin(order).err();
        }
    }

    /// Waits until everything that was started has run.
    pub fn finish(&mut self) -> Result<Rows, Error> {
        let done = match self.failed.take() {
            Some(error) => Err(error),
            None => self.done.wait().map(|()| self.rows),
        };
        // Copies may be under way; after a refusal the device is lost, and writes no more.
        done.inspect_err(|_| drop(self.stream.0.synchronize()))
    }

    fn begin(&mut self, order: &Order) -> Result<(), Error> {
        let Order { batch, skip, len, salt, .. } = order;
        let (skip, len) = (*skip, *len);
        self.rows = Rows::default();
        let in_place = salt.is_none() && !matches!(**batch, Batch::CbcDecrypt { .. });
        if !in_place && self.output.is_none() {
            self.output = Some(DeviceMemory::new(&self.context, self.bytes + MARGIN)?);
        }
        let lease = self.lease.as_ref().ok_or(Error::Unsupported("work without a key"))?;
        let output = self.output.as_ref().filter(|_| !in_place).unwrap_or(&self.piece);
        let stream = &self.stream.0;
        let chunks = batch.ivs().len() / BLOCK;
        if skip + len > self.piece.len() || chunks * Side::len_of(&order.keys) > self.side.len() {
            return Err(Error::Unsupported("a piece that is larger than its slot"));
        }
        if chunks > 0 {
            let start = self.side_staging.as_ptr();
            // SAFETY: the buffer is as long, and changes only after the stream was waited for.
            unsafe { stream.copy_in(&self.side, 0, start, chunks * BLOCK) }?;
        }
        let placed = Placed {
            input: self.piece.address(),
            output: output.address(),
            ivs: self.side.address() + Side::Ivs.at(chunks) as u64,
            side: self.side.address(),
            end: skip + len,
        };
        let turn = if salt.is_some() { Pass::First } else { Pass::Only };
        // SAFETY: everything named is this slot's, large enough as seen above, and stays.
        unsafe { placed.launch(lease, stream, batch, turn) }?;
        if let (Some(salt), Some(checks)) = (salt, &self.checks) {
            self.rows = checks.begin(placed, *salt, order, lease, stream)?;
        }
        // SAFETY: within the buffer, which is as long as the device's.
        let results = unsafe { self.staging.as_ptr().add(skip) };
        // SAFETY: it is not touched before the stream was waited for.
        unsafe { stream.copy_out(results, output, skip, len) }?;
        if batch.tags() > 0 {
            let (at, len) = (Side::Tags.at(chunks), batch.tags() * BLOCK);
            // SAFETY: the nonces there have been fetched, as the stream keeps the order.
            unsafe { stream.copy_out(self.side_staging.as_ptr(), &self.side, at, len) }?;
        }
        self.done.record(stream)
    }
}

impl Checks {
    /// Has the piece computed again, by other multiprocessors, and both results compared; what was
    /// read and what was made is summed.
    fn begin(
        &self,
        first: Placed,
        salt: ChecksumSeed,
        order: &Order,
        lease: &Lease,
        stream: &Stream,
    ) -> Result<Rows, Error> {
        let batch = &*order.batch;
        let (second, side) = (self.second.address(), self.second_side.address());
        let again = Placed { output: second, side, ..first };
        // SAFETY: these buffers are as large as those of the first time, and stay.
        unsafe { again.launch(lease, stream, batch, Pass::Second) }?;
        let sums = self.sums.address();
        let extent = ByteRange::of(batch, order.len);
        let piece = Comparison { input: first.input, first: first.output, second, sums, extent };
        // SAFETY: as above, and there is room for the sums.
        let piece_rows = unsafe { piece.launch(lease, stream, salt) }?;
        let chunks = batch.ivs().len() / BLOCK;
        let (tags, again) = match batch.tags() {
            0 => (first.ivs, first.ivs),
            _ => (
                first.side + Side::Tags.at(chunks) as u64,
                again.side + Side::Tags.at(chunks) as u64,
            ),
        };
        let side = Comparison {
            input: first.ivs,
            first: tags,
            second: again,
            sums: sums + (SUMS_LEN / 2) as u64,
            extent: ByteRange::side(batch),
        };
        let side_rows = match chunks {
            0 => 0,
            // SAFETY: as above; IVs, nonces and tags are as many blocks as there are chunks.
            _ => unsafe { side.launch(lease, stream, salt) }?,
        };
        let to = self.sums_staging.as_ptr();
        // SAFETY: both are as long, and it is not touched before the stream was waited for.
        unsafe { stream.copy_out(to, &self.sums, 0, SUMS_LEN) }?;
        Ok(Rows { piece: piece_rows, side: side_rows })
    }
}

/// Room for a piece that does not begin with a block, and for whole blocks at its end.
pub(super) const MARGIN: usize = 2 * BLOCK;

/// The side data takes a sixteenth of a piece.
pub(super) const SIDE_SHARE: usize = 16;

/// Two tables of sums: of a piece, and of its side data.
pub(super) const SUMS_LEN: usize = 2 * MOST_ROWS * ROW * 8;
