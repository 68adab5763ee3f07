//! The keys of a solid-state drive; shipped profiles give the source of every number. See `flash.rs` for their meaning.

use headstart_types::{keys, Bytes, KeyError, Nanos};

use crate::SECTOR_BYTES;

/// Maximum number of pages of a write buffer, at 8 bytes each.
const BUFFER_PAGES_MAX: u64 = 1 << 20;

// No flash operation takes longer than a second, so sums over the pages of one request fit in 64 bits.
keys! {
    /// Keys of a solid-state drive.
    pub(crate) struct FlashKeys {
        /// Capacity of the drive.
        #[schemars(extend("x-min" = "512B", "x-max" = "1024TiB"))]
        pub capacity: Bytes,
        /// Unit of a read or program operation: a whole number of sectors.
        #[schemars(extend("x-max" = "1GiB"))]
        pub page_size: Bytes,
        /// Number of parallel units. Pages are distributed over them in turn.
        #[schemars(range(min = 1, max = 65_536))]
        pub channels: u64,
        /// Time to read a page.
        #[schemars(extend("x-max" = "1s"))]
        pub read_time: Nanos,
        /// Time to program a page.
        #[schemars(extend("x-max" = "1s"))]
        pub program_time: Nanos,
        /// Controller time of a read.
        #[schemars(extend("x-max" = "1s"))]
        pub read_overhead: Nanos,
        /// Controller time of a write.
        #[schemars(extend("x-max" = "1s"))]
        pub write_overhead: Nanos,
        /// Rate of the link to the host.
        #[schemars(range(min = 1_000, max = 1_000_000_000_000u64))]
        pub link_bytes_per_second: u64,
        /// Link time of each command.
        #[schemars(extend("x-max" = "1s"))]
        pub link_command: Nanos,
        /// Additional link time of a write command.
        #[serde(default)]
        #[schemars(extend("x-max" = "1s"))]
        pub write_command: Nanos,
        /// Whether the link carries data in both directions at once.
        pub duplex: bool,
        /// Maximum number of outstanding commands.
        #[schemars(range(min = 1, max = 65_536))]
        pub queue_depth: u32,
        /// Size of the write buffer. A write is complete when it is in the buffer. "0B": no buffer.
        #[schemars(extend("x-max" = "1TiB"))]
        pub write_buffer: Bytes,
        /// Amount that the drive reads ahead of a sequential reader. "0B": no read-ahead.
        #[serde(default)]
        #[schemars(extend("x-max" = "64MiB"))]
        pub read_ahead: Bytes,
        /// Flash in addition to the capacity, as a share of the capacity. 0: blocks are not managed, and a write only
        /// programs its own pages, in place.
        #[schemars(range(min = 0.0, max = 100.0))]
        pub over_provisioning: f64,
        /// Granularity of the address table. A page holds a whole number of these units.
        #[schemars(extend("x-max" = "1GiB"))]
        pub mapping_size: Bytes,
        /// Number of pages of a channel that are erased together.
        #[schemars(range(min = 1, max = 65_536))]
        pub block_pages: u64,
        /// Time to erase `block_pages` pages.
        #[schemars(extend("x-max" = "1s"))]
        pub erase_time: Nanos,
        /// Whether the whole capacity was written, in order, before the run.
        pub filled: bool,
    }
    impl check = |keys| {
        let Bytes(size) = keys.page_size;
        if size == 0 || size % SECTOR_BYTES != 0 {
            let problem = format!("{} is not a whole number of sectors of {SECTOR_BYTES} bytes", keys.page_size);
            return Err(KeyError::new("page_size", problem, "such as \"4KiB\" or \"16KiB\""));
        }
        let unit = keys.mapping_size.0;
        if keys.over_provisioning > 0.0 {
            if unit == 0 || unit % SECTOR_BYTES != 0 || size % unit != 0 {
                let problem = format!("{} in pages of {}", keys.mapping_size, keys.page_size);
                return Err(KeyError::new("mapping_size", problem, "whole sectors, and a whole number of units per \
                page"));
            }
            if keys.write_buffer.0 == 0 {
                let problem = "is needed to gather writes if over_provisioning is above 0";
                return Err(KeyError::new("write_buffer", problem, "a size above 0B"));
            }
        }
        // Whole pages; a buffer above zero holds at least one.
        match keys.write_buffer.0.div_ceil(size) {
            pages if pages > BUFFER_PAGES_MAX => {
                let allowed = format!("at most {BUFFER_PAGES_MAX} pages of page_size");
                Err(KeyError::new("write_buffer", format!("{pages} pages are too many"), allowed))
            }
            _ => Ok(()),
        }
    };
}
