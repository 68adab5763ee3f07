//! The destination of a level's orders: the devices, the level below, or those of several levels below that own the
//! blocks.

use std::collections::VecDeque;

use headstart_policy::BlockMap;
use headstart_types::{Nanos, Spread};

use super::messages::Sent;
use crate::backend::{Backend, IoRequest, Kind};
use crate::devices::{Devices, From};

/// Where a level's orders go.
pub(crate) enum Down<'a, D, S> {
    /// The devices.
    Devices(&'a mut D, From, &'a S),
    /// The level below.
    Level(&'a mut VecDeque<Sent>, Upper<'a, S>),
}

/// A level above others.
pub(crate) struct Upper<'a, S> {
    pub number: usize,
    /// The level below, or the first of several.
    pub below: usize,
    /// How blocks are distributed over several levels below.
    pub spread: Option<Spread>,
    pub space: &'a S,
}

impl<S: BlockMap> Upper<'_, S> {
    /// Sends an order down, one part to each level below that owns some of its blocks. Returns the number of parts.
    fn send(&self, outbox: &mut VecDeque<Sent>, order: &IoRequest<'_>) -> u32 {
        let (upper, kind) = (self.number, order.kind);
        let Some(spread) = &self.spread else {
            outbox.push_back(Sent { upper, below: self.below, blocks: order.blocks.to_vec(), kind });
            return 1;
        };
        let mut parts: Vec<Sent> = Vec::new();
        for block in order.blocks {
            let (file, index) = self.space.place(*block);
            let below = self.below + spread.local(file, index).0 as usize;
            match parts.iter_mut().find(|part| part.below == below) {
                Some(part) => part.blocks.push(*block),
                None => parts.push(Sent { upper, below, blocks: vec![*block], kind }),
            }
        }
        let count = parts.len() as u32;
        outbox.extend(parts);
        count
    }
}

impl<D: Devices<S>, S: BlockMap> Backend for Down<'_, D, S> {
    #[inline]
    fn issue(&mut self, now: Nanos, order: IoRequest<'_>) -> u32 {
        match self {
            Down::Devices(devices, from, space) => devices.submit(now, *from, order, *space),
            Down::Level(outbox, upper) => match (upper.send(outbox, &order), order.kind) {
                (_, Kind::Allocate) => 0,
                (requests, _) => requests,
            },
        }
    }
}
