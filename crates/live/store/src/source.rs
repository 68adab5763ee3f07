//! Where objects come from: a bucket, a folder, a web server or an NBD server, through the crate `object_store`, which signs requests,
//! finds credentials and repeats what fails.
//!
//! Keys are those of the bucket; of a folder, paths below it. An object is identified by its entity tag, or without one
//! by its size and its time of change. A read of an object that is no longer the same fails.

use std::error::Error as _;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::TryStreamExt;
use headstart_types::{printable, without_credentials, KeyError};
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::http::HttpBuilder;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    BackoffConfig, ClientConfigKey, Error, GetOptions, ObjectMeta, ObjectStore, ObjectStoreExt, RetryConfig,
};

use crate::failure::Failure;
use crate::nbd_source::{NbdSource, SCHEMES};

/// The forms of a source's name.
pub const FORMS: &str =
    "s3://BUCKET[/PREFIX], gs://BUCKET[/PREFIX], az://CONTAINER[/PREFIX], https://HOST/PATH/, nbd://HOST/EXPORT, a folder";
/// Hosts that provide credentials in a cloud: used only if the environment has none.
const METADATA_SERVERS: [&str; 2] = ["169.254.169.254", "metadata.google.internal"];
/// Maximum number of characters shown of a server's message.
const MESSAGE_CHARS_MAX: usize = 200;

/// How long a request is repeated.
#[must_use]
pub fn patience() -> RetryConfig {
    let backoff = BackoffConfig {
        init_backoff: Duration::from_millis(100),
        max_backoff: Duration::from_secs(5),
        ..BackoffConfig::default()
    };
    RetryConfig { backoff, max_retries: 10, retry_timeout: Duration::from_secs(30) }
}

/// What identifies an object and its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meta {
    pub key: String,
    pub size: u64,
    pub e_tag: Option<String>,
    /// Milliseconds since 1970.
    pub modified_ms: i64,
}

impl Meta {
    fn of(meta: ObjectMeta) -> Self {
        let modified_ms = meta.last_modified.timestamp_millis();
        // Some servers list an empty tag for what has none.
        let e_tag = meta.e_tag.filter(|tag| !tag.is_empty());
        Self { key: meta.location.to_string(), size: meta.size, e_tag, modified_ms }
    }

    /// The version of the content, in words: the same as long as nothing has changed.
    #[must_use]
    pub fn version(&self) -> String {
        self.e_tag.clone().unwrap_or_else(|| format!("{} bytes of {}", self.size, self.modified_ms))
    }

    /// Whether both are of the same content.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.size == other.size
            && self.e_tag == other.e_tag
            && (self.e_tag.is_some() || self.modified_ms == other.modified_ms)
    }
}

/// What a listing gives: objects, and with a delimiter the prefixes below.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    pub objects: Vec<Meta>,
    /// With a slash at the end.
    pub prefixes: Vec<String>,
}

/// A bucket, a folder or a web server.
pub struct Source {
    store: Arc<dyn ObjectStore>,
    /// The name in messages, without credentials.
    name: String,
    bucket: String,
    prefix: String,
    /// A folder of this machine.
    is_local: bool,
}

impl Source {
    /// Opens `name`, one of [`FORMS`]. Nothing is requested yet.
    ///
    /// # Errors
    /// The name has another form, there is no such folder, or the environment's settings are wrong.
    pub fn open(name: &str) -> Result<Self, KeyError> {
        let refused = |problem: String, allowed: &str| {
            KeyError::new("source", format!("{}: {problem}", printable(&without_credentials(name))), allowed)
        };
        // Fails if a provider is installed already, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let Some((scheme, rest)) = name.split_once("://").filter(|(scheme, _)| *scheme != "file") else {
            let path = PathBuf::from(name.strip_prefix("file://").unwrap_or(name));
            let path = path.canonicalize().map_err(|error| refused(headstart_types::system_says(&error), FORMS))?;
            if !path.is_dir() {
                return Err(refused("is no folder".to_owned(), FORMS));
            }
            let bucket = path.file_name().map_or("root".into(), |name| name.to_string_lossy().into_owned());
            let store = LocalFileSystem::new_with_prefix(&path).map_err(|error| refused(said(&error), FORMS))?;
            let (name, prefix) = (path.display().to_string(), String::new());
            return Ok(Self { store: Arc::new(store), name, bucket, prefix, is_local: true });
        };
        if SCHEMES.contains(&scheme) {
            let store =
                NbdSource::connect(name).map_err(|error| refused(said(&error), "a server that can be reached"))?;
            let (name, prefix) = (without_credentials(name), String::new());
            return Ok(Self { store: Arc::new(store), name, bucket: "nbd".to_owned(), prefix, is_local: false });
        }
        if rest.contains(['?', '#']) || rest.split('/').next().is_some_and(|place| place.contains('@')) {
            return Err(refused("has a query, a fragment or a password".to_owned(), FORMS));
        }
        let (place, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if place.is_empty() {
            return Err(refused("names no bucket".to_owned(), FORMS));
        }
        let is_web = scheme.starts_with("http");
        let store = open_store(scheme, place, name, patience()).map_err(|error| refused(said(&error), FORMS))?;
        let store = store.ok_or_else(|| refused("is no kind of source".to_owned(), FORMS))?;
        let prefix = if is_web { String::new() } else { prefix.trim_end_matches('/').to_owned() };
        let prefix = if prefix.is_empty() { prefix } else { prefix + "/" };
        let (store, name) = (store.into(), without_credentials(name));
        Ok(Self { store, name, bucket: place.to_owned(), prefix, is_local: false })
    }

    /// A source of any store, for tests.
    #[must_use]
    pub fn of(store: Arc<dyn ObjectStore>) -> Self {
        Self { store, name: "memory".to_owned(), bucket: "memory".to_owned(), prefix: String::new(), is_local: false }
    }

    /// The name for messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The bucket, the folder's own name or the web server.
    #[must_use]
    pub fn bucket(&self) -> &str {
        &self.bucket
    }

    /// What all keys begin with, empty or with a slash at the end.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    fn path(&self, key: &str) -> Result<Path, Failure> {
        if !key.starts_with(&self.prefix) {
            return Err(Failure::NotFound(key.to_owned()));
        }
        Path::parse(key).map_err(|_| Failure::Invalid(format!("{}: no key that can be read", printable(key))))
    }

    fn failed(&self, key: &str, error: &Error) -> Failure {
        match error {
            Error::NotFound { .. } => Failure::NotFound(key.to_owned()),
            Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
                Failure::Denied(format!("{}: {}", printable(key), said(error)))
            }
            Error::Precondition { .. } => Failure::Changed(key.to_owned()),
            _ => Failure::Source(format!("{}: {}", printable(key), said(error))),
        }
    }

    /// What is known of an object.
    ///
    /// # Errors
    /// There is none, or the source fails.
    pub async fn head(&self, key: &str) -> Result<Meta, Failure> {
        let path = self.path(key)?;
        let failed = |error| self.failed(key, &error);
        match self.store.head(&path).await {
            Ok(meta) => Ok(Meta { key: key.to_owned(), ..Meta::of(meta) }),
            // Some servers refuse HEAD: the first byte tells as much.
            Err(Error::NotFound { .. }) => Err(Failure::NotFound(key.to_owned())),
            Err(_) => {
                let first = GetOptions { range: Some((0..1).into()), ..GetOptions::default() };
                let answer = self.store.get_opts(&path, first).await.map_err(failed)?;
                Ok(Meta { key: key.to_owned(), ..Meta::of(answer.meta) })
            }
        }
    }

    /// The objects whose keys begin with `prefix`; `is_flat`: only up to the next slash.
    ///
    /// # Errors
    /// The source fails, or lists nothing (a web server).
    pub async fn list(&self, prefix: &str, is_flat: bool) -> Result<Listing, Failure> {
        // The crate lists by whole components of a path: list the folder and keep what matches.
        let folder = prefix.rsplit_once('/').map_or("", |(folder, _)| folder);
        let path = if folder.is_empty() { None } else { Some(self.path_of_folder(folder)?) };
        let failed = |error| self.failed(prefix, &error);
        let found = if is_flat {
            let found = self.store.list_with_delimiter(path.as_ref()).await.map_err(failed)?;
            let prefixes = found.common_prefixes.iter().map(|path| format!("{path}/")).collect();
            Listing { objects: found.objects.into_iter().map(Meta::of).collect(), prefixes }
        } else {
            let objects: Vec<ObjectMeta> = self.store.list(path.as_ref()).try_collect().await.map_err(failed)?;
            Listing { objects: objects.into_iter().map(Meta::of).collect(), prefixes: Vec::new() }
        };
        let mut found = found;
        let is_ours = |key: &str| key.starts_with(prefix) && key.starts_with(&self.prefix);
        found.objects.retain(|object| is_ours(&object.key));
        found
            .prefixes
            .retain(|each| each.starts_with(prefix) && (is_ours(each) || self.prefix.starts_with(each.as_str())));
        found.objects.sort_by(|one, other| one.key.cmp(&other.key));
        found.prefixes.sort();
        Ok(found)
    }

    fn path_of_folder(&self, folder: &str) -> Result<Path, Failure> {
        Path::parse(folder)
            .map_err(|_| Failure::Invalid(format!("{}: no prefix that can be listed", printable(folder))))
    }

    /// Reads `range` of an object and passes its bytes on in order, at first none, when the answer begins; returns what is
    /// known of the object. `known`: what it was found to be before.
    ///
    /// # Errors
    /// The object is gone or has changed, or the source fails or answers with too few or too many bytes.
    pub async fn get(
        &self,
        key: &str,
        known: Option<&Meta>,
        range: Range<u64>,
        mut sink: impl FnMut(u64, &Bytes),
    ) -> Result<Meta, Failure> {
        // According to the protocol, a weak tag never matches; such answers are only compared.
        let tag = known.and_then(|known| known.e_tag.clone()).filter(|tag| !tag.starts_with("W/"));
        let options = GetOptions { range: Some(range.clone().into()), if_match: tag, ..GetOptions::default() };
        let answer = self.store.get_opts(&self.path(key)?, options).await.map_err(|error| self.failed(key, &error))?;
        let found = Meta { key: key.to_owned(), ..Meta::of(answer.meta.clone()) };
        if known.is_some_and(|known| !known.is_same(&found)) {
            return Err(Failure::Changed(key.to_owned()));
        }
        if range.end > found.size {
            return Err(beyond(key, &range, found.size));
        }
        sink(range.start, &Bytes::new());
        let (mut at, mut parts) = (range.start, answer.into_stream());
        while let Some(part) = parts.try_next().await.map_err(|error| self.failed(key, &error))? {
            if at + part.len() as u64 > range.end {
                return Err(Failure::Source(format!("{}: the answer is too long", printable(key))));
            }
            // Of a file that has become shorter, there are empty parts without end.
            if part.is_empty() && self.is_local {
                break;
            }
            sink(at, &part);
            at += part.len() as u64;
        }
        if at < range.end {
            return Err(Failure::Source(format!(
                "{}: the answer is short by {} bytes",
                printable(key),
                range.end - at
            )));
        }
        Ok(found)
    }
}

/// A range that ends after its object.
pub(crate) fn beyond(key: &str, range: &Range<u64>, size: u64) -> Failure {
    Failure::Invalid(format!("{}: bytes {} to {} of {size}", printable(key), range.start, range.end))
}

/// The store of `scheme`, with credentials and options of the environment; `None` if there is no such scheme. `place` is
/// the bucket; a web server takes the whole `name`.
///
/// # Errors
/// The environment's settings are wrong.
pub fn open_store(
    scheme: &str,
    place: &str,
    name: &str,
    retries: RetryConfig,
) -> Result<Option<Box<dyn ObjectStore>>, Error> {
    let client = ClientConfigKey::AllowHttp;
    Ok(Some(match scheme {
        "s3" => {
            let builder = AmazonS3Builder::from_env().with_bucket_name(place).with_retry(retries);
            Box::new(builder.with_allow_http(true).build()?)
        }
        "gs" => {
            let builder = GoogleCloudStorageBuilder::from_env().with_bucket_name(place).with_retry(retries);
            Box::new(builder.with_config(GoogleConfigKey::Client(client), "true").build()?)
        }
        "az" => {
            let builder = MicrosoftAzureBuilder::from_env().with_container_name(place).with_retry(retries);
            Box::new(builder.with_allow_http(true).build()?)
        }
        "http" | "https" => {
            let builder = HttpBuilder::new().with_url(name).with_retry(retries);
            Box::new(builder.with_config(client, "true").build()?)
        }
        _ => return Ok(None),
    }))
}

/// The innermost reason, in one line.
#[must_use]
pub fn said(error: &Error) -> String {
    let mut reasons = vec![error.to_string()];
    let mut inner = error.source();
    while let Some(reason) = inner {
        reasons.push(reason.to_string());
        inner = reason.source();
    }
    let innermost = reasons.last().map(String::as_str).unwrap_or_default();
    let innermost: Vec<&str> = innermost.split_whitespace().collect();
    let innermost: String = innermost.join(" ").chars().take(MESSAGE_CHARS_MAX).collect();
    match error {
        Error::NotFound { .. } => "there is no such object (404)".to_owned(),
        Error::PermissionDenied { .. } => "access is denied (403)".to_owned(),
        Error::Unauthenticated { .. } => "the credentials are missing or wrong (401)".to_owned(),
        Error::Precondition { .. } => "has changed since the start (412)".to_owned(),
        _ if METADATA_SERVERS.iter().any(|server| reasons.iter().any(|reason| reason.contains(server))) => {
            format!("the environment has no credentials, and no cloud gives any ({innermost})")
        }
        _ => innermost,
    }
}
