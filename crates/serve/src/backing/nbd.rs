//! Another server of the protocol: so that servers chain, and levels stand over levels.
//!
//! A few connections, where the server allows several, carry the requests of all threads. What is lost with a connection is
//! an error for the requests that were under way, and a new connection is made for those that come.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::BytesMut;
use headstart_nbd::client::{Client, ConnectOptions};
use headstart_nbd::{Command, Errno, Extent, Flags, Uri, PAYLOAD_BYTES_MAX};

use super::{scatter, Backing, ReadEnded};

/// A connection to another server.
pub struct NbdBacking {
    uri: Uri,
    client: Mutex<Arc<Client>>,
    size_bytes: u64,
    flags: Flags,
    payload_max: u64,
    /// Threads write: one that waits for room in the socket would hold up a read that is only to be started.
    writable: bool,
}

impl NbdBacking {
    /// Connects to `uri`.
    ///
    /// # Errors
    /// No server, no such export, or one that cannot be written though it shall be.
    pub fn connect(uri: Uri, writable: bool) -> io::Result<Self> {
        let client = Client::connect(&uri, ConnectOptions::default())?;
        let export = client.export();
        let (size_bytes, flags) = (export.size_bytes, export.flags);
        let payload_max = u64::from(export.blocks.bytes_max.min(PAYLOAD_BYTES_MAX));
        if writable && flags.contains(Flags::READ_ONLY) {
            return Err(io::Error::other("is read-only"));
        }
        Ok(Self { uri, client: Mutex::new(Arc::new(client)), size_bytes, flags, payload_max, writable })
    }

    /// The connection, a new one if it has been lost.
    fn client(&self) -> io::Result<Arc<Client>> {
        let mut client = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        if client.is_lost() {
            let again = Client::connect(&self.uri, ConnectOptions::default())?;
            if again.export().size_bytes != self.size_bytes {
                return Err(io::Error::other("the export has another size than before"));
            }
            *client = Arc::new(again);
        }
        Ok(client.clone())
    }

    /// A change without payload, in parts that the protocol can say.
    fn change(&self, command: Command, flag: Flags, mut offset: u64, length: u64) -> io::Result<()> {
        if !self.flags.contains(flag) {
            return Err(io::Error::from(Errno::NotSup.io_kind()));
        }
        let (client, end) = (self.client()?, offset + length);
        while offset < end {
            let part = (end - offset).min(1 << 30) as u32;
            client.call(command, offset, part, &[], Vec::new())?;
            offset += u64::from(part);
        }
        Ok(())
    }

    /// After a change that is to be stable, where the server does not know the flag.
    fn sync_if(&self, needed: bool) -> io::Result<()> {
        if needed && self.flags.contains(Flags::FLUSH) {
            self.flush()?;
        }
        Ok(())
    }
}

impl Backing for NbdBacking {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn read(&self, offset: u64, buffers: &mut [BytesMut]) -> io::Result<()> {
        let wanted: usize = buffers.iter().map(|buffer| buffer.len()).sum();
        let length = (wanted as u64).min(self.size_bytes - offset);
        let (client, mut data) = (self.client()?, Vec::with_capacity(length as usize));
        while (data.len() as u64) < length {
            let part = (length - data.len() as u64).min(self.payload_max) as u32;
            let read = client.read_at(offset + data.len() as u64, part, vec![0; part as usize])?;
            data.extend_from_slice(&read);
        }
        scatter(&data, buffers);
        Ok(())
    }

    fn start_read(
        &self,
        offset: u64,
        mut buffers: Vec<BytesMut>,
        ended: ReadEnded,
    ) -> Option<(Vec<BytesMut>, ReadEnded)> {
        let wanted: usize = buffers.iter().map(|buffer| buffer.len()).sum();
        let length = (wanted as u64).min(self.size_bytes - offset);
        let lasting = self.client.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if self.writable || length > self.payload_max || lasting.is_lost() {
            return Some((buffers, ended));
        }
        let read = Command::Read { single_chunk: false };
        lasting.queue(read, offset, length as u32, Vec::new(), move |result| match result {
            Ok(completion) => {
                scatter(&completion.buffer, &mut buffers);
                ended(buffers, Ok(()));
            }
            Err(error) => ended(buffers, Err(error.into())),
        });
        None
    }

    fn submit_reads(&self) {
        let lasting = self.client.lock().unwrap_or_else(PoisonError::into_inner).clone();
        lasting.send_queued();
    }

    fn write(&self, offset: u64, data: &[u8], fua: bool) -> io::Result<()> {
        let (client, knows) = (self.client()?, self.flags.contains(Flags::FUA));
        for (part, at) in data.chunks(self.payload_max as usize).zip((offset..).step_by(self.payload_max as usize)) {
            client.write_at(at, part, fua && knows)?;
        }
        self.sync_if(fua && !knows)
    }

    fn trim(&self, offset: u64, length: u64, fua: bool) -> io::Result<()> {
        if self.flags.contains(Flags::TRIM) {
            self.change(Command::Trim { fua: false }, Flags::TRIM, offset, length)?;
        }
        self.sync_if(fua)
    }

    fn zero(&self, offset: u64, length: u64, no_hole: bool, fua: bool) -> io::Result<()> {
        let command = Command::WriteZeroes { fua: false, no_hole, fast: false };
        self.change(command, Flags::WRITE_ZEROES, offset, length)?;
        self.sync_if(fua)
    }

    fn flush(&self) -> io::Result<()> {
        if self.flags.contains(Flags::FLUSH) {
            self.client()?.flush()?;
        }
        Ok(())
    }

    fn extents(&self, offset: u64, length: u32) -> io::Result<Vec<Extent>> {
        match self.client()?.block_status(offset, length) {
            Ok(extents) if !extents.is_empty() => Ok(extents),
            // A server that cannot say has to be read.
            _ => Ok(vec![Extent { length, hole: false, zero: false }]),
        }
    }
}
