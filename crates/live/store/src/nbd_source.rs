//! An export of an NBD server as a source of one object, which has the export's name.
//!
//! An export has no version: its content is taken as it was at the start, so that nothing in a spill outlasts the store.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::{self, BoxStream};
use futures_util::StreamExt;
use headstart_nbd::client::{ClientError, Reconnecting, DISK_LIMITS};
use object_store::path::Path;
use object_store::{
    Attributes, CopyOptions, Error, Extensions, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

/// The schemes of its names.
pub const SCHEMES: [&str; 4] = ["nbd", "nbds", "nbd+unix", "nbds+unix"];
/// The name of the object if the export has none.
const UNNAMED: &str = "disk";
/// Most bytes of one request, besides those to the limits of the server's blocks.
const PART_BYTES: u64 = 1 << 20;

/// An export.
pub struct NbdSource(Arc<Export>);

struct Export {
    upstream: Reconnecting,
    meta: ObjectMeta,
}

impl NbdSource {
    /// Connects to `name`.
    ///
    /// # Errors
    /// It is no NBD URI, there is no such server or export, or the export's name cannot be a key.
    pub fn connect(name: &str) -> Result<Self> {
        let uri: headstart_nbd::Uri = name.parse().map_err(failed)?;
        let location = Path::parse(if uri.export.is_empty() { UNNAMED } else { &uri.export }).map_err(failed)?;
        let upstream = Reconnecting::connect(uri, DISK_LIMITS).map_err(failed)?;
        let (size, last_modified) = (upstream.size_bytes(), now().into());
        let meta = ObjectMeta { location, last_modified, size, e_tag: None, version: None };
        Ok(Self(Arc::new(Export { upstream, meta })))
    }

    fn found(&self, location: &Path) -> Result<ObjectMeta> {
        let is_ours = *location == self.0.meta.location;
        is_ours.then(|| self.0.meta.clone()).ok_or_else(|| Error::NotFound {
            path: location.to_string(),
            source: "the server has another export".into(),
        })
    }

    fn is_below(&self, prefix: Option<&Path>) -> bool {
        prefix.is_none_or(|prefix| self.0.meta.location.prefix_matches(prefix))
    }
}

impl Export {
    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        let read = self.upstream.client().and_then(|client| client.read_range(range));
        read.map(Bytes::from).map_err(|error| match error {
            ClientError::Resized => {
                Error::Precondition { path: self.meta.location.to_string(), source: Box::new(error) }
            }
            error => failed(error),
        })
    }
}

#[expect(clippy::disallowed_methods, reason = "it is what distinguishes this run from others, and is compared only")]
fn now() -> SystemTime {
    SystemTime::now()
}

fn failed(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::Generic { store: "NBD", source: Box::new(error) }
}

/// The bytes of `range`, a request after another.
fn parts(export: Arc<Export>, range: Range<u64>) -> BoxStream<'static, Result<Bytes>> {
    let next = move |at: u64| {
        let (export, end) = (export.clone(), range.end);
        async move {
            if at >= end {
                return Ok(None);
            }
            let next = end.min(at + PART_BYTES);
            let read = tokio::task::spawn_blocking(move || export.read(at..next)).await.map_err(failed)??;
            Ok(Some((read, next)))
        }
    };
    stream::try_unfold(range.start, next).boxed()
}

#[async_trait]
impl ObjectStore for NbdSource {
    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let meta = self.found(location)?;
        let range = match &options.range {
            _ if options.head => 0..0,
            None => 0..meta.size,
            Some(range) => range.as_range(meta.size).map_err(failed)?,
        };
        let payload = GetResultPayload::Stream(parts(self.0.clone(), range.clone()));
        let (attributes, extensions) = (Attributes::default(), Extensions::default());
        Ok(GetResult { payload, meta, range, attributes, extensions })
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        stream::iter(self.is_below(prefix).then(|| Ok(self.0.meta.clone()))).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let objects = self.is_below(prefix).then(|| self.0.meta.clone()).into_iter().collect();
        Ok(ListResult { objects, common_prefixes: Vec::new(), extensions: Extensions::default() })
    }

    async fn put_opts(&self, _: &Path, _: PutPayload, _: PutOptions) -> Result<PutResult> {
        Err(read_only("put"))
    }

    async fn put_multipart_opts(&self, _: &Path, _: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        Err(read_only("put"))
    }

    fn delete_stream(&self, _: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        stream::iter([Err(read_only("delete"))]).boxed()
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        Err(read_only("copy"))
    }
}

fn read_only(operation: &str) -> Error {
    Error::NotImplemented { operation: operation.to_owned(), implementer: "a source, which is only read".to_owned() }
}

impl fmt::Display for NbdSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "NBD export {}", self.0.meta.location)
    }
}

impl fmt::Debug for NbdSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{self}")
    }
}
