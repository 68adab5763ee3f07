//! The file or block device that an emulated disk shows.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::Path;

use headstart_types::system_says;

use super::Error;

const ALLOWED: &str = "a regular file or a block device that can be read";

/// An image, opened read-only.
#[derive(Debug)]
pub(super) struct Image {
    file: File,
    /// Its size when it was opened; never zero.
    pub bytes: u64,
}

impl Image {
    /// # Errors
    /// It is neither a regular file nor a block device, is empty, or cannot be read.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let error = |problem: String| Error::path(path, problem, ALLOWED);
        let system = |source: io::Error| error(system_says(&source));
        // Checked before opening: opening a pipe would wait for its other end.
        let kind = path.metadata().map_err(system)?.file_type();
        if !kind.is_file() && !kind.is_block_device() {
            return Err(error("is neither".to_owned()));
        }
        let mut file = OpenOptions::new().read(true).open(path).map_err(system)?;
        let bytes = file.seek(SeekFrom::End(0)).map_err(system)?;
        if bytes == 0 {
            return Err(error("is empty".to_owned()));
        }
        Ok(Self { file, bytes })
    }

    /// Fills `buffer` from `offset` on. The caller guarantees that the range lies within `bytes`.
    ///
    /// # Errors
    /// The system call fails, or the image was truncated.
    pub fn read(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }
}
