//! Runs a server from its settings to its report.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use headstart_assemble::{served, Served};
use headstart_host::memory::check_room;
use headstart_host::metrics::Metrics;
use headstart_nbd::{address, Request, TlsFiles};
use headstart_types::{without_credentials, Bytes, KeyError, Nanos};
use listenfd::ListenFd;
use mio::net::{TcpListener, UnixListener};
use nix::sys::resource::{getrlimit, setrlimit, Resource};
use nix::unistd::geteuid;
use toml::{Table, Value};

use crate::backing::{self, Backing};
use crate::change::Change;
use crate::hinted;
use crate::metrics;
use crate::probe;
use crate::recording::{Log, Recording};
use crate::report::Report;
use crate::server::{Export, Listener, Observer, Server};
use crate::settings::{Settings, AUTO};
use crate::spill::Spill;
use crate::Error;

/// Default and minimum memory for requests and replies; the minimum is two of the longest.
const MEMORY_BYTES: u64 = 256 << 20;
const MEMORY_BYTES_MIN: u64 = 64 << 20;

/// Serves until `go_on` returns false; it is called 10 times a second with the report so far.
///
/// # Errors
/// A setting is invalid, or the system refuses it.
pub fn run(settings: &Settings, go_on: &mut dyn FnMut(&Report) -> bool) -> Result<Report, Error> {
    let page_bytes = settings.page.0;
    let tls = settings.access.tls(settings.tls_clients.as_ref())?;
    let certificates = tls.as_ref().map(TlsFiles::read).transpose()?;
    let (named, level_keys, selection) = (settings.exports()?, settings.level()?, settings.selection()?);
    check_memory(&level_keys, page_bytes, named.len()).map_err(|error| settings.at_option(error))?;
    let mut exports = Vec::new();
    let (mut about, mut backings) = (Vec::new(), Vec::new());
    for (name, backing) in &named {
        let backing_of = backing::open(backing, settings)?;
        if settings.writable {
            // Makes stable what an earlier server acknowledged.
            backing_of.change(&Change::Flush).map_err(Error::io(backing.as_str()))?;
        }
        let built = level(level_keys.clone(), page_bytes, &*backing_of).map_err(|error| match error {
            Error::Io { source, .. } => Error::io(backing.as_str())(source),
            Error::Key(error) => settings.at_option(error).into(),
            other => other,
        })?;
        let name_of = settings.hint_policy.as_deref().unwrap_or(hinted::POLICY);
        let cache = (backing_of.about().size_bytes, page_bytes, built.frames);
        let hints =
            settings.hints.as_deref().map(|path| hinted::hints((path, &selection), name_of, cache)).transpose()?;
        about.push((without_credentials(backing), built.keys));
        let spill = settings.spill.as_deref().map(|text| spill(text, &*backing_of, cache, settings.writable));
        let (spill, backing_of): (_, Arc<dyn Backing>) = (spill.transpose()?, Arc::from(backing_of));
        backings.push(backing_of.clone());
        exports.push(Export {
            name: name.clone(),
            backing: backing_of,
            link: built.link,
            tier: built.tier,
            frames: built.frames,
            hints,
            spill,
        });
    }
    check_room("export", "memory that is served and caches", memory_of(&named, &exports, page_bytes))?;
    let names: Vec<String> = named.into_iter().map(|(name, _)| name).collect();
    let recording = settings.record.as_deref().map(|path| Recording::create(path, &names)).transpose()?;
    let log = settings.log.as_deref().map(Log::create).transpose()?;
    let metrics = settings.openmetrics.as_deref().map(|to| Metrics::start(to).map_err(Error::io(to))).transpose()?;
    let listeners = listeners(settings)?;
    raise_file_limit();
    let memory_bytes = request_memory(settings, &exports)?;
    let mut server =
        Server::try_new(exports, listeners, Arc::new(settings.clone()), memory_bytes).map_err(Error::io("threads"))?;
    certificates.into_iter().for_each(|tls| server.require_tls(tls));
    let mut watch = Watch { about, recording, log, metrics, unstable: BTreeSet::new(), go_on, uris: server.uris() };
    let ended = server.run(&mut watch);
    watch.happened(server.now(), u64::MAX, "ended", "");
    if let Some(recording) = watch.recording.take() {
        recording.finish()?;
    }
    ended.map_err(Error::io("the backing"))?;
    let is_stable = server.exports().all(|(_, conductor)| conductor.unstable().is_none());
    for ((_, conductor), backing) in server.exports().zip(&backings).filter(|_| is_stable) {
        let Some(spill) = conductor.spill() else { continue };
        spill.close(backing.about().identity.as_deref()).map_err(Error::io("the spill file"))?;
    }
    Ok(Report::new(&server, &watch.uris, &watch.about))
}

/// Memory for requests and replies, in addition to the caches.
fn request_memory(settings: &Settings, exports: &[Export]) -> Result<usize, KeyError> {
    let caches: u64 = exports.iter().map(|export| u64::from(export.frames) * settings.page.0).sum();
    let least = Bytes(caches + MEMORY_BYTES_MIN);
    let allowed = || format!("at least {least}, for caches of {} and requests", Bytes(caches));
    let memory_bytes = match &settings.memory {
        None => MEMORY_BYTES,
        Some(memory) => {
            let beside = memory.0.checked_sub(caches).filter(|beside| *beside >= MEMORY_BYTES_MIN);
            beside.ok_or_else(|| KeyError::new("memory", format!("{memory} is too little"), allowed()))?
        }
    };
    Ok(memory_bytes as usize)
}

/// Checks that there is memory for the caches.
fn check_memory(level: &Table, page_bytes: u64, exports: usize) -> Result<(), KeyError> {
    let size = level.get("size").and_then(Value::as_str).and_then(|text| text.parse::<Bytes>().ok());
    let blocks = level.get("blocks").and_then(Value::as_integer).and_then(|blocks| u64::try_from(blocks).ok());
    let each = size.map(|size| size.0).or(blocks.map(|blocks| blocks.saturating_mul(page_bytes))).unwrap_or(0);
    check_room("size", "caches", each.saturating_mul(exports as u64))
}

/// Memory of the caches and `mem:` exports once they are full.
fn memory_of(backings: &[(String, String)], exports: &[Export], page_bytes: u64) -> u64 {
    let of_memory = backings.iter().zip(exports).filter(|((_, backing), _)| backing.starts_with("mem:"));
    let served = of_memory.fold(0, |sum: u64, (_, export)| sum.saturating_add(export.backing.about().size_bytes));
    exports.iter().fold(served, |sum, export| sum.saturating_add(u64::from(export.frames) * page_bytes))
}

/// Opens the spill file between a level and its backing.
fn spill(
    text: &str,
    backing: &dyn Backing,
    (_, page_bytes, frames): (u64, u64, u32),
    writable: bool,
) -> Result<Spill, Error> {
    if frames == 0 {
        return Err(KeyError::new("spill", "a cache of no pages gives none to it", "a larger --cache").into());
    }
    Spill::open(text, page_bytes, backing.about().identity.as_deref(), writable)
}

/// The level with these keys in front of `backing`.
#[expect(clippy::disallowed_methods, reason = "latency is measured by the machine's clock")]
fn level(mut keys: Table, page_bytes: u64, backing: &dyn Backing) -> Result<Served, Error> {
    if keys.get("policy").and_then(Value::as_str) != Some(AUTO) {
        return Ok(served(keys, page_bytes)?);
    }
    keys.insert("policy".into(), "linux".into());
    let cache_bytes = u64::from(served(keys.clone(), page_bytes)?.frames) * page_bytes;
    let begun = std::time::Instant::now();
    let mut now = || Nanos(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX));
    let window = match backing.about().read_ahead_bytes {
        Some(bytes) => bytes,
        None => probe::window_bytes(backing, cache_bytes, &mut now).map_err(Error::io(""))?,
    };
    let read_ahead = Value::from(format!("{}KiB", window >> 10));
    let policy = Table::from_iter([("name".to_owned(), "linux".into()), ("read_ahead".to_owned(), read_ahead)]);
    keys.insert("policy".into(), policy.into());
    Ok(served(keys, page_bytes)?)
}

/// The listeners passed by the system, or else the configured one.
fn listeners(settings: &Settings) -> Result<Vec<Listener>, Error> {
    let mut handed = ListenFd::from_env();
    if handed.len() > 0 {
        return (0..handed.len()).map(|at| take(&mut handed, at, settings)).collect();
    }
    let listen = settings.listen();
    let listen = listen.as_str();
    let listener = match listen.strip_prefix("unix:") {
        Some(path) => Listener::unix(path.as_ref()),
        None => {
            let text = listen.strip_prefix("tcp:").unwrap_or(listen);
            let address = address("listen", text, "HOST:PORT such as 127.0.0.1:10809, or unix:PATH")?;
            allowed(address, text, settings)?;
            Listener::tcp(address)
        }
    };
    Ok(vec![listener.map_err(Error::io(listen))?])
}

fn take(handed: &mut ListenFd, at: usize, settings: &Settings) -> Result<Listener, Error> {
    let failed = Error::io("LISTEN_FDS");
    if let Ok(Some(listener)) = handed.take_tcp_listener(at) {
        let bound = listener.set_nonblocking(true).and_then(|()| listener.local_addr()).map_err(failed)?;
        allowed(bound, &bound.to_string(), settings)?;
        return Ok(Listener::Tcp(TcpListener::from_std(listener)));
    }
    let listener = handed.take_unix_listener(at).and_then(|found| {
        let listener = found.ok_or(io::ErrorKind::NotConnected)?;
        listener.set_nonblocking(true).map(|()| listener)
    });
    // The creator of the socket removes its path.
    Ok(Listener::Unix(UnixListener::from_std(listener.map_err(failed)?), None))
}

/// Refuses an address that other machines reach, or other users if they could write, unless the settings allow it.
fn allowed(address: SocketAddr, text: &str, settings: &Settings) -> Result<(), KeyError> {
    if settings.writable && settings.access.is_plain() && geteuid().is_root() {
        let problem = format!("{text} can be reached by every user, who could write what root alone may");
        let allowed = "--socket PATH, --tls-cert and --tls-key too, another user, or --insecure";
        return Err(KeyError::new("listen", problem, allowed));
    }
    settings.access.check("listen", text, address)
}

/// Each connection takes a file descriptor: raises the limit to the maximum.
fn raise_file_limit() {
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

/// Observes a server for its outputs.
struct Watch<'a> {
    about: Vec<(String, Table)>,
    recording: Option<Recording>,
    log: Option<Log>,
    metrics: Option<Metrics>,
    /// Exports already logged as unstable.
    unstable: BTreeSet<usize>,
    go_on: &'a mut dyn FnMut(&Report) -> bool,
    uris: Vec<String>,
}

impl Observer for Watch<'_> {
    fn tick(&mut self, server: &Server) -> bool {
        if let Some(metrics) = &mut self.metrics {
            metrics.update(server.now(), || metrics::text(server));
        }
        let report = Report::new(server, &self.uris, &self.about);
        for (at, export) in report.exports.iter().enumerate() {
            if let Some(unstable) = export.unstable.as_ref().filter(|_| self.unstable.insert(at)) {
                self.happened(server.now(), u64::MAX, "unstable", &unstable.summary);
            }
        }
        if let Some(log) = &mut self.log {
            log.flush();
        }
        (self.go_on)(&report)
    }

    fn requested(&mut self, at: Nanos, client: u32, export: usize, request: &Request) {
        if let Some(recording) = &mut self.recording {
            recording.requested(at, client, export, request);
        }
    }

    fn happened(&mut self, at: Nanos, client: u64, what: &str, detail: &str) {
        if let Some(log) = &mut self.log {
            log.write(at, client, what, detail);
        }
    }
}
