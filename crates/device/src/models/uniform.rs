//! Every request takes the same time: the fetch time F of kimbrel96's theory (section 2.1), or a device that
//! is known by one number only. Whatever the size, place and order of requests.

use headstart_types::{KeyError, Nanos};

use crate::keys::Keys;
use crate::{Device, Request, Service};

/// A device with one service time.
#[derive(Debug, Clone)]
pub struct Uniform {
    fetch_time: Nanos,
    head: u64,
}

impl Uniform {
    /// A device that serves any request in `fetch_time`.
    #[must_use]
    pub fn new(fetch_time: Nanos) -> Self {
        Self { fetch_time, head: 0 }
    }

    /// From the keys of a scenario: `fetch_time`.
    ///
    /// # Errors
    /// The key that is missing, malformed or unknown.
    pub fn from_keys(table: toml::Table) -> Result<Self, KeyError> {
        let mut keys = Keys::new(table);
        let fetch_time = keys.time("fetch_time")?;
        keys.finish(&["fetch_time"])?;
        Ok(Self::new(fetch_time))
    }
}

impl Device for Uniform {
    #[inline]
    fn serve(&mut self, now: Nanos, request: &Request) -> Service {
        self.head = request.end();
        Service {
            end: now + self.fetch_time,
            seek: Nanos::ZERO,
            rotation: Nanos::ZERO,
            transfer: self.fetch_time,
            overhead: Nanos::ZERO,
            wait: Nanos::ZERO,
            buffer_hit: false,
        }
    }

    fn capacity_sectors(&self) -> Option<u64> {
        None
    }

    fn least_service(&self, _sectors: u32) -> Nanos {
        self.fetch_time
    }

    fn nominal_service(&self) -> Nanos {
        self.fetch_time
    }

    fn head_sector(&self) -> u64 {
        self.head
    }

    fn clone_box(&self) -> Box<dyn Device> {
        Box::new(self.clone())
    }
}
