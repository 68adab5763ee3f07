//! The keys of a solid-state drive: two shipped profiles with the source of every number, checked and read.
//!
//! Keys: `capacity`, `page_size`, `channels`, `read_time`, `program_time`, `read_overhead`, `write_overhead`,
//! `link_bytes_per_second`, `link_command`, `duplex`, `queue_depth`, `write_buffer`. See `flash.rs` for what they do.

use headstart_types::{Bytes, KeyError, Nanos};
use toml::Table;

use super::flash::{Flash, Parameters};
use crate::keys::Keys;
use crate::SECTOR_BYTES;

const NVME: &str = include_str!("../../profiles/flash/nvme.toml");
const SATA_SSD: &str = include_str!("../../profiles/flash/sata-ssd.toml");

/// No operation of flash takes longer: sums over the pages of one request stay within 64 bits.
const TIME_MAX: Nanos = Nanos(1_000_000_000);

/// Most pages of a write buffer: 8 bytes for each are kept.
const BUFFER_PAGES_MAX: u64 = 1 << 20;

/// The shipped numbers of `nvme`.
#[must_use]
pub fn nvme() -> Table {
    NVME.parse().expect("the shipped profile is TOML")
}

/// The shipped numbers of `sata-ssd`.
#[must_use]
pub fn sata_ssd() -> Table {
    SATA_SSD.parse().expect("the shipped profile is TOML")
}

impl Flash {
    /// The drive of a complete set of keys.
    ///
    /// # Errors
    /// The key that is missing, unknown, or has a value that no drive can have.
    pub fn from_table(table: Table) -> Result<Self, KeyError> {
        const KNOWN: [&str; 12] = [
            "capacity",
            "page_size",
            "channels",
            "read_time",
            "program_time",
            "read_overhead",
            "write_overhead",
            "link_bytes_per_second",
            "link_command",
            "duplex",
            "queue_depth",
            "write_buffer",
        ];
        let mut keys = Keys::new(table);
        let page_sectors = page_sectors(&mut keys)?;
        let parameters = Parameters {
            capacity_sectors: capacity_sectors(&mut keys)?,
            page_sectors,
            channels: keys.whole("channels", 1, 65_536)?,
            read_time: keys.time_to("read_time", TIME_MAX)?,
            program_time: keys.time_to("program_time", TIME_MAX)?,
            read_overhead: keys.time_to("read_overhead", TIME_MAX)?,
            write_overhead: keys.time_to("write_overhead", TIME_MAX)?,
            link_bytes_per_second: keys.whole("link_bytes_per_second", 1_000, 1_000_000_000_000)?,
            link_command: keys.time_to("link_command", TIME_MAX)?,
            duplex: keys.boolean("duplex")?,
            queue_depth: keys.whole("queue_depth", 1, 65_536)? as u32,
            buffer_pages: buffer_pages(&mut keys, page_sectors)?,
        };
        keys.finish(&KNOWN)?;
        Ok(Self::new(parameters))
    }
}

fn page_sectors(keys: &mut Keys) -> Result<u64, KeyError> {
    let Bytes(size) = keys.size_to("page_size", Bytes(1 << 30))?;
    if size == 0 || size % SECTOR_BYTES != 0 {
        let problem = format!("{} is not a whole number of sectors of {SECTOR_BYTES} bytes", Bytes(size));
        return Err(KeyError::new("page_size", problem, "such as \"4KiB\" or \"16KiB\""));
    }
    Ok(size / SECTOR_BYTES)
}

fn capacity_sectors(keys: &mut Keys) -> Result<u64, KeyError> {
    const ALLOWED: &str = "from 512B to 1024TiB";
    match keys.size_to("capacity", Bytes(1 << 50))? {
        Bytes(size) if size < SECTOR_BYTES => Err(KeyError::new("capacity", "is less than a sector", ALLOWED)),
        Bytes(size) => Ok(size / SECTOR_BYTES),
    }
}

/// Whole pages; a buffer above zero holds at least one.
fn buffer_pages(keys: &mut Keys, page_sectors: u64) -> Result<u64, KeyError> {
    let Bytes(size) = keys.size("write_buffer")?;
    match size.div_ceil(page_sectors * SECTOR_BYTES) {
        pages if pages > BUFFER_PAGES_MAX => {
            let allowed = format!("at most {BUFFER_PAGES_MAX} pages of page_size");
            Err(KeyError::new("write_buffer", format!("{pages} pages are too many"), allowed))
        }
        pages => Ok(pages),
    }
}
