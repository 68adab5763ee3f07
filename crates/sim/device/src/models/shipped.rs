//! The shipped drives: one row each, with the numbers in a profile.

use headstart_types::{read_keys, KeyTable};

use super::flash::Flash;
use super::flash_keys::FlashKeys;
use super::mechanical::Mechanical;
use super::profile::ProfileKeys;
use crate::driver_cost::{self, DriverCost, DISK_1990S, DISK_2000S, SCSI};
use crate::row::Model;

pub const HP97560: Model = drive(
    "hp97560",
    DISK_1990S,
    "HP 97560, 1.3 GB, 4002 rpm, 128 KB read-ahead buffer",
    "Ruemmler and Wilkes 1994; Kotz, Toh, Radhakrishnan 1994; kimbrel96 Table 1",
    include_str!("../../profiles/hp97560.toml"),
);

pub const SEAGATE_CHEETAH_9LP: Model = drive(
    "seagate-cheetah-9lp",
    DISK_1990S,
    "Seagate Cheetah 9LP ST39102LW, 9.1 GB, 10,045 rpm, 3 segments, writes reported from the buffer",
    "extracted by DiskSim's authors (CMU), as measured",
    include_str!("../../profiles/seagate-cheetah-9lp.toml"),
);

pub const SEAGATE_CHEETAH_4LP: Model = drive(
    "seagate-cheetah-4lp",
    DISK_1990S,
    "Seagate Cheetah 4LP ST34501N, 4.5 GB, 10,033 rpm, 3 segments, writes reported from the buffer",
    "extracted by DiskSim's authors (CMU), as measured",
    include_str!("../../profiles/seagate-cheetah-4lp.toml"),
);

pub const SEAGATE_BARRACUDA_ST32171W: Model = drive(
    "seagate-barracuda-st32171w",
    DISK_1990S,
    "Seagate Barracuda ST32171W, 2.1 GB, 7200 rpm, 3 segments, writes reported from the buffer",
    "extracted by DiskSim's authors (CMU), as measured",
    include_str!("../../profiles/seagate-barracuda-st32171w.toml"),
);

pub const QUANTUM_ATLAS_10K: Model = drive(
    "quantum-atlas-10k",
    DISK_1990S,
    "Quantum Atlas 10K, 9.1 GB, 10,025 rpm, 10 segments, whole-track reads, writes reported from the buffer",
    "extracted by DiskSim's authors (CMU), as measured",
    include_str!("../../profiles/quantum-atlas-10k.toml"),
);

pub const IBM_0661: Model = drive(
    "ibm-0661",
    DISK_1990S,
    "IBM 0661 Lightning, 320 MB, 4316 rpm, no buffer",
    "Holland and Gibson 1992, from memory; curve as in RAIDframe; overhead and bus guessed",
    include_str!("../../profiles/ibm-0661.toml"),
);

pub const IBM_36GB_10K: Model = drive(
    "ibm-36gb-10k",
    DISK_2000S,
    "IBM 36.4 GB, 10,000 rpm, 37.3 MB/s as measured through Linux 2.6.10",
    "averages of Li, Shen and Papathanasiou 2007; the rest guessed",
    include_str!("../../profiles/ibm-36gb-10k.toml"),
);

pub const SEAGATE_146GB_10K: Model = drive(
    "seagate-146gb-10k",
    DISK_2000S,
    "Seagate 146 GB, 10,000 rpm, 55.8 MB/s on average",
    "averages of Li, Shen and Papathanasiou 2007; the rest guessed",
    include_str!("../../profiles/seagate-146gb-10k.toml"),
);

pub const SEAGATE_EXOS_X20: Model = drive(
    "seagate-exos-x20",
    SCSI,
    "Seagate Exos X20, 20 TB, 7200 rpm, 285 MB/s, 256 MB of cache; short name: hdd",
    "data sheet; zones, seek curve and cache management guessed",
    include_str!("../../profiles/seagate-exos-x20.toml"),
);

pub const NVME: Model = flash(
    "nvme",
    driver_cost::NVME,
    "NVMe solid-state drive, 2 TB, PCIe 4.0: parallel channels, one link, a write buffer; no block management",
    "Samsung 990 PRO data sheet, 2022; guesses named in profiles/flash/nvme.toml",
    include_str!("../../profiles/flash/nvme.toml"),
);

pub const NVME_GEN5: Model = flash(
    "nvme-gen5",
    driver_cost::NVME,
    "NVMe solid-state drive for data centers, 6.4 TB, PCIe 5.0: as nvme, with block management and garbage collection",
    "Micron 9550 MAX, 2024; guesses and fits named in profiles/flash/nvme-gen5.toml",
    include_str!("../../profiles/flash/nvme-gen5.toml"),
);

pub const SATA_SSD: Model = flash(
    "sata-ssd",
    SCSI,
    "SATA solid-state drive, 1 TB: as nvme, with command queueing 32 deep and a link of 550 MB/s",
    "Samsung 870 EVO data sheet, 2021; guesses named in profiles/flash/sata-ssd.toml",
    include_str!("../../profiles/flash/sata-ssd.toml"),
);

const fn flash(
    name: &'static str,
    driver_cost: DriverCost,
    summary: &'static str,
    source: &'static str,
    profile: &'static str,
) -> Model {
    let keys = KeyTable::with_text::<FlashKeys>(profile);
    Model { name, driver_cost, summary, source, keys, make: |keys| Ok(Box::new(Flash::try_new(&read_keys(keys)?)?)) }
}

const fn drive(
    name: &'static str,
    driver_cost: DriverCost,
    summary: &'static str,
    source: &'static str,
    profile: &'static str,
) -> Model {
    let keys = KeyTable::with_text::<ProfileKeys>(profile);
    Model { name, driver_cost, summary, source, keys, make: |keys| Ok(Box::new(Mechanical::from_table(keys)?)) }
}
