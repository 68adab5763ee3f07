//! The keys of a solid-state drive: shipped profiles have the source of every number. See `flash.rs` for what they do.

use headstart_types::{keys, Bytes, KeyError, Nanos};

use crate::SECTOR_BYTES;

/// Most pages of a write buffer: 8 bytes for each are kept.
const BUFFER_PAGES_MAX: u64 = 1 << 20;

// No operation of flash takes longer than a second: sums over the pages of one request stay within 64 bits.
keys! {
    /// Keys of a solid-state drive.
    pub(crate) struct FlashKeys {
        /// Capacity of the drive.
        #[schemars(extend("x-min" = "512B", "x-max" = "1024TiB"))]
        pub capacity: Bytes,
        /// What an operation reads or programs; a whole number of sectors.
        #[schemars(extend("x-max" = "1GiB"))]
        pub page_size: Bytes,
        /// Operations at once: pages lie on them in turn.
        #[schemars(range(min = 1, max = 65_536))]
        pub channels: u64,
        /// How long a channel reads a page.
        #[schemars(extend("x-max" = "1s"))]
        pub read_time: Nanos,
        /// How long a channel programs a page.
        #[schemars(extend("x-max" = "1s"))]
        pub program_time: Nanos,
        /// What the controller takes for a read.
        #[schemars(extend("x-max" = "1s"))]
        pub read_overhead: Nanos,
        /// What the controller takes for a write.
        #[schemars(extend("x-max" = "1s"))]
        pub write_overhead: Nanos,
        /// Rate of the link to the host.
        #[schemars(range(min = 1_000, max = 1_000_000_000_000u64))]
        pub link_bytes_per_second: u64,
        /// What each command takes of the link.
        #[schemars(extend("x-max" = "1s"))]
        pub link_command: Nanos,
        /// What a write takes of it beyond that.
        #[serde(default)]
        #[schemars(extend("x-max" = "1s"))]
        pub write_command: Nanos,
        /// Whether the link carries data both ways at once.
        pub duplex: bool,
        /// Commands that the drive takes at once.
        #[schemars(range(min = 1, max = 65_536))]
        pub queue_depth: u32,
        /// What is written is done when it is in here, if there is room; "0B" for none.
        #[schemars(extend("x-max" = "1TiB"))]
        pub write_buffer: Bytes,
        /// Flash beyond the capacity, as a share of it. With 0 blocks are not managed: what is written needs no more than its own
        /// pages, and lies where it was.
        #[schemars(range(min = 0.0, max = 100.0))]
        pub over_provisioning: f64,
        /// What the drive keeps the place of; a page holds a whole number of them.
        #[schemars(extend("x-max" = "1GiB"))]
        pub mapping_size: Bytes,
        /// Pages of each channel that are erased together.
        #[schemars(range(min = 1, max = 65_536))]
        pub block_pages: u64,
        /// How long a channel erases them.
        #[schemars(extend("x-max" = "1s"))]
        pub erase_time: Nanos,
        /// Whether every place has been written before the run, in order.
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
                return Err(KeyError::new("mapping_size", problem, "whole sectors, a whole number of them to a page"));
            }
            if keys.write_buffer.0 == 0 {
                let problem = "what is written is gathered in it where over_provisioning is above 0";
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
