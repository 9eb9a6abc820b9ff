//! The kernel of the SEFPS study as a device of its own: one block a thread, and its tables copied to
//! the device with each piece. Slow on purpose, and unchecked: for comparison with [`super::OpenCl`].

use std::sync::Arc;

use wattlock_engine::crypto::{AesKernel, AesKey};
use wattlock_engine::{Cipher, Data, Device, End, Fault, Job, Run, Stop, Tally};
use zeroize::Zeroizing;

use super::Error;
use super::handle::{Argument, Buffer, Context, Kernel, Program, Queue, wait};
use super::list::{Listed, attended, one_at_a_time};
use crate::driver_thread::DriverThread;
use crate::kernels::ROUND_KEY_WORDS;
use crate::task::{BLOCK, Keys, Task};
use crate::timeouts::Timeouts;

/// A device that runs the study's kernel. It does AES in ECB, both ways, and nothing else.
pub struct OneBlock {
    name: String,
    timeouts: Timeouts,
    thread: DriverThread<Study>,
}

/// What the driver's thread has.
struct Study {
    context: Context,
    queue: Arc<Queue>,
    encrypt: Kernel,
    decrypt: Kernel,
    group: usize,
    tables: [Vec<u8>; 2],
    inverse_s_box: [u8; 256],
}

/// One piece, in the words of the driver's thread.
struct Order {
    is_decrypt: bool,
    keys: Arc<Keys>,
    data: Zeroizing<Vec<u8>>,
}

impl OneBlock {
    /// Threads of a group, where the device has as many: the study takes a multiple of 64.
    pub const GROUP: usize = 256;

    /// Opens a device, compiles the study's kernel, and compares its output with the CPU's.
    ///
    /// # Errors
    /// [`Error::TooSmall`], [`Error::Build`], [`Error::SelfTest`] and [`Error::Call`] say why it
    /// cannot be used.
    pub fn open(listed: &Listed) -> Result<Self, Error> {
        let timeouts = Timeouts::new(None);
        let wanted = listed.clone();
        let study = attended(timeouts.to_open(), move || Study::open(&wanted))?;
        let thread = DriverThread::start(study, timeouts.to_close())
            .map_err(|why| Error::Unanswered(why.to_string()))?;
        let device = Self { name: listed.id(), timeouts, thread };
        device.self_test(&listed.name)?;
        Ok(device)
    }

    fn self_test(&self, device: &str) -> Result<(), Error> {
        let wrong = |what| Error::SelfTest { device: device.to_owned(), what };
        let plain: Vec<u8> = (0..1003 * BLOCK).map(|i| (i % 251) as u8).collect();
        for len in [16, 24, 32] {
            let key: Vec<u8> = (1..=len).collect();
            let key = AesKey::new(AesKernel::Soft, &key).map_err(|_| wrong("its keys"))?;
            let mut expected = plain.clone();
            key.ecb_encrypt(&mut expected).map_err(|_| wrong("ECB"))?;
            for (cipher, input, output) in [
                (Cipher::EcbEncrypt(&key), &plain, &expected),
                (Cipher::EcbDecrypt(&key), &expected, &plain),
            ] {
                let mut made = input.clone();
                self.apply(&task(cipher).ok_or(wrong("ECB"))?, cipher, &mut made)?;
                if made != *output {
                    return Err(wrong("ECB with one block a thread"));
                }
            }
        }
        Ok(())
    }

    /// Works on whole blocks in place; on failure they are untouched.
    fn apply(&self, task: &Task<'_>, cipher: Cipher<'_>, in_out: &mut [u8]) -> Result<(), Error> {
        let order = Order {
            is_decrypt: matches!(cipher, Cipher::EcbDecrypt(_)),
            keys: task.keys.clone(),
            data: Zeroizing::new(in_out.to_vec()),
        };
        let answer = self.thread.ask(move |study| study.apply(order));
        let limit = self.timeouts.for_bytes(in_out.len() as u64) + self.timeouts.to_open();
        let made = answer.within(limit, || self.thread.is_left()).map_err(|why| {
            self.thread.leave();
            Error::Unanswered(why.to_string())
        })??;
        in_out.copy_from_slice(&made);
        Ok(())
    }
}

/// The key of an ECB job in the words of kernels.
fn task(cipher: Cipher<'_>) -> Option<Task<'_>> {
    let data = Data::InPlace { slots: &mut [] };
    Task::of(&Job { cipher, chunk_len: BLOCK, data, deadline: None })
}

impl Device for OneBlock {
    fn name(&self) -> &str {
        &self.name
    }

    fn workers(&self) -> usize {
        1
    }

    fn supports(&self, cipher: &Cipher<'_>) -> bool {
        matches!(cipher, Cipher::EcbEncrypt(_) | Cipher::EcbDecrypt(_))
    }

    /// All that is the device's at once, as the study does with a file.
    fn work(&self, run: &Run<'_, '_>, tally: &mut Tally) -> Result<(), Stop> {
        let cipher = run.job().cipher;
        let Some(task) = task(cipher) else { return Ok(()) };
        while let Some(mut piece) = run.take(End::Back, usize::MAX, Zeroizing::default())? {
            let slots = piece.slots();
            let len = slots.len();
            if let Err(error) = self.apply(&task, cipher, slots) {
                run.hand_back(piece);
                return Err(Stop::Fault(Fault(error.to_string())));
            }
            run.finish(piece)?;
            tally.count(len);
        }
        Ok(())
    }
}

impl Study {
    fn open(listed: &Listed) -> Result<Self, Error> {
        let group = listed.group_lanes.min(OneBlock::GROUP);
        if group == 0 {
            let what = "lanes";
            return Err(Error::TooSmall { device: listed.name.clone(), what, has: 0, needed: 1 });
        }
        let turn = one_at_a_time();
        let context = Context::new(listed.id.0)?;
        let text = include_str!("../../kernels/one_block.cl");
        let program = Program::build(&context, listed.id.0, text, c"")?
            .map_err(|log| Error::Build { device: listed.name.clone(), log })?;
        drop(turn);
        let queue = context.queue(listed.id.0)?;
        let [encrypt, decrypt] = [c"one_block_encrypt", c"one_block_decrypt"];
        let s_box = s_box();
        let mut inverse_s_box = [0; 256];
        for (input, output) in s_box.iter().enumerate() {
            inverse_s_box[usize::from(*output)] = input as u8;
        }
        let tables = [tables(&s_box, [2, 1, 1, 3]), tables(&inverse_s_box, [14, 9, 13, 11])];
        let (encrypt, decrypt) = (program.kernel(encrypt)?, program.kernel(decrypt)?);
        Ok(Self { context, queue, encrypt, decrypt, group, tables, inverse_s_box })
    }

    /// Lines 17 to 28 of Algorithm 3, and 8 to 19 of Algorithm 4: memory, copies, kernel, copy.
    fn apply(&mut self, order: Order) -> Result<Zeroizing<Vec<u8>>, Error> {
        let Order { is_decrypt, keys, mut data } = order;
        let blocks = data.len() / BLOCK;
        let first = ROUND_KEY_WORDS - 4 * (keys.rounds as usize + 1);
        let mut words = Zeroizing::new(Vec::with_capacity(4 * ROUND_KEY_WORDS));
        keys.round_keys[first..].iter().for_each(|word| words.extend(word.to_ne_bytes()));
        let tables = &self.tables[usize::from(is_decrypt)];
        let (input, key) = (self.context.buffer(data.len())?, self.context.buffer(words.len())?);
        let (table, inverse) = (self.context.buffer(tables.len())?, self.context.buffer(256)?);
        self.queue.write(&input, &data)?;
        self.queue.write(&key, &words)?;
        self.queue.write(&table, tables)?;
        let mut arguments: Vec<Argument<'_>> = [&input, &key, &table].map(Argument::Buffer).into();
        if is_decrypt {
            self.queue.write(&inverse, &self.inverse_s_box)?;
            arguments.push(Argument::Buffer(&inverse));
        }
        arguments.extend([Argument::U64(blocks as u64), Argument::U32(keys.rounds)]);
        let kernel = if is_decrypt { &mut self.decrypt } else { &mut self.encrypt };
        // SAFETY: the arguments are the kernel's, in its order; the buffers hold as many blocks, round
        // keys and entries as it reads, and live until `wait` returns.
        let event = unsafe {
            kernel.launch(&self.queue, blocks.div_ceil(self.group), self.group, &arguments)
        }?;
        wait(&[event])?;
        self.queue.read(&input, &mut data)?;
        self.wipe([&input, &key]);
        Ok(data)
    }

    /// Puts zeros where data and key were.
    fn wipe(&self, buffers: [&Buffer; 2]) {
        let cleared = buffers.map(|buffer| self.queue.clear(buffer));
        let _ = self.queue.finish();
        drop(cleared);
    }
}

/// FIPS 197, 5.1.1: the inverse in GF(2^8), and an affine map.
fn s_box() -> [u8; 256] {
    let mut s_box = [0x63; 256];
    let (mut p, mut q) = (1_u8, 1_u8);
    loop {
        // p runs through all elements but 0 by times 3, and q through their inverses.
        p ^= times(p, 2);
        q = times(q, 0xf6);
        let rotations = (1..5).map(|bits| q.rotate_left(bits));
        s_box[usize::from(p)] = rotations.fold(q, |sum, part| sum ^ part) ^ 0x63;
        if p == 1 {
            return s_box;
        }
    }
}

/// FIPS 197, 4.2.
fn times(mut a: u8, mut b: u8) -> u8 {
    let mut product = 0;
    while b != 0 {
        product ^= if b & 1 == 1 { a } else { 0 };
        a = (a << 1) ^ if a & 0x80 == 0 { 0 } else { 0x1b };
        b >>= 1;
    }
    product
}

/// Four tables of words: a column of the mixing matrix times the S-box, and its rotations.
fn tables(s_box: &[u8; 256], column: [u8; 4]) -> Vec<u8> {
    let word = |s: u8| u32::from_le_bytes(column.map(|factor| times(s, factor)));
    let table = |n: u32| s_box.iter().map(move |s| word(*s).rotate_left(8 * n));
    (0..4).flat_map(table).flat_map(u32::to_ne_bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{choose, devices};
    use super::*;

    #[test]
    fn s_box_is_that_of_fips_197() {
        let s_box = s_box();
        assert_eq!((s_box[0], s_box[1], s_box[0x53], s_box[255]), (0x63, 0x7c, 0xed, 0x16));
        assert_eq!(times(0x57, 0x13), 0xfe);
    }

    #[test]
    fn agrees_with_the_cpu() {
        let listed = devices().unwrap_or_default();
        let Ok(listed) = choose(&listed, Some("Portable Computing Language")) else {
            wattlock_testing::skip("pocl", "agrees_with_the_cpu: PoCL is not installed");
            return;
        };
        // Opening compares it with the CPU, for all lengths of keys.
        let device = OneBlock::open(listed).unwrap();
        let key = AesKey::new(AesKernel::Soft, &[7; 16]).unwrap();
        for blocks in [1, 255, 256, 257, 65537] {
            let plain: Vec<u8> = (0..blocks * BLOCK).map(|i| (i % 251) as u8).collect();
            let (mut made, mut expected) = (plain.clone(), plain);
            let cipher = Cipher::EcbEncrypt(&key);
            device.apply(&task(cipher).unwrap(), cipher, &mut made).unwrap();
            key.ecb_encrypt(&mut expected).unwrap();
            assert!(made == expected, "{blocks}");
        }
    }
}
