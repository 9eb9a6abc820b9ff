//! What can be recovered of a damaged container: every chunk that can be read and is authentic.

use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use wattlock_engine::Report;
use wattlock_engine::crypto::TAG_LEN;
use zeroize::Zeroizing;

use crate::Done;
use crate::container::Sealed;
use crate::error::Error;
use crate::input::{Input, Opened};
use crate::staging::Staged;
use crate::task::Task;
use crate::unprotect::{Unprotect, attributes};

/// What was recovered.
pub struct Salvaged {
    done: Done,
    /// The plaintext bytes that are lost, in order. They are zeros in the output.
    pub lost: Vec<Range<u64>>,
    /// True if no authentic chunk says that it is the last: more may have followed.
    pub end_may_be_missing: bool,
    /// True if the commitment to the key is damaged: a second key might open the same bytes.
    pub commitment_is_wrong: bool,
}

impl Salvaged {
    /// The output, if nothing is lost.
    ///
    /// # Errors
    /// [`Error::Salvaged`].
    pub fn into_result(self) -> Result<Done, Error> {
        if self.lost.is_empty() && !self.end_may_be_missing && !self.commitment_is_wrong {
            return Ok(self.done);
        }
        let lost_bytes: u64 = self.lost.iter().map(|range| range.end - range.start).sum();
        Err(Error::Salvaged {
            output: self.done.output.unwrap_or_default(),
            bytes: self.done.bytes_out - lost_bytes,
            lost: self.lost,
            end_may_be_missing: self.end_may_be_missing,
            commitment_is_wrong: self.commitment_is_wrong,
        })
    }
}

/// Where what is recovered goes, in place of `target`.
pub fn salvaged_path(target: &Path) -> PathBuf {
    let mut name = target.as_os_str().to_owned();
    name.push(".salvaged");
    name.into()
}

/// Writes every authentic chunk of the container `input`, that of `task`, to its output, each at its
/// place. That is [`salvaged_path`] of the plain name, so that nobody takes it for the whole.
///
/// # Errors
/// Those of opening the container, whose header must be authentic; [`Error::Exists`]; the damage, if
/// no chunk is authentic.
pub fn salvage(how: &Unprotect<'_>, input: &Input, task: &Task) -> Result<Salvaged, Error> {
    let container = Sealed::read(&task.located(input))?.unlock_damaged(how.identities)?;
    let (chunks, range) = container.chunks_at().ok_or_else(|| {
        Error::usage("--salvage needs a container in a file, and not an armored one")
    })?;
    let layout = container.layout();
    let (slot_len, chunk_len) = (layout.slot_len() as u64, layout.chunk_len as u64);
    let target = task.new_output(how.overwrite);
    let output = target.at.path().to_owned();
    if let Opened::File(file) = &container.opened {
        file.check_is_not(&output)?;
    }
    let staged = Staged::begin(&target)?;

    let len = range.end - range.start;
    chunks.read_ahead(range.clone());
    let mut slot = Zeroizing::new(vec![0; layout.slot_len()]);
    let (mut lost, mut plain_len, mut found) = (Vec::<Range<u64>>::new(), 0, 0_u64);
    let mut ended = false;
    let mut unreadable = None;
    for index in 0..len.div_ceil(slot_len) {
        let in_slot = (len - index * slot_len).min(slot_len);
        let slot = &mut slot[..in_slot as usize];
        let read = chunks.read_exact_at(slot, range.start + index * slot_len);
        let is_read = match read {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(Error::Changed(container.opened.name().to_owned()));
            }
            // A store that cannot be reached says nothing of the container.
            Err(error) if !matches!(container.opened, Opened::File(_)) => {
                return Err(Error::io("read", container.opened.name())(error));
            }
            Err(error) => {
                // The disk cannot read these bytes. It may read the next ones.
                unreadable.get_or_insert(error);
                false
            }
        };
        let is_final = (index + 1) * slot_len >= len;
        let at = index * chunk_len;
        let body_len = in_slot.saturating_sub(TAG_LEN as u64);
        plain_len = at + body_len;
        let opened = if is_read { container.open_slot(index, is_final, slot) } else { None };
        if let Some(last) = opened {
            let body = &slot[..body_len as usize];
            let is_hole = container.metadata.sparse && body.iter().all(|&byte| byte == 0);
            if !is_hole {
                staged.file().write_all_at(body, at).map_err(Error::io("write", &output))?;
            }
            found += 1;
            ended = last;
        } else {
            ended = false;
            match lost.last_mut() {
                Some(before) if before.end == at => before.end = plain_len,
                _ => lost.push(at..plain_len),
            }
        }
        how.progress.advance(body_len);
    }
    lost.retain(|range| !range.is_empty());
    if let (0, Some(error)) = (found, unreadable) {
        return Err(Error::io("read", container.opened.name())(error));
    }
    if found == 0 {
        return Err(crate::error::Damage::Chunk { chunk: 0 }.into());
    }
    staged.file().set_len(plain_len).map_err(Error::io("write", &output))?;
    staged.settle(&attributes(&container))?;
    let output = Some(staged.publish()?);
    let format = container.header.format().name();
    let done = Done {
        bytes_in: container.opened.len(),
        bytes_out: plain_len,
        output,
        format,
        report: Report::default(),
        ..Done::default()
    };
    let commitment_is_wrong = !container.is_committed();
    Ok(Salvaged { done, lost, end_may_be_missing: !ended, commitment_is_wrong })
}
