//! Where a run's report goes: checked before anything runs, and written atomically.

use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use headstart_types::{printable_path, system_says};

use nix::fcntl::{fcntl, FcntlArg, OFlag};

use headstart_host::owned::{check_output, replace};
use headstart_host::PathError;

const ALLOWED: &str = "a file in a folder that can be written";

/// Means standard output.
const STDOUT: &str = "-";

/// Refuses a target that cannot be written.
///
/// # Errors
/// It is a folder, or is in a folder that does not exist or is not writable.
pub fn check_target(target: &OsStr, stdout: bool) -> Result<(), PathError> {
    let path = Path::new(target);
    if stdout && target == STDOUT {
        return Ok(());
    }
    let folder = folder_of(path);
    let why = if path.is_dir() {
        "is a folder".to_owned()
    } else if target == STDOUT {
        "is no regular file".to_owned()
    } else if !folder.is_dir() {
        format!("there is no folder {}", printable_path(&folder))
    } else if nix::unistd::access(&folder, nix::unistd::AccessFlags::W_OK).is_err() {
        format!("nothing may be written in {}", printable_path(&folder))
    } else {
        return Ok(());
    };
    Err(PathError::new(path, format!("cannot be written: {why}"), ALLOWED))
}

fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => ".".into(),
        Some(folder) => folder.to_owned(),
        None => "/".into(),
    }
}

/// Refuses two options that name the same file.
///
/// # Errors
/// Names the options.
pub fn check_distinct(named: &[(&str, Option<&OsStr>)]) -> Result<(), String> {
    let files: Vec<_> = named.iter().filter_map(|(name, path)| Some((*name, (*path)?))).collect();
    for (at, (name, path)) in files.iter().enumerate() {
        if let Some((before, _)) = files[..at].iter().find(|(_, other)| same(Path::new(other), Path::new(path))) {
            let shown = printable_path(Path::new(path));
            return Err(format!("{name}: {shown} is the same file as {before}; allowed: a file of its own"));
        }
    }
    Ok(())
}

fn same(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    let place = |path: &Path| Some((folder_of(path).canonicalize().ok()?, path.file_name()?.to_owned()));
    (one != Path::new(STDOUT) || other != Path::new(STDOUT))
        && ((identity(one).is_some() && identity(one) == identity(other)) || place(one) == place(other))
}

/// Writes `text`, which ends with a newline, to a file or to standard output.
///
/// # Errors
/// From the system; a file is unchanged then.
pub fn write(target: &OsStr, text: &str) -> Result<(), PathError> {
    let path = Path::new(target);
    let written = match fs::metadata(path) {
        _ if target == STDOUT => io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()),
        _ if check_output(path).is_err() => check_output(path),
        // A pipe or a device: it cannot be replaced. Opening a pipe without a reader would block.
        Ok(found) if !found.is_file() => {
            let opened = OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(path);
            opened.and_then(|mut file| {
                fcntl(&file, FcntlArg::F_SETFL(OFlag::empty()))?;
                file.write_all(text.as_bytes())
            })
        }
        Ok(found) => {
            // Replaces the target of a link, not the link.
            let place = path.canonicalize().unwrap_or_else(|_| path.to_owned());
            replace(&place, text.as_bytes(), found.permissions().mode() & 0o7777, false)
        }
        Err(_) => replace(path, text.as_bytes(), 0o666 & !umask(), false),
    };
    written.map_err(|error| PathError::new(path, format!("cannot be written: {}", system_says(&error)), ALLOWED))
}

/// The permissions that new files do not get.
fn umask() -> u32 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    mask.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok()).unwrap_or(0o077)
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstart_host::testing::Machine;

    #[test]
    fn a_report_replaces_a_file_and_nothing_else() {
        let folder = Machine::new();
        folder.write("there", "old");
        let (there, link) = (folder.path("there"), folder.path("link"));
        fs::set_permissions(&there, fs::Permissions::from_mode(0o640)).expect("ours");
        folder.link("link", "there");
        write(link.as_os_str(), "new\n").expect("there is room");
        assert_eq!(
            (folder.read("there"), there.metadata().expect("it is there").mode() & 0o777),
            ("new".into(), 0o640)
        );
        assert!(link.is_symlink());
        let problem = write(folder.path("no/report").as_os_str(), "x\n").expect_err("no folder").to_string();
        assert!(problem.contains("cannot be written: No such file or directory; allowed: "), "{problem}");
        assert!(check_target(folder.path("").as_os_str(), false)
            .is_err_and(|error| error.to_string().contains("is a folder")));
        assert!(check_target(STDOUT.as_ref(), true).is_ok() && check_target(STDOUT.as_ref(), false).is_err());
        let named = [("--hints", Some(there.as_os_str())), ("--report", Some(link.as_os_str()))];
        let problem = check_distinct(&named).expect_err("one file");
        assert!(problem.contains("--report: ") && problem.contains("is the same file as --hints"), "{problem}");
        let (a, b) = (folder.path("a"), folder.path("b"));
        check_distinct(&[("--report", Some(a.as_os_str())), ("--openmetrics", Some(b.as_os_str()))]).expect("two");
    }
}
