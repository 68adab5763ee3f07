//! Locks that only root can take: files of mode 0600 in a folder of mode 0700.
//!
//! Any process that may open a file for reading may lock it (flock(2)); a lock on a folder of sysfs, or on a state
//! folder that others can read, could be taken by any local user. The lock ends with the process. The file stays:
//! removing a file while another process waits for its lock would give two processes a lock of one name.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use headstart_types::system_says;
use nix::unistd::geteuid;

use headstart_host::owned::{self, open_file, LockedFile};

use super::Error;
use headstart_host::Roots;

const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
const ALLOWED: &str = "a folder of mode 0700 that belongs to the user of the command";

/// Takes the lock `name`; `None` if another process holds it. The caller guarantees that `name` has no slash.
///
/// # Errors
/// The folder or file cannot be created, or belongs to another user.
pub(super) fn try_lock(roots: &Roots, name: &str) -> Result<Option<LockedFile>, Error> {
    private_folder(&roots.run)?;
    let path = roots.run.join(format!("{name}.lock"));
    let problem = |error: &io::Error| Error::path(&path, system_says(error), "a lock that can be taken");
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(FILE_MODE);
    let file = open_file(&path, &mut options).map_err(|error| problem(&error))?;
    file.set_permissions(Permissions::from_mode(FILE_MODE)).map_err(|error| problem(&error))?;
    owned::try_lock(file).map_err(|error| problem(&error))
}

/// Creates the folder with access for its owner only, whatever the umask. An existing folder is closed to others.
///
/// # Errors
/// It cannot be created, is not a folder, or belongs to another user.
pub(super) fn private_folder(path: &Path) -> Result<(), Error> {
    let problem = |error: &io::Error| Error::path(path, system_says(error), ALLOWED);
    match DirBuilder::new().mode(FOLDER_MODE).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(problem(&error)),
        _ => {}
    }
    let found = fs::symlink_metadata(path).map_err(|error| problem(&error))?;
    if !found.is_dir() {
        return Err(Error::path(path, "is no folder", ALLOWED));
    }
    if found.uid() != geteuid().as_raw() {
        return Err(Error::path(path, format!("belongs to the user {}", found.uid()), ALLOWED));
    }
    if found.mode() & 0o777 != FOLDER_MODE {
        fs::set_permissions(path, Permissions::from_mode(FOLDER_MODE)).map_err(|error| problem(&error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstart_host::testing::Machine;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).expect("it is there").mode() & 0o777
    }

    #[test]
    fn a_lock_is_for_its_owner_alone_and_goes_when_it_is_dropped() {
        let machine = Machine::new();
        let roots = machine.roots();
        // An older version or an administrator may have left both open.
        fs::create_dir(&roots.run).expect("there is room");
        fs::set_permissions(&roots.run, Permissions::from_mode(0o755)).expect("ours");
        machine.write("run/one.lock", "");
        let lock = try_lock(&roots, "one").expect("it can be made").expect("nobody has it");
        assert_eq!((mode(&roots.run), mode(&roots.run.join("one.lock"))), (0o700, 0o600));
        assert!(try_lock(&roots, "one").expect("it is there").is_none());
        assert!(try_lock(&roots, "other").expect("it can be made").is_some());
        drop(lock);
        assert!(try_lock(&roots, "one").expect("it is there").is_some());
    }

    #[test]
    fn links_and_files_are_refused() {
        let machine = Machine::new();
        let roots = machine.roots();
        machine.write("run", "");
        let text = try_lock(&roots, "one").expect_err("a file").to_string();
        assert!(text
            .ends_with("/run: is no folder; allowed: a folder of mode 0700 that belongs to the user of the command"));
        fs::remove_file(&roots.run).expect("ours");
        private_folder(&roots.run).expect("it can be made");
        machine.link("run/one.lock", "victim");
        try_lock(&roots, "one").expect_err("a link");
        assert!(!machine.path("victim").exists());
        fs::rename(&roots.run, machine.path("elsewhere")).expect("ours");
        machine.link("run", "elsewhere");
        try_lock(&roots, "two").expect_err("a link");
    }
}
