//! The S3 door (being written).
use std::sync::Arc;
pub async fn serve(
    _listener: tokio::net::TcpListener,
    _store: Arc<crate::Store>,
    _key: Option<(String, String)>,
    _tls: Option<Arc<rustls::ServerConfig>>,
    _stop: tokio::sync::watch::Receiver<bool>,
) {
}
