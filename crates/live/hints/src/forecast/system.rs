//! The recorded system in the simulator's terms: its devices, schedulers and read-ahead.

use super::DiskFound;
use crate::list::ARM_WAIT_NS_MIN;

/// Reads with a median wait below this do not wait for a SATA disk.
const SATA_WAIT_NS_MIN: u64 = 100_000;

/// Guesses the kind of device from the waits of reads and from what the system says.
pub(super) fn guess(found: &DiskFound) -> &'static str {
    match found.waited_ns {
        Some(..SATA_WAIT_NS_MIN) => "nvme",
        Some(..ARM_WAIT_NS_MIN) => "sata-ssd",
        Some(_) => "seagate-exos-x20",
        // For a virtual machine's disk, what the system says proves nothing by itself.
        None if found.arm && !found.is_virtual => "seagate-exos-x20",
        _ if found.name.starts_with("nvme") => "nvme",
        _ => "sata-ssd",
    }
}

/// Our scheduler that corresponds to the kernel's.
pub(super) fn ours(kernels: &str) -> &'static str {
    match kernels {
        "mq-deadline" => "deadline",
        "bfq" => "clook",
        _ => "fcfs",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_virtual_disk_has_no_arm_unless_it_was_waited_for_as_for_one() {
        let guessed = |is_virtual, waited_ns| {
            let mut found = DiskFound::default();
            (found.arm, found.is_virtual, found.waited_ns) = (true, is_virtual, waited_ns);
            guess(&found)
        };
        let disk = "seagate-exos-x20";
        assert_eq!([None, Some(5_000_000)].map(|waited| guessed(false, waited)), [disk, disk]);
        assert_eq!([None, Some(5_000_000)].map(|waited| guessed(true, waited)), ["sata-ssd", disk]);
        assert_eq!([20_000, 200_000].map(|waited| guessed(true, Some(waited))), ["nvme", "sata-ssd"]);
        // A loop device over a hard disk.
        let mut found = DiskFound::default();
        found.waited_ns = Some(5_000_000);
        assert_eq!(guess(&found), disk);
    }
}
