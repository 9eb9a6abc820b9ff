//! age's ASCII armor, a text form of its containers.

use std::io::{self, BufRead, BufReader, BufWriter, Cursor, Read, Write};
use std::path::Path;

use age::armor::{ArmoredReader, ArmoredWriter, Format};

use crate::error::{Damage, Error};

/// What an armored file starts with.
const START: &[u8] = b"-----BEGIN AGE ENCRYPTED FILE-----";

/// White space that may stand before it.
const MAX_SPACE: usize = 1024;

/// Bytes that are written at once of an armor, which comes line by line.
const BUFFER_LEN: usize = 1 << 16;

/// True if `start` is the start of an armored file; white space may stand before it.
pub(crate) fn is_armored(start: &[u8]) -> bool {
    start.trim_ascii_start().starts_with(START)
}

/// A container's bytes, whether it was armored or not.
pub(crate) struct MaybeArmored<'a> {
    pub armored: bool,
    pub reader: Box<dyn BufRead + Send + 'a>,
}

/// What `reader` yields, without the armor if there is one.
pub(crate) fn reader<'a>(mut reader: impl BufRead + Send + 'a) -> io::Result<MaybeArmored<'a>> {
    // A pipe may give less than that at a time.
    let mut start = Vec::new();
    while may_become_armored(&start) {
        let mut byte = [0];
        match reader.read(&mut byte) {
            Ok(0) => break,
            Ok(_) => start.push(byte[0]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    if !is_armored(&start) {
        let reader = Box::new(Cursor::new(start).chain(reader));
        return Ok(MaybeArmored { armored: false, reader });
    }
    // The age crate wants the white space gone.
    let armor = Cursor::new(start.trim_ascii_start().to_vec()).chain(reader);
    let reader = Box::new(BufReader::new(Dearmored(ArmoredReader::new(armor))));
    Ok(MaybeArmored { armored: true, reader })
}

/// True if more bytes decide whether `start` is that of an armored file.
fn may_become_armored(start: &[u8]) -> bool {
    let begun = start.trim_ascii_start();
    start.len() - begun.len() <= MAX_SPACE && begun.len() < START.len() && START.starts_with(begun)
}

/// What stands in an armor. That the armor is malformed is damage, and no failure to read.
struct Dearmored<R: BufRead>(ArmoredReader<R>);

impl<R: BufRead> Read for Dearmored<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => Damage::Armor.into(),
            _ => error,
        })
    }
}

/// Has `write` write a container, and puts the armor around it.
pub(crate) fn write<T>(
    writer: &mut (dyn Write + Send),
    output: &Path,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<T, Error>,
) -> Result<T, Error> {
    let failed = || Error::io("write", output);
    let mut writer = BufWriter::with_capacity(BUFFER_LEN, writer);
    let armor = ArmoredWriter::wrap_output(&mut writer, Format::AsciiArmor);
    let mut armor = armor.map_err(failed())?;
    let written = write(&mut armor)?;
    armor.finish().and_then(|writer| writer.flush()).map_err(failed())?;
    Ok(written)
}
