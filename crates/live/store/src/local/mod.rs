//! The door for processes of this machine: a Unix socket, over which a client gets the descriptor of the memory. A read
//! is answered with places in it, which the client maps: no byte is copied.
//!
//! A place stays as it is until the client releases its lease or disconnects. All leases and orders of a client end with
//! its connection, so that a killed process holds nothing.

mod client;
mod frames;
mod requests;
#[cfg(test)]
mod tests;

use std::io;
use std::os::fd::AsRawFd;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Duration;

use nix::sys::socket::{sendmsg, ControlMessage, MsgFlags};
use tokio::io::Interest;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::store::Store;

/// How long to wait before the next client after the system refused one, for example for too many open files.
const REFUSED: Duration = Duration::from_millis(100);

/// Serves clients until `stop` is true; `clients` is the number of those connected. Only processes of the same user and
/// of root are let in.
pub async fn serve(
    listener: UnixListener,
    store: Arc<Store>,
    clients: Arc<AtomicUsize>,
    mut stop: watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    let mut over = pin!(async move {
        // An error: the sender is gone, and with it who could stop this.
        let _ = stop.wait_for(|is_over| *is_over).await;
    });
    loop {
        tokio::select! {
            () = &mut over => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) if may_enter(&stream) => {
                    let present = Present::new(clients.clone());
                    // An error is the end of a connection, which ends alone.
                    connections.spawn(client::attend(stream, store.clone(), present));
                }
                Ok(_) => {}
                Err(_) => tokio::time::sleep(REFUSED).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
    connections.shutdown().await;
}

fn may_enter(stream: &UnixStream) -> bool {
    let own = nix::unistd::geteuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| peer.uid() == own || peer.uid() == 0)
}

/// A connected client, as long as it is connected.
struct Present(Arc<AtomicUsize>);

impl Present {
    fn new(clients: Arc<AtomicUsize>) -> Self {
        clients.fetch_add(1, Ordering::Relaxed);
        Self(clients)
    }

    /// How many are connected.
    fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Sends `frame` together with a descriptor, which goes with its first byte.
async fn send_with(stream: &UnixStream, frame: &[u8], descriptor: &impl AsRawFd) -> io::Result<()> {
    let descriptors = [descriptor.as_raw_fd()];
    let mut sent = 0;
    while sent < frame.len() {
        sent += stream
            .async_io(Interest::WRITABLE, || {
                let with = [ControlMessage::ScmRights(&descriptors)];
                let with = if sent == 0 { &with[..] } else { &[] };
                let parts = [io::IoSlice::new(&frame[sent..])];
                let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
                Ok(sendmsg::<()>(stream.as_raw_fd(), &parts, with, flags, None)?)
            })
            .await?;
    }
    Ok(())
}
