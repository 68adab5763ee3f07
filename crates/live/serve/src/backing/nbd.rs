//! Another NBD server, so that servers can be chained and cache levels stacked.
//!
//! The requests of all threads share a few connections, if the server allows several. When a connection is lost, its
//! requests fail, and later requests use a new connection unless acknowledged changes may be lost (`unflushed.rs`).

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::BytesMut;
use headstart_nbd::client::{Client, ConnectOptions};
use headstart_nbd::{Command, Errno, Extent, Flags, Uri, EXTENTS_MAX, PAYLOAD_BYTES_MAX};
use headstart_types::system_says;

use super::unflushed::same;
use super::{length_of, scatter, About, Backing, Kind, StartedRead, Unflushed};
use crate::change::Change;

/// A reachable server accepts and negotiates within milliseconds. Clients wait meanwhile.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);
/// As long as Linux waits for a command of a SCSI disk (`SD_TIMEOUT`).
const REPLY_TIME_MAX: Duration = Duration::from_secs(30);

/// The form of a name, whichever scheme it has.
const FORM: &str = "nbd://HOST[:PORT]/EXPORT";
pub(super) const KIND: Kind = Kind {
    schemes: &[("nbd://", FORM), ("nbds://", FORM), ("nbd+unix://", FORM), ("nbds+unix://", FORM)],
    forms: "nbd://HOST[:PORT]/EXPORT, nbd+unix:///EXPORT?socket=PATH, nbds: over TLS",
    can_write: true,
    can_bypass: false,
    open: |opening| {
        let uri = opening.name.parse().map_err(|error| opening.refused(format!("{error}"), opening.form))?;
        let wanted =
            if opening.writable { "a server whose export can be written" } else { "a server that can be reached" };
        let connected = NbdBacking::connect(uri, opening.writable);
        Ok(Box::new(connected.map_err(|error| opening.refused(system_says(&error), wanted))?))
    },
};

pub struct NbdBacking {
    uri: Uri,
    /// Held while a connection is made; only threads of this backing wait for it.
    upstream: Mutex<Upstream>,
    /// Attempts to reconnect that have ended.
    attempts: AtomicU64,
    unflushed: Unflushed,
    size_bytes: u64,
    flags: Flags,
    payload_max: u64,
}

/// The current connection, and the error of the last attempt to reconnect.
struct Upstream {
    client: Arc<Client>,
    failure: Option<(io::ErrorKind, String)>,
}

impl NbdBacking {
    /// Connects to `uri`.
    ///
    /// # Errors
    /// There is no such server or export, or the export is read-only although `writable` is set.
    pub fn connect(uri: Uri, writable: bool) -> io::Result<Self> {
        let client = open(&uri)?;
        let export = client.export();
        let (size_bytes, flags) = (export.size_bytes, export.flags);
        let payload_max = u64::from(export.blocks.bytes_max.min(PAYLOAD_BYTES_MAX));
        if writable && flags.contains(Flags::READ_ONLY) {
            return Err(io::Error::other("is read-only"));
        }
        let upstream = Mutex::new(Upstream { client: Arc::new(client), failure: None });
        let (attempts, unflushed) = (AtomicU64::new(0), Unflushed::default());
        Ok(Self { uri, upstream, attempts, unflushed, size_bytes, flags, payload_max })
    }

    /// The connection; reconnects if it was lost. Only this function reconnects.
    ///
    /// # Errors
    /// There is no connection (`NotConnected`). A request that waited for an attempt that failed does not try again, so
    /// each request waits for at most one attempt.
    fn client(&self) -> io::Result<Arc<Client>> {
        let attempts = self.attempts.load(Ordering::SeqCst);
        let mut upstream = self.upstream.lock().unwrap_or_else(PoisonError::into_inner);
        if !upstream.client.is_lost() {
            return Ok(upstream.client.clone());
        }
        self.unflushed.replace()?;
        if self.attempts.load(Ordering::SeqCst) > attempts {
            if let Some((kind, said)) = &upstream.failure {
                return Err(io::Error::new(*kind, said.clone()));
            }
        }
        let again = open(&self.uri).and_then(|client| {
            let is_same = client.export().size_bytes == self.size_bytes;
            let changed = || io::Error::other("the export has another size than before");
            is_same.then_some(client).ok_or_else(changed)
        });
        upstream.failure = again.as_ref().err().map(|error| (error.kind(), error.to_string()));
        self.attempts.fetch_add(1, Ordering::SeqCst);
        upstream.client = Arc::new(again?);
        self.unflushed.replaced();
        Ok(upstream.client.clone())
    }

    /// Trims or zeroes, in parts that fit the protocol's length field.
    fn command(&self, command: Command, flag: Flags, mut offset: u64, length: u64) -> io::Result<()> {
        if !self.flags.contains(flag) {
            return Err(io::Error::from(Errno::NotSup.io_kind()));
        }
        let (client, end) = (self.client()?, offset + length);
        let mark = self.unflushed.mark();
        while offset < end {
            let part = (end - offset).min(1 << 30) as u32;
            client.call(command, offset, part, &[], Vec::new())?;
            offset += u64::from(part);
        }
        self.unflushed.acknowledged(mark)
    }

    /// Flushes after a change that must be stable, if the server does not support FUA.
    fn sync_if(&self, needed: bool) -> io::Result<()> {
        if needed && self.flags.contains(Flags::FLUSH) {
            self.flush()?;
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8], fua: bool) -> io::Result<()> {
        let (client, is_sync) = (self.client()?, fua && self.flags.contains(Flags::FUA));
        let mark = self.unflushed.mark();
        let parts = data.chunks(self.payload_max as usize).zip((offset..).step_by(self.payload_max as usize));
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
        self.sync_if(fua)
    }

    fn flush(&self) -> io::Result<()> {
        if !self.flags.contains(Flags::FLUSH) {
            return Ok(());
        }
        let client = self.client()?;
        self.unflushed.sync(true, || Ok(client.flush()?))
    }
}

impl Backing for NbdBacking {
    fn about(&self) -> About {
        About { starts_reads: true, ..About::of(self.size_bytes) }
    }

    fn read(&self, offset: u64, buffers: &mut [BytesMut]) -> io::Result<()> {
        let length = (length_of(buffers) as u64).min(self.size_bytes - offset);
        let (client, mut data) = (self.client()?, Vec::with_capacity(length as usize));
        while (data.len() as u64) < length {
            let part = (length - data.len() as u64).min(self.payload_max) as u32;
            let read = client.read_at(offset + data.len() as u64, part, vec![0; part as usize])?;
            data.extend_from_slice(&read);
        }
        scatter(&data, buffers);
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
        let mut back = Vec::new();
        for read in reads {
            let length = (length_of(&read.buffers) as u64).min(self.size_bytes - read.offset);
            if length > self.payload_max {
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
        match change {
            Change::Write { offset, data, fua } => return self.write(*offset, data, *fua),
            Change::Trim { offset, length, .. } if self.flags.contains(Flags::TRIM) => {
                self.command(Command::Trim { fua: false }, Flags::TRIM, *offset, *length)?;
            }
            Change::Trim { .. } => {}
            Change::Zero { offset, length, no_hole, .. } => {
                let command = Command::WriteZeroes { fua: false, no_hole: *no_hole, fast: false };
                self.command(command, Flags::WRITE_ZEROES, *offset, *length)?;
            }
            Change::Flush => return self.flush(),
            Change::Renew => {
                let upstream = self.upstream.lock().unwrap_or_else(PoisonError::into_inner);
                self.unflushed.renew(upstream.client.is_lost());
            }
        }
        self.sync_if(change.is_fua())
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

fn open(uri: &Uri) -> io::Result<Client> {
    let (connect_time_max, reply_time_max) = (CONNECT_TIME_MAX, Some(REPLY_TIME_MAX));
    Ok(Client::connect(uri, ConnectOptions { connect_time_max, reply_time_max, ..ConnectOptions::default() })?)
}
