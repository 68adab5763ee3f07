//! Where the importer gets its files: the disk, or a table in memory for tests and fuzzing.

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, Read};
use std::path::{Component, Path, PathBuf};

/// No file of parameters is larger; the largest of the validation set has 30 KB.
pub(crate) const FILE_BYTES_MAX: u64 = 16 << 20;

/// A place from which files are read.
pub(crate) trait Files {
    /// All bytes of a file of at most [`FILE_BYTES_MAX`].
    fn read(&self, path: &Path) -> Result<Vec<u8>, Error>;
}

/// The file system. Only regular files, so that a path cannot make the import wait for ever.
pub(crate) struct OnDisk;

impl Files for OnDisk {
    fn read(&self, path: &Path) -> Result<Vec<u8>, Error> {
        if !std::fs::metadata(path)?.is_file() {
            return Err(Error::new(ErrorKind::InvalidInput, "not a regular file"));
        }
        let mut bytes = Vec::new();
        std::fs::File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            let most = FILE_BYTES_MAX >> 20;
            return Err(Error::new(ErrorKind::InvalidData, format!("larger than {most} MiB, no parameter file is")));
        }
        Ok(bytes)
    }
}

/// Files in memory by their path.
#[derive(Default)]
pub(crate) struct InMemory(pub(crate) BTreeMap<PathBuf, Vec<u8>>);

impl Files for InMemory {
    fn read(&self, path: &Path) -> Result<Vec<u8>, Error> {
        self.0.get(path).cloned().ok_or_else(|| Error::new(ErrorKind::NotFound, "no such file"))
    }
}

/// `name` as written in the file `by`: beside that file, else beside the file that the import began with.
/// DiskSim searches in the same order, then in the folders of a variable of the environment, which we leave out.
pub(crate) fn find(
    files: &dyn Files,
    by: &Path,
    first: &Path,
    name: &str,
) -> Result<(PathBuf, Vec<u8>), (PathBuf, Error)> {
    let beside = |file: &Path| tidy(&file.parent().unwrap_or(Path::new("")).join(name));
    let (near, far) = (beside(by), beside(first));
    match files.read(&near) {
        Ok(bytes) => Ok((near, bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound && far != near => match files.read(&far) {
            Ok(bytes) => Ok((far, bytes)),
            Err(_) => Err((near, error)),
        },
        Err(error) => Err((near, error)),
    }
}

/// The path without `.` components, so that a file that sources itself is recognised. `..` stays: it may lead
/// through a link.
pub(crate) fn tidy(path: &Path) -> PathBuf {
    path.components().filter(|part| *part != Component::CurDir).collect()
}
