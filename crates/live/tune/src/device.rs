//! Finds the device behind a path, and reads and writes its read-ahead.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use headstart_types::system_says;
use nix::unistd::{access, AccessFlags};
use schemars::JsonSchema;
use serde::Serialize;

use super::{Error, Number};
use headstart_host::Roots;

const ALLOWED: &str = "a disk, a partition or a loop device, or a path on one or on FUSE or NFS";
const SECTOR_BYTES: u64 = 512;
/// Files with permanent identifiers of a device, in order of preference.
const IDENTITIES: [&str; 6] = ["wwid", "device/wwid", "serial", "device/serial", "dm/uuid", "loop/backing_file"];

/// Kind of a backing device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A whole disk, or any other device with a request queue.
    Disk,
    /// A loop device.
    Loop,
    /// A device that passes requests on to other devices: device mapper, md.
    Stacked,
    /// A file system without a block device, such as FUSE or NFS.
    FileSystem,
}

/// A backing device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Device {
    /// The path that the user gave.
    pub path: PathBuf,
    /// Number of the device whose read-ahead applies, as major:minor.
    #[schemars(with = "String")]
    pub number: Number,
    /// The kernel's name. Null for a file system without a block device.
    pub name: Option<String>,
    /// Kind of the device.
    pub kind: Kind,
    /// The partition that was given or that holds the given path. The device is its disk.
    pub partition: Option<String>,
    /// Devices that this device consists of.
    pub made_of: Vec<String>,
    /// Capacity in bytes.
    pub size_bytes: Option<u64>,
    /// Permanent identifier: a serial number or similar, the file of a loop device, or the mounted source of a file
    /// system without a block device.
    pub identity: Option<String>,
    /// The flag `queue/rotational`. Null if the device has none.
    pub rotational: Option<bool>,
    /// Vendor and model, if known.
    pub maker: Option<String>,
    /// Devices that consist of this device or of one of its partitions.
    pub part_of: Vec<String>,
    /// Sequence number of the medium since boot (`diskseq`). It changes when the medium changes.
    pub sequence: Option<u64>,
    /// sysfs folder of its backing device.
    #[serde(skip)]
    backing: PathBuf,
    /// sysfs folder of its block device.
    #[serde(skip)]
    block: Option<PathBuf>,
}

impl Device {
    /// The backing device of a block device, or of the file system that holds a file or folder.
    ///
    /// # Errors
    /// The path does not exist or has no such device.
    pub fn of(roots: &Roots, path: &Path) -> Result<Self, Error> {
        let error = |source: io::Error| Error::path(path, system_says(&source), ALLOWED);
        let metadata = path.metadata().map_err(error)?;
        let kind = metadata.file_type();
        if kind.is_char_device() {
            return Err(Error::path(path, "is a character device", ALLOWED));
        }
        match kind.is_block_device() {
            true => Self::at(roots, path, Number::of(metadata.rdev()), false),
            false => Self::at(roots, path, Number::of(metadata.dev()), true),
        }
    }

    /// As [`Self::of`] for a known number, of the device itself or of a `file_system`.
    pub(super) fn at(roots: &Roots, path: &Path, number: Number, file_system: bool) -> Result<Self, Error> {
        let found = fs::canonicalize(roots.sys.join("dev/block").join(number.to_string())).ok();
        let partition = found.clone().filter(|folder| folder.join("partition").exists());
        let block = match &partition {
            Some(partition) => partition.parent().map(Path::to_path_buf),
            None => found,
        };
        let own = block.as_ref().and_then(|block| text(&block.join("dev"))).and_then(|text| text.parse().ok());
        let number_of_disk: Number = own.unwrap_or(number);
        // A FUSE driver of a block device reads through a backing device of its own.
        let names = [format!("{number}-fuseblk"), number_of_disk.to_string()];
        let names = if file_system { &names[..] } else { &names[1..] };
        let folders = names.iter().map(|name| roots.sys.join("class/bdi").join(name));
        let Some(backing) = folders.into_iter().find(|folder| folder.join("read_ahead_kb").exists()) else {
            let problem = format!("has no read-ahead: there is no backing device {number_of_disk}");
            return Err(Error::path(path, problem, ALLOWED));
        };
        let name_of = |folder: &PathBuf| folder.file_name().map(|name| name.to_string_lossy().into_owned());
        let read = |file: &str| block.as_ref().and_then(|block| text(&block.join(file)));
        let sectors = read("size").and_then(|text| text.parse::<u64>().ok());
        let mut device = Self {
            path: path.to_owned(),
            number: number_of_disk,
            name: block.as_ref().and_then(name_of),
            kind: Kind::FileSystem,
            partition: partition.as_ref().and_then(name_of),
            made_of: block.as_ref().map(|block| names_in(&block.join("slaves"))).unwrap_or_default(),
            size_bytes: sectors.map(|sectors| sectors * SECTOR_BYTES),
            identity: match &block {
                Some(_) => IDENTITIES.iter().find_map(|file| read(file)),
                None => mounted(roots, number),
            },
            rotational: read("queue/rotational").map(|text| text == "1"),
            maker: join(read("device/vendor"), read("device/model")),
            part_of: block.as_ref().map(|block| holders(block)).unwrap_or_default(),
            sequence: read("diskseq").and_then(|text| text.parse().ok()),
            backing,
            block,
        };
        device.kind = device.kind_now();
        Ok(device)
    }

    fn kind_now(&self) -> Kind {
        match &self.block {
            None => Kind::FileSystem,
            Some(_) if !self.made_of.is_empty() => Kind::Stacked,
            Some(_) if self.name.as_ref().is_some_and(|name| name.starts_with("loop")) => Kind::Loop,
            Some(_) => Kind::Disk,
        }
    }

    /// The kernel's name, or the number if it has none.
    #[must_use]
    pub fn label(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.number.to_string())
    }

    /// The sysfs file of the read-ahead.
    #[must_use]
    pub fn file(&self) -> PathBuf {
        self.backing.join("read_ahead_kb")
    }

    /// Name of the backing device: "8:0" like the block device's number, or "8:1-fuseblk" of a FUSE driver.
    pub(super) fn backing_name(&self) -> String {
        self.backing.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Whether the kernel traces its requests. Those of a FUSE driver belong to its disk.
    pub(super) fn has_requests(&self) -> bool {
        let own = self.backing_name() == self.number.to_string();
        own && self.block.as_ref().is_some_and(|block| block.join("mq").exists())
    }

    /// The numbers of the device and its partitions.
    pub(super) fn numbers(&self) -> Vec<Number> {
        let mut numbers = vec![self.number];
        for block in self.block.iter() {
            let partitions = names_in(block).into_iter().map(|name| block.join(name));
            let partitions = partitions.filter(|folder| folder.join("partition").exists());
            numbers.extend(partitions.filter_map(|folder| text(&folder.join("dev"))?.parse::<Number>().ok()));
        }
        numbers
    }

    /// Whether the device is still present with the same medium.
    pub(super) fn is_there(&self) -> bool {
        let Some(block) = &self.block else { return self.file().exists() };
        let size = text(&block.join("size"));
        let sequence = text(&block.join("diskseq")).and_then(|text| text.parse().ok());
        self.file().exists() && size.is_some_and(|size| size != "0") && sequence == self.sequence
    }

    /// The current read-ahead.
    ///
    /// # Errors
    /// The device is gone, or the file holds no number.
    pub fn read_ahead_kb(&self) -> Result<u64, Error> {
        let error = |problem: String| Error::path(&self.file(), problem, "the read-ahead of a device, in KiB");
        let text = fs::read_to_string(self.file()).map_err(|source| error(system_says(&source)))?;
        text.trim().parse().map_err(|_| error(format!("\"{}\" is no number", text.trim())))
    }

    /// Checks whether the read-ahead could be written, without writing it.
    ///
    /// # Errors
    /// The reason why it cannot.
    pub(super) fn check_writable(&self) -> Result<(), Error> {
        access(&self.file(), AccessFlags::W_OK).map_err(|errno| self.not_written(&errno.into()))
    }

    /// Sets the read-ahead and returns the value read back, because another program may have changed it at once.
    ///
    /// # Errors
    /// The system refuses it, or the device is gone.
    pub(super) fn write(&self, kb: u64) -> Result<u64, Error> {
        // As `echo` does; the file is not created if it is gone.
        let write = || fs::OpenOptions::new().write(true).truncate(true).open(self.file())?.write_all_of(kb);
        write().map_err(|source: io::Error| self.not_written(&source))?;
        self.read_ahead_kb()
    }

    fn not_written(&self, source: &io::Error) -> Error {
        let allowed = match source.kind() {
            io::ErrorKind::PermissionDenied => "root: only root may change a device",
            io::ErrorKind::ReadOnlyFilesystem => "a sysfs that is mounted to be written; in a container often none is",
            _ => ALLOWED,
        };
        Error::path(&self.file(), format!("cannot be written: {}", system_says(source)), allowed)
    }
}

/// Writes a number with one system call, as sysfs requires.
trait WriteAllOf {
    fn write_all_of(&mut self, kb: u64) -> io::Result<()>;
}

impl WriteAllOf for fs::File {
    fn write_all_of(&mut self, kb: u64) -> io::Result<()> {
        io::Write::write_all(self, format!("{kb}\n").as_bytes())
    }
}

/// Content of a sysfs file; `None` if it is missing or empty.
fn text(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?.trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// Type and source of the mount with this number, from `/proc/self/mountinfo`. The number is reused after an unmount.
fn mounted(roots: &Roots, number: Number) -> Option<String> {
    let text = fs::read_to_string(roots.proc.join("self/mountinfo")).ok()?;
    let number = number.to_string();
    let line = text.lines().find(|line| line.split(' ').nth(2) == Some(&number))?;
    // proc_pid_mountinfo(5): the separator is followed by type, source and options.
    let (_, rest) = line.split_once(" - ")?;
    let mut fields = rest.split(' ');
    Some(format!("{} {}", fields.next()?, fields.next()?))
}

fn join(one: Option<String>, other: Option<String>) -> Option<String> {
    let words: Vec<String> = one.into_iter().chain(other).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// Devices that consist of a disk or of its partitions.
fn holders(block: &Path) -> Vec<String> {
    let folders =
        names_in(block).into_iter().map(|name| block.join(name)).filter(|folder| folder.join("partition").exists());
    let mut names: Vec<String> =
        std::iter::once(block.to_owned()).chain(folders).flat_map(|folder| names_in(&folder.join("holders"))).collect();
    names.sort();
    names.dedup();
    names
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstart_host::testing::Machine;
    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;

    #[test]
    fn a_partition_s_disk_is_the_device() {
        let machine = Machine::new();
        let disk = machine.disk("sda", "8:0", 1000, 128);
        machine.write("sys/block/sda/wwid", "naa.5000c500");
        machine.write("sys/block/sda/diskseq", "9");
        machine.write("sys/block/sda/sda2/partition", "2");
        machine.write("sys/block/sda/sda2/dev", "8:2");
        machine.link("sys/dev/block/8:2", "sys/block/sda/sda2");
        let named = Path::new("/dev/sda2");
        let number = "8:2".parse().expect("a number");
        for file_system in [false, true] {
            let found = Device::at(&machine.roots(), named, number, file_system).expect("it is there");
            assert_eq!((found.name.as_deref(), found.partition.as_deref()), (Some("sda"), Some("sda2")));
            assert_eq!(found.numbers(), ["8:0", "8:2"].map(|each| each.parse().expect("a number")));
            assert_eq!((found.number, found.kind), ("8:0".parse().expect("a number"), Kind::Disk));
            assert_eq!((found.size_bytes, found.sequence), (Some(512_000), Some(9)));
            assert_eq!((found.identity.as_deref(), found.file()), (Some("naa.5000c500"), disk.clone()));
        }
        assert!(Device::at(&machine.roots(), named, number, true).expect("it is there").has_requests());
    }

    #[test]
    fn stacked_and_without_a_device() {
        let machine = Machine::new();
        machine.disk("dm-0", "253:0", 1000, 256);
        std::fs::remove_dir_all(machine.path("sys/block/dm-0/mq")).expect("it is there");
        for slave in ["sdb", "sda"] {
            std::fs::create_dir_all(machine.path("sys/block/dm-0/slaves").join(slave)).expect("there is room");
        }
        let at = |number: &str, file_system| {
            Device::at(&machine.roots(), Path::new("/x"), number.parse().expect("a number"), file_system)
        };
        let stacked = at("253:0", false).expect("it is there");
        assert_eq!((stacked.kind, stacked.made_of.clone()), (Kind::Stacked, vec!["sda".to_owned(), "sdb".to_owned()]));
        assert!(!stacked.has_requests());
        machine.write("sys/class/bdi/0:45/read_ahead_kb", "128");
        machine.write(
            "proc/self/mountinfo",
            "21 1 0:4 / /proc rw - proc proc rw\n30 1 0:45 / /mnt\\040a rw,relatime shared:9 - nfs4 host:/a rw,vers=4.2",
        );
        let network = at("0:45", true).expect("it is there");
        assert_eq!(network.identity.as_deref(), Some("nfs4 host:/a"));
        assert_eq!((network.kind, network.name.clone(), network.label()), (Kind::FileSystem, None, "0:45".to_owned()));
        assert!(!network.has_requests() && network.is_there());
        // A FUSE driver reads through a backing device of its own; the block device has another.
        machine.write("sys/class/bdi/253:0-fuseblk/read_ahead_kb", "64");
        std::fs::create_dir_all(machine.path("sys/block/dm-0/mq")).expect("there is room");
        let driver = at("253:0", true).expect("it is there");
        assert_eq!((driver.read_ahead_kb().expect("a number"), driver.has_requests()), (64, false));
        assert!(at("253:0", false).expect("it is there").has_requests());
        assert_eq!(at("253:0", false).expect("it is there").read_ahead_kb().expect("a number"), 256);
        let error = at("0:99", true).expect_err("it is not there").to_string();
        assert_eq!(error, format!("/x: has no read-ahead: there is no backing device 0:99; allowed: {ALLOWED}"));
    }

    #[test]
    fn what_is_no_device_is_refused() {
        let machine = Machine::new();
        let error = |path: &str| Device::of(&machine.roots(), Path::new(path)).expect_err("refused").to_string();
        assert_eq!(error("/no/such"), format!("/no/such: No such file or directory; allowed: {ALLOWED}"));
        assert_eq!(error("/dev/null"), format!("/dev/null: is a character device; allowed: {ALLOWED}"));
        assert!(error("/proc").starts_with("/proc: has no read-ahead: there is no backing device 0:"));
    }

    #[test]
    fn a_number_written_by_another_at_once_is_reported() {
        let machine = Machine::new();
        let file = machine.disk("sda", "8:0", 1000, 128);
        let device = Device::at(&machine.roots(), Path::new("/dev/sda"), "8:0".parse().expect("a number"), false);
        fs::remove_file(&file).expect("it is there");
        mkfifo(&file, Mode::S_IRUSR | Mode::S_IWUSR).expect("there is room");
        // A second open waits for the first.
        let other = std::thread::spawn(move || {
            let written = fs::read_to_string(&file).expect("it is there");
            fs::write(&file, "512\n").expect("it is there");
            written
        });
        assert_eq!(device.expect("it is there").write(384).expect("it is written"), 512);
        assert_eq!(other.join().expect("it ends"), "384\n");
    }

    #[test]
    fn a_device_that_has_gone_or_changed_is_seen() {
        let machine = Machine::new();
        machine.disk("loop3", "7:3", 1000, 128);
        machine.write("sys/block/loop3/diskseq", "4");
        let number = "7:3".parse().expect("a number");
        let found = || Device::at(&machine.roots(), Path::new("/dev/loop3"), number, false).expect("it is there");
        let device = found();
        assert_eq!((device.kind, device.is_there()), (Kind::Loop, true));
        machine.write("sys/block/loop3/diskseq", "5");
        assert!(!device.is_there() && found().is_there());
        machine.write("sys/block/loop3/size", "0");
        assert!(!found().is_there());
        machine.write("sys/class/bdi/7:3/read_ahead_kb", "many");
        assert!(device.read_ahead_kb().expect_err("no number").to_string().contains("\"many\" is no number"));
        std::fs::remove_file(device.file()).expect("it is there");
        assert!(device.write(4).expect_err("it is gone").to_string().contains("cannot be written: No such file"));
        assert!(!device.file().exists() && !device.is_there());
    }
}
