//! What the controller takes for a command, by what the command is and what was before it.
//!
//! Eight times (read or write, in the buffer or not, after a read or after a write) as Worthington, Ganger and
//! Patt measured them ("On-line extraction of SCSI disk drive parameters", SIGMETRICS 1995, section 5), and what
//! older drives add for leaving the bus and coming back to it. A profile may give one time for all instead.

use headstart_types::{keys, property_names, read_keys, KeyError, Keys, Nanos};
use schemars::JsonSchema;
use toml::Table;

use crate::time::Time;

/// What a command costs beside media and bus. The pairs: after a read, after a write.
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
    /// Before the first sector crosses the bus.
    pub data_preparation: Nanos,
    /// Coming back to the bus, the first time and later.
    pub first_reselect: Nanos,
    pub other_reselect: Nanos,
    /// Leaving the bus.
    pub read_disconnect: [Nanos; 2],
    pub write_disconnect: Nanos,
    /// No write's arm movement counts less than this.
    pub minimum_seek: Nanos,
    pub extra: Option<ExtraDisconnect>,
}

keys! {
    /// A write that leaves the bus between command and data, when it follows a write elsewhere.
    pub(crate) struct ExtraDisconnect {
        /// In place of the command's overhead.
        pub command: Time,
        /// Leaving the bus.
        pub disconnect: Time,
        /// Away from the bus.
        pub pause: Time,
        /// Leaving it again.
        pub second_disconnect: Time,
        /// What the arm has moved before.
        #[serde(default)]
        pub seek_delta: Time
    }
}

keys! {
    /// One overhead for all.
    pub(super) struct OneOverhead {
        /// Of every command.
        overhead: Time
    }
}

keys! {
    /// An overhead for each kind of command, by what was before it.
    pub(super) struct EachOverhead {
        /// Of a read in the buffer, after a read.
        read_hit_after_read: Time,
        /// Of a read in the buffer, after a write.
        read_hit_after_write: Time,
        /// Of a read not in the buffer, after a read.
        read_miss_after_read: Time,
        /// Of a read not in the buffer, after a write.
        read_miss_after_write: Time,
        /// Of a write in the buffer, after a read.
        write_hit_after_read: Time,
        /// Of a write in the buffer, after a write.
        write_hit_after_write: Time,
        /// Of a write not in the buffer, after a read.
        write_miss_after_read: Time,
        /// Of a write not in the buffer, after a write.
        write_miss_after_write: Time,
        /// Of every request, beside these.
        #[serde(default)]
        per_request: Time,
        /// After the last sector of a read crossed the bus.
        #[serde(default)]
        read_completion: Time,
        /// After the last sector of a write crossed the bus.
        #[serde(default)]
        write_completion: Time,
        /// Before the first sector crosses the bus.
        #[serde(default)]
        data_preparation: Time,
        /// Coming back to the bus, the first time.
        #[serde(default)]
        first_reselect: Time,
        /// Coming back to the bus, later.
        #[serde(default)]
        other_reselect: Time,
        /// Leaving the bus.
        #[serde(default)]
        read_disconnect_after_read: Time,
        /// Leaving the bus.
        #[serde(default)]
        read_disconnect_after_write: Time,
        /// Leaving the bus.
        #[serde(default)]
        write_disconnect: Time,
        /// No write's arm movement counts less than this.
        #[serde(default)]
        minimum_seek: Time,
        /// A write that leaves the bus between command and data.
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

/// The two forms.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[allow(dead_code)]
pub(super) enum Forms {
    One(OneOverhead),
    Each(EachOverhead),
}

/// The keys that exclude `overhead`.
pub(super) fn has_each(table: &Table) -> bool {
    property_names(EachOverhead::schema()).into_iter().any(|key| table.contains_key(key))
}

impl Overheads {
    /// From the `controller` table of a profile.
    ///
    /// # Errors
    /// The key at fault.
    pub fn read(table: Table) -> Result<Self, KeyError> {
        match (has_each(&table), table.contains_key("overhead")) {
            (true, true) => Err(KeyError::new("overhead", "beside overheads of each kind", "one of the two")),
            (true, false) => Ok(read_keys::<EachOverhead>(table)?.into()),
            (false, _) => Ok(read_keys::<OneOverhead>(table)?.into()),
        }
    }

    /// All that the controller takes for a read whose command takes so long.
    pub fn whole_read(&self, command: Nanos) -> Nanos {
        command + self.data_preparation + self.read_completion
    }

    /// Sectors of a write of `sectors` that must be in the buffer before the head takes the first: one, but of drives
    /// with the extra disconnect 10, or 15 of a long write. As in DiskSim 4.0, which found these numbers on the drives
    /// that it was validated against (`disksim_diskcache.c`, whether a block may be written).
    #[inline]
    pub fn fill(&self, sectors: u32) -> u32 {
        match self.extra {
            None => 1,
            Some(_) if sectors < 45 => sectors.min(10),
            Some(_) => 15,
        }
    }

    /// No command costs less.
    pub fn least(&self) -> Nanos {
        let all = [self.read_hit, self.read_miss, self.write_hit, self.write_miss];
        let least = all.into_iter().flatten().min().unwrap_or_default();
        self.extra.as_ref().map_or(least, |extra| least.min(extra.command.0))
    }
}
