//! Many files in one run: eight at a time share the lanes of the hash, which is serial in each.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use wattlock_engine::Direction;
use wattlock_engine::crypto::KeccakKernel;
use wattlock_engine::crypto::sha3::{Sha3_256Lane, update_many};
use wattlock_file::Error;
use wattlock_file::Staged;
use wattlock_file::Target;
use wattlock_file::Task;
use wattlock_file::{Input, OpenFile};

use super::part::FilePart;
use super::stages::{Back, Crypt, Front};
use super::{Made, Mode, Sefps, Times, Variant, made, publish};

/// Bytes that are read of a file at a time: a multiple of SHA3-256's rate of 136 and of AES's block.
const LANE_WINDOW: usize = 136 * 1024;

/// Files that a worker has open: the lanes of a kernel.
const LANES: usize = KeccakKernel::LANES;

/// A worker has 16 files open, and a process may have 1024.
const MAX_WORKERS: usize = 32;

impl Sefps<'_> {
    /// Runs all tasks and calls `each` with their results, in no fixed order. Creates the
    /// directories for the outputs first, and removes those that stay empty.
    ///
    /// The paper's variants take one file after the other. [`Variant::Overlapped`] takes eight at
    /// once on each worker: read and encrypted one by one, and hashed in the lanes of one core.
    ///
    /// # Errors
    /// [`Error::NoDevice`]; [`Error::Usage`] for several files under one IV; [`Error::Io`] if a
    /// directory cannot be made; [`Error::Engine`] if no thread can be started.
    pub fn run_many(
        &self,
        direction: Direction,
        tasks: &[Task],
        each: impl Fn(&Task, Result<Made, Error>) + Sync,
    ) -> Result<(), Error> {
        let crypt = Crypt::new(self, direction)?;
        if let (Mode::Ctr { .. }, Direction::Encrypt, 2..) = (self.mode, direction, tasks.len()) {
            return Err(Error::usage(
                "--iv is for one file: two files with the same key and IV reveal each other; \
                 protect them one by one, each with its own IV",
            ));
        }
        let new = make_directories(tasks)?;
        let done = if self.variant == Variant::Overlapped && tasks.len() > 1 {
            self.side_by_side(crypt.alone(), tasks, &each)
        } else {
            for task in tasks {
                let target = Target::File(task.output.clone());
                each(task, self.run(direction, &Input::Path(task.input.clone()), target));
            }
            Ok(())
        };
        for directory in new {
            // Fails, as it should, if there is anything in it.
            let _ = fs::remove_dir(directory);
        }
        done
    }

    fn side_by_side(
        &self,
        crypt: Crypt<'_>,
        tasks: &[Task],
        each: &(impl Fn(&Task, Result<Made, Error>) + Sync),
    ) -> Result<(), Error> {
        let next = AtomicUsize::new(0);
        let workers = self.engine.threads().min(tasks.len().div_ceil(LANES)).clamp(1, MAX_WORKERS);
        let worker = |_: &()| {
            let mut lanes: Vec<Lane<'_>> = Vec::with_capacity(LANES);
            loop {
                while lanes.len() < LANES {
                    let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
                    match Lane::open(self, crypt, task) {
                        Ok(lane) => lanes.push(lane),
                        Err(error) => each(task, Err(error)),
                    }
                }
                if lanes.is_empty() {
                    return;
                }
                for (task, ended) in advance(crypt.direction, &mut lanes) {
                    each(task, ended);
                }
            }
        };
        self.engine.for_each(&vec![(); workers], worker).map_err(Error::Engine)
    }
}

/// Makes those that are missing, and names those that were made, the innermost first.
fn make_directories(tasks: &[Task]) -> Result<Vec<&Path>, Error> {
    let mut made = Vec::new();
    for task in tasks {
        let above = task.output.ancestors().skip(1).filter(|path| !path.as_os_str().is_empty());
        let missing: Vec<&Path> = above.take_while(|path| !path.exists()).collect();
        for path in missing.iter().rev() {
            fs::create_dir(path).map_err(Error::io("create", path))?;
        }
        made.splice(0..0, missing);
    }
    Ok(made)
}

/// One file on its way.
struct Lane<'a> {
    task: &'a Task,
    opened: OpenFile,
    staged: Staged,
    front: Front<'a>,
    hash: Sha3_256Lane,
    hash_time: Duration,
    back: Back<'a>,
    part: FilePart,
    /// Why it goes no further.
    failed: Option<Error>,
}

impl<'a> Lane<'a> {
    fn open(how: &Sefps<'a>, crypt: Crypt<'a>, task: &'a Task) -> Result<Self, Error> {
        let opened = Input::Path(task.input.clone()).open_file()?;
        opened.check_is_not(&task.output)?;
        Ok(Self {
            task,
            opened,
            staged: Staged::create(&task.output, how.overwrite)?,
            front: Front::new(crypt, LANE_WINDOW, &task.input, how.progress),
            hash: Sha3_256Lane::new(),
            hash_time: Duration::ZERO,
            back: Back::new(crypt, &task.output),
            part: FilePart::new(LANE_WINDOW),
            failed: None,
        })
    }

    fn read(&mut self) {
        self.failed = self.front.next(&mut &self.opened.file, &mut self.part).err();
    }

    /// The last stage, for a part that was hashed.
    fn write(&mut self, direction: Direction, kernel: KeccakKernel) -> Result<(), Error> {
        if self.part.last {
            let digest = std::mem::take(&mut self.hash).finish(kernel);
            self.part.close(direction, digest)?;
        }
        self.back.take(&mut self.staged.file(), &mut self.part)
    }

    fn finish(self) -> Result<Made, Error> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let output = publish(&self.opened, self.staged)?;
        let tally = self.front.tally.and(self.back.tally);
        let times = Times { hash: self.hash_time, cipher: tally.cipher };
        let mut made = made(self.front.read, self.back.written, tally.report, times);
        made.done.output = Some(output);
        Ok(made)
    }
}

/// Takes every lane a part further, and the ended ones out.
fn advance<'a>(
    direction: Direction,
    lanes: &mut Vec<Lane<'a>>,
) -> Vec<(&'a Task, Result<Made, Error>)> {
    let kernel = KeccakKernel::best();
    lanes.iter_mut().for_each(Lane::read);
    let started = Instant::now();
    let sound = lanes.iter_mut().filter(|lane| lane.failed.is_none());
    let mut data: Vec<_> =
        sound.map(|lane| (&mut lane.hash, lane.part.hashed(direction))).collect();
    update_many(kernel, &mut data);
    let share = started.elapsed() / data.len().max(1) as u32;
    for lane in lanes.iter_mut().filter(|lane| lane.failed.is_none()) {
        lane.hash_time += share;
        lane.failed = lane.write(direction, kernel).err();
    }
    let ended = lanes.extract_if(.., |lane| lane.part.last || lane.failed.is_some());
    ended.map(|lane| (lane.task, lane.finish())).collect()
}
