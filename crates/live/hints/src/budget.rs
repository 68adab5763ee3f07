//! The prefetch budget, in bytes prefetched and not yet used: a quarter of the memory that is free for it. If a control
//! group has too little memory for the command itself, the budget is zero: each prefetched page would evict one that
//! the command needs again.

use std::fs;
use std::path::Path;

/// Share of free memory.
const SHARE: u64 = 4;
/// The minimum, if anything is allowed at all.
const BYTES_MIN: u64 = 1 << 20;
/// A command needs memory of its own beside the pages that it reads; hints do not say how much. About as much is what
/// `import pandas` takes, which loses by hints in a group of 1.3 times what it reads.
const OWN_SHARE: u64 = 2;

/// The memory available to this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Available memory, as the system reports it; `None` if it does not.
    available: Option<u64>,
    /// What the limits of its control groups leave; `None` without limits.
    left: Option<u64>,
}

impl Room {
    /// The current state.
    #[must_use]
    pub fn now(proc: &Path, cgroups: &Path) -> Self {
        let available = available(&fs::read_to_string(proc.join("meminfo")).unwrap_or_default());
        let groups = fs::read_to_string(proc.join("self/cgroup")).unwrap_or_default();
        Self { available, left: groups.lines().filter_map(|line| left_of(cgroups, line)).min() }
    }

    /// Maximum bytes that may be prefetched and not yet used.
    #[must_use]
    pub fn budget(self) -> u64 {
        let free = self.available.unwrap_or(u64::MAX).min(self.left.unwrap_or(u64::MAX));
        (free / SHARE).max(BYTES_MIN)
    }

    /// Whether a command that reads `hinted_bytes` may not fit into its control group. Calls `hinted_bytes` only if
    /// there is a limit.
    #[must_use]
    pub fn is_tight_for(self, hinted_bytes: impl FnOnce() -> u64) -> bool {
        self.left.is_some_and(|left| left / OWN_SHARE < hinted_bytes())
    }
}

fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib << 10)
}

/// What the limits of a group and its ancestors leave: the limit minus memory that cannot be reclaimed. `line` is a
/// line of /proc/self/cgroup, "0::/a/b" or "9:memory:/a/b".
fn left_of(cgroups: &Path, line: &str) -> Option<u64> {
    let mut fields = line.splitn(3, ':');
    let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
    let (root, limit, usage) = if controllers.is_empty() {
        (cgroups.to_owned(), "memory.max", "memory.current")
    } else if controllers.split(',').any(|each| each == "memory") {
        (cgroups.join("memory"), "memory.limit_in_bytes", "memory.usage_in_bytes")
    } else {
        return None;
    };
    let number = |path: &Path| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let left = |folder: &Path| {
        let limit = number(&folder.join(limit))?;
        let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
        let file = stat.lines().find_map(|line| line.strip_prefix("file ").or_else(|| line.strip_prefix("cache ")));
        // The group's page cache is reclaimed to make room for prefetched pages.
        let held = number(&folder.join(usage))?.saturating_sub(file.and_then(|file| file.parse().ok()).unwrap_or(0));
        Some(limit.saturating_sub(held))
    };
    let own = root.join(path.trim_start_matches('/'));
    own.ancestors().take_while(|folder| folder.starts_with(&root)).filter_map(left).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_of_what_is_available_and_what_limits_leave() {
        let folder = std::env::temp_dir().join(format!("headstart-budget-{}", std::process::id()));
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("there is room");
            fs::write(path, text).expect("there is room");
        };
        write("proc/meminfo", "MemTotal: 1000000 kB\nMemAvailable:   400000 kB\n");
        write("proc/self/cgroup", "0::/a/b\n");
        let room = || Room::now(&folder.join("proc"), &folder.join("cgroup"));
        let budget = || room().budget();
        assert_eq!(budget(), (400_000 << 10) / 4);
        assert!(!room().is_tight_for(|| u64::MAX), "there is no limit");
        // 64 MiB, 20 of them used, including 8 of page cache; the group below has no limit.
        write("cgroup/a/memory.max", "67108864\n");
        write("cgroup/a/memory.current", "20971520\n");
        write("cgroup/a/memory.stat", "anon 1\nfile 8388608\n");
        write("cgroup/a/b/memory.max", "max\n");
        assert_eq!(budget(), (52 << 20) / 4);
        assert_eq!([26, 27].map(|mib| room().is_tight_for(|| mib << 20)), [false, true]);
        write("proc/self/cgroup", "9:memory:/c\n1:name=systemd:/c\n");
        write("cgroup/memory/c/memory.limit_in_bytes", "2097152");
        write("cgroup/memory/c/memory.usage_in_bytes", "1048576");
        assert_eq!(budget(), 1 << 20);
        fs::remove_dir_all(&folder).expect("ours");
    }
}
