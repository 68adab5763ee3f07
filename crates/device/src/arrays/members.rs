//! The disks behind a controller: each serves what it is given, first come, first served.
//!
//! A device says at once when a request will end, so the controller's queues need not be simulated: a command
//! begins when its disk is free for it, which is known when the command comes. That fixes the order: what is sent to
//! a disk later begins later, even where the earlier command is only sent at an instant yet to come (the writes of a
//! read-modify-write); between the two the disk is kept for it.
//!
//! Cost: a heap of what the disk serves at once, so constant for disks with one arm. No allocation once it has grown.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use headstart_types::Nanos;

use crate::{Device, Request, Service};

/// One disk.
#[derive(Clone)]
struct Member {
    device: Box<dyn Device>,
    /// Ends of the last requests, at most as many as the device serves at once; some may be past.
    ends: BinaryHeap<Reverse<Nanos>>,
    /// When the last request began: the device's time never goes backwards.
    began: Nanos,
    /// Sectors that are being gathered into one request: start and end, alike where there are none.
    run: (u64, u64),
}

/// All disks.
#[derive(Clone)]
pub struct Members {
    members: Vec<Member>,
    /// Requests that each serves at once.
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

    /// Any of the disks, for what all have in common.
    pub fn any(&self) -> &dyn Device {
        &*self.members[0].device
    }

    pub fn devices_mut(&mut self) -> impl Iterator<Item = &mut Box<dyn Device>> {
        self.members.iter_mut().map(|member| &mut member.device)
    }

    /// When a disk could begin a request that comes at `now`.
    #[inline]
    pub fn start(&self, index: usize, now: Nanos) -> Nanos {
        let member = &self.members[index];
        let start = now.max(member.began);
        match member.ends.peek() {
            Some(&Reverse(end)) if member.ends.len() == self.at_once => start.max(end),
            _ => start,
        }
    }

    /// How long a disk would take for `request` at `now` until the first sector passes; waiting for it included.
    pub fn positioning(&self, index: usize, now: Nanos, request: &Request) -> Nanos {
        let start = self.start(index, now);
        (start - now) + self.members[index].device.positioning(start, request)
    }

    /// Serves `request`, which comes at `now`, on a disk; waiting for it counts as wait.
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

/// The pieces of one request, which all come at one instant; neighbours on a disk become one piece.
pub struct Pieces<'a> {
    members: &'a mut Members,
    now: Nanos,
    like: &'a Request,
    write: bool,
    slowest: Option<Service>,
}

impl<'a> Pieces<'a> {
    /// None yet, of a request like `like`; they come at `now`.
    pub fn new(members: &'a mut Members, now: Nanos, like: &'a Request, write: bool) -> Self {
        Self { members, now, like, write, slowest: None }
    }

    /// Sectors `start..end` of a disk, as a piece of their own.
    #[inline]
    pub fn serve(&mut self, member: usize, (start, end): (u64, u64)) {
        let piece = Request { sector: start, sectors: (end - start) as u32, write: self.write, ..*self.like };
        let service = self.members.serve(member, self.now, &piece);
        if self.slowest.is_none_or(|slowest| service.end > slowest.end) {
            self.slowest = Some(service);
        }
    }

    /// Sectors `start..end` of a disk, joined with what was gathered there last if they touch it.
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

    /// Serves what has been gathered; what the piece that ends last took, if there is any.
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

/// One after the other: the parts of both.
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
