//! A constant service time: the fetch time F of kimbrel96's theory (section 2.1), or a device of which only one number
//! is known. Size, position and order of requests do not matter.

use headstart_types::{keys, read_keys, KeyTable, Nanos};

use crate::driver_cost;
use crate::row::Model;
use crate::{Device, Request, Service};

pub const ROW: Model = Model {
    name: "uniform",
    driver_cost: driver_cost::THEORETICAL,
    summary: "every request takes the same time: key fetch_time",
    source: "kimbrel96 section 2.1, the theoretical model",
    keys: KeyTable::with_text::<UniformKeys>(""),
    make: |keys| Ok(Box::new(Uniform::new(read_keys::<UniformKeys>(keys)?.fetch_time))),
};

keys! {
    /// Keys of `uniform`.
    struct UniformKeys {
        /// Duration of every request.
        #[schemars(extend("x-min" = "1ns", "x-max" = "1h"))]
        fetch_time: Nanos
    }
}

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
