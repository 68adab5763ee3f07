//! The disks behind a controller: each serves its pieces first come, first served.
//!
//! A device returns the end of a request at once, so the controller's queues need not be simulated: a command begins
//! when its disk becomes free, which is known when the command arrives. This fixes the order: a piece submitted to a
//! disk later begins later, even if the earlier piece only starts in the future (the writes of a read-modify-write);
//! the disk is reserved in between.
//!
//! Cost: a heap with as many entries as the disk serves concurrently, so constant for disks with one arm. No allocation
//! once it has grown.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use headstart_types::Nanos;

use crate::{Device, Request, Service};

#[derive(Clone)]
struct Member {
    device: Box<dyn Device>,
    /// Ends of the last requests, at most as many as the device serves concurrently; some may be past.
    ends: BinaryHeap<Reverse<Nanos>>,
    /// Start of the last request: a device's time never decreases.
    began: Nanos,
    /// Sectors being combined into one request: start and end, equal if there are none.
    run: (u64, u64),
}

#[derive(Clone)]
pub struct Members {
    members: Vec<Member>,
    /// Requests that each disk serves concurrently.
    at_once: usize,
}

impl Members {
    /// `count` disks like `device`.
    pub fn new(count: u32, device: Box<dyn Device>) -> Self {
        let at_once = device.concurrency().max(1) as usize;
        let member = Member { device, ends: BinaryHeap::new(), began: Nanos::ZERO, run: (0, 0) };
        Self { members: vec![member; count as usize], at_once }
    }

    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Any of the disks, for properties that all share.
    pub fn any(&self) -> &dyn Device {
        &*self.members[0].device
    }

    pub fn devices_mut(&mut self) -> impl Iterator<Item = &mut Box<dyn Device>> {
        self.members.iter_mut().map(|member| &mut member.device)
    }

    /// The earliest start on a disk of a request that arrives at `now`.
    #[inline]
    pub fn start(&self, index: usize, now: Nanos) -> Nanos {
        let member = &self.members[index];
        let start = now.max(member.began);
        match member.ends.peek() {
            Some(&Reverse(end)) if member.ends.len() == self.at_once => start.max(end),
            _ => start,
        }
    }

    /// Time until the first sector of `request` passes the head of a disk, from `now`, including the wait for the disk.
    pub fn positioning(&self, index: usize, now: Nanos, request: &Request) -> Nanos {
        let start = self.start(index, now);
        (start - now) + self.members[index].device.positioning(start, request)
    }

    /// Serves `request`, which arrives at `now`, on a disk; the wait for the disk counts as wait.
    #[inline]
    pub fn serve(&mut self, index: usize, now: Nanos, request: &Request) -> Service {
        let start = self.start(index, now);
        let member = &mut self.members[index];
        if member.ends.len() == self.at_once {
            member.ends.pop();
        }
        let mut service = member.device.serve(start, request);
        member.ends.push(Reverse(service.end));
        member.began = start;
        service.wait += start - now;
        service
    }
}

/// The pieces of one request, which all arrive at once; adjacent pieces on a disk are combined.
pub struct Pieces<'a> {
    members: &'a mut Members,
    now: Nanos,
    like: &'a Request,
    write: bool,
    slowest: Option<Service>,
}

impl<'a> Pieces<'a> {
    /// No pieces yet of a request like `like` that arrives at `now`.
    pub fn new(members: &'a mut Members, now: Nanos, like: &'a Request, write: bool) -> Self {
        Self { members, now, like, write, slowest: None }
    }

    /// Serves sectors `start..end` of a disk as a separate piece.
    #[inline]
    pub fn serve(&mut self, member: usize, (start, end): (u64, u64)) {
        let piece = Request { sector: start, sectors: (end - start) as u32, write: self.write, ..*self.like };
        let service = self.members.serve(member, self.now, &piece);
        if self.slowest.is_none_or(|slowest| service.end > slowest.end) {
            self.slowest = Some(service);
        }
    }

    /// Adds sectors `start..end` of a disk, combined with the last piece added there if they are adjacent.
    #[inline]
    pub fn gather(&mut self, member: usize, (start, end): (u64, u64)) {
        let run = self.members.members[member].run;
        self.members.members[member].run = if run.0 == run.1 {
            (start, end)
        } else if start <= run.1 && run.0 <= end {
            (run.0.min(start), run.1.max(end))
        } else {
            self.serve(member, run);
            (start, end)
        };
    }

    /// Serves the pieces added. Returns the service of the piece that ends last, if there is any.
    pub fn finish(mut self) -> Option<Service> {
        for member in 0..self.members.len() {
            let run = std::mem::take(&mut self.members.members[member].run);
            if run.0 < run.1 {
                self.serve(member, run);
            }
        }
        self.slowest
    }
}

/// Two services in sequence: the sums of their parts.
pub fn then(first: Service, second: Service) -> Service {
    Service {
        end: second.end,
        seek: first.seek + second.seek,
        rotation: first.rotation + second.rotation,
        transfer: first.transfer + second.transfer,
        overhead: first.overhead + second.overhead,
        wait: first.wait + second.wait,
        buffer_hit: first.buffer_hit,
    }
}
