//! Reads a whole file that a user named, up to a size limit. Used for profiles, parameter files, scenarios and the
//! like.
//!
//! Only regular files are read: a pipe may never end or never open, and a device such as `/dev/zero` has no end. Traces
//! are streamed instead, with limits of their own.

use std::fs::{File, Metadata};
use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;

/// Size limit for texts that people write or tools export, where no smaller limit applies.
pub const TEXT_BYTES_MAX: u64 = 16 << 20;

/// Checks that `path` is a regular file, without opening it: opening a pipe waits for its other end.
///
/// # Errors
/// The file does not exist, cannot be examined, or is a folder, a pipe, a socket or a device.
pub fn check_regular(path: &Path) -> Result<()> {
    check(&std::fs::metadata(path)?)
}

fn check(found: &Metadata) -> Result<()> {
    if found.is_file() {
        return Ok(());
    }
    let what = if found.is_dir() { "is a folder, not a regular file" } else { "not a regular file" };
    Err(Error::new(ErrorKind::InvalidInput, what))
}

/// Opens a regular file to be read, and nothing else: opening a pipe waits, and some devices act on it.
///
/// # Errors
/// As [`check_regular`], of the kind `InvalidInput` for what is no regular file; or it may not be read.
pub fn open_regular(path: &Path) -> Result<File> {
    open_checked(path, check)
}

/// Opens what passes `check` to be read. It is looked at before it is opened, and is that very file whatever comes to the path meanwhile.
///
/// # Errors
/// Those of `check`, there is no such file, or it may not be read.
#[cfg(target_os = "linux")]
pub fn open_checked(path: &Path, check: impl Fn(&Metadata) -> Result<()>) -> Result<File> {
    use std::fs::OpenOptions;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt};

    let with = |flags, path: &Path| OpenOptions::new().read(true).custom_flags(flags).open(path);
    let looked = with(libc::O_PATH, path)?;
    let found = looked.metadata()?;
    check(&found)?;
    let looked = format!("/proc/self/fd/{}", looked.as_raw_fd());
    match with(libc::O_NONBLOCK, looked.as_ref()) {
        // Without a proc file system.
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let file = with(libc::O_NONBLOCK, path)?;
            let opened = file.metadata()?;
            let is_same = (opened.dev(), opened.ino()) == (found.dev(), found.ino());
            is_same.then_some(file).ok_or_else(|| Error::other("was replaced while it was opened"))
        }
        opened => opened,
    }
}

/// The same where a file cannot be looked at by its descriptor.
///
/// # Errors
/// Those of `check`, there is no such file, or it may not be read.
#[cfg(not(target_os = "linux"))]
pub fn open_checked(path: &Path, check: impl Fn(&Metadata) -> Result<()>) -> Result<File> {
    check(&std::fs::metadata(path)?)?;
    File::open(path)
}

/// All bytes of a regular file of at most `bytes_max`.
///
/// # Errors
/// As [`check_regular`], and if the file is larger than `bytes_max`; no more than that is read.
pub fn read_bytes(path: &Path, bytes_max: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path)?.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(Error::new(ErrorKind::InvalidData, format!("larger than {}", size(bytes_max))));
    }
    Ok(bytes)
}

/// The text of a regular file of at most `bytes_max`, such as [`TEXT_BYTES_MAX`].
///
/// # Errors
/// As [`read_bytes`], and if the bytes are not UTF-8.
pub fn read_text(path: &Path, bytes_max: u64) -> Result<String> {
    let bytes = read_bytes(path, bytes_max)?;
    String::from_utf8(bytes).map_err(|error| {
        let read = error.as_bytes().get(..error.utf8_error().valid_up_to()).unwrap_or_default();
        let line = read.iter().filter(|byte| **byte == b'\n').count() + 1;
        Error::new(ErrorKind::InvalidData, format!("not UTF-8 text at line {line}"))
    })
}

fn size(bytes: u64) -> String {
    match bytes >> 20 {
        0 => format!("{bytes} bytes"),
        mib => format!("{mib} MiB"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_of_that_size() {
        let folder = std::env::temp_dir().join(format!("headstart-types-files-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("text");
        let says = |result: Result<Vec<u8>>| result.unwrap_err().to_string();
        std::fs::write(&path, b"one\ntwo").unwrap();
        assert_eq!(read_bytes(&path, 7).unwrap(), b"one\ntwo");
        assert_eq!(says(read_bytes(&path, 6)), "larger than 6 bytes");
        assert_eq!(read_text(&path, TEXT_BYTES_MAX).unwrap(), "one\ntwo");
        std::fs::write(&path, b"one\ntwo\n\xff").unwrap();
        assert_eq!(read_text(&path, TEXT_BYTES_MAX).unwrap_err().to_string(), "not UTF-8 text at line 3");
        let whole = File::create(&path).unwrap();
        whole.set_len(TEXT_BYTES_MAX + 1).unwrap();
        assert_eq!(read_text(&path, TEXT_BYTES_MAX).unwrap_err().to_string(), "larger than 16 MiB");
        assert_eq!(says(read_bytes(&folder, 7)), "is a folder, not a regular file");
        assert_eq!(says(read_bytes(Path::new("/dev/zero"), 7)), "not a regular file");
        assert!(read_bytes(&folder.join("none"), 7).is_err());
        #[cfg(target_os = "linux")]
        {
            // Nothing writes to it, and it is not waited for.
            let made = std::process::Command::new("mkfifo").arg(folder.join("pipe")).status();
            assert!(made.is_ok_and(|status| status.success()));
            assert_eq!(says(read_bytes(&folder.join("pipe"), 7)), "not a regular file");
            std::os::unix::fs::symlink(&path, folder.join("link")).unwrap();
            assert!(open_regular(&folder.join("link")).is_ok());
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
