//! A small file system that a test serves itself, for files that behave as no plain file does: limits that are
//! requests, and reads that block.
//!
//! It speaks the kernel's FUSE protocol (`include/uapi/linux/fuse.h`, version 7.31) on `/dev/fuse`:
//! only what reading and writing small files takes.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

/// What the files hold, by their paths below the mount.
pub trait Tree: Send + Sync + 'static {
    /// The paths of all files.
    fn files(&self) -> Vec<String>;

    /// What a file holds now; `None` blocks the reader until a signal interrupts it.
    fn read(&self, path: &str) -> Option<String>;

    /// Takes what was written in one call.
    fn write(&self, path: &str, text: &str) -> Result<(), Errno>;
}

/// A tree that is mounted until this is dropped.
pub struct Mounted {
    path: PathBuf,
    server: Option<JoinHandle<()>>,
}

impl Mounted {
    /// Mounts `tree` on the directory `path`; `None`, once the skip is recorded, where this process
    /// may not do that.
    pub fn new(path: &Path, tree: Arc<dyn Tree>) -> Option<Self> {
        let device = OpenOptions::new().read(true).write(true).open("/dev/fuse");
        let device = device.map_err(|error| format!("/dev/fuse: {error}")).and_then(|device| {
            let user = rustix::process::geteuid().as_raw();
            let group = rustix::process::getegid().as_raw();
            let descriptor = device.as_raw_fd();
            let options = format!("fd={descriptor},rootmode=40000,user_id={user},group_id={group}");
            let options = CString::new(options).unwrap();
            mount("wattlock-test", path, "fuse", MountFlags::empty(), Some(options.as_c_str()))
                .map(|()| device)
                .map_err(|error| format!("mount: {error}"))
        });
        match device {
            Ok(device) => {
                let server = Server::new(device, tree);
                let server = thread::spawn(move || server.serve());
                Some(Self { path: path.to_owned(), server: Some(server) })
            }
            Err(why) => {
                crate::skips::skip("fuse", &why);
                None
            }
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = unmount(&self.path, UnmountFlags::DETACH);
        if let Some(server) = self.server.take() {
            let _ = server.join();
        }
    }
}

/// Answers the kernel.
struct Server {
    device: File,
    tree: Arc<dyn Tree>,
    /// Paths of files and directories; a node's number is its index and 1, the first is the root.
    nodes: Vec<String>,
    files: BTreeSet<String>,
}

impl Server {
    fn new(device: File, tree: Arc<dyn Tree>) -> Self {
        let files: BTreeSet<_> = tree.files().into_iter().collect();
        let mut nodes = BTreeSet::from([String::new()]);
        for file in &files {
            let ends = file.match_indices('/').map(|(end, _)| end).chain([file.len()]);
            nodes.extend(ends.map(|end| file[..end].to_owned()));
        }
        Self { device, tree, nodes: nodes.into_iter().collect(), files }
    }

    fn serve(mut self) {
        let mut request = vec![0; 128 << 10];
        // The end of the mount is an error.
        while let Ok(length) = self.device.read(&mut request) {
            let request = Request(&request[..length]);
            let answer = self.answer(&request);
            let (error, body) = match answer {
                Ok(None) => continue,
                Ok(Some(body)) => (0, body),
                Err(error) => (-error.raw_os_error(), Vec::new()),
            };
            // An interrupted read is answered by what interrupts it.
            let unique = match request.u32(4) {
                INTERRUPT => request.u64(HEADER),
                _ => request.u64(8),
            };
            let length = (16 + body.len()) as u32;
            let mut answer = length.to_ne_bytes().to_vec();
            answer.extend(error.to_ne_bytes());
            answer.extend(unique.to_ne_bytes());
            answer.extend(body);
            // The request may have been interrupted meanwhile.
            let _ = self.device.write(&answer);
        }
    }

    /// The body of an answer; none where the kernel expects no answer, or none yet.
    fn answer(&self, request: &Request<'_>) -> Result<Option<Vec<u8>>, Errno> {
        let node = request.u64(16);
        let body = match request.u32(4) {
            LOOKUP => {
                let parent = self.path(node)?;
                let name = String::from_utf8_lossy(request.rest(HEADER));
                let name = name.trim_end_matches('\0');
                let path = if parent.is_empty() { name.into() } else { format!("{parent}/{name}") };
                let index = self.nodes.iter().position(|node| *node == path);
                let found = index.ok_or(Errno::NOENT)? as u64 + 1;
                [words(&[found, 0, 0, 0, 0]), self.attributes(found)?].concat()
            }
            GETATTR | SETATTR => [words(&[0, 0]), self.attributes(node)?].concat(),
            OPEN | OPENDIR => words(&[0, DIRECT_IO]),
            READ => match self.tree.read(self.path(node)?) {
                None => return Ok(None),
                Some(text) => {
                    let (offset, size) = (request.u64(HEADER + 8), request.u32(HEADER + 16));
                    let text = text.into_bytes();
                    let rest = &text[text.len().min(offset as usize)..];
                    rest[..rest.len().min(size as usize)].to_vec()
                }
            },
            WRITE => {
                let size = request.u32(HEADER + 16);
                let text = String::from_utf8_lossy(request.rest(HEADER + 40)).into_owned();
                self.tree.write(self.path(node)?, &text)?;
                words(&[size.into()])
            }
            READDIR => self.entries(node, request.u64(HEADER + 8))?,
            INIT => {
                let flags_and_limits = [7, 31, 64 << 10, 0, 0, 64 << 10, 1, 0];
                let mut body: Vec<u8> = Vec::new();
                flags_and_limits.iter().for_each(|word: &u32| body.extend(word.to_ne_bytes()));
                body.resize(64, 0);
                body
            }
            INTERRUPT => return Err(Errno::INTR),
            FORGET | BATCH_FORGET => return Ok(None),
            RELEASE | RELEASEDIR | FLUSH | DESTROY => Vec::new(),
            STATFS => vec![0; 80],
            _ => return Err(Errno::NOSYS),
        };
        Ok(Some(body))
    }

    fn path(&self, node: u64) -> Result<&str, Errno> {
        let path = self.nodes.get(node.wrapping_sub(1) as usize);
        path.map(String::as_str).ok_or(Errno::NOENT)
    }

    /// A `fuse_attr`.
    fn attributes(&self, node: u64) -> Result<Vec<u8>, Errno> {
        let file = self.files.contains(self.path(node)?);
        let (mode, links): (u32, u32) = if file { (0o100644, 1) } else { (0o040755, 2) };
        // As in sysfs, a file has a page.
        let mut attributes = words(&[node, if file { 4096 } else { 0 }, 0, 0, 0, 0]);
        for word in [0, 0, 0, mode, links, 0, 0, 0, 4096, 0] {
            attributes.extend(word.to_ne_bytes());
        }
        Ok(attributes)
    }

    /// The entries of a directory after `offset`, a handful.
    fn entries(&self, node: u64, offset: u64) -> Result<Vec<u8>, Errno> {
        let parent = self.path(node)?;
        let inside = |path: &str| {
            let rest = path.strip_prefix(parent)?;
            let name = if parent.is_empty() { rest } else { rest.strip_prefix('/')? };
            (!name.is_empty() && !name.contains('/')).then(|| name.to_owned())
        };
        let mut entries = Vec::new();
        for (index, path) in self.nodes.iter().enumerate().skip(offset as usize) {
            let Some(name) = inside(path) else { continue };
            let kind: u32 = if self.files.contains(path) { 8 } else { 4 };
            entries.extend(words(&[index as u64 + 1, index as u64 + 1]));
            entries.extend((name.len() as u32).to_ne_bytes());
            entries.extend(kind.to_ne_bytes());
            entries.extend(name.as_bytes());
            entries.resize(entries.len().next_multiple_of(8), 0);
        }
        Ok(entries)
    }
}

/// A request: `fuse_in_header`, and what is behind it.
struct Request<'a>(&'a [u8]);

impl Request<'_> {
    fn rest(&self, at: usize) -> &[u8] {
        &self.0[at..]
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.0[at..at + 4].try_into().unwrap())
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_ne_bytes(self.0[at..at + 8].try_into().unwrap())
    }
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

const HEADER: usize = 40;

const DIRECT_IO: u64 = 1;

const LOOKUP: u32 = 1;
const FORGET: u32 = 2;
const GETATTR: u32 = 3;
const SETATTR: u32 = 4;
const OPEN: u32 = 14;
const READ: u32 = 15;
const WRITE: u32 = 16;
const STATFS: u32 = 17;
const RELEASE: u32 = 18;
const FLUSH: u32 = 25;
const INIT: u32 = 26;
const OPENDIR: u32 = 27;
const READDIR: u32 = 28;
const RELEASEDIR: u32 = 29;
const INTERRUPT: u32 = 36;
const DESTROY: u32 = 38;
const BATCH_FORGET: u32 = 42;
