//! Builds replies. Each function appends bytes to send; content follows [`Session::read_header`] or [`Session::data`]
//! without passing through here.

use super::{Incoming, Session};
use crate::wire::{self, chunk};
use crate::{Command, Errno, Extent, Request, EXTENTS_MAX};

impl Session {
    /// Id of the context in replies to `BLOCK_STATUS`.
    pub(crate) const CONTEXT: u32 = 1;

    /// Success without data, for any request except a read and `BLOCK_STATUS`.
    pub fn done(&self, cookie: u64, out: &mut Vec<u8>) {
        simple(cookie, 0, out);
    }

    /// Failure; `message` is for humans, and may be empty.
    pub fn failed(&self, cookie: u64, errno: Errno, message: &str, out: &mut Vec<u8>) {
        if !self.structured {
            return simple(cookie, errno.code(), out);
        }
        let message = &message.as_bytes()[..message.len().min(wire::STRING_BYTES_MAX)];
        structured(cookie, chunk::ERROR_GENERAL, true, 6 + message.len(), out);
        out.extend_from_slice(&errno.code().to_be_bytes());
        out.extend_from_slice(&(message.len() as u16).to_be_bytes());
        out.extend_from_slice(message);
    }

    /// Like [`Self::failed`], at an offset within the request: content before it is sent by [`Self::data`]. Only for
    /// structured replies; for `last` see there.
    pub fn failed_at(&self, cookie: u64, errno: Errno, offset: u64, last: bool, out: &mut Vec<u8>) {
        debug_assert!(self.structured, "agreed on");
        structured(cookie, chunk::ERROR_OFFSET, last, 14, out);
        out.extend_from_slice(&errno.code().to_be_bytes());
        out.extend_from_slice(&0_u16.to_be_bytes());
        out.extend_from_slice(&offset.to_be_bytes());
    }

    /// Answers a request that [`Self::check`] refused.
    pub fn refused(&self, incoming: &Incoming, out: &mut Vec<u8>) {
        if let Err(refusal) = incoming.request {
            self.failed(incoming.cookie, refusal.errno, refusal.message, out);
        }
    }

    /// Begins the reply to a read whose whole content is available: `length` bytes follow and complete the reply.
    pub fn read_header(&self, request: &Request, out: &mut Vec<u8>) {
        debug_assert!(matches!(request.command, Command::Read { .. }));
        if self.structured {
            self.data(request.cookie, request.offset, request.length, true, out);
        } else {
            simple(request.cookie, 0, out);
        }
    }

    /// Begins a part of the reply to a read: `length` bytes follow. Only for structured replies, without overlap with
    /// other parts, and only once if the request is for a single chunk. `last` ends the reply.
    pub fn data(&self, cookie: u64, offset: u64, length: u32, last: bool, out: &mut Vec<u8>) {
        debug_assert!(self.structured && length > 0, "agreed on, and not empty");
        structured(cookie, chunk::OFFSET_DATA, last, 8 + length as usize, out);
        out.extend_from_slice(&offset.to_be_bytes());
    }

    /// Like [`Self::data`], for zeroes: nothing follows.
    pub fn hole(&self, cookie: u64, offset: u64, length: u32, last: bool, out: &mut Vec<u8>) {
        debug_assert!(self.structured && length > 0, "agreed on, and not empty");
        structured(cookie, chunk::OFFSET_HOLE, last, 12, out);
        out.extend_from_slice(&offset.to_be_bytes());
        out.extend_from_slice(&length.to_be_bytes());
    }

    /// Ends a structured reply whose parts were all sent without `last`.
    pub fn end(&self, cookie: u64, out: &mut Vec<u8>) {
        debug_assert!(self.structured, "agreed on");
        structured(cookie, chunk::NONE, true, 0, out);
    }

    /// Answers `BLOCK_STATUS`: at least one extent, none empty, no longer in total than the request. Extents beyond the
    /// request, beyond the first if only one was requested, or beyond [`EXTENTS_MAX`], are dropped.
    pub fn block_status(&self, request: &Request, extents: &[Extent], out: &mut Vec<u8>) {
        debug_assert!(self.allocation && !extents.is_empty(), "agreed on, and not empty");
        let one = request.command == Command::BlockStatus { one_extent: true };
        let mut left = request.length;
        let mut told = Vec::new();
        for extent in extents.iter().take(if one { 1 } else { EXTENTS_MAX }) {
            let length = extent.length.min(left);
            if length > 0 {
                let state = u32::from(extent.hole) * wire::STATE_HOLE + u32::from(extent.zero) * wire::STATE_ZERO;
                told.extend([length, state]);
            }
            left -= length;
        }
        structured(request.cookie, chunk::BLOCK_STATUS, true, 4 + 4 * told.len(), out);
        for number in std::iter::once(Self::CONTEXT).chain(told) {
            out.extend_from_slice(&number.to_be_bytes());
        }
    }
}

fn simple(cookie: u64, code: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&wire::SIMPLE_REPLY_MAGIC.to_be_bytes());
    out.extend_from_slice(&code.to_be_bytes());
    out.extend_from_slice(&cookie.to_be_bytes());
}

fn structured(cookie: u64, kind: u16, last: bool, length: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&wire::STRUCTURED_REPLY_MAGIC.to_be_bytes());
    out.extend_from_slice(&(if last { chunk::DONE } else { 0 }).to_be_bytes());
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&cookie.to_be_bytes());
    out.extend_from_slice(&(length as u32).to_be_bytes());
}
