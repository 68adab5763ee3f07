//! What the controller takes for a command, by what the command is and what was before it.
//!
//! Eight times (read or write, in the buffer or not, after a read or after a write) as Worthington, Ganger and
//! Patt measured them ("On-line extraction of SCSI disk drive parameters", SIGMETRICS 1995, section 5), and what
//! older drives add for leaving the bus and coming back to it. A profile may give one time for all instead.

use headstart_types::{KeyError, Nanos};

use crate::keys::Keys;

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

/// A write that leaves the bus between command and data, when it follows a write elsewhere.
#[derive(Debug, Clone)]
pub(crate) struct ExtraDisconnect {
    pub command: Nanos,
    pub disconnect: Nanos,
    pub pause: Nanos,
    pub second_disconnect: Nanos,
    pub seek_delta: Nanos,
}

const EIGHT: [&str; 8] = [
    "read_hit_after_read",
    "read_hit_after_write",
    "read_miss_after_read",
    "read_miss_after_write",
    "write_hit_after_read",
    "write_hit_after_write",
    "write_miss_after_read",
    "write_miss_after_write",
];

const REST: [&str; 10] = [
    "per_request",
    "read_completion",
    "write_completion",
    "data_preparation",
    "first_reselect",
    "other_reselect",
    "read_disconnect_after_read",
    "read_disconnect_after_write",
    "write_disconnect",
    "minimum_seek",
];

impl Overheads {
    /// The keys that exclude `overhead`.
    pub const EACH: [&[&str]; 3] = [&EIGHT, &REST, &["extra_write_disconnect"]];

    /// From the `controller` table of a profile.
    ///
    /// # Errors
    /// The key at fault.
    pub fn from_keys(mut keys: Keys) -> Result<Self, KeyError> {
        if !Self::EACH.concat().iter().any(|key| keys.has(key)) {
            let one = [keys.time_or_zero("overhead")?; 2];
            keys.finish(&["overhead"])?;
            return Ok(Self { read_hit: one, read_miss: one, write_hit: one, write_miss: one, ..Self::default() });
        }
        if keys.has("overhead") {
            return Err(KeyError::new("overhead", "beside overheads of each kind", "one of the two"));
        }
        let mut eight = [Nanos::ZERO; 8];
        for (time, key) in eight.iter_mut().zip(EIGHT) {
            *time = keys.time_or_zero(key)?;
        }
        let mut rest = [Nanos::ZERO; 10];
        for (time, key) in rest.iter_mut().zip(REST) {
            *time = keys.or(key, Nanos::ZERO, Keys::time_or_zero)?;
        }
        let extra = if keys.has("extra_write_disconnect") {
            let table = keys.table("extra_write_disconnect")?;
            Some(ExtraDisconnect::from_keys(table).map_err(|error| error.within("extra_write_disconnect"))?)
        } else {
            None
        };
        keys.finish(&Self::EACH.concat())?;
        let pair = |index: usize| [eight[index] + rest[0], eight[index + 1] + rest[0]];
        Ok(Self {
            read_hit: pair(0),
            read_miss: pair(2),
            write_hit: pair(4),
            write_miss: pair(6),
            read_completion: rest[1],
            write_completion: rest[2],
            data_preparation: rest[3],
            first_reselect: rest[4],
            other_reselect: rest[5],
            read_disconnect: [rest[6], rest[7]],
            write_disconnect: rest[8],
            minimum_seek: rest[9],
            extra,
        })
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
        self.extra.as_ref().map_or(least, |extra| least.min(extra.command))
    }
}

impl ExtraDisconnect {
    fn from_keys(mut keys: Keys) -> Result<Self, KeyError> {
        let extra = Self {
            command: keys.time_or_zero("command")?,
            disconnect: keys.time_or_zero("disconnect")?,
            pause: keys.time_or_zero("pause")?,
            second_disconnect: keys.time_or_zero("second_disconnect")?,
            seek_delta: keys.or("seek_delta", Nanos::ZERO, Keys::time_or_zero)?,
        };
        keys.finish(&["command", "disconnect", "pause", "second_disconnect", "seek_delta"])?;
        Ok(extra)
    }
}
