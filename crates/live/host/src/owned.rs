//! Files and folders that control what a privileged process does: they must belong to this user, and others must not be
//! able to change them.
//!
//! Root is often started with the HOME or XDG_CACHE_HOME of another user, who could place links, pipes and devices
//! there. Therefore a folder is opened component by component without following links, and its files through the
//! folder's descriptor, so that a rename on the way has no effect. Opening neither waits for a pipe nor follows a link;
//! anything but a regular file of this user is refused.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Error, ErrorKind, Write};
use std::ops::Deref;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use headstart_types::system_says;
use nix::unistd::{geteuid, mkstemp};

use crate::PathError;

const ROOT: u32 = 0;
/// The kernel's limit.
const LINKS_MAX: u32 = 40;
const STICKY: u32 = 0o1000;
const ALLOWED: &str = "folders and files of this user, which others cannot write, without symbolic links";

/// A folder of this user, held by descriptor.
#[derive(Debug)]
pub struct OwnFolder {
    folder: File,
    path: PathBuf,
}

/// A component that is still to be opened.
struct Step {
    name: OsString,
    /// Above the named folder: root's links are followed.
    is_above: bool,
    /// Below the named folder: it must belong to this user alone.
    is_below: bool,
}

impl OwnFolder {
    /// Opens the folder `below` the folder `named`, which is an absolute path; `None` if it does not exist, unless
    /// `make` is set.
    ///
    /// # Errors
    /// A component is not a folder, is a symbolic link, belongs to another user or can be written by others; or a
    /// system call fails.
    pub fn open(named: &Path, below: &[&str], make: bool) -> Result<Option<Self>, PathError> {
        let names = named.components().filter(|part| !matches!(part, Component::RootDir));
        let mut steps: VecDeque<Step> =
            names.map(|part| Step { name: part.as_os_str().into(), is_above: true, is_below: false }).collect();
        steps.iter_mut().next_back().into_iter().for_each(|last| last.is_above = false);
        steps.extend(below.iter().map(|name| Step { name: name.into(), is_above: false, is_below: true }));
        let root = || {
            let folder =
                folder_at("/".as_ref()).map_err(|error| PathError::new(named, system_says(&error), ALLOWED))?;
            Ok(Self { folder, path: "/".into() })
        };
        let (mut at, mut links) = (root()?, 0);
        while let Some(step) = steps.pop_front() {
            let path = at.path.join(&step.name);
            let refused = |problem: String| PathError::new(&path, problem, ALLOWED);
            let failed = |error: Error| refused(system_says(&error));
            let mut opened = folder_at(&at.at(&step.name));
            if make && opened.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
                let made = DirBuilder::new().mode(0o700).create(at.at(&step.name));
                made.or_else(|error| if error.kind() == ErrorKind::AlreadyExists { Ok(()) } else { Err(error) })
                    .map_err(failed)?;
                opened = folder_at(&at.at(&step.name));
            }
            let folder = match opened {
                Err(error) if error.kind() == ErrorKind::NotFound && !make => return Ok(None),
                opened => opened.map_err(failed)?,
            };
            let found = folder.metadata().map_err(failed)?;
            if found.is_symlink() {
                if !step.is_above || found.uid() != ROOT || links == LINKS_MAX {
                    return Err(refused("is a symbolic link".to_owned()));
                }
                links += 1;
                let target = fs::read_link(at.at(&step.name)).map_err(failed)?;
                if target.is_absolute() {
                    at = root()?;
                }
                let names = target.components().filter(|part| !matches!(part, Component::RootDir)).rev();
                names.for_each(|part| {
                    steps.push_front(Step { name: part.as_os_str().into(), is_above: true, is_below: false });
                });
                continue;
            }
            check_folder(&found, &step, steps.is_empty()).map_err(refused)?;
            at = Self { folder, path };
        }
        Ok(Some(at))
    }

    /// The path for error messages.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A path to `name` in the folder that stays valid if parent folders change. The last component may be a link.
    #[must_use]
    pub fn at(&self, name: impl AsRef<OsStr>) -> PathBuf {
        Path::new(&format!("/proc/self/fd/{}", self.folder.as_raw_fd())).join(name.as_ref())
    }

    /// Like [`open_file`], for a file in the folder.
    ///
    /// # Errors
    /// As [`open_file`].
    pub fn open_file(&self, name: impl AsRef<OsStr>, options: &mut OpenOptions) -> io::Result<File> {
        open_file(&self.at(name), options)
    }
}

/// Opened without read permission: a component may only be passable.
fn folder_at(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_PATH | libc::O_NOFOLLOW).open(path)
}

fn check_folder(found: &Metadata, step: &Step, is_last: bool) -> Result<(), String> {
    if !found.is_dir() {
        return Err("is no folder".to_owned());
    }
    let (user, own) = (found.uid(), geteuid().as_raw());
    if user != own && (step.is_below || user != ROOT) {
        return Err(format!("belongs to the user {user}, not to {own}"));
    }
    // In a folder such as /tmp others may add names but not rename ours.
    let may_write = if is_last && step.is_below { 0o022 } else { 0o002 };
    if found.mode() & may_write != 0 && (step.is_below || found.mode() & STICKY == 0) {
        return Err(format!("can be written by others (mode {:o})", found.mode() & 0o7777));
    }
    Ok(())
}

/// Opens a regular file of this user or of root that others cannot write. Neither follows a link nor waits for a pipe.
///
/// # Errors
/// It is something else, or a system call fails.
pub fn open_file(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let opened = options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path);
    let file = opened.map_err(|error| match error.raw_os_error() {
        Some(libc::ELOOP) => Error::other("is a symbolic link"),
        // A pipe without a reader, or a socket.
        Some(libc::ENXIO) => Error::other("is no regular file"),
        _ => error,
    })?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(Error::other("is no regular file"));
    }
    let (user, own) = (found.uid(), geteuid().as_raw());
    if user != own && user != ROOT {
        return Err(Error::other(format!("belongs to the user {user}, not to {own}")));
    }
    if found.mode() & 0o022 != 0 {
        return Err(Error::other(format!("can be written by others (mode {:o})", found.mode() & 0o7777)));
    }
    Ok(file)
}

/// An open file that is locked exclusively. The lock belongs to the open file, which forked processes share until they
/// execute a program or end: dropping this releases it even then.
#[derive(Debug)]
pub struct LockedFile(File);

impl Deref for LockedFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        // If this fails, closing the file releases the lock.
        let _ = self.0.unlock();
    }
}

/// Locks an open file; `None` if another process holds the lock.
///
/// # Errors
/// It cannot be locked.
pub fn try_lock(file: File) -> io::Result<Option<LockedFile>> {
    match file.try_lock() {
        Ok(()) => Ok(Some(LockedFile(file))),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Refuses to write through a link of another user, as the kernel does in folders such as /tmp (protected_symlinks).
///
/// # Errors
/// `path` is such a link.
pub fn check_output(path: &Path) -> io::Result<()> {
    let link = fs::symlink_metadata(path).ok().filter(Metadata::is_symlink);
    match link.map(|link| link.uid()) {
        Some(user) if user != ROOT && user != geteuid().as_raw() => {
            Err(Error::other(format!("is a symbolic link of the user {user}")))
        }
        _ => Ok(()),
    }
}

/// Atomically replaces a file by one with `bytes` and `mode`; with `synced`, it survives a loss of power. The new file
/// has a random name until then, so that no file is in the way and no link is followed.
///
/// # Errors
/// A system call fails. Then either the old file is unchanged, or the new one is in place but may be lost with the
/// power.
pub fn replace(path: &Path, bytes: &[u8], mode: u32, synced: bool) -> io::Result<()> {
    let mut name = unfinished(path);
    name.push("XXXXXX");
    let (descriptor, new) = mkstemp(&path.with_file_name(name))?;
    let mut file = File::from(descriptor);
    let mut write = || {
        file.write_all(bytes)?;
        file.set_permissions(fs::Permissions::from_mode(mode))?;
        if synced {
            file.sync_all()?;
        }
        fs::rename(&new, path)?;
        match path.parent().filter(|folder| synced && !folder.as_os_str().is_empty()) {
            Some(folder) => File::open(folder)?.sync_all(),
            None => Ok(()),
        }
    };
    let written = write();
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written
}

/// Name prefix of a temporary file for `path`; six letters or digits follow.
fn unfinished(path: &Path) -> OsString {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".");
    name
}

/// Removes temporary files left by processes that were killed in [`replace`] of `path`. The caller guarantees that no
/// process is in it.
pub fn remove_unfinished(path: &Path) {
    let begin = unfinished(path);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(".".as_ref());
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let random = name.as_bytes().strip_prefix(begin.as_bytes());
        if random.is_some_and(|random| random.len() == 6 && random.iter().all(u8::is_ascii_alphanumeric)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{chown, symlink};

    use nix::sys::stat::Mode;

    use super::*;
    use crate::testing::Machine;

    const NOBODY: u32 = 65534;

    fn problem(named: &Path) -> String {
        OwnFolder::open(named, &["cache", "run"], true).expect_err("refused").to_string()
    }

    #[test]
    fn a_folder_is_made_for_its_user_and_found_again() {
        let machine = Machine::new();
        let home = machine.path("home");
        assert!(OwnFolder::open(&home, &["cache", "run"], false).expect("nothing is wrong").is_none());
        assert!(!home.exists());
        let made = OwnFolder::open(&home, &["cache", "run"], true).expect("there is room").expect("made");
        assert_eq!(made.path(), home.join("cache/run"));
        assert_eq!(home.join("cache/run").metadata().expect("made").mode() & 0o777, 0o700);
        // An open folder stays the same when it is renamed.
        fs::rename(home.join("cache"), home.join("old")).expect("ours");
        fs::write(made.at("file"), "x").expect("there is room");
        assert_eq!(fs::read_to_string(home.join("old/run/file")).expect("it is there"), "x");
    }

    #[test]
    fn links_others_folders_and_open_ones_are_refused_at_each_component() {
        let machine = Machine::new();
        let home = machine.path("home");
        let is_root = geteuid().is_root();
        for at in ["", "cache", "cache/run"] {
            let place = home.join(at);
            let fresh = || {
                let _ = fs::remove_dir_all(&home).or_else(|_| fs::remove_file(&home));
                fs::create_dir_all(home.join("cache/run")).expect("there is room");
            };
            let shown = place.display().to_string().trim_end_matches('/').to_owned();
            fresh();
            fs::set_permissions(&place, fs::Permissions::from_mode(0o777)).expect("ours");
            assert!(problem(&home).starts_with(&format!("{shown}: can be written by others (mode 777); allowed: ")));
            fresh();
            fs::rename(&place, machine.path("moved")).expect("ours");
            symlink(machine.path("moved"), shown.as_str()).expect("ours");
            assert!(problem(&home).starts_with(&format!("{shown}: is a symbolic link; allowed: ")), "{at}");
            fs::remove_file(&shown).expect("a link");
            fs::remove_dir_all(machine.path("moved")).expect("ours");
            fs::write(&shown, "").expect("there is room");
            assert!(problem(&home).starts_with(&format!("{shown}: is no folder; allowed: ")), "{at}");
            fs::remove_file(&shown).expect("a file");
            if is_root {
                fresh();
                chown(&place, Some(NOBODY), None).expect("root");
                let text = problem(&home);
                assert!(text.starts_with(&format!("{shown}: belongs to the user {NOBODY}, not to 0; ")), "{text}");
            }
        }
        if !is_root {
            eprintln!("SKIPPED: folders of other users: not root");
        }
    }

    #[test]
    fn a_link_above_the_named_folder_is_followed_if_it_is_root_s() {
        if !geteuid().is_root() {
            return eprintln!("SKIPPED: not root");
        }
        let machine = Machine::new();
        fs::create_dir_all(machine.path("var/home/user")).expect("there is room");
        for target in ["var/home".into(), machine.path("var/home")] {
            symlink(target, machine.path("home")).expect("ours");
            let opened = OwnFolder::open(&machine.path("home/user"), &["run"], true).expect("root's").expect("made");
            assert_eq!(opened.path(), machine.path("var/home/user/run"));
            fs::remove_file(machine.path("home")).expect("a link");
        }
        symlink("home", machine.path("home")).expect("ours");
        let text = OwnFolder::open(&machine.path("home/user"), &["run"], true).expect_err("no end").to_string();
        assert!(text.contains("/home: is a symbolic link; "), "{text}");
        fs::remove_file(machine.path("home")).expect("a link");
        symlink("var/home", machine.path("home")).expect("ours");
        std::os::unix::fs::lchown(machine.path("home"), Some(NOBODY), None).expect("root");
        OwnFolder::open(&machine.path("home/user"), &["run"], true).expect_err("another user's");
    }

    #[test]
    fn a_lock_ends_with_its_owner_although_a_forked_process_has_the_file() {
        let machine = Machine::new();
        machine.write("file", "");
        let lock = || try_lock(File::open(machine.path("file")).expect("it is there")).expect("it can be locked");
        let held = lock().expect("it is free");
        let _of_a_child = held.try_clone().expect("the same open file");
        assert!(lock().is_none());
        drop(held);
        assert!(lock().is_some());
    }

    #[test]
    fn only_regular_files_of_this_user_are_opened_and_nothing_waits() {
        let machine = Machine::new();
        machine.write("file", "x");
        machine.link("link", "file");
        nix::unistd::mkfifo(&machine.path("pipe"), Mode::S_IRWXU).expect("there is room");
        let says = |name: &str, write: bool| {
            let opened = open_file(&machine.path(name), OpenOptions::new().read(!write).write(write));
            opened.map(drop).map_err(|error| error.to_string())
        };
        for write in [false, true] {
            assert_eq!(says("file", write), Ok(()));
            assert_eq!(says("link", write), Err("is a symbolic link".to_owned()));
            assert_eq!(says("pipe", write), Err("is no regular file".to_owned()));
        }
        assert!(says("", false).is_err_and(|text| text == "is no regular file"));
        fs::set_permissions(machine.path("file"), fs::Permissions::from_mode(0o664)).expect("ours");
        assert_eq!(says("file", false), Err("can be written by others (mode 664)".to_owned()));
        if geteuid().is_root() {
            fs::set_permissions(machine.path("file"), fs::Permissions::from_mode(0o600)).expect("ours");
            chown(machine.path("file"), Some(NOBODY), None).expect("root");
            assert_eq!(says("file", false), Err(format!("belongs to the user {NOBODY}, not to 0")));
            std::os::unix::fs::lchown(machine.path("link"), Some(NOBODY), None).expect("root");
            assert_eq!(
                check_output(&machine.path("link")).map_err(|error| error.to_string()),
                Err(format!("is a symbolic link of the user {NOBODY}"))
            );
        }
        assert!(check_output(&machine.path("file")).is_ok() && check_output(&machine.path("none")).is_ok());
    }
}
