//! Controller overhead of a command, by its kind and the previous command.
//!
//! Eight times (read or write, in the buffer or not, after a read or after a write) as measured by Worthington, Ganger
//! and Patt ("On-line extraction of SCSI disk drive parameters", SIGMETRICS 1995, section 5), and the additional times
//! of older drives for disconnecting from the bus and reselecting. A profile may give one time for all instead.

use headstart_types::{keys, property_names, read_keys, KeyError, Keys, Nanos};
use schemars::JsonSchema;
use toml::Table;

use crate::time::Time;

/// The cost of a command without media and bus. In pairs: after a read, after a write.
#[derive(Debug, Clone, Default)]
pub(crate) struct Overheads {
    pub read_hit: [Nanos; 2],
    pub read_miss: [Nanos; 2],
    /// A write that is done when it is in the buffer.
    pub write_hit: [Nanos; 2],
    /// A write that is done when it is on the media.
    pub write_miss: [Nanos; 2],
    /// After the last sector crossed the bus.
    pub read_completion: Nanos,
    pub write_completion: Nanos,
    /// Time before the first sector crosses the bus.
    pub data_preparation: Nanos,
    /// Reselecting the bus, the first time and later.
    pub first_reselect: Nanos,
    pub other_reselect: Nanos,
    /// Time to disconnect from the bus.
    pub read_disconnect: [Nanos; 2],
    pub write_disconnect: Nanos,
    /// Minimum time of a write's arm movement.
    pub minimum_seek: Nanos,
    pub extra: Option<ExtraDisconnect>,
}

keys! {
    /// A write that disconnects from the bus between command and data, if it follows a write elsewhere.
    pub(crate) struct ExtraDisconnect {
        /// Replaces the command's overhead.
        pub command: Time,
        /// Time to disconnect from the bus.
        pub disconnect: Time,
        /// Time while the drive is disconnected.
        pub pause: Time,
        /// Time to disconnect again.
        pub second_disconnect: Time,
        /// Part of the arm movement that is completed before.
        #[serde(default)]
        pub seek_delta: Time
    }
}

keys! {
    /// One overhead for all commands.
    pub(super) struct OneOverhead {
        /// Overhead of every command.
        overhead: Time
    }
}

keys! {
    /// An overhead for each kind of command, by the previous command.
    pub(super) struct EachOverhead {
        /// Overhead of a read that hits the buffer, after a read.
        read_hit_after_read: Time,
        /// Overhead of a read that hits the buffer, after a write.
        read_hit_after_write: Time,
        /// Overhead of a read that misses the buffer, after a read.
        read_miss_after_read: Time,
        /// Overhead of a read that misses the buffer, after a write.
        read_miss_after_write: Time,
        /// Overhead of a write that hits the buffer, after a read.
        write_hit_after_read: Time,
        /// Overhead of a write that hits the buffer, after a write.
        write_hit_after_write: Time,
        /// Overhead of a write that misses the buffer, after a read.
        write_miss_after_read: Time,
        /// Overhead of a write that misses the buffer, after a write.
        write_miss_after_write: Time,
        /// Overhead added to every request.
        #[serde(default)]
        per_request: Time,
        /// Time after the last sector of a read has crossed the bus.
        #[serde(default)]
        read_completion: Time,
        /// Time after the last sector of a write has crossed the bus.
        #[serde(default)]
        write_completion: Time,
        /// Time before the first sector crosses the bus.
        #[serde(default)]
        data_preparation: Time,
        /// Time to reselect the bus for the first time.
        #[serde(default)]
        first_reselect: Time,
        /// Time to reselect the bus again.
        #[serde(default)]
        other_reselect: Time,
        /// Time to disconnect from the bus during a read, after a read.
        #[serde(default)]
        read_disconnect_after_read: Time,
        /// Time to disconnect from the bus during a read, after a write.
        #[serde(default)]
        read_disconnect_after_write: Time,
        /// Time to disconnect from the bus during a write.
        #[serde(default)]
        write_disconnect: Time,
        /// Minimum time of a write's arm movement.
        #[serde(default)]
        minimum_seek: Time,
        /// A write that disconnects from the bus between command and data.
        extra_write_disconnect: Option<ExtraDisconnect>
    }
}

impl From<OneOverhead> for Overheads {
    fn from(keys: OneOverhead) -> Self {
        let one = [keys.overhead.0; 2];
        Self { read_hit: one, read_miss: one, write_hit: one, write_miss: one, ..Self::default() }
    }
}

impl From<EachOverhead> for Overheads {
    fn from(keys: EachOverhead) -> Self {
        let pair =
            |after_read: Time, after_write: Time| [after_read, after_write].map(|time| time.0 + keys.per_request.0);
        Self {
            read_hit: pair(keys.read_hit_after_read, keys.read_hit_after_write),
            read_miss: pair(keys.read_miss_after_read, keys.read_miss_after_write),
            write_hit: pair(keys.write_hit_after_read, keys.write_hit_after_write),
            write_miss: pair(keys.write_miss_after_read, keys.write_miss_after_write),
            read_completion: keys.read_completion.0,
            write_completion: keys.write_completion.0,
            data_preparation: keys.data_preparation.0,
            first_reselect: keys.first_reselect.0,
            other_reselect: keys.other_reselect.0,
            read_disconnect: [keys.read_disconnect_after_read.0, keys.read_disconnect_after_write.0],
            write_disconnect: keys.write_disconnect.0,
            minimum_seek: keys.minimum_seek.0,
            extra: keys.extra_write_disconnect,
        }
    }
}

/// The two forms of the table.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[allow(dead_code)]
pub(super) enum Forms {
    One(OneOverhead),
    Each(EachOverhead),
}

/// Whether the table has keys that exclude `overhead`.
pub(super) fn has_each(table: &Table) -> bool {
    property_names(EachOverhead::schema()).into_iter().any(|key| table.contains_key(key))
}

impl Overheads {
    /// Reads the table `controller` of a profile.
    ///
    /// # Errors
    /// The offending key.
    pub fn read(table: Table) -> Result<Self, KeyError> {
        match (has_each(&table), table.contains_key("overhead")) {
            (true, true) => {
                Err(KeyError::new("overhead", "given together with overheads of each kind", "one of the two"))
            }
            (true, false) => Ok(read_keys::<EachOverhead>(table)?.into()),
            (false, _) => Ok(read_keys::<OneOverhead>(table)?.into()),
        }
    }

    /// The total controller time of a read whose command takes `command`.
    pub fn whole_read(&self, command: Nanos) -> Nanos {
        command + self.data_preparation + self.read_completion
    }

    /// Sectors of a write of `sectors` that must be in the buffer before the head writes the first: one; for drives
    /// with the extra disconnect 10, or 15 for a long write. As in DiskSim 4.0, whose authors found these numbers on
    /// the drives used for its validation (`disksim_diskcache.c`, whether a block may be written).
    #[inline]
    pub fn fill(&self, sectors: u32) -> u32 {
        match self.extra {
            None => 1,
            Some(_) if sectors < 45 => sectors.min(10),
            Some(_) => 15,
        }
    }

    /// A lower bound of any command's cost.
    pub fn least(&self) -> Nanos {
        let all = [self.read_hit, self.read_miss, self.write_hit, self.write_miss];
        let least = all.into_iter().flatten().min().unwrap_or_default();
        self.extra.as_ref().map_or(least, |extra| least.min(extra.command.0))
    }
}
