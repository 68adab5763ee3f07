//! Runs a store from its settings to its report.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use headstart_host::memory::check_room;
use headstart_host::metrics::Metrics;
use headstart_nbd::TlsFiles;
use headstart_types::{printable_path, system_says, KeyError};
use nix::sys::resource::{getrlimit, setrlimit, Resource};
use tokio::net::{TcpListener, UnixListener};
use tokio::runtime::Builder;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::error::Error;
use crate::recording::{entries, Recording};
use crate::report::Report;
use crate::settings::Settings;
use crate::shelf::{Limits, Shelf};
use crate::source::Source;
use crate::spill::{self, Spill};
use crate::store::Store;

const TICK: Duration = Duration::from_millis(100);
/// How long clients may finish what they read when the store ends.
const END: Duration = Duration::from_secs(5);
/// Entries that are disclosed at a time.
const CHUNK: usize = 1 << 16;

/// Serves until `go_on` returns false; it is called 10 times a second with the report so far.
///
/// # Errors
/// A setting is invalid, or the system refuses it.
pub fn run(settings: &Settings, go_on: &mut dyn FnMut(&Report) -> bool) -> Result<Report, Error> {
    let tls = settings.access.tls(None)?.as_ref().map(TlsFiles::read).transpose()?;
    let address = settings.address()?;
    let key = settings.s3_key.as_deref().map(key_of).transpose()?;
    check_room("cache", "the cache", settings.cache.0)?;
    let source = Source::open(&settings.source)?;
    let hints = settings.hints.as_deref().map(entries).transpose()?;
    let (folder, spill_bytes) = match settings.spill.as_deref().map(spill::parse).transpose()? {
        Some((folder, bytes)) => (Some(folder), bytes),
        None => (None, 0),
    };
    let spill = folder.map(|folder| Spill::open(folder, source.name())).transpose()?;
    let limits = Limits { memory_bytes: settings.cache.0, spill_bytes, requests: settings.requests as usize };
    let metrics = settings.openmetrics.as_deref().map(|to| Metrics::start(to).map_err(Error::io(to))).transpose()?;
    let recording = settings.record.as_deref().map(Recording::create).transpose()?;
    raise_file_limit();
    let runtime =
        Builder::new_multi_thread().thread_name("store").enable_all().build().map_err(Error::io("threads"))?;
    let served = runtime.block_on(async {
        let store = Store::try_new(source, Shelf::new(limits), spill, !settings.no_hedge);
        let store = store.map_err(Error::io("memory"))?;
        store.record(recording);
        let mut doors = Doors::open(&store, settings, address, key, tls).await?;
        if let Some(hints) = hints {
            let order = store.order();
            for chunk in hints.chunks(CHUNK) {
                store.disclose(order, chunk).await.map_err(|failure| Error::Source(failure.to_string()))?;
            }
        }
        doors.watch(&store, settings.linger, metrics, go_on).await;
        doors.close().await;
        store.take_recording().map_or(Ok(()), |recording| recording.finish(store.now()))?;
        Ok(store.report(&doors.urls, 0, true))
    });
    // What still reads is of no use to anybody.
    runtime.shutdown_background();
    served
}

/// Where clients come in.
struct Doors {
    urls: Vec<String>,
    tasks: Vec<JoinHandle<()>>,
    stop: watch::Sender<bool>,
    clients: Arc<AtomicUsize>,
    socket: Option<std::path::PathBuf>,
}

impl Doors {
    async fn open(
        store: &Arc<Store>,
        settings: &Settings,
        address: Option<std::net::SocketAddr>,
        key: Option<(String, String)>,
        tls: Option<Arc<rustls::ServerConfig>>,
    ) -> Result<Self, Error> {
        let (stop, stopped) = watch::channel(false);
        let clients = Arc::new(AtomicUsize::new(0));
        let mut doors = Self { urls: Vec::new(), tasks: Vec::new(), stop, clients, socket: None };
        if let Some(address) = address {
            let listener = TcpListener::bind(address).await.map_err(Error::io(address.to_string()))?;
            let bound = listener.local_addr().map_err(Error::io("the address"))?;
            let scheme = if tls.is_some() { "https" } else { "http" };
            doors.urls.push(format!("{scheme}://{bound}/{}/{}", store.source().bucket(), store.source().prefix()));
            let served = crate::s3::serve(listener, store.clone(), key, tls, stopped.clone());
            doors.tasks.push(tokio::spawn(served));
        }
        if let Some(path) = &settings.shared {
            let listener = unix_listener(path)?;
            doors.urls.push(format!("unix:{}", path.display()));
            doors.socket = Some(path.clone());
            let served = crate::local::serve(listener, store.clone(), doors.clients.clone(), stopped);
            doors.tasks.push(tokio::spawn(served));
        }
        Ok(doors)
    }

    /// Waits until `go_on` returns false, or nobody is connected for longer than `linger` seconds.
    #[allow(clippy::disallowed_methods)] // The machine's clock: this is the host.
    async fn watch(
        &self,
        store: &Arc<Store>,
        linger: Option<f64>,
        mut metrics: Option<Metrics>,
        go_on: &mut dyn FnMut(&Report) -> bool,
    ) {
        let mut ticks = tokio::time::interval(TICK);
        let mut alone = Instant::now();
        loop {
            ticks.tick().await;
            let clients = self.clients.load(Ordering::Relaxed);
            if clients > 0 {
                alone = Instant::now();
            }
            let is_left = linger.is_some_and(|linger| alone.elapsed().as_secs_f64() >= linger.max(0.0) && clients == 0);
            let report = store.report(&self.urls, clients, false);
            if let Some(metrics) = &mut metrics {
                metrics.update(store.now(), || report.to_openmetrics());
            }
            if !go_on(&report) || is_left {
                return;
            }
        }
    }

    /// Accepts no more clients, and waits a little for those that are connected.
    async fn close(&mut self) {
        if let Some(path) = &self.socket {
            let _ = fs::remove_file(path);
        }
        let _ = self.stop.send(true);
        let tasks = std::mem::take(&mut self.tasks);
        let all = async {
            for task in tasks {
                let _ = task.await;
            }
        };
        let _ = tokio::time::timeout(END, all).await;
    }
}

/// The id and the secret of a file.
fn key_of(path: &Path) -> Result<(String, String), KeyError> {
    let refused = |problem: String| {
        let allowed = "a file of this user alone (mode 600) with an id and a secret, a line each";
        KeyError::new("s3_key", format!("{} {problem}", printable_path(path)), allowed)
    };
    let mode = fs::metadata(path).map_err(|error| refused(format!("cannot be read: {}", system_says(&error))))?;
    if mode.permissions().mode() & 0o077 != 0 {
        return Err(refused(format!("can be read by others (mode {:o})", mode.permissions().mode() & 0o7777)));
    }
    let text = fs::read_to_string(path).map_err(|error| refused(system_says(&error)))?;
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    match lines[..] {
        [id, secret] => Ok((id.to_owned(), secret.to_owned())),
        _ => Err(refused(format!("has {} lines", lines.len()))),
    }
}

/// Listens at `path`, in place of a socket that nobody listens at any more, for this user alone.
fn unix_listener(path: &Path) -> Result<UnixListener, Error> {
    let failed = || Error::io(path.display().to_string());
    let is_left = fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket())
        && std::os::unix::net::UnixStream::connect(path)
            .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
    if is_left {
        fs::remove_file(path).map_err(failed())?;
    }
    let listener = std::os::unix::net::UnixListener::bind(path).map_err(failed())?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(failed())?;
    listener.set_nonblocking(true).map_err(failed())?;
    UnixListener::from_std(listener).map_err(failed())
}

/// Each connection takes a file descriptor: raises the limit to the maximum.
fn raise_file_limit() {
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}
