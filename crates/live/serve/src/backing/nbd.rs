//! Another NBD server, so that servers can be chained and cache levels stacked.
//!
//! The requests of all threads share a connection. When it is lost, its requests fail, and later requests use a new
//! one unless acknowledged changes may be lost (`unflushed.rs`).

use std::io;
use std::sync::Arc;

use bytes::BytesMut;
use headstart_nbd::client::{Client, Reconnecting, DISK_LIMITS};
use headstart_nbd::{Command, Errno, Extent, Flags, Uri, EXTENTS_MAX};

use super::unflushed::same;
use super::{length_of, scatter, About, Backing, Kind, StartedRead, Unflushed};
use crate::change::Change;

/// The form of a name, whichever scheme it has.
const FORM: &str = "nbd://HOST[:PORT]/EXPORT";
pub(super) const KIND: Kind = Kind {
    schemes: &[("nbd://", FORM), ("nbds://", FORM), ("nbd+unix://", FORM), ("nbds+unix://", FORM)],
    forms: &[
        ("nbd://HOST[:PORT]/EXPORT", "an export of another server; servers chain, level over level. nbds: over TLS"),
        ("nbd+unix:///EXPORT?socket=PATH", "an export of a server on this machine. nbds+unix: over TLS"),
    ],
    can_write: true,
    can_bypass: false,
    open: |opening| {
        let uri = opening.name.parse().map_err(|error| opening.refused(format!("{error}"), opening.form))?;
        let writable = opening.settings.writable;
        let wanted = if writable { "a server whose export can be written" } else { "a server that can be reached" };
        let connected = NbdBacking::connect(uri, writable);
        Ok(Box::new(connected.map_err(|error| opening.refused(error.to_string(), wanted))?))
    },
};

pub struct NbdBacking {
    upstream: Reconnecting,
    unflushed: Unflushed,
}

impl NbdBacking {
    /// Connects to `uri`.
    ///
    /// # Errors
    /// There is no such server or export, or the export is read-only although `writable` is set.
    pub fn connect(uri: Uri, writable: bool) -> io::Result<Self> {
        let upstream = Reconnecting::connect(uri, DISK_LIMITS)?;
        if writable && upstream.client()?.export().flags.contains(Flags::READ_ONLY) {
            return Err(io::Error::other("is read-only"));
        }
        Ok(Self { upstream, unflushed: Unflushed::default() })
    }

    fn client(&self) -> io::Result<Arc<Client>> {
        self.upstream.client_if(|| self.unflushed.replace(), || self.unflushed.replaced())
    }

    /// Trims or zeroes, in parts that fit the protocol's length field.
    fn command(&self, client: &Client, command: Command, mut offset: u64, length: u64) -> io::Result<()> {
        let (mark, end) = (self.unflushed.mark(), offset + length);
        while offset < end {
            let part = (end - offset).min(1 << 30) as u32;
            client.call(command, offset, part, &[], Vec::new())?;
            offset += u64::from(part);
        }
        self.unflushed.acknowledged(mark)
    }

    fn write(&self, client: &Client, offset: u64, data: &[u8], fua: bool) -> io::Result<()> {
        let export = client.export();
        let is_sync = fua && export.flags.contains(Flags::FUA);
        let mark = self.unflushed.mark();
        let part_bytes = export.blocks.bytes_max as usize;
        let parts = data.chunks(part_bytes).zip((offset..).step_by(part_bytes));
        let write = || -> io::Result<()> {
            for (part, at) in parts {
                client.write_at(at, part, is_sync)?;
            }
            Ok(())
        };
        if is_sync {
            return self.unflushed.sync(false, write);
        }
        write()?;
        self.unflushed.acknowledged(mark)?;
        self.flush_if(client, fua)
    }

    /// Flushes, also after a change that must be stable and could not say so.
    fn flush_if(&self, client: &Client, is_needed: bool) -> io::Result<()> {
        if !is_needed || !client.export().flags.contains(Flags::FLUSH) {
            return Ok(());
        }
        self.unflushed.sync(true, || Ok(client.flush()?))
    }
}

impl Backing for NbdBacking {
    fn about(&self) -> About {
        About { starts_reads: true, ..About::of(self.upstream.size_bytes()) }
    }

    fn read(&self, offset: u64, buffers: &mut [BytesMut]) -> io::Result<()> {
        let end = self.upstream.size_bytes().min(offset + length_of(buffers) as u64);
        scatter(&self.client()?.read_range(offset..end)?, buffers);
        Ok(())
    }

    fn start_reads(&self, reads: Vec<StartedRead>) -> Vec<StartedRead> {
        let client = match self.client() {
            Ok(client) => client,
            Err(error) => {
                reads.into_iter().for_each(|read| (read.ended)(read.buffers, Err(same(&error))));
                return Vec::new();
            }
        };
        let (mut back, blocks) = (Vec::new(), client.export().blocks);
        for read in reads {
            let length = (length_of(&read.buffers) as u64).min(self.upstream.size_bytes() - read.offset);
            if length > blocks.bytes_max.into() || !(read.offset | length).is_multiple_of(blocks.bytes_min.into()) {
                back.push(read);
                continue;
            }
            let StartedRead { offset, mut buffers, ended, .. } = read;
            let command = Command::Read { single_chunk: false };
            client.queue(command, offset, length as u32, Vec::new(), move |result| match result {
                Ok(completion) => {
                    scatter(&completion.buffer, &mut buffers);
                    ended(buffers, Ok(()));
                }
                Err(error) => ended(buffers, Err(error.into())),
            });
        }
        client.send_queued();
        back
    }

    fn change(&self, change: &Change) -> io::Result<()> {
        if let Change::Renew = change {
            self.upstream.while_kept(|is_lost| self.unflushed.renew(is_lost));
            return Ok(());
        }
        let client = self.client()?;
        let flags = client.export().flags;
        match change {
            Change::Write { offset, data, fua } => return self.write(&client, *offset, data, *fua),
            Change::Trim { offset, length, .. } if flags.contains(Flags::TRIM) => {
                self.command(&client, Command::Trim { fua: false }, *offset, *length)?;
            }
            Change::Zero { offset, length, no_hole, .. } if flags.contains(Flags::WRITE_ZEROES) => {
                let command = Command::WriteZeroes { fua: false, no_hole: *no_hole, fast: false };
                self.command(&client, command, *offset, *length)?;
            }
            Change::Zero { .. } => return Err(Errno::NotSup.io_kind().into()),
            Change::Flush => return self.flush_if(&client, true),
            Change::Trim { .. } | Change::Renew => {}
        }
        self.flush_if(&client, change.is_fua())
    }

    fn extents(&self, offset: u64, length: u32) -> io::Result<Vec<Extent>> {
        match self.client()?.block_status(offset, length) {
            Ok(mut extents) if !extents.is_empty() => {
                extents.truncate(EXTENTS_MAX);
                Ok(extents)
            }
            // Without support for block status, everything counts as data.
            _ => Ok(vec![Extent { length, hole: false, zero: false }]),
        }
    }
}
