//! An object of a store, or a file of a web server: read-only, through range requests.
//!
//! The crate `object_store` handles requests, signatures, credentials and retries. A thread of the pool waits for each
//! read; one more thread serves all sockets. An answer counts only if it has the requested length and comes from the
//! object found at the start, identified by its entity tag or, without one, by its time of modification; otherwise the
//! read fails. A failed read is not retried in parts, since the cause is the connection to the store and not a bad
//! sector.

use std::io;
use std::ops::Range;

use bytes::BytesMut;
use futures_util::{stream, TryStreamExt};
use headstart_store::{open_store, patience, said};
use headstart_types::Bytes;
use object_store::path::Path;
use object_store::{GetOptions, ObjectMeta, ObjectStore, ObjectStoreExt, RetryConfig};
use tokio::runtime::{Builder, Runtime};

use crate::window::WINDOW_BYTES_MAX;

use super::{length_of, About, Backing, Kind};

/// Schemes, and the form of a name of each.
const SCHEMES: [(&str, &str); 5] = [
    ("http://", "http://HOST[:PORT]/PATH of a server that answers range requests"),
    ("https://", "https://HOST[:PORT]/PATH of a server that answers range requests"),
    ("s3://", "s3://BUCKET/KEY that AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and AWS_ENDPOINT let read"),
    ("gs://", "gs://BUCKET/KEY that GOOGLE_SERVICE_ACCOUNT or GOOGLE_APPLICATION_CREDENTIALS lets read"),
    ("az://", "az://CONTAINER/KEY that AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY let read"),
];
pub(super) const KIND: Kind = Kind {
    schemes: &SCHEMES,
    forms: &[
        (
            "https://HOST[:PORT]/PATH",
            "a file of a web server that answers range requests, http: without TLS; read-only",
        ),
        ("s3://BUCKET/KEY", "an object in Amazon S3, or in what speaks like it; read-only"),
        ("gs://BUCKET/KEY", "an object in Google Cloud Storage; read-only"),
        ("az://CONTAINER/KEY", "an object in Azure Blob Storage; read-only"),
    ],
    can_write: false,
    can_bypass: false,
    open: |opening| {
        let opened = ObjectBacking::open(opening.name, &patience());
        Ok(Box::new(opened.map_err(|problem| opening.refused(problem, opening.form))?))
    },
};
/// Retries before an object is served: few, so that a mistake shows at once.
const RETRIES_AT_START: usize = 2;
/// The form of names with the scheme of `name`; `None` if it names no object.
pub(crate) fn form(name: &str) -> Option<&'static str> {
    SCHEMES.iter().find(|(scheme, _)| name.starts_with(scheme)).map(|(_, form)| *form)
}

pub struct ObjectBacking {
    store: Box<dyn ObjectStore>,
    path: Path,
    name: String,
    /// Metadata at the start.
    meta: ObjectMeta,
    runtime: Runtime,
}

impl ObjectBacking {
    /// Opens the object `name`. `retries` applies to reads.
    ///
    /// # Errors
    /// The object does not exist or cannot be served.
    pub fn open(name: &str, retries: &RetryConfig) -> Result<Self, String> {
        let (scheme, rest) = name.split_once("://").ok_or("is no URL")?;
        let (place, key) = rest.split_once('/').unwrap_or((rest, ""));
        if rest.contains(['?', '#']) || place.contains('@') {
            return Err("has a query, a fragment or a password (in names, ? is %3F and # is %23)".to_owned());
        }
        if place.is_empty() || key.is_empty() {
            return Err("names no object".to_owned());
        }
        // A web server gets the path as written, since it may distinguish %2F from /.
        let path = if scheme.starts_with("http") { Path::ROOT } else { key_path(key)? };
        // Fails if a provider is installed already, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("serve-object").enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let at_start = RetryConfig { max_retries: RETRIES_AT_START, ..retries.clone() };
        let open = |retries| {
            let opened = open_store(scheme, place, name, retries).map_err(|error| said(&error))?;
            opened.ok_or_else(|| "is no kind of store".to_owned())
        };
        let meta = runtime.block_on(look(&*open(at_start)?, &path))?;
        Ok(Self { store: open(retries.clone())?, path, name: name.to_owned(), meta, runtime })
    }

    /// Reads all `ranges`, `at_once` at a time, and discards the data.
    ///
    /// # Errors
    /// A range could not be read.
    pub(crate) fn read_ranges(&self, ranges: &[Range<u64>], at_once: usize) -> Result<(), String> {
        let read = |range: Range<u64>| async move {
            let mut buffer = [BytesMut::zeroed((range.end - range.start) as usize)];
            self.fetch(range, &mut buffer).await
        };
        let reads = stream::iter(ranges.iter().cloned().map(Ok)).try_for_each_concurrent(at_once, read);
        self.runtime.block_on(reads)
    }

    /// Fills `buffers` with the bytes of `range`, and zero-fills the rest.
    async fn fetch(&self, range: Range<u64>, buffers: &mut [BytesMut]) -> Result<(), String> {
        // According to the protocol, a weak tag never matches; such answers are only compared.
        let tag = self.meta.e_tag.clone().filter(|tag| !tag.starts_with("W/"));
        let options = GetOptions { range: Some(range.clone().into()), if_match: tag, ..GetOptions::default() };
        let answer = self.store.get_opts(&self.path, options).await.map_err(|error| said(&error))?;
        let (was, is) = (&self.meta, &answer.meta);
        let is_same_time = was.e_tag.is_some() || was.last_modified == is.last_modified;
        if was.size != is.size || was.e_tag != is.e_tag || !is_same_time {
            return Err("has changed since the start".to_owned());
        }
        let mut slots = buffers.iter_mut().map(|buffer| &mut buffer[..]);
        let mut slot: &mut [u8] = &mut [];
        let mut missing = range.end - range.start;
        let mut parts = answer.into_stream();
        while let Some(part) = parts.try_next().await.map_err(|error| said(&error))? {
            missing = missing.checked_sub(part.len() as u64).ok_or("the answer is too long")?;
            let mut part = &part[..];
            while !part.is_empty() {
                if slot.is_empty() {
                    slot = slots.next().ok_or("the answer is too long")?;
                }
                let count = part.len().min(slot.len());
                let (now, later) = std::mem::take(&mut slot).split_at_mut(count);
                now.copy_from_slice(&part[..count]);
                (part, slot) = (&part[count..], later);
            }
        }
        if missing > 0 {
            return Err(format!("the answer is short by {}", Bytes(missing)));
        }
        slot.fill(0);
        slots.for_each(|slot| slot.fill(0));
        Ok(())
    }
}

/// The key of a store's object. The crate drops leading and trailing slashes and would read another object.
fn key_path(key: &str) -> Result<Path, String> {
    let plain = key.replace("%2F", "/").replace("%2f", "/");
    if plain.starts_with('/') || plain.ends_with('/') || plain.contains("//") {
        return Err("has a key that begins or ends with a slash or has two in a row, which cannot be read".to_owned());
    }
    Path::from_url_path(key).map_err(|error| said(&error.into()))
}

/// Size and version of an object, from a read of its first byte. Some servers refuse HEAD, so it is sent only if there
/// is no first byte or no range support.
async fn look(store: &dyn ObjectStore, path: &Path) -> Result<ObjectMeta, String> {
    let first = GetOptions { range: Some((0..1).into()), ..GetOptions::default() };
    let refused = match store.get_opts(path, first).await {
        Ok(answer) => {
            let meta = answer.meta.clone();
            match answer.bytes().await {
                Ok(bytes) if bytes.len() == 1 => return Ok(meta),
                Ok(bytes) => format!("the answer has {} in place of one byte", Bytes(bytes.len() as u64)),
                Err(error) => said(&error),
            }
        }
        Err(error) => said(&error),
    };
    match store.head(path).await {
        Ok(meta) if meta.size == 0 => Ok(meta),
        Ok(_) => Err(format!("does not answer range requests: {refused}")),
        Err(_) => Err(refused),
    }
}

impl Backing for ObjectBacking {
    fn about(&self) -> About {
        let ObjectMeta { size, e_tag, last_modified, .. } = &self.meta;
        // The entity tag, or else the time of the last change, which is 1970 if the server reports none.
        let time = (last_modified.timestamp() != 0).then(|| last_modified.timestamp_millis().to_string());
        let identity = e_tag.clone().or(time).map(|version| format!("object {} {size} {version}", self.name));
        // Stores have a high latency and high concurrency, and a probe would cost money.
        let read_ahead_bytes = Some(WINDOW_BYTES_MAX);
        About { read_ahead_bytes, fails_in_parts: false, identity, ..About::of(*size) }
    }

    fn read(&self, offset: u64, buffers: &mut [BytesMut]) -> io::Result<()> {
        let end = self.meta.size.min(offset + length_of(buffers) as u64);
        self.runtime.block_on(self.fetch(offset..end, buffers)).map_err(io::Error::other)
    }
}
