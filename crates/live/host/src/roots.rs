//! Paths of kernel interfaces and of locks.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use headstart_types::system_says;

use crate::PathError;

/// Mount points of the kernel's file systems.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roots {
    /// sysfs.
    pub sys: PathBuf,
    /// procfs.
    pub proc: PathBuf,
    /// tracefs.
    pub tracing: PathBuf,
    /// Folder of locks: root's, emptied at boot.
    pub run: PathBuf,
}

impl Roots {
    /// The usual place of tracefs.
    pub const TRACING: &str = "/sys/kernel/tracing";

    /// The paths of this machine. If tracefs is not mounted, its path is the usual one, which is then empty.
    #[must_use]
    pub fn of_machine() -> Self {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let tracing = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let mounted: Vec<PathBuf> = tracing
            .filter(|fields| fields.get(2) == Some(&"tracefs"))
            .filter_map(|fields| fields.get(1).map(PathBuf::from))
            .collect();
        let tracing = match mounted.first() {
            Some(first) if !mounted.iter().any(|each| each.as_os_str() == Self::TRACING) => first.clone(),
            _ => PathBuf::from(Self::TRACING),
        };
        Self { sys: "/sys".into(), proc: "/proc".into(), tracing, run: "/run/headstart".into() }
    }

    /// The unique id of this boot; empty if the system has none.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn boot_id(&self) -> Result<String, PathError> {
        let path = self.proc.join("sys/kernel/random/boot_id");
        match fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
            Err(error) => Err(PathError::new(&path, system_says(&error), "a procfs that can be read")),
            Ok(text) => Ok(text.trim().to_owned()),
        }
    }
}
