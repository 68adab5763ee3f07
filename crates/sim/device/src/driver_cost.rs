//! The processor time that a request costs the host: the default of `host.driver_overhead`, by class of device.
//!
//! A device model covers the device's time. The host's block layer and driver need time too, which depends on the
//! contemporary processor and interface: milliseconds in 1990, microseconds today. One table of classes serves every
//! host model, so that all charge the same.

use headstart_types::Nanos;

/// A class of devices whose requests cost the host the same processor time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DriverCost {
    pub class: &'static str,
    /// Processor time per device request.
    pub overhead: Nanos,
    /// The source of the time.
    pub source: &'static str,
}

/// The theoretical device, without a host.
pub const THEORETICAL: DriverCost = DriverCost {
    class: "theoretical",
    overhead: Nanos::ZERO,
    source: "kimbrel96 section 2.1: a fetch has no other cost",
};

/// Disks of the 1990s.
pub const DISK_1990S: DriverCost = DriverCost {
    class: "disk of the 1990s",
    overhead: Nanos(500_000),
    source: "kimbrel96 section 3: 0.5 ms on a DECstation 5000/200",
};

/// Disks of about 2005, behind SCSI.
pub const DISK_2000S: DriverCost = DriverCost {
    class: "disk of the 2000s",
    overhead: Nanos(30_000),
    source: "guess: the instructions of today's SCSI layer on a processor of about a third of the speed",
};

/// Disks and solid-state drives of today, behind SCSI or ATA; also the class of a user's profile.
pub const SCSI: DriverCost = DriverCost {
    class: "SATA or SAS drive",
    overhead: Nanos(10_000),
    source: "guess: NVMe's 3 us, and the SCSI and ATA layers and an interrupt for each command",
};

/// NVMe drives.
pub const NVME: DriverCost = DriverCost {
    class: "NVMe drive",
    overhead: Nanos(3_000),
    source: "Zhong et al., XRP, OSDI 2022, Table 1: of 6.27 us for a 512 B read the kernel takes 3.05 us",
};

/// Storage behind HTTP.
pub const HTTP: DriverCost = DriverCost {
    class: "object store",
    overhead: Nanos(100_000),
    source: "guess: one HTTP request, its encryption and its copies",
};
