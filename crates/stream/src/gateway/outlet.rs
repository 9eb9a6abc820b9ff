//! Where bytes go: standard output, a peer, files one after the other.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::net::{Shutdown, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::{Address, Counters};

/// Takes bytes, in order. Writing blocks; that is what fills the window.
pub trait Outlet: Send {
    /// Writes all of it, or keeps it until [`Outlet::flush`].
    ///
    /// # Errors
    /// That it could not be written: the stream is over.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Writes what was kept.
    ///
    /// # Errors
    /// As [`Outlet::write`].
    fn flush(&mut self) -> io::Result<()>;

    /// One stream ends, and another begins. Where they cannot be apart they follow each other.
    ///
    /// # Errors
    /// As [`Outlet::write`].
    fn turn(&mut self) -> io::Result<()> {
        self.flush()
    }

    /// Nothing follows.
    ///
    /// # Errors
    /// As [`Outlet::write`]; a file may not be on the disk.
    fn finish(&mut self) -> io::Result<()>;
}

/// Small pieces go out together, up to so many bytes; longer ones are not copied.
const KEPT: usize = 64 << 10;

/// A writer that joins small pieces.
struct Joined<W> {
    to: W,
    kept: Vec<u8>,
}

impl<W: Write> Joined<W> {
    fn new(to: W) -> Self {
        Self { to, kept: Vec::new() }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let is_long = bytes.len() > KEPT / 2;
        if is_long || self.kept.len() + bytes.len() > KEPT {
            self.flush()?;
        }
        if is_long {
            return self.to.write_all(bytes);
        }
        self.kept.extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        let written = self.to.write_all(&self.kept);
        self.kept.clear();
        written.and_then(|()| self.to.flush())
    }
}

/// Standard output, or whatever else is written to and never replaced.
pub struct Stdout(Joined<File>);

impl Stdout {
    /// Writes to what `file` is.
    pub fn new(file: File) -> Self {
        Self(Joined::new(file))
    }
}

impl Outlet for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }

    fn finish(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// A peer over TCP or a Unix socket.
pub struct Peer {
    stream: Joined<Stream>,
}

enum Stream {
    Tcp(TcpStream),
    Unix(std::os::unix::net::UnixStream),
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Peer {
    /// Connects.
    ///
    /// # Errors
    /// That nobody is there.
    pub fn connect(to: &Address) -> io::Result<Self> {
        let stream = match to {
            Address::Unix(path) => Stream::Unix(std::os::unix::net::UnixStream::connect(path)?),
            Address::Tcp(address) => {
                let stream = connect(address)?;
                // Pieces are joined here.
                stream.set_nodelay(true)?;
                Stream::Tcp(stream)
            }
        };
        Ok(Self { stream: Joined::new(stream) })
    }
}

/// Tries every address of the name.
fn connect(address: &str) -> io::Result<TcpStream> {
    use std::net::ToSocketAddrs;
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// How long a peer may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

impl Outlet for Peer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }

    fn finish(&mut self) -> io::Result<()> {
        self.stream.flush()?;
        match &self.stream.to {
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Stream::Unix(stream) => stream.shutdown(Shutdown::Write),
        }
    }
}

/// A file, or numbered files one after the other.
pub struct Files {
    path: PathBuf,
    numbered: bool,
    replace: bool,
    number: u64,
    file: Option<Joined<File>>,
    counters: Arc<Counters>,
}

impl Files {
    /// Writes to `path`, or with `numbered` to `PATH.000001` and so on, from the first number that
    /// is free. Files that are there are replaced only if `replace` says so, and numbered ones never.
    ///
    /// # Errors
    /// That the first cannot be made.
    pub fn create(
        path: &Path,
        numbered: bool,
        replace: bool,
        counters: Arc<Counters>,
    ) -> io::Result<Self> {
        let file = None;
        let path = path.to_owned();
        let mut files = Self { path, numbered, replace, number: 0, file, counters };
        files.next()?;
        Ok(files)
    }

    /// The file that is written.
    fn next(&mut self) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.write(true);
        let file = if self.numbered {
            options.create_new(true);
            loop {
                self.number += 1;
                let mut name = self.path.clone().into_os_string();
                name.push(format!(".{:06}", self.number));
                match options.open(&name) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    done => break done?,
                }
            }
        } else {
            match self.replace {
                true => options.create(true).truncate(true),
                false => options.create_new(true),
            };
            options.open(&self.path)?
        };
        self.file = Some(Joined::new(file));
        Ok(())
    }

    fn close(&mut self) -> io::Result<()> {
        let Some(mut file) = self.file.take() else { return Ok(()) };
        file.flush()?;
        file.to.sync_data()?;
        Counters::add(&self.counters.files, 1);
        Ok(())
    }
}

impl Outlet for Files {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.file.is_none() {
            self.next()?;
        }
        self.file.as_mut().map_or(Ok(()), |file| file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Joined::flush)
    }

    /// The next file is made when there is something to write.
    fn turn(&mut self) -> io::Result<()> {
        if self.numbered { self.close() } else { self.flush() }
    }

    fn finish(&mut self) -> io::Result<()> {
        self.close()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_any_length_leave_in_their_order() {
        let mut joined = Joined::new(Vec::new());
        let mut all = Vec::new();
        for (index, len) in
            [1, 50_000, 3, KEPT, KEPT / 2, KEPT / 2, 2, KEPT / 2 + 1, 7].iter().enumerate()
        {
            let piece = vec![index as u8; *len];
            joined.write(&piece).unwrap();
            all.extend(piece);
        }
        joined.flush().unwrap();
        assert_eq!(joined.to, all);
    }
}
