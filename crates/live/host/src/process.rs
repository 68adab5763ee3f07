//! Identifies a process even after its pid is reused.

use std::fs;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Roots;

/// A process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// Start time in clock ticks since boot. It distinguishes processes with the same id.
    pub start_ticks: u64,
}

impl Process {
    /// This process. Without procfs, its start is 0.
    pub fn own(roots: &Roots) -> Self {
        let pid = std::process::id();
        Self { pid, start_ticks: start_ticks(roots, pid).unwrap_or(0) }
    }

    /// Whether it is still running.
    pub fn lives(self, roots: &Roots) -> bool {
        start_ticks(roots, self.pid) == Some(self.start_ticks)
    }
}

/// Start time of the process `pid`; `None` if there is none.
fn start_ticks(roots: &Roots, pid: u32) -> Option<u64> {
    // The 22nd field of /proc/PID/stat (proc_pid_stat(5)). The second is a name in parentheses, which may contain
    // anything.
    let text = fs::read_to_string(roots.proc.join(pid.to_string()).join("stat")).ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(22 - 3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_lives_and_another_of_its_number_does_not() {
        let roots = Roots::of_machine();
        let own = Process::own(&roots);
        assert!(own.start_ticks > 0 && own.lives(&roots));
        assert!(!Process { start_ticks: own.start_ticks - 1, ..own }.lives(&roots));
        assert!(!Process { pid: u32::MAX, ..own }.lives(&roots));
    }
}
