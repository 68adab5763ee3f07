//! Warnings about a read-ahead: about the device that it is for, and about its size.

use super::{Device, Kind};

/// Above this, random faults of mapped files become noticeably slower, because the kernel reads as much around each of
/// them. Measured: docs/tune.md.
const FAULTS_KB: u64 = 512;
/// Name prefixes of disks that are not hardware: virtio, Xen, network block devices, memory.
const VIRTUAL_NAMES: [&str; 6] = ["vd", "xvd", "nbd", "rbd", "zram", "ram"];
/// Vendors and models that virtual disks report.
const VIRTUAL_MAKERS: [&str; 8] =
    ["qemu", "vmware", "vbox", "msft", "virtual", "google persistentdisk", "amazon elastic block store", "xen"];

/// Reasons why the depth of a drive with an arm may not fit this device, one sentence each.
pub(super) fn of_an_arm(device: &Device) -> Vec<String> {
    let label = device.label();
    let mut cautions = Vec::new();
    let mut say = |text: String| cautions.push(text);
    match device.kind {
        // The user knows which disk holds the file.
        Kind::Loop => {}
        Kind::FileSystem => say(format!(
            "{label} is {}, a file system without a block device: the device behind it, if any, is not known; \
             a depth computed for an arm may mean nothing there",
            device.identity.as_deref().unwrap_or("of an unknown kind")
        )),
        Kind::Stacked => say(format!(
            "{label} is made of {}: requests are spread over them, and the depth of one drive holds for none of them",
            device.made_of.join(", ")
        )),
        Kind::Disk if is_virtual(device) => say(format!(
            "{label} is a virtual disk: where its sectors lie is not known, and what it says of rotation is its host's; \
             headstart profile measures how it behaves"
        )),
        Kind::Disk if device.rotational == Some(false) => say(format!(
            "{label} has no arm (queue/rotational is 0): a depth computed for an arm means nothing there; --profile with \
             the result of headstart profile, or --depth"
        )),
        Kind::Disk => {}
    }
    if !device.part_of.is_empty() {
        say(format!(
            "{label} is part of {above}: files on that are read ahead by its number, not by this one; tune {above}",
            above = device.part_of.join(", ")
        ));
    }
    cautions
}

/// The cost of a deep read-ahead for programs that do not read sequentially.
pub(super) fn of_faults(kb: u64) -> Option<String> {
    (kb > FAULTS_KB).then(|| {
        format!(
            "{kb} KiB are read around each random fault of a mapped file, too, which makes it slower: docs/tune.md; \
             programs that call madvise(MADV_RANDOM) are spared"
        )
    })
}

fn is_virtual(device: &Device) -> bool {
    let digit = |rest: &str| rest.starts_with(|first: char| first.is_ascii_alphanumeric());
    let name = device.name.as_deref().unwrap_or_default();
    let made = device.maker.as_deref().unwrap_or_default().to_lowercase();
    VIRTUAL_NAMES.iter().any(|start| name.strip_prefix(start).is_some_and(digit))
        || VIRTUAL_MAKERS.iter().any(|maker| made.contains(maker))
}

#[cfg(test)]
mod tests {
    use std::fs::create_dir_all;
    use std::path::Path;

    use super::*;
    use headstart_host::testing::Machine;

    fn cautions(name: &str, files: &[(&str, &str)], holder: Option<&str>) -> Vec<String> {
        let machine = Machine::new();
        machine.disk(name, "8:0", 1000, 128);
        for (file, text) in files {
            machine.write(&format!("sys/block/{name}/{file}"), text);
        }
        machine.write(&format!("sys/block/{name}/sda1/partition"), "1");
        if let Some(holder) = holder {
            create_dir_all(machine.path(format!("sys/block/{name}/{holder}"))).expect("there is room");
        }
        let device = Device::at(&machine.roots(), Path::new("/dev/x"), "8:0".parse().expect("a number"), false);
        of_an_arm(&device.expect("it is there"))
    }

    #[test]
    fn devices_on_which_the_depth_of_an_arm_makes_no_sense() {
        let starts = |found: &[String], start: &str| found.len() == 1 && found[0].starts_with(start);
        let turns = ("queue/rotational", "1");
        assert!(cautions("sda", &[turns, ("device/vendor", "SEAGATE")], None).is_empty());
        assert!(cautions("sda", &[], None).is_empty());
        assert!(cautions("loop3", &[("queue/rotational", "0")], None).is_empty());
        for name in ["sda", "nvme0n1"] {
            let found = cautions(name, &[("queue/rotational", "0")], None);
            assert!(starts(&found, &format!("{name} has no arm (queue/rotational is 0)")), "{found:?}");
        }
        for (name, maker) in [("vda", ""), ("xvdf", ""), ("sda", "QEMU"), ("sdb", "Msft"), ("rbd0", "")] {
            let found = cautions(name, &[turns, ("device/vendor", maker)], None);
            assert!(starts(&found, &format!("{name} is a virtual disk")), "{found:?}");
        }
        let found = cautions("nvme1n1", &[("device/model", "Amazon Elastic Block Store")], None);
        assert!(starts(&found, "nvme1n1 is a virtual disk"), "{found:?}");
        let found = cautions("md0", &[turns], Some("slaves/sda"));
        assert!(starts(&found, "md0 is made of sda: "), "{found:?}");
        for holder in ["holders/md0", "sda1/holders/md0"] {
            let found = cautions("sda", &[turns], Some(holder));
            assert!(found.iter().any(|text| text.starts_with("sda is part of md0: ")), "{holder} {found:?}");
        }
    }

    #[test]
    fn deep_ones_cost_faults() {
        assert_eq!(of_faults(512), None);
        assert!(of_faults(516).is_some_and(|text| text.starts_with("516 KiB are read around each random fault")));
    }
}
