//! The S3 door in front of a folder, with a client that signs and one that sends what it likes.
#![expect(clippy::disallowed_methods, reason = "a test gives up after a time")]

mod clients;

use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::TryStreamExt;
use headstart_host::testing::Machine;
use headstart_store::{s3, Limits, Shelf, Source, Store};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path;
use object_store::signer::Signer;
use object_store::{Error, GetOptions, GetRange, ObjectStore, ObjectStoreExt, RetryConfig};
use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use reqwest::{Method, StatusCode};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinHandle;

const BUCKET: &str = "Some_objects";
const MIB: u64 = 1 << 20;

fn contents(key: &str, bytes: usize) -> Vec<u8> {
    let seed = key.bytes().fold(bytes as u64, |seed, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte)));
    let mut contents = vec![0; bytes];
    ChaCha8Rng::seed_from_u64(seed).fill_bytes(&mut contents);
    contents
}

/// A folder, a store in front of it, and its door.
struct Door {
    runtime: Runtime,
    folder: Machine,
    store: Arc<Store>,
    address: SocketAddr,
    stop: watch::Sender<bool>,
    served: Option<JoinHandle<()>>,
}

impl Door {
    fn new(memory_bytes: u64, keys: Option<(&str, &str)>, objects: &[(&str, usize)]) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("threads");
        let folder = Machine::new();
        fs::create_dir(folder.path(BUCKET)).expect("there is room");
        for (key, bytes) in objects {
            put(&folder, key, &contents(key, *bytes));
        }
        let keys = keys.map(|(id, secret)| (id.to_owned(), secret.to_owned()));
        let (stop, stopped) = watch::channel(false);
        let (store, address, served) = runtime.block_on(async {
            let source = Source::open(folder.path(BUCKET).to_str().expect("a name")).expect("a folder");
            let shelf = Shelf::new(Limits { memory_bytes, spill_bytes: 0, requests: 4 });
            let store = Store::try_new(source, shelf, None, false).expect("memory");
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let address = listener.local_addr().expect("an address");
            (store.clone(), address, tokio::spawn(s3::serve(listener, store, keys, None, stopped)))
        });
        Self { runtime, folder, store, address, stop, served: Some(served) }
    }

    fn client(&self, id: &str, secret: &str) -> AmazonS3 {
        let builder = AmazonS3Builder::new().with_endpoint(format!("http://{}", self.address)).with_allow_http(true);
        let builder = builder.with_bucket_name(BUCKET).with_region("us-east-1");
        let retries = RetryConfig { max_retries: 0, ..RetryConfig::default() };
        builder.with_access_key_id(id).with_secret_access_key(secret).with_retry(retries).build().expect("a client")
    }

    fn send(&self, method: Method, path: &str, headers: &[(&str, &str)]) -> Answer {
        let mut request = reqwest::Client::new().request(method, format!("http://{}/{path}", self.address));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.runtime.block_on(async {
            let answer = request.send().await.expect("an answer");
            let (status, headers) = (answer.status(), answer.headers().clone());
            Answer { status, headers, body: answer.bytes().await.expect("a body").to_vec() }
        })
    }

    fn get(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.send(Method::GET, &format!("{BUCKET}/{path}"), headers)
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let Some(served) = self.served.take() {
            self.runtime.block_on(served).expect("no panic");
        }
    }
}

/// Writes an object in one step: requests under way read the former one to its end.
fn put(folder: &Machine, key: &str, contents: &[u8]) {
    let path = folder.path(BUCKET).join(key);
    fs::create_dir_all(path.parent().expect("a folder")).expect("there is room");
    fs::write(folder.path("new"), contents).expect("there is room");
    fs::rename(folder.path("new"), path).expect("there is room");
}

struct Answer {
    status: StatusCode,
    headers: reqwest::header::HeaderMap,
    body: Vec<u8>,
}

impl Answer {
    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("text")
    }

    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("text"))
    }

    /// The status and the text of the first such element.
    fn error(&self) -> (u16, String) {
        (self.status.as_u16(), self.all("Code").first().cloned().unwrap_or_default())
    }

    fn all(&self, element: &str) -> Vec<String> {
        let begin = format!("<{element}>");
        let parts = self.text().split(&begin).skip(1);
        parts.map(|part| part.split("</").next().expect("a text").to_owned()).collect()
    }
}

#[test]
fn a_signing_client_reads_objects_and_ranges() {
    let objects = [("a/small", 300), ("empty", 0), ("large", 20 << 20)];
    // The windows are shorter than the large object, and the memory too.
    let door = Door::new(16 * MIB, Some(("id", "secret")), &objects);
    let client = door.client("id", "secret");
    door.runtime.block_on(async {
        for (key, bytes) in objects {
            let expected = contents(key, bytes);
            let answer = client.get(&Path::from(key)).await.expect("it is there");
            assert_eq!(answer.meta.size, bytes as u64);
            assert!(answer.meta.e_tag.is_some());
            assert!(answer.bytes().await.expect("all bytes") == expected, "{key}");
            assert_eq!(client.head(&Path::from(key)).await.expect("it is there").size, bytes as u64);
        }
        let (large, expected) = (Path::from("large"), contents("large", 20 << 20));
        let last = expected.len() as u64;
        for range in [0..1, last - 1..last, 5 * MIB - 3..9 * MIB + 5, 1..last] {
            let expected = &expected[range.start as usize..range.end as usize];
            assert!(client.get_range(&large, range.clone()).await.expect("a range") == expected, "{range:?}");
        }
        for (range, start) in [(GetRange::Suffix(7), last - 7), (GetRange::Offset(last - 9), last - 9)] {
            let options = GetOptions { range: Some(range), ..GetOptions::default() };
            let answer = client.get_opts(&large, options).await.expect("a range").bytes().await.expect("its bytes");
            assert!(answer == expected[start as usize..]);
        }
    });
}

#[test]
fn a_range_beyond_the_end_is_refused() {
    let door = Door::new(16 * MIB, None, &[("object", 100), ("empty", 0)]);
    for (key, range, size) in [("object", "bytes=100-", 100), ("object", "bytes=-0", 100), ("empty", "bytes=0-0", 0)] {
        let answer = door.get(key, &[("range", range)]);
        assert_eq!(answer.error(), (416, "InvalidRange".to_owned()), "{range}");
        assert_eq!(answer.header("content-range"), format!("bytes */{size}"));
    }
    let answer = door.get("object", &[("range", "bytes=90-1000")]);
    assert_eq!((answer.status.as_u16(), answer.header("content-range")), (206, "bytes 90-99/100"));
    assert_eq!(answer.body, contents("object", 100)[90..]);
}

#[test]
fn what_is_not_one_range_is_ignored() {
    let door = Door::new(16 * MIB, None, &[("object", 100)]);
    for range in ["bytes=0-1,5-6", "bytes=0-1, 5-", "bytes=7-3", "bytes=", "items=0-1", "bytes=a-b"] {
        let answer = door.get("object", &[("range", range)]);
        assert_eq!((answer.status.as_u16(), answer.header("content-range")), (200, ""), "{range}");
        assert_eq!(answer.body, contents("object", 100), "{range}");
        let head = door.send(Method::HEAD, &format!("{BUCKET}/object"), &[("range", range)]);
        assert_eq!((head.status.as_u16(), head.header("content-length")), (200, "100"), "{range}");
    }
    assert_eq!(door.get("none", &[("range", "bytes=0-1,5-6")]).error(), (404, "NoSuchKey".to_owned()));
    // With a key, the signature counts as for any other request.
    let door = Door::new(16 * MIB, Some(("id", "secret")), &[("object", 100)]);
    let ranges = [("range", "bytes=0-1,5-6")];
    assert_eq!(door.get("object", &ranges).error(), (403, "AccessDenied".to_owned()));
    let signed = |secret| {
        let (client, key) = (door.client("id", secret), Path::from("object"));
        let url = client.signed_url(Method::GET, &key, Duration::from_secs(60));
        let url = door.runtime.block_on(url).expect("a URL");
        let path = format!("{}?{}", &url.path()[1..], url.query().expect("a signature"));
        door.send(Method::GET, &path, &ranges)
    };
    assert_eq!(signed("secret").body, contents("object", 100));
    assert_eq!(signed("other").status, 403);
}

#[test]
fn what_is_not_there_is_said_in_the_protocol() {
    let door = Door::new(16 * MIB, None, &[("folder/object", 100)]);
    for key in ["none", "folder", "folder/", "folder/object/", "/folder/object", "folder//object", "folder/../x", "%00"]
    {
        assert_eq!(door.get(key, &[]).error(), (404, "NoSuchKey".to_owned()), "{key}");
    }
    assert_eq!(door.send(Method::GET, "other/object", &[]).error(), (404, "NoSuchBucket".to_owned()));
    assert_eq!(door.send(Method::GET, "other?list-type=2", &[]).error(), (404, "NoSuchBucket".to_owned()));
    assert_eq!(door.send(Method::HEAD, "other", &[]).status, 404);
    assert_eq!(door.send(Method::HEAD, BUCKET, &[]).status, 200);
    assert_eq!(door.send(Method::HEAD, &format!("{BUCKET}/none"), &[]).status, 404);
    assert_eq!(door.get("?acl", &[]).error(), (501, "NotImplemented".to_owned()));
    assert_eq!(door.get("folder/object?versionId=7", &[]).error(), (404, "NoSuchVersion".to_owned()));
    assert_eq!(door.send(Method::GET, "", &[]).all("Name"), [BUCKET]);
    assert!(door.get("?location", &[]).text().contains("LocationConstraint"));
}

#[test]
fn writes_are_refused() {
    let door = Door::new(16 * MIB, None, &[("object", 100)]);
    for method in [Method::PUT, Method::POST, Method::DELETE, Method::PATCH, Method::OPTIONS] {
        for path in ["", "object", "?delete", "object?uploads", "object?select&select-type=2"] {
            let answer = door.send(method.clone(), &format!("{BUCKET}/{path}"), &[]);
            assert_eq!(answer.error(), (403, "AccessDenied".to_owned()), "{method} {path}");
        }
    }
    let client = door.client("id", "secret");
    door.runtime.block_on(async {
        let refused = client.put(&Path::from("object"), vec![1_u8; 3 << 20].into()).await;
        assert!(matches!(refused, Err(Error::PermissionDenied { .. })), "{refused:?}");
        assert!(client.delete(&Path::from("object")).await.is_err());
    });
    assert_eq!(door.get("object", &[]).body, contents("object", 100));
}

#[test]
fn signatures_are_checked_if_there_is_a_key() {
    let door = Door::new(16 * MIB, Some(("id", "secret")), &[("object", 100)]);
    assert_eq!(door.get("object", &[]).error(), (403, "AccessDenied".to_owned()));
    assert_eq!(door.send(Method::GET, "", &[]).error(), (403, "AccessDenied".to_owned()));
    let path = Path::from("object");
    door.runtime.block_on(async {
        for (id, secret) in [("id", "other"), ("other", "secret")] {
            let refused = door.client(id, secret).get(&path).await;
            assert!(matches!(refused, Err(Error::PermissionDenied { .. })), "{refused:?}");
        }
    });
    let sign = |id: &str, secret: &str| {
        let (client, lasts) = (door.client(id, secret), Duration::from_secs(60));
        let url = door.runtime.block_on(client.signed_url(Method::GET, &path, lasts)).expect("an address");
        url.as_str().split_once(&format!("{}/", door.address)).expect("its path").1.to_owned()
    };
    let signed = sign("id", "secret");
    assert_eq!(door.send(Method::GET, &signed, &[]).body, contents("object", 100));
    let unknown = sign("other", "secret");
    assert_eq!(door.send(Method::GET, &unknown, &[]).error(), (403, "InvalidAccessKeyId".to_owned()));
    let tampered = signed.replace("object?", "objecu?");
    for path in [&sign("id", "other"), &tampered] {
        let refused = door.send(Method::GET, path, &[]);
        assert_eq!(refused.error(), (403, "SignatureDoesNotMatch".to_owned()));
        assert!(!refused.text().contains("secret"));
    }
}

#[test]
fn an_open_door_takes_any_signature() {
    let door = Door::new(16 * MIB, None, &[("object", 100)]);
    let (client, path) = (door.client("any", "thing"), Path::from("object"));
    let url = door.runtime.block_on(async {
        let answer = client.get(&path).await.expect("it is there").bytes().await.expect("its bytes");
        assert!(answer == contents("object", 100));
        client.signed_url(Method::GET, &path, Duration::from_secs(60)).await.expect("an address")
    });
    let signed = url.as_str().split_once(&format!("{}/", door.address)).expect("its path").1;
    assert_eq!(door.send(Method::GET, signed, &[]).body, contents("object", 100));
    assert_eq!(door.get("object", &[("authorization", "AWS any:thing")]).body, contents("object", 100));
}

#[test]
fn a_listing_has_pages_and_folders() {
    let keys: Vec<String> = (0..2300).map(|number| format!("many/{number:04}")).collect();
    let mut objects: Vec<(&str, usize)> = keys.iter().map(|key| (key.as_str(), 3)).collect();
    objects.extend([("a", 1), ("few/x/1", 1), ("few/y", 2), ("z", 1)]);
    let door = Door::new(16 * MIB, None, &objects);
    let client = door.client("any", "thing");
    let all: Vec<String> = door.runtime.block_on(async {
        let found: Vec<_> = client.list(None).try_collect().await.expect("a listing");
        let few = client.list_with_delimiter(Some(&Path::from("few"))).await.expect("a listing");
        assert_eq!(few.common_prefixes, [Path::from("few/x")]);
        assert_eq!(
            few.objects.iter().map(|each| (each.location.as_ref(), each.size)).collect::<Vec<_>>(),
            [("few/y", 2)]
        );
        found.into_iter().map(|meta| meta.location.to_string()).collect()
    });
    let mut expected: Vec<&str> = objects.iter().map(|(key, _)| *key).collect();
    expected.sort_unstable();
    assert_eq!(all, expected);

    let top = door.get("?list-type=2&delimiter=/", &[]);
    assert_eq!((top.all("Key"), top.all("KeyCount")), (vec!["a".to_owned(), "z".into()], vec!["4".to_owned()]));
    assert_eq!(top.all("Prefix")[1..], ["few/", "many/"]);
    let first = door.get("?list-type=2&max-keys=2&start-after=few/y", &[]);
    assert_eq!(first.all("Key"), keys[..2]);
    assert_eq!(first.all("IsTruncated"), ["true"]);
    let token = first.all("NextContinuationToken")[0].clone();
    let second = door.get(&format!("?list-type=2&max-keys=2&continuation-token={}", token.replace('/', "%2F")), &[]);
    assert_eq!(second.all("Key"), keys[2..4]);
    // The first version of the operation.
    let first = door.get("?max-keys=1&delimiter=/&marker=a", &[]);
    assert_eq!((first.all("NextMarker"), first.all("Key").len()), (vec!["few/".to_owned()], 0));
    let second = door.get("?max-keys=1&delimiter=/&marker=few/", &[]);
    assert_eq!(second.all("NextMarker"), ["many/"]);
    assert_eq!(door.get("?list-type=2&max-keys=0", &[]).all("KeyCount"), ["0"]);
    assert_eq!(door.get("?list-type=2&max-keys=-1", &[]).status, 400);
    assert_eq!(door.get("?list-type=2&continuation-token=%25FF", &[]).status, 400);
}

#[test]
fn odd_keys_are_read_and_listed() {
    let keys = [
        "with space",
        "plus+and%",
        "ünïcode/日本",
        "quo\"te&<>'",
        "a=b?c#d",
        "~tilde-_.x",
        "back\\slash",
        "co:lon,@$!*()",
    ];
    let objects: Vec<(&str, usize)> = keys.iter().map(|key| (*key, 64)).collect();
    let door = Door::new(16 * MIB, Some(("id", "secret")), &objects);
    let client = door.client("id", "secret");
    door.runtime.block_on(async {
        let mut listed: Vec<String> =
            client.list(None).map_ok(|meta| meta.location.to_string()).try_collect().await.expect("a listing");
        listed.sort();
        let mut expected = keys.map(str::to_owned);
        expected.sort();
        assert_eq!(listed, expected);
        for key in keys {
            let path = Path::parse(key).expect("a key");
            let answer = client.get(&path).await.unwrap_or_else(|error| panic!("{key}: {error}"));
            assert!(answer.bytes().await.expect("its bytes") == contents(key, 64), "{key}");
        }
    });
    let open = Door::new(16 * MIB, None, &objects);
    let listed = open.get("?list-type=2&encoding-type=url&prefix=plus%2B", &[]);
    assert_eq!(
        (&listed.all("Key")[..], &listed.all("Prefix")[..]),
        (&["plus%2Band%25".to_owned()][..], &["plus%2B".to_owned()][..])
    );
    assert_eq!(open.get("plus+and%25", &[]).body, contents("plus+and%", 64));
}

#[test]
fn conditions_hold() {
    let door = Door::new(16 * MIB, None, &[("object", 100)]);
    let answer = door.get("object", &[]);
    let (tag, modified) = (answer.header("etag").to_owned(), answer.header("last-modified").to_owned());
    assert_eq!(answer.header("accept-ranges"), "bytes");
    let past = "Thu, 01 Jan 1998 00:00:00 GMT";
    for (headers, status) in [
        ([("if-match", tag.as_str())], 200),
        ([("if-match", "*")], 200),
        ([("if-match", "\"other\"")], 412),
        ([("if-none-match", tag.as_str())], 304),
        ([("if-none-match", "\"other\"")], 200),
        ([("if-modified-since", modified.as_str())], 304),
        ([("if-modified-since", past)], 200),
        ([("if-unmodified-since", modified.as_str())], 200),
        ([("if-unmodified-since", past)], 412),
    ] {
        for method in [Method::GET, Method::HEAD] {
            let answer = door.send(method.clone(), &format!("{BUCKET}/object"), &headers);
            assert_eq!(answer.status.as_u16(), status, "{method} {headers:?}");
            assert_eq!(answer.body.len(), if status == 200 && method == Method::GET { 100 } else { answer.body.len() });
            if status == 304 {
                assert_eq!((answer.body.len(), answer.header("etag")), (0, tag.as_str()));
            }
        }
    }
}
