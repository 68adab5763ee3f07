//! Import of DiskSim's parameter files: a `.parv`, `.diskspecs` or `.model` becomes a profile of the mechanical drive.
//!
//! The idea: drives whose parameters were extracted by others (DiskSim's validation set and what was published in
//! its form since) can be used without typing them in. The files are read as libparam reads them (`lexer`, `parser`), the one
//! disk that they instantiate is chosen with what lies above it (`choose`), and its parameters are put into the
//! words of a profile (`layout`, `seek`, `drive`, `profile`). Nothing is guessed: what has no place in a profile is
//! named in a comment, and in a warning where it changes times.
//!
//! Sources: Bucy, Schindler, Schlosser, Ganger, "The DiskSim Simulation Environment Version 4.0 Reference Manual",
//! CMU-PDL-08-101, 2008; its libparam and diskmodel for what the manual leaves open. Differences are listed at the top
//! of each file here.
//!
//! Cost: linear in the size of the files. Hostile files are bounded: size, number and depth of sourced files, depth
//! of blocks; nothing is written but the text that is returned.

mod choose;
mod drive;
mod error;
mod files;
mod layout;
mod lexer;
mod params;
mod parser;
mod profile;
mod seek;

use std::path::{Path, PathBuf};

use headstart_device::{Device, Mechanical};

pub use error::{ImportError, Place};
use files::{InMemory, OnDisk};
pub use profile::Imported;

/// The drive of the file at `path`: the disk that a `.parv` instantiates, or the only one of a `.diskspecs` or
/// `.model`. Files that it names are looked for beside the file that names them, then beside `path`.
///
/// # Errors
/// The file and line at fault; several disks, which are listed.
pub fn import(path: &Path) -> Result<Imported, ImportError> {
    profile::import(&OnDisk, path, None)
}

/// As [`import`], of several disks the one whose block or instance is called `disk`.
///
/// # Errors
/// As [`import`]; there is no one such disk.
pub fn import_disk(path: &Path, disk: &str) -> Result<Imported, ImportError> {
    profile::import(&OnDisk, path, Some(disk))
}

/// Imports arbitrary bytes, for fuzzing: parts separated by zero bytes are the files `f0`, `f1`, ..., the first is read.
/// It must return, whatever the bytes are.
///
/// # Errors
/// As [`import`].
///
/// # Panics
/// What came out is no profile that can be built, or one of another capacity: that is what fuzzing looks for.
pub fn fuzz_import(content: &[u8]) -> Result<Imported, ImportError> {
    let parts = content.split(|byte| *byte == 0).enumerate();
    let files = parts.map(|(index, part)| (PathBuf::from(format!("f{index}")), part.to_vec())).collect();
    let imported = profile::import(&InMemory(files), Path::new("f0"), None)?;
    let table: toml::Table = imported.profile.parse().expect("an imported profile is TOML");
    assert_eq!(table["name"].as_str(), Some(imported.name.as_str()));
    let drive = Mechanical::from_table(table).unwrap_or_else(|error| panic!("{error} in\n{}", imported.profile));
    assert_eq!(drive.capacity_sectors(), Some(imported.sectors));
    Ok(imported)
}
