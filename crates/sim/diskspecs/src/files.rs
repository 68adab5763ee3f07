//! The source of the importer's files: the disk, or a table in memory for tests and fuzzing.

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind};
use std::path::{Component, Path, PathBuf};

use headstart_types::read_bytes;

/// Maximum size of a parameter file; the largest of the validation set has 30 KB.
pub(crate) const FILE_BYTES_MAX: u64 = 16 << 20;

pub(crate) trait Files {
    /// All bytes of a file of at most [`FILE_BYTES_MAX`].
    fn read(&self, path: &Path) -> Result<Vec<u8>, Error>;

    /// The path of an existing file without links and `..`.
    fn resolved(&self, path: &Path) -> Result<PathBuf, Error>;
}

/// The file system. Only regular files, so that a path cannot make the import hang.
pub(crate) struct OnDisk;

impl Files for OnDisk {
    fn read(&self, path: &Path) -> Result<Vec<u8>, Error> {
        read_bytes(path, FILE_BYTES_MAX)
    }

    fn resolved(&self, path: &Path) -> Result<PathBuf, Error> {
        std::fs::canonicalize(path)
    }
}

/// Files in memory by path.
#[derive(Default)]
pub(crate) struct InMemory(pub(crate) BTreeMap<PathBuf, Vec<u8>>);

impl Files for InMemory {
    fn read(&self, path: &Path) -> Result<Vec<u8>, Error> {
        self.0.get(path).cloned().ok_or_else(|| Error::new(ErrorKind::NotFound, "no such file"))
    }

    fn resolved(&self, path: &Path) -> Result<PathBuf, Error> {
        self.read(path).map(|_| path.to_owned())
    }
}

/// Finds `name` as written in the file `by`: next to that file, else next to the file that the import began with.
/// DiskSim searches in the same order, then in the folders of an environment variable, which we omit. Files outside the
/// folder of that first file, with links resolved, are not read, so that parameters from an untrusted source cannot
/// make the import disclose other files.
pub(crate) fn find(
    files: &dyn Files,
    by: &Path,
    first: &Path,
    name: &str,
) -> Result<(PathBuf, Vec<u8>), (PathBuf, Error)> {
    let beside = |file: &Path| tidy(&file.parent().unwrap_or(Path::new("")).join(name));
    let (near, far) = (beside(by), beside(first));
    let below = |path: &Path| read_below(files, first, path);
    match below(&near) {
        Ok(bytes) => Ok((near, bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound && far != near => match below(&far) {
            Ok(bytes) => Ok((far, bytes)),
            Err(_) => Err((near, error)),
        },
        Err(error) => Err((near, error)),
    }
}

/// Reads `path`, if it lies below the folder of the file `first`.
fn read_below(files: &dyn Files, first: &Path, path: &Path) -> Result<Vec<u8>, Error> {
    let folder = files.resolved(first)?.parent().map_or_else(PathBuf::new, Path::to_owned);
    if !files.resolved(path)?.starts_with(folder) {
        let problem = "it lies outside the folder of the file that was named";
        return Err(Error::new(ErrorKind::PermissionDenied, problem));
    }
    files.read(path)
}

/// The path without `.` components, so that a file that sources itself is recognised. `..` is kept: it may lead through
/// a link.
pub(crate) fn tidy(path: &Path) -> PathBuf {
    path.components().filter(|part| *part != Component::CurDir).collect()
}
