//! The operations of S3 that read. All others answer `NotImplemented`, which is what the crate does by default.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use hyper::header::{HeaderValue, CONTENT_RANGE, CONTENT_TYPE, ETAG};
use hyper::{HeaderMap, StatusCode};
use s3s::dto::{
    Bucket as BucketEntry, CommonPrefix, ETag, ETagCondition, GetBucketLocationInput, GetBucketLocationOutput,
    GetObjectInput, GetObjectOutput, HeadBucketInput, HeadBucketOutput, HeadObjectInput, HeadObjectOutput,
    ListBucketsInput, ListBucketsOutput, ListObjectsInput, ListObjectsOutput, ListObjectsV2Input, ListObjectsV2Output,
    Object, ObjectStorageClass, StreamingBlob, Timestamp,
};
use s3s::{s3_error, Body, S3Error, S3Request, S3Response, S3Result, S3};

use crate::failure::Failure;
use crate::source::Meta;
use crate::store::Store;

use super::body::Reader;
use super::listing::{decode, encode, page, Asked, Page};

const ENTRIES_MAX: i32 = 1000;
const REGION: &str = "us-east-1";
const TYPE: &str = "application/octet-stream";

/// The store as a bucket.
#[derive(Clone)]
pub struct Bucket {
    reader: Arc<Reader>,
}

impl From<Failure> for S3Error {
    fn from(failure: Failure) -> Self {
        let said = failure.to_string();
        match failure {
            Failure::NotFound(_) => s3_error!(NoSuchKey, "{said}"),
            Failure::Denied(_) => s3_error!(AccessDenied, "{said}"),
            Failure::Changed(_) => s3_error!(PreconditionFailed, "{said}"),
            Failure::Invalid(_) => s3_error!(InvalidRequest, "{said}"),
            Failure::Full(_) => s3_error!(SlowDown, "{said}"),
            Failure::Source(_) => s3_error!(ServiceUnavailable, "{said}"),
        }
    }
}

fn tag(meta: &Meta) -> ETag {
    let given = meta.e_tag.as_deref().and_then(|tag| tag.parse().ok());
    given.unwrap_or_else(|| ETag::Strong(format!("{:x}-{:x}", meta.size, meta.modified_ms)))
}

/// Before 1970, 1970.
fn time(modified_ms: i64) -> Timestamp {
    let since = Duration::from_millis(u64::try_from(modified_ms).unwrap_or_default());
    UNIX_EPOCH.checked_add(since).unwrap_or(UNIX_EPOCH).into()
}

fn size(bytes: u64) -> Option<i64> {
    i64::try_from(bytes).ok()
}

/// What a request of an object says besides its key.
struct Conditions {
    if_match: Option<ETagCondition>,
    if_none_match: Option<ETagCondition>,
    if_modified_since: Option<Timestamp>,
    if_unmodified_since: Option<Timestamp>,
    version: Option<String>,
    part: Option<i32>,
    range: Option<s3s::dto::Range>,
}

/// The condition's fields of an input.
macro_rules! conditions {
    ($input:expr) => {
        Conditions {
            if_match: $input.if_match,
            if_none_match: $input.if_none_match,
            if_modified_since: $input.if_modified_since,
            if_unmodified_since: $input.if_unmodified_since,
            version: $input.version_id,
            part: $input.part_number,
            range: $input.range,
        }
    };
}

/// What is answered for an object.
struct Answer {
    meta: Arc<Meta>,
    range: Range<u64>,
    is_part: bool,
}

impl Answer {
    fn of(meta: Arc<Meta>, conditions: Conditions) -> S3Result<Self> {
        if conditions.version.is_some_and(|version| version != "null") {
            return Err(s3_error!(NoSuchVersion));
        }
        if conditions.part.is_some_and(|part| part != 1) {
            return Err(s3_error!(InvalidPart, "objects have one part"));
        }
        let has = |condition: &ETagCondition| condition.as_etag().is_none_or(|known| known.weak_cmp(&tag(&meta)));
        // Times of HTTP have whole seconds.
        let changed = time(meta.modified_ms / 1000 * 1000);
        let is_as_expected = match (&conditions.if_match, &conditions.if_unmodified_since) {
            (Some(expected), _) => has(expected),
            (None, Some(time)) => changed <= *time,
            (None, None) => true,
        };
        if !is_as_expected {
            return Err(s3_error!(PreconditionFailed, "the object has changed"));
        }
        let is_unchanged = match (&conditions.if_none_match, &conditions.if_modified_since) {
            (Some(known), _) => has(known),
            (None, Some(time)) => changed <= *time,
            (None, None) => false,
        };
        if is_unchanged {
            return Err(unchanged(&meta));
        }
        let range = match &conditions.range {
            None => 0..meta.size,
            Some(range) if meta.size > 0 => range.check(meta.size).map_err(|_| beyond(meta.size))?,
            Some(_) => return Err(beyond(0)),
        };
        Ok(Self { meta, range, is_part: conditions.range.is_some() })
    }

    fn content_range(&self) -> Option<String> {
        let Range { start, end } = self.range;
        self.is_part.then(|| format!("bytes {start}-{}/{}", end - 1, self.meta.size))
    }
}

fn beyond(size: u64) -> S3Error {
    let mut error = s3_error!(InvalidRange, "the object has {size} bytes");
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
    headers.extend(HeaderValue::try_from(format!("bytes */{size}")).map(|value| (CONTENT_RANGE, value)));
    error.set_headers(headers);
    error
}

/// The client has it as it is.
fn unchanged(meta: &Meta) -> S3Error {
    let mut error = s3_error!(NotModified);
    error.set_status_code(StatusCode::NOT_MODIFIED);
    error.set_headers(tag(meta).to_http_header().map(|tag| (ETAG, tag)).into_iter().collect());
    error
}

/// What both kinds of listing ask.
struct List {
    prefix: String,
    delimiter: Option<String>,
    after: String,
    entries_max: i32,
    is_encoded: bool,
}

impl List {
    fn name(&self, name: &str) -> String {
        if self.is_encoded {
            encode(name)
        } else {
            name.to_owned()
        }
    }

    fn objects(&self, page: &Page) -> Vec<Object> {
        let object = |meta: &Meta| Object {
            e_tag: Some(tag(meta)),
            key: Some(self.name(&meta.key)),
            last_modified: Some(time(meta.modified_ms)),
            size: size(meta.size),
            storage_class: Some(ObjectStorageClass::from_static(ObjectStorageClass::STANDARD)),
            ..Object::default()
        };
        page.objects.iter().map(object).collect()
    }

    fn prefixes(&self, page: &Page) -> Vec<CommonPrefix> {
        page.prefixes.iter().map(|prefix| CommonPrefix { prefix: Some(self.name(prefix)) }).collect()
    }
}

impl Bucket {
    pub fn new(store: Arc<Store>) -> Self {
        Self { reader: Arc::new(Reader::new(store)) }
    }

    fn store(&self) -> &Arc<Store> {
        &self.reader.store
    }

    fn check(&self, bucket: &str) -> S3Result<()> {
        let own = self.store().source().bucket();
        if bucket == own {
            return Ok(());
        }
        Err(s3_error!(NoSuchBucket, "this store has the bucket {own}"))
    }

    async fn object(&self, bucket: &str, key: &str, conditions: Conditions) -> S3Result<Answer> {
        self.check(bucket)?;
        // The source takes such a name for one without the slashes.
        if key.starts_with('/') || key.ends_with('/') {
            return Err(Failure::NotFound(key.to_owned()).into());
        }
        let meta = self.store().head(key).await.map_err(|failure| match failure {
            // No object has such a key.
            Failure::Invalid(_) => Failure::NotFound(key.to_owned()),
            other => other,
        })?;
        Answer::of(meta, conditions)
    }

    async fn list(&self, bucket: &str, list: &List) -> S3Result<Page> {
        self.check(bucket)?;
        let entries_max = list.entries_max.min(ENTRIES_MAX);
        let entries_max =
            usize::try_from(entries_max).map_err(|_| s3_error!(InvalidArgument, "max-keys is negative"))?;
        if entries_max == 0 {
            return Ok(Page::default());
        }
        let delimiter = list.delimiter.as_deref().filter(|delimiter| !delimiter.is_empty());
        let asked = Asked { prefix: &list.prefix, delimiter, after: &list.after, entries_max };
        Ok(page(self.store(), &asked).await?)
    }
}

#[async_trait::async_trait]
impl S3 for Bucket {
    async fn get_object(&self, request: S3Request<GetObjectInput>) -> S3Result<S3Response<GetObjectOutput>> {
        let input = request.input;
        let found = self.object(&input.bucket, &input.key, conditions!(input)).await?;
        let Range { start, end } = found.range;
        let body = self.reader.read(&found.meta.key, start, end).await?;
        Ok(S3Response::new(GetObjectOutput {
            accept_ranges: Some("bytes".to_owned()),
            body: Some(StreamingBlob::from(Body::http_body(body))),
            content_length: size(end - start),
            content_range: found.content_range(),
            content_type: Some(TYPE.to_owned()),
            e_tag: Some(tag(&found.meta)),
            last_modified: Some(time(found.meta.modified_ms)),
            ..GetObjectOutput::default()
        }))
    }

    async fn head_object(&self, request: S3Request<HeadObjectInput>) -> S3Result<S3Response<HeadObjectOutput>> {
        let input = request.input;
        let found = self.object(&input.bucket, &input.key, conditions!(input)).await?;
        Ok(S3Response::new(HeadObjectOutput {
            accept_ranges: Some("bytes".to_owned()),
            content_length: size(found.range.end - found.range.start),
            content_range: found.content_range(),
            content_type: Some(TYPE.to_owned()),
            e_tag: Some(tag(&found.meta)),
            last_modified: Some(time(found.meta.modified_ms)),
            ..HeadObjectOutput::default()
        }))
    }

    async fn list_objects_v2(
        &self,
        request: S3Request<ListObjectsV2Input>,
    ) -> S3Result<S3Response<ListObjectsV2Output>> {
        let input = request.input;
        let after = match &input.continuation_token {
            Some(token) => decode(token).ok_or_else(|| s3_error!(InvalidArgument, "no such continuation token"))?,
            None => input.start_after.clone().unwrap_or_default(),
        };
        let list = List {
            prefix: input.prefix.unwrap_or_default(),
            delimiter: input.delimiter,
            after,
            entries_max: input.max_keys.unwrap_or(ENTRIES_MAX),
            is_encoded: input.encoding_type.is_some(),
        };
        let page = self.list(&input.bucket, &list).await?;
        let (objects, prefixes) = (list.objects(&page), list.prefixes(&page));
        Ok(S3Response::new(ListObjectsV2Output {
            name: Some(input.bucket),
            prefix: Some(list.name(&list.prefix)),
            delimiter: list.delimiter.as_deref().map(|delimiter| list.name(delimiter)),
            start_after: input.start_after.map(|after| list.name(&after)),
            continuation_token: input.continuation_token,
            max_keys: Some(list.entries_max),
            key_count: i32::try_from(objects.len() + prefixes.len()).ok(),
            is_truncated: Some(page.next.is_some()),
            next_continuation_token: page.next.as_deref().map(encode),
            contents: Some(objects),
            common_prefixes: Some(prefixes),
            encoding_type: input.encoding_type,
            ..ListObjectsV2Output::default()
        }))
    }

    async fn list_objects(&self, request: S3Request<ListObjectsInput>) -> S3Result<S3Response<ListObjectsOutput>> {
        let input = request.input;
        let list = List {
            prefix: input.prefix.unwrap_or_default(),
            delimiter: input.delimiter,
            after: input.marker.clone().unwrap_or_default(),
            entries_max: input.max_keys.unwrap_or(ENTRIES_MAX),
            is_encoded: input.encoding_type.is_some(),
        };
        let page = self.list(&input.bucket, &list).await?;
        Ok(S3Response::new(ListObjectsOutput {
            name: Some(input.bucket),
            prefix: Some(list.name(&list.prefix)),
            delimiter: list.delimiter.as_deref().map(|delimiter| list.name(delimiter)),
            marker: input.marker.map(|marker| list.name(&marker)),
            max_keys: Some(list.entries_max),
            is_truncated: Some(page.next.is_some()),
            next_marker: page.next.as_deref().map(|next| list.name(next)),
            contents: Some(list.objects(&page)),
            common_prefixes: Some(list.prefixes(&page)),
            encoding_type: input.encoding_type,
            ..ListObjectsOutput::default()
        }))
    }

    async fn list_buckets(&self, _: S3Request<ListBucketsInput>) -> S3Result<S3Response<ListBucketsOutput>> {
        let name = Some(self.store().source().bucket().to_owned());
        let bucket = BucketEntry { name, creation_date: Some(Timestamp::default()), ..BucketEntry::default() };
        Ok(S3Response::new(ListBucketsOutput { buckets: Some(vec![bucket]), ..ListBucketsOutput::default() }))
    }

    async fn head_bucket(&self, request: S3Request<HeadBucketInput>) -> S3Result<S3Response<HeadBucketOutput>> {
        self.check(&request.input.bucket)?;
        Ok(S3Response::new(HeadBucketOutput { bucket_region: Some(REGION.to_owned()), ..HeadBucketOutput::default() }))
    }

    /// No location is S3's word for its first region.
    async fn get_bucket_location(
        &self,
        request: S3Request<GetBucketLocationInput>,
    ) -> S3Result<S3Response<GetBucketLocationOutput>> {
        self.check(&request.input.bucket)?;
        Ok(S3Response::new(GetBucketLocationOutput::default()))
    }
}
