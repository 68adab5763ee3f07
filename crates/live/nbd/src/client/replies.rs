//! Parses replies as they arrive, except content, which the host reads directly into place.

use crate::wire::{self, chunk, Reader, Violation};
use crate::{Errno, Extent, PAYLOAD_BYTES_MAX};

/// Maximum length of an error, and of a list of extents.
const PAYLOAD_LIMIT: u32 = 1 << 20;

/// A reply or a part of one. `last`: no other part follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// A simple reply. If it answers a successful read, all of the requested content follows.
    Simple {
        /// Cookie of the request.
        cookie: u64,
        /// `None` if it succeeded.
        error: Option<Errno>,
    },
    /// Content: `length` bytes follow.
    Data {
        /// Cookie of the request.
        cookie: u64,
        /// Offset of the first byte.
        offset: u64,
        /// Length in bytes, not zero.
        length: u32,
        /// Nothing follows the content.
        last: bool,
    },
    /// Zeroes, without content.
    Hole {
        /// Cookie of the request.
        cookie: u64,
        /// Offset of the first byte.
        offset: u64,
        /// Length in bytes, not zero.
        length: u32,
        /// The last part of the reply.
        last: bool,
    },
    /// Allocation.
    Status {
        /// Cookie of the request.
        cookie: u64,
        /// Id of the context.
        context: u32,
        /// From the request's offset on: at least one, none empty.
        extents: Vec<Extent>,
        /// The last part of the reply.
        last: bool,
    },
    Failed {
        /// Cookie of the request.
        cookie: u64,
        error: Errno,
        /// The server's message; may be empty.
        message: String,
        /// The last part of the reply.
        last: bool,
    },
    /// The end of a reply.
    End {
        /// Cookie of the request.
        cookie: u64,
    },
}

#[derive(Debug, Clone, Copy)]
struct Chunk {
    last: bool,
    kind: u16,
    cookie: u64,
    length: u32,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// The first 16 bytes, common to simple and structured replies.
    Head,
    /// The length of a structured reply, after its first 16 bytes.
    Length(Chunk),
    /// The bytes before the content, or the whole payload.
    Payload(Chunk),
}

/// Parser of one connection's replies.
#[derive(Debug)]
pub struct Replies {
    state: State,
}

impl Default for Replies {
    fn default() -> Self {
        Self { state: State::Head }
    }
}

impl Replies {
    /// Number of bytes that [`Self::advance`] takes next, at most 1 MiB.
    #[must_use]
    pub fn needed(&self) -> usize {
        match self.state {
            State::Head => 16,
            State::Length(_) => 4,
            State::Payload(Chunk { kind: chunk::OFFSET_DATA, .. }) => 8,
            State::Payload(chunk) => chunk.length as usize,
        }
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    /// The server violated the protocol.
    ///
    /// # Panics
    /// If `input` is not [`Self::needed`] long.
    pub fn advance(&mut self, input: &[u8]) -> Result<Option<Reply>, Violation> {
        assert_eq!(input.len(), self.needed(), "takes what it needs, no more and no less");
        let mut reader = Reader(input);
        let parsed = match self.state {
            State::Head => self.head(&mut reader),
            State::Length(mut chunk) => {
                chunk.length = reader.u32().expect("four bytes");
                self.state = State::Payload(chunk);
                check_length(chunk)?;
                if chunk.length == 0 {
                    return self.advance(&[]);
                }
                Some(None)
            }
            State::Payload(chunk) => {
                self.state = State::Head;
                payload(chunk, &mut reader)
            }
        };
        parsed.ok_or_else(|| Violation("a reply that is none".to_owned()))
    }

    /// The outer `None` means that it is no reply.
    fn head(&mut self, reader: &mut Reader<'_>) -> Option<Option<Reply>> {
        match reader.u32()? {
            wire::SIMPLE_REPLY_MAGIC => {
                let error = Errno::from_code(reader.u32()?);
                Some(Some(Reply::Simple { cookie: reader.u64()?, error }))
            }
            wire::STRUCTURED_REPLY_MAGIC => {
                let (flags, kind, cookie) = (reader.u16()?, reader.u16()?, reader.u64()?);
                self.state = State::Length(Chunk { last: flags & chunk::DONE != 0, kind, cookie, length: 0 });
                Some(None)
            }
            _ => None,
        }
    }
}

fn check_length(chunk: Chunk) -> Result<(), Violation> {
    let (from, to) = match chunk.kind {
        chunk::NONE => (0, 0),
        chunk::OFFSET_DATA => (9, 8 + PAYLOAD_BYTES_MAX),
        chunk::OFFSET_HOLE => (12, 12),
        chunk::BLOCK_STATUS => (12, PAYLOAD_LIMIT),
        chunk::ERROR_OFFSET => (14, PAYLOAD_LIMIT),
        kind if kind & chunk::ERROR != 0 => (6, PAYLOAD_LIMIT),
        kind => return Violation::new(format!("a reply of unknown type {kind}")),
    };
    if !(from..=to).contains(&chunk.length) {
        return Violation::new(format!(
            "a reply of type {} with {} bytes; allowed: {from} to {to}",
            chunk.kind, chunk.length
        ));
    }
    Ok(())
}

fn payload(chunk: Chunk, reader: &mut Reader<'_>) -> Option<Option<Reply>> {
    let Chunk { last, kind, cookie, length } = chunk;
    let reply = match kind {
        chunk::NONE => last.then_some(Reply::End { cookie })?,
        chunk::OFFSET_DATA => Reply::Data { cookie, offset: reader.u64()?, length: length - 8, last },
        chunk::OFFSET_HOLE => {
            let (offset, length) = (reader.u64()?, reader.u32()?);
            (length > 0).then_some(Reply::Hole { cookie, offset, length, last })?
        }
        chunk::BLOCK_STATUS => {
            let context = reader.u32()?;
            let mut extents = Vec::with_capacity(length as usize / 8);
            while !reader.0.is_empty() {
                let (length, state) = (reader.u32()?, reader.u32()?);
                let (hole, zero) = (state & wire::STATE_HOLE != 0, state & wire::STATE_ZERO != 0);
                extents.push((length > 0).then_some(Extent { length, hole, zero })?);
            }
            Reply::Status { cookie, context, extents, last }
        }
        _ => {
            let error = Errno::from_code(reader.u32()?)?;
            let message_bytes = reader.u16()?;
            let message = String::from_utf8_lossy(reader.bytes(message_bytes.into())?).into_owned();
            Reply::Failed { cookie, error, message, last }
        }
    };
    Some(Some(reply))
}
