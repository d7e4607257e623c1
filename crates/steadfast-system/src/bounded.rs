//! Opens untrusted files: only plain files, and never reads more than the caller asks for. Opening a pipe could block for
//! ever, and a link to an endless device has the length 0.

use std::io::{BufRead, ErrorKind, Read as _, Seek as _, SeekFrom};
use std::ops::Range;
use std::path::Path;

use fs_err::os::unix::fs::OpenOptionsExt as _;
use rustix::fs::OFlags;

/// A part of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    pub bytes: Vec<u8>,
    /// Where in the file it begins.
    pub from: u64,
    /// The length of the whole file.
    pub size: u64,
}

/// Opens a plain file to read it.
pub fn open(path: &Path) -> std::io::Result<fs_err::File> {
    plain(path, fs_err::OpenOptions::new().read(true))
}

/// The same; `None` if there is no such file.
pub fn open_if_exists(path: &Path) -> std::io::Result<Option<fs_err::File>> {
    match open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The first `most` bytes of a file.
pub fn start_of(path: &Path, most: u64) -> std::io::Result<Part> {
    part(open(path)?, most, false)
}

/// The last `most` bytes of a file.
pub fn end_of(path: &Path, most: u64) -> std::io::Result<Part> {
    part(open(path)?, most, true)
}

/// The part of a file that was given back to the disk, if there is one: it reads as zeros. The file is read from its
/// beginning afterwards.
pub fn hole_of(file: &fs_err::File) -> Option<Range<u64>> {
    use rustix::fs::{SeekFrom, seek};
    let size = file.metadata().ok()?.len();
    let start = seek(file, SeekFrom::Hole(0)).ok();
    let end = start.map(|start| seek(file, SeekFrom::Data(start)).unwrap_or(size));
    seek(file, SeekFrom::Start(0)).ok()?;
    start.zip(end).map(|(start, end)| start..end).filter(|hole| hole.start < size)
}

/// All of a file; one that is longer than `most` bytes is an error.
pub fn whole(path: &Path, most: u64) -> std::io::Result<Vec<u8>> {
    let part = start_of(path, most.saturating_add(1))?;
    if part.bytes.len() as u64 <= most {
        return Ok(part.bytes);
    }
    Err(std::io::Error::new(ErrorKind::FileTooLarge, format!("`{}` is too large", path.display())))
}

/// All of a text file; `None` if there is none.
pub fn text_if_exists(path: &Path, most: u64) -> std::io::Result<Option<String>> {
    match text(path, most) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// All of a text file.
pub fn text(path: &Path, most: u64) -> std::io::Result<String> {
    let bytes = whole(path, most)?;
    String::from_utf8(bytes)
        .map_err(|_| std::io::Error::new(ErrorKind::InvalidData, format!("`{}` is not UTF-8", path.display())))
}

/// The next line without its newline; `false` at the end. One that is longer than `most` bytes is an error.
pub fn next_line(reader: &mut impl BufRead, most: usize, line: &mut Vec<u8>) -> std::io::Result<bool> {
    line.clear();
    let newline = 1;
    let read = reader.take(most as u64 + newline).read_until(b'\n', line)?;
    if line.last() == Some(&b'\n') {
        line.pop();
    }
    if line.len() > most {
        return Err(std::io::Error::new(ErrorKind::FileTooLarge, format!("a line is longer than {most} bytes")));
    }
    Ok(read > 0)
}

/// Opens a plain file to append to it; one that is missing is created so that only its owner can read it.
pub fn append(path: &Path) -> std::io::Result<fs_err::File> {
    plain(path, fs_err::OpenOptions::new().create(true).append(true).mode(0o600))
}

/// The check is on the opened file, so that the path cannot change in between; opening does not block.
fn plain(path: &Path, options: &mut fs_err::OpenOptions) -> std::io::Result<fs_err::File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let no_file = || std::io::Error::new(ErrorKind::InvalidInput, format!("`{}` is not a file", path.display()));
    let file = match options.custom_flags(flags).open(path) {
        Ok(file) => file,
        // To write to a pipe without a reader, or to a directory, is refused before anything can be checked.
        Err(_) if std::fs::metadata(path).is_ok_and(|meta| !meta.is_file()) => return Err(no_file()),
        Err(error) => return Err(error),
    };
    if file.metadata()?.is_file() { Ok(file) } else { Err(no_file()) }
}

fn part(mut file: fs_err::File, most: u64, is_end: bool) -> std::io::Result<Part> {
    let size = file.metadata()?.len();
    let from = if is_end { size.saturating_sub(most) } else { 0 };
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(Part { bytes, from, size })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_says_where_it_is_from_and_a_file_that_is_too_long_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs_err::write(&path, "0123456789").unwrap();
        let part = |bytes: &[u8], from| Part { bytes: bytes.to_vec(), from, size: 10 };
        assert_eq!(start_of(&path, 3).unwrap(), part(b"012", 0));
        assert_eq!(end_of(&path, 3).unwrap(), part(b"789", 7));
        assert_eq!(end_of(&path, 11).unwrap(), part(b"0123456789", 0));
        assert_eq!(whole(&path, 10).unwrap(), b"0123456789");
        assert_eq!(whole(&path, 9).unwrap_err().kind(), ErrorKind::FileTooLarge);
        assert_eq!(whole(&directory.path().join("none"), 9).unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[test]
    fn lines_are_read_up_to_their_bound() {
        let mut reader: &[u8] = b"1234\n\n12\n12345\n";
        let mut line = Vec::new();
        for expected in [&b"1234"[..], b"", b"12"] {
            assert!(next_line(&mut reader, 4, &mut line).unwrap());
            assert_eq!(line, expected);
        }
        assert_eq!(next_line(&mut reader, 4, &mut line).unwrap_err().kind(), ErrorKind::FileTooLarge);
        assert!(!next_line(&mut &b""[..], 4, &mut line).unwrap());
    }

    #[test]
    fn what_is_no_plain_file_is_refused_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
        let link = directory.path().join("link");
        std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
        for path in [pipe.as_path(), &link, directory.path()] {
            let error = start_of(path, 9).unwrap_err();
            assert_eq!(error.to_string(), format!("`{}` is not a file", path.display()));
            let error = append(path).unwrap_err();
            assert_eq!(error.to_string(), format!("`{}` is not a file", path.display()));
        }
    }
}
