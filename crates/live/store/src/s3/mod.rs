//! The S3 door: the store's objects as one bucket, read-only, for programs that speak S3 over HTTP/1.1.
//!
//! The crate `s3s` parses requests, checks signatures and writes S3's XML; `hyper` speaks HTTP.
//!
//! - `bucket.rs`: the operations; `listing.rs`: pages of a listing; `body.rs`: the bytes of an answer.

mod body;
mod bucket;
mod listing;

use std::sync::Arc;
use std::time::Duration;

use hyper::body::{Body as _, Incoming};
use hyper::header::{AUTHORIZATION, RANGE};
use hyper::http::Extensions;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Uri};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::ServerConfig;
use s3s::auth::{S3Auth, SecretKey, SimpleAuth};
use s3s::dto;
use s3s::route::S3Route;
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s::validation::NameValidation;
use s3s::{s3_error, Body, HttpError, HttpResponse, S3Request, S3Response, S3Result};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::store::Store;
use bucket::Bucket;

/// Maximum number of connections. Further clients wait to be accepted.
const CONNECTIONS_MAX: usize = 1000;
/// How long a connection may be without a whole request, longer than clients keep connections that they do not use.
const IDLE: Duration = Duration::from_secs(120);
/// How long a client may take none of the bytes that it asked for: they stay in memory.
const STALL_MS: u32 = 60_000;
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long requests may take to end after the door is to close.
const GRACE: Duration = Duration::from_secs(5);
/// A connection's buffer: the longest request line and headers.
const BUFFER_BYTES: usize = 64 << 10;
/// What is read of an object that is refused. The client sees the refusal once it has sent the object.
const REFUSED_BYTES_MAX: u64 = 64 << 20;
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

struct Door {
    service: S3Service,
    /// Signatures are neither demanded nor checked.
    is_open: bool,
}

/// Serves until `stop` holds true. `keys`: an access key's id and secret; without them, everybody may read.
///
/// # Panics
/// Outside of a runtime.
pub async fn serve(
    listener: TcpListener,
    store: Arc<Store>,
    keys: Option<(String, String)>,
    tls: Option<Arc<ServerConfig>>,
    mut stop: watch::Receiver<bool>,
) {
    let is_open = keys.is_none();
    let bucket = Bucket::new(store);
    let builder = || {
        let mut builder = S3ServiceBuilder::new(bucket.clone());
        builder.set_validation(AnyName);
        builder
    };
    let whole = WholeObjects { service: builder().build(), is_open };
    let mut builder = builder();
    builder.set_route(whole);
    if let Some((id, secret)) = keys {
        builder.set_auth(Key(SimpleAuth::from_single(id, secret)));
    }
    let door = Arc::new(Door { service: builder.build(), is_open });
    let tls = tls.map(TlsAcceptor::from);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = stopped(&mut stop) => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept(), if connections.len() < CONNECTIONS_MAX => match accepted {
                Ok((stream, _)) => drop(connections.spawn(open(stream, door.clone(), tls.clone(), stop.clone()))),
                // Mostly, the process has no more descriptors.
                Err(_) => tokio::time::sleep(ACCEPT_AGAIN).await,
            },
        }
    }
    drop(listener);
    let ended = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(GRACE, ended).await;
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    // Without a sender, nothing stops it later.
    let _ = stop.wait_for(|stop| *stop).await;
}

async fn open(stream: TcpStream, door: Arc<Door>, tls: Option<TlsAcceptor>, stop: watch::Receiver<bool>) {
    // Without them, answers are later and memory is held longer.
    let _ = stream.set_nodelay(true);
    let _ = rustix::net::sockopt::set_tcp_user_timeout(&stream, STALL_MS);
    match tls {
        None => talk(stream, door, stop).await,
        Some(tls) => {
            if let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE, tls.accept(stream)).await {
                talk(stream, door, stop).await;
            }
        }
    }
}

async fn talk(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    door: Arc<Door>,
    mut stop: watch::Receiver<bool>,
) {
    let service = service_fn(|request| door.answer(request));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE)
        .max_buf_size(BUFFER_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    // The client gets an error's text in its answer, or has gone.
    let _ = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stopped(&mut stop) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
}

impl Door {
    async fn answer(&self, request: Request<Incoming>) -> Result<HttpResponse, HttpError> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            discard(request.into_body()).await;
            let refusal = s3_error!(AccessDenied, "this store is read-only").to_http_response();
            return refusal.map_err(|error| HttpError::new(Box::new(error)));
        }
        // Nothing of a body is used.
        let mut request = request.map(|_| Body::empty());
        if self.is_open {
            unsign(&mut request);
        }
        self.service.call(request).await
    }
}

async fn discard(mut body: Incoming) {
    let mut read = 0;
    while read < REFUSED_BYTES_MAX {
        let frame = std::future::poll_fn(|context| std::pin::Pin::new(&mut body).poll_frame(context));
        let Ok(Some(Ok(frame))) = tokio::time::timeout(HANDSHAKE, frame).await else { return };
        read += frame.data_ref().map_or(0, |data| data.len() as u64);
    }
}

/// Removes signatures: many clients sign whatever they send.
fn unsign(request: &mut Request<Body>) {
    request.headers_mut().remove(AUTHORIZATION);
    let Some(query) = request.uri().query() else { return };
    let is_signature = |pair: &&str| {
        let name = pair.split('=').next().unwrap_or_default();
        name.starts_with("X-Amz-") || ["AWSAccessKeyId", "Signature", "Expires"].contains(&name)
    };
    let kept: Vec<&str> = query.split('&').filter(|pair| !is_signature(pair)).collect();
    // A part of a valid query is one.
    if let Ok(uri) = Uri::try_from(format!("{}?{}", request.uri().path(), kept.join("&"))) {
        *request.uri_mut() = uri;
    }
}

/// The key, with S3's error for any other.
struct Key(SimpleAuth);

#[async_trait::async_trait]
impl S3Auth for Key {
    async fn get_secret_key(&self, id: &str) -> S3Result<SecretKey> {
        self.0.get_secret_key(id).await.map_err(|_| s3_error!(InvalidAccessKeyId))
    }
}

/// Answers with whole objects where the range is none, or more than one: S3 ignores such a header. It may be a part of
/// what was signed, so it is removed after the signature was checked.
struct WholeObjects {
    service: S3Service,
    is_open: bool,
}

#[async_trait::async_trait]
impl S3Route for WholeObjects {
    fn is_match(&self, _: &Method, _: &Uri, headers: &HeaderMap, _: &mut Extensions) -> bool {
        let is_range = |range: &str| dto::Range::parse(range).is_ok();
        headers.get(RANGE).is_some_and(|range| !range.to_str().is_ok_and(is_range))
    }

    async fn check_access(&self, request: &mut S3Request<Body>) -> S3Result<()> {
        (self.is_open || request.credentials.is_some()).then_some(()).ok_or_else(|| s3_error!(AccessDenied))
    }

    async fn call(&self, request: S3Request<Body>) -> S3Result<S3Response<Body>> {
        let mut whole = Request::new(request.input);
        (*whole.method_mut(), *whole.uri_mut(), *whole.headers_mut()) = (request.method, request.uri, request.headers);
        whole.headers_mut().remove(RANGE);
        unsign(&mut whole);
        let (head, body) = self.service.call(whole).await.map_err(|_| s3_error!(InternalError))?.into_parts();
        Ok(S3Response { status: Some(head.status), headers: head.headers, ..S3Response::new(body) })
    }
}

/// Folders have other names than buckets.
struct AnyName;

impl NameValidation for AnyName {
    fn validate_bucket_name(&self, name: &str) -> bool {
        !name.is_empty()
    }
}
