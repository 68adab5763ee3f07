//! The door of programs of this machine (being written).
use std::sync::atomic::AtomicUsize;
use std::sync::Arc;
pub async fn serve(
    _listener: tokio::net::UnixListener,
    _store: Arc<crate::Store>,
    _clients: Arc<AtomicUsize>,
    _stop: tokio::sync::watch::Receiver<bool>,
) {
}
