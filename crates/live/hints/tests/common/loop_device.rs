//! A separate file system on a loop device. Dropping it removes everything, however far its set-up has come.
#![allow(dead_code)] // Each test file uses its part.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The parts set up so far, in order.
pub struct LoopDevice {
    image: PathBuf,
    device: Option<String>,
    mounted: Option<PathBuf>,
}

fn done(program: &str, words: &[&str]) -> Option<String> {
    let done = Command::new(program).args(words).stderr(Stdio::null()).output().ok()?;
    done.status.success().then(|| String::from_utf8_lossy(&done.stdout).trim().to_owned())
}

impl LoopDevice {
    /// Creates a file system with `mkfs.KIND` and mounts it beside `image`; `None`, and a note, if this machine does
    /// not permit it.
    pub fn new(image: &Path, kind: &str, bytes: u64) -> Option<Self> {
        let mut made = Self { image: image.to_owned(), device: None, mounted: None };
        let ready = made.set_up(kind, bytes);
        if ready.is_none() {
            eprintln!("SKIPPED: no loop device with {kind} can be set up here");
        }
        ready.map(|()| made)
    }

    fn set_up(&mut self, kind: &str, bytes: u64) -> Option<()> {
        let image = self.image.to_str()?.to_owned();
        File::create(&self.image).and_then(|file| file.set_len(bytes)).ok()?;
        done(&format!("mkfs.{kind}"), &["-q", &image])?;
        let device = self.device.insert(done("losetup", &["--find", "--show", &image])?).clone();
        let place = self.image.with_extension("mounted");
        fs::create_dir_all(&place).ok()?;
        done("mount", &[&device, place.to_str()?])?;
        self.mounted = Some(place);
        Some(())
    }

    /// The mount point.
    pub fn folder(&self) -> &Path {
        self.mounted.as_deref().expect("it is set up")
    }

    /// Sets its read-ahead; false if this machine does not permit it.
    pub fn read_ahead(&self, kib: u32) -> bool {
        let name = self.device.as_deref().unwrap_or_default().trim_start_matches("/dev/");
        let is_set = fs::write(format!("/sys/block/{name}/queue/read_ahead_kb"), kib.to_string()).is_ok();
        if !is_set {
            eprintln!("SKIPPED: the read-ahead of {name} cannot be set here");
        }
        is_set
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        if let Some(mounted) = &self.mounted {
            let _ = Command::new("umount").arg(mounted).status();
        }
        if let Some(device) = &self.device {
            let _ = Command::new("losetup").args(["--detach", device]).status();
        }
        let _ = fs::remove_dir(self.image.with_extension("mounted"));
        let _ = fs::remove_file(&self.image);
    }
}
