//! A simulated drive in virtual time, measured like a real one.

use headstart_device::{Drive, Request};
use headstart_types::Nanos;

use super::{Error, Probe, Read, Span};
use headstart_emulate::ClockedDrive;

/// Capacity that is assumed for a device without a limit: 1 GiB in sectors.
const NO_LIMIT_SECTORS: u64 = 1 << 21;

/// Time of the host between the end of a read and the next one: about that of Linux.
const HOST: Nanos = Nanos(20_000);

/// A simulated drive with a clock that its reads advance.
pub struct SimulatedProbe {
    drive: ClockedDrive,
    sectors: u64,
    now: Nanos,
    issued: u64,
}

impl SimulatedProbe {
    /// The caller guarantees that `drive` has no outstanding requests.
    #[must_use]
    pub fn new(drive: Drive) -> Self {
        let sectors = drive.device().capacity_sectors().unwrap_or(NO_LIMIT_SECTORS);
        Self { drive: ClockedDrive::new(drive), sectors, now: Nanos::ZERO, issued: 0 }
    }

    fn issue(&mut self, read: Read) {
        let request = Request::read(read.sector, read.sectors, self.issued);
        self.issued += 1;
        self.drive.submit(self.now, request, |_| unreachable!("all that has ended has been taken"));
    }

    /// Advances time until a request ends; returns how many did.
    fn wait(&mut self) -> usize {
        let mut ended = 0;
        while ended == 0 {
            let Some(event) = self.drive.next_event() else { return 0 };
            self.now = self.now.max(event);
            self.drive.advance(self.now, |_| ended += 1);
        }
        ended
    }
}

impl Probe for SimulatedProbe {
    fn sectors(&self) -> u64 {
        self.sectors
    }

    fn now(&self) -> Nanos {
        self.now
    }

    fn pause(&mut self, time: Nanos) {
        self.now += time;
        self.drive.advance(self.now, |_| unreachable!("nothing is outstanding"));
    }

    fn read(&mut self, read: Read) -> Result<Span, Error> {
        self.pause(HOST);
        let from = self.now;
        self.issue(read);
        self.wait();
        Ok(Span { from, to: self.now })
    }

    fn read_together(&mut self, reads: &[Read], depth: usize) -> Result<Nanos, Error> {
        let from = self.now;
        let (mut issued, mut ended) = (0, 0);
        while ended < reads.len() {
            while issued < reads.len() && issued - ended < depth {
                self.issue(reads[issued]);
                issued += 1;
            }
            ended += self.wait();
        }
        Ok(self.now - from)
    }
}
