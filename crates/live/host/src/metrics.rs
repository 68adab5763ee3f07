//! Metrics in the text format of OpenMetrics 1.0: in a file that is replaced every second, or over HTTP.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use headstart_types::{KeyError, Nanos};

use crate::owned::replace;

/// Time between updates of the text.
const EVERY: Nanos = Nanos::from_millis(1_000);
/// Mode of the file: collectors run as other users.
const MODE: u32 = 0o644;
/// How long a collector may take to send its request.
const PATIENCE: Duration = Duration::from_secs(1);

/// Where the text goes.
enum Target {
    File(PathBuf),
    Address(SocketAddr, Option<Arc<Mutex<String>>>),
}

pub struct Metrics {
    target: Target,
    due: Nanos,
}

/// Checks the option `openmetrics`: a file, or an address of this machine.
///
/// # Errors
/// Other machines can reach the address.
pub fn check_target(target: &str) -> Result<(), KeyError> {
    if target.parse::<SocketAddr>().is_ok_and(|address| !address.ip().is_loopback()) {
        let problem = format!("{target} can be reached from other machines");
        return Err(KeyError::new("openmetrics", problem, "an address of this machine, or a file"));
    }
    Ok(())
}

impl Metrics {
    /// Writes to a file or, if `target` is an address, serves HTTP there.
    ///
    /// # Errors
    /// The address is in use.
    pub fn start(target: &str) -> io::Result<Self> {
        let due = Nanos::ZERO;
        let Ok(address) = target.parse::<SocketAddr>() else {
            return Ok(Self { target: Target::File(target.into()), due });
        };
        let listener = TcpListener::bind(address)?;
        let bound = listener.local_addr()?;
        let text = Arc::new(Mutex::new(String::new()));
        let shared = Arc::downgrade(&text);
        thread::Builder::new().name("metrics".to_owned()).spawn(move || {
            for stream in listener.incoming() {
                let (Ok(mut stream), Some(text)) = (stream, shared.upgrade()) else { break };
                let _ = stream.set_read_timeout(Some(PATIENCE));
                let _ = stream.set_write_timeout(Some(PATIENCE));
                // Every request gets the same answer.
                let _ = stream.read(&mut [0; 4096]);
                let body = text.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
                let _ = write!(
                    stream,
                    "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                    body.len()
                );
            }
        })?;
        Ok(Self { target: Target::Address(bound, Some(text)), due })
    }

    /// Updates the text if it is due at `now`.
    pub fn update(&mut self, now: Nanos, text: impl FnOnce() -> String) {
        if now < self.due {
            return;
        }
        self.due = now + EVERY;
        let text = text();
        match &self.target {
            Target::Address(_, Some(shared)) => *shared.lock().unwrap_or_else(PoisonError::into_inner) = text,
            Target::Address(_, None) => {}
            Target::File(path) => {
                // Replaced atomically: a collector sees either the old or the new text. A full disk stops
                // nothing.
                let _ = replace(path, text.as_bytes(), MODE, false);
            }
        }
    }
}

impl Drop for Metrics {
    fn drop(&mut self) {
        if let Target::Address(address, text) = &mut self.target {
            *text = None;
            // Wakes the thread, so that it ends.
            let _ = TcpStream::connect_timeout(address, PATIENCE);
        }
    }
}
