//! Clients that are many, slow or gone, send what they like, and objects that change.

use std::time::Instant;

use futures_util::future::join_all;
use proptest::prelude::*;
use rand::{Rng, RngCore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;

#[test]
fn a_changed_object_is_no_longer_read() {
    let door = Door::new(16 * MIB, None, &[("object", 1000)]);
    assert_eq!(door.get("object", &[("range", "bytes=0-9")]).body, contents("object", 1000)[..10]);
    put(&door.folder, "object", &contents("other", 1001));
    // What is in memory is as it was.
    assert_eq!(door.get("object", &[("range", "bytes=0-9")]).body, contents("object", 1000)[..10]);
    assert_eq!(door.get("object", &[("range", "bytes=10-19")]).error(), (412, "PreconditionFailed".to_owned()));
    fs::remove_file(door.folder.path(BUCKET).join("object")).expect("it is there");
    assert_eq!(door.get("object", &[("range", "bytes=30-39")]).error(), (404, "NoSuchKey".to_owned()));
}

#[test]
fn an_answer_breaks_off_if_the_object_changes_meanwhile() {
    let door = Door::new(16 * MIB, None, &[("object", 64 << 20)]);
    let read = door.runtime.block_on(async {
        let url = format!("http://{}/{BUCKET}/object", door.address);
        let mut answer = reqwest::get(url).await.expect("an answer");
        let mut read = answer.chunk().await.expect("the first bytes").expect("some").len();
        put(&door.folder, "object", b"other");
        loop {
            match answer.chunk().await {
                Ok(Some(part)) => read += part.len(),
                Ok(None) => panic!("the answer has all {read} bytes"),
                Err(_) => return read,
            }
        }
    });
    assert!(read < 64 << 20);
}

#[test]
fn many_clients_get_their_bytes() {
    let objects = [("one", 24 << 20), ("two", 7 << 20), ("three", 100_000)];
    let door = Door::new(8 * MIB, Some(("id", "secret")), &objects);
    let client = Arc::new(door.client("id", "secret"));
    let expected: Arc<Vec<Vec<u8>>> = Arc::new(objects.iter().map(|(key, bytes)| contents(key, *bytes)).collect());
    let reader = |number: u64| {
        let (client, expected) = (client.clone(), expected.clone());
        async move {
            let mut random = ChaCha8Rng::seed_from_u64(number);
            for _ in 0..12 {
                let which = random.random_range(0..3);
                let expected = &expected[which];
                let start = random.random_range(0..expected.len());
                let longest = [100, 300_000, 6 << 20][random.random_range(0..3)];
                let end = expected.len().min(start + random.random_range(1..=longest));
                let range = start as u64..end as u64;
                let answer = client.get_range(&Path::from(objects[which].0), range.clone()).await;
                let answer = answer.unwrap_or_else(|error| panic!("{range:?}: {error:?}"));
                assert!(answer == expected[start..end], "client {number}: {range:?}");
            }
        }
    };
    door.runtime.block_on(async {
        let readers = (0..64).map(|number| tokio::spawn(reader(number)));
        join_all(readers).await.into_iter().for_each(|ended| ended.expect("no panic"));
    });
}

#[test]
fn a_client_that_goes_away_gives_all_memory_back() {
    let door = Door::new(8 * MIB, None, &[("object", 32 << 20), ("other", 8 << 20)]);
    door.runtime.block_on(async {
        for _ in 0..40 {
            let mut stream = TcpStream::connect(door.address).await.expect("a connection");
            let request = format!("GET /{BUCKET}/object HTTP/1.1\r\nhost: x\r\n\r\n");
            stream.write_all(request.as_bytes()).await.expect("it takes it");
            let mut some = [0; 1000];
            stream.read_exact(&mut some).await.expect("the first bytes");
        }
        // All memory at once: this fails while something is held.
        let begun = Instant::now();
        loop {
            match door.store.read("other", 0, Some(8 << 20)).await {
                Ok(leases) => break assert_eq!(leases.iter().map(|lease| lease.range().1).sum::<u64>(), 8 << 20),
                Err(failure) => assert!(begun.elapsed() < Duration::from_secs(60), "{failure}"),
            }
        }
    });
    assert!(door.get("object", &[]).body == contents("object", 32 << 20));
}

#[test]
fn a_client_that_takes_nothing_does_not_stop_others() {
    let door = Door::new(64 * MIB, None, &[("object", 48 << 20), ("other", 5 << 20)]);
    let _stalled = door.runtime.block_on(async {
        let mut stream = TcpStream::connect(door.address).await.expect("a connection");
        let request = format!("GET /{BUCKET}/object HTTP/1.1\r\nhost: x\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("it takes it");
        stream.readable().await.expect("an answer");
        stream
    });
    assert!(door.get("other", &[]).body == contents("other", 5 << 20));
}

#[test]
fn what_is_no_request_is_answered_or_cut_off() {
    let door = Door::new(16 * MIB, Some(("id", "secret")), &[("object", 100)]);
    let mut random = ChaCha8Rng::seed_from_u64(4);
    let mut noise = vec![0; 3000];
    random.fill_bytes(&mut noise);
    let long = format!("GET /{} HTTP/1.1\r\nhost: x\r\n\r\n", "x".repeat(200_000));
    let headers = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(5000));
    let odd: [&[u8]; 11] = [
        &noise,
        b"\r\n\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /%ff%fe/%zz HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET http://[::1 HTTP/1.1\r\n\r\n",
        b"GET * HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET /b/k?X-Amz-Signature=%ff&X-Amz-Date=x HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET /b/k HTTP/1.1\r\nhost: x\r\nauthorization: AWS4-HMAC-SHA256 Credential=,,,\r\nx-amz-date: \xff\r\n\r\n",
        b"PUT /b/k HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        long.as_bytes(),
        headers.as_bytes(),
    ];
    door.runtime.block_on(async {
        for bytes in odd {
            let mut stream = TcpStream::connect(door.address).await.expect("a connection");
            let _ = stream.write_all(bytes).await;
            let _ = stream.shutdown().await;
            let mut answer = Vec::new();
            // A connection may be reset with bytes that were not read.
            let _ = stream.read_to_end(&mut answer).await;
            let answer = String::from_utf8_lossy(&answer);
            assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
        }
    });
    let client = door.client("id", "secret");
    door.runtime.block_on(client.head(&Path::from("object"))).expect("the door still serves");
}

#[test]
fn a_request_ends_before_the_door_closes() {
    let mut door = Door::new(16 * MIB, None, &[("object", 64 << 20)]);
    let served = door.served.take().expect("it serves");
    door.runtime.block_on(async {
        let idle = TcpStream::connect(door.address).await.expect("a connection");
        let url = format!("http://{}/{BUCKET}/object", door.address);
        let mut answer = reqwest::get(url).await.expect("an answer");
        let mut read = answer.chunk().await.expect("the first bytes").expect("some").to_vec();
        door.stop.send_replace(true);
        while let Some(part) = answer.chunk().await.expect("more bytes") {
            read.extend_from_slice(&part);
        }
        assert!(read == contents("object", 64 << 20));
        served.await.expect("no panic");
        drop(idle);
        assert!(TcpStream::connect(door.address).await.is_err());
    });
}

#[test]
fn ranges_are_those_of_a_slice() {
    let bytes = 700_000;
    let door = Door::new(512 << 10, None, &[("object", bytes)]);
    let expected = contents("object", bytes);
    let number = || prop_oneof![0..2_000_000_usize, 0..bytes + 2, Just(bytes - 1), Just(bytes), 0..3_usize];
    let range = (prop::option::of(number()), prop::option::of(number()));
    proptest!(ProptestConfig::with_cases(300), |((first, last) in range)| {
        let text = |number: Option<usize>| number.map_or(String::new(), |number| number.to_string());
        let answer = door.get("object", &[("range", &format!("bytes={}-{}", text(first), text(last)))]);
        let slice = match (first, last) {
            (None, None) => return Err(TestCaseError::reject("no range")),
            (Some(first), Some(last)) if last < first => {
                prop_assert_eq!(answer.status, 200);
                prop_assert!(answer.body == expected);
                return Ok(());
            }
            (Some(first), last) if first < bytes => Some(first..last.map_or(bytes, |last| bytes.min(last + 1))),
            (None, Some(suffix)) if suffix > 0 => Some(bytes - suffix.min(bytes)..bytes),
            _ => None,
        };
        match slice {
            Some(slice) => {
                prop_assert_eq!(answer.status, 206);
                prop_assert!(answer.body == expected[slice]);
            }
            None => prop_assert_eq!(answer.status, 416),
        }
    });
}
