//! A simulated machine in a folder: devices, processes and traces as files. `calls.rs` makes every system call on it
//! fail in turn.

pub mod calls;
#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
mod traced;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::Roots;

/// The folder, removed on drop.
pub struct Machine(PathBuf);

impl Machine {
    #[allow(clippy::new_without_default)] // It makes a folder.
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("headstart-tune-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).expect("there is room");
        let machine = Self(folder.canonicalize().expect("it is there"));
        machine.write("proc/sys/kernel/random/boot_id", "this-boot");
        machine
    }

    pub fn roots(&self) -> Roots {
        Roots { sys: self.path("sys"), proc: self.path("proc"), tracing: self.path("tracing"), run: self.path("run") }
    }

    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.0.join(path)
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("there is room");
        fs::write(path, format!("{text}\n")).expect("there is room");
    }

    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).expect("it is there").trim().to_owned()
    }

    pub fn link(&self, path: &str, to: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("there is room");
        std::os::unix::fs::symlink(self.path(to), path).expect("there is room");
    }

    /// Adds a disk of `sectors`; returns the file of its read-ahead.
    pub fn disk(&self, name: &str, number: &str, sectors: u64, kb: u64) -> PathBuf {
        let folder = format!("sys/block/{name}");
        self.write(&format!("{folder}/dev"), number);
        self.write(&format!("{folder}/size"), &sectors.to_string());
        fs::create_dir_all(self.path(format!("{folder}/mq"))).expect("there is room");
        self.link(&format!("sys/dev/block/{number}"), &folder);
        let file = format!("sys/class/bdi/{number}/read_ahead_kb");
        self.write(&file, &kb.to_string());
        self.path(file)
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
