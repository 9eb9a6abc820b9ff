//! age's ASCII armor, a text form of its containers.

use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;

use age::armor::{ArmoredReader, ArmoredWriter, Format};

use crate::error::Error;

/// What an armored file starts with.
const START: &[u8] = b"-----BEGIN AGE ENCRYPTED FILE-----";

/// Bytes that are written at once of an armor, which comes line by line.
const BUFFER_LEN: usize = 1 << 16;

/// True if `start` is the start of an armored file; white space may stand before it.
pub(crate) fn is_armored(start: &[u8]) -> bool {
    start.trim_ascii_start().starts_with(START)
}

/// What `reader` yields, without the armor if there is one.
pub(crate) fn reader<'a>(mut reader: impl BufRead + Send + 'a) -> io::Result<MaybeArmored<'a>> {
    let start = reader.fill_buf()?;
    if !is_armored(start) {
        return Ok(MaybeArmored { armored: false, reader: Box::new(reader) });
    }
    // White space may stand before the armor; the age crate wants it gone.
    let space = start.len() - start.trim_ascii_start().len();
    reader.consume(space);
    let reader = Box::new(BufReader::new(ArmoredReader::new(reader)));
    Ok(MaybeArmored { armored: true, reader })
}

/// A container's bytes, whether it was armored or not.
pub(crate) struct MaybeArmored<'a> {
    pub armored: bool,
    pub reader: Box<dyn BufRead + Send + 'a>,
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
