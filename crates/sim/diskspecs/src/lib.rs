//! Import of DiskSim's parameter files: a `.parv`, `.diskspecs` or `.model` becomes a profile of the mechanical drive.
//!
//! Drives whose parameters were extracted by others (DiskSim's validation set and later publications in its format) can
//! thus be used without entering them by hand. The files are read as libparam reads them (`lexer`, `parser`), the one
//! disk that they instantiate is chosen with the components above it (`choose`), and its parameters are converted to a
//! profile (`layout`, `seek`, `drive`, `profile`). Nothing is guessed: parameters without a counterpart in a profile
//! are listed in a comment, and in a warning if they change times.
//!
//! Sources: Bucy, Schindler, Schlosser, Ganger, "The DiskSim Simulation Environment Version 4.0 Reference Manual",
//! CMU-PDL-08-101, 2008; its libparam and diskmodel where the manual is silent. Differences are listed at the top of
//! each file here.
//!
//! Cost: linear in the size of the files. Hostile files are bounded: size, number and nesting of sourced files, nesting
//! of blocks; nothing is written except the returned text.

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

pub use error::{FilePosition, ImportError};
use files::{InMemory, OnDisk};
pub use profile::Imported;

/// The drive of the file at `path`: the disk that a `.parv` instantiates, or the only one of a `.diskspecs` or
/// `.model`. Files that it names are searched next to the file that names them, then next to `path`.
///
/// # Errors
/// The offending file and line; several disks, which are listed.
pub fn import(path: &Path) -> Result<Imported, ImportError> {
    profile::import(&OnDisk, path, None)
}

/// As [`import`], for the disk whose block or instance is called `disk`.
///
/// # Errors
/// As [`import`]; also if the name is not that of exactly one disk.
pub fn import_disk(path: &Path, disk: &str) -> Result<Imported, ImportError> {
    profile::import(&OnDisk, path, Some(disk))
}

/// Imports arbitrary bytes, for fuzzing: parts separated by zero bytes are the files `f0`, `f1`, ..., of which the
/// first is read. It must terminate for any input.
///
/// # Errors
/// As [`import`].
///
/// # Panics
/// If the result is not a profile that can be built, or has another capacity, which is what fuzzing looks for.
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
