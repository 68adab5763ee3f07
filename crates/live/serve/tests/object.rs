//! Objects against a web server that answers correctly, incorrectly or not at all. Python tests a store's own protocol
//! against a real S3 server (tests/test_serve_objects.py).

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use bytes::BytesMut;
use headstart_serve::backing::{self, conformance, Backing, ObjectBacking};
use headstart_serve::Settings;
use object_store::{BackoffConfig, RetryConfig};

/// How a request is answered.
#[derive(Debug, Clone, Copy, Default)]
enum Manner {
    #[default]
    Good,
    Status(u16),
    /// The whole object, as by servers without range support.
    Whole,
    /// That many bytes more (or fewer, if negative) than the range; the answer is complete as such.
    Longer(i64),
    /// The range shifted by that many bytes.
    Shifted(usize),
    /// The first bytes, then the connection ends.
    Broken,
    Garbage,
    /// Nothing, until the server is told to continue.
    Stuck,
    /// This entity tag, regardless of the request.
    Tagged(&'static str),
    /// No tag, and this time.
    Dated(&'static str),
}

/// Arguments: method, range and number of the request.
type Choose = dyn Fn(&str, &Range<usize>, usize) -> Manner + Send + Sync;

struct Web {
    content: Vec<u8>,
    choose: Box<Choose>,
    requests: AtomicUsize,
    stuck: Mutex<usize>,
    changed: Condvar,
}

const GO_ON: usize = usize::MAX;

/// Paths that must reach the server unchanged.
const WRITTEN: [&str; 4] = ["/a%2Fb/%20c", "//twice//two/", "/one~+two@three:4", "/caf%C3%A9%25"];

impl Web {
    /// Starts a server; returns it with the URL of its object.
    fn start(choose: impl Fn(&str, &Range<usize>, usize) -> Manner + Send + Sync + 'static) -> (Arc<Self>, String) {
        let content = (0..300_000u32).flat_map(|number| (number.wrapping_mul(2_654_435_761)).to_le_bytes()).collect();
        let (stuck, changed) = (Mutex::new(0), Condvar::new());
        let web = Self { content, choose: Box::new(choose), requests: AtomicUsize::new(0), stuck, changed };
        let (web, listener) = (Arc::new(web), TcpListener::bind("127.0.0.1:0").expect("a port is free"));
        let name = format!("http://{}/a%20folder/image", listener.local_addr().expect("it is bound"));
        let served = web.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let served = served.clone();
                thread::spawn(move || while served.answer(&stream).is_some() {});
            }
        });
        (web, name)
    }

    /// Answers one request; `None` when the connection has ended.
    fn answer(&self, mut stream: &TcpStream) -> Option<()> {
        let mut lines = BufReader::new(stream).lines();
        let first = lines.next()?.ok()?;
        let (method, path) = first.split_once(' ')?;
        let mut range = 0..self.content.len();
        let (mut is_range, mut if_match) = (false, None);
        for line in lines.map_while(Result::ok).take_while(|line| !line.is_empty()) {
            let (key, value) = line.split_once(": ")?;
            match key.to_ascii_lowercase().as_str() {
                "range" => {
                    let (from, to) = value.strip_prefix("bytes=")?.split_once('-')?;
                    (is_range, range) = (true, from.parse().ok()?..to.parse::<usize>().ok()? + 1);
                }
                "if-match" => if_match = Some(value.to_owned()),
                _ => {}
            }
        }
        let path = path.strip_suffix(" HTTP/1.1")?;
        assert!(path == "/a%20folder/image" || WRITTEN.contains(&path), "{path}");
        let number = self.requests.fetch_add(1, Ordering::SeqCst);
        let manner = (self.choose)(method, &range, number);
        let mut tag = "ETag: \"first\"\r\n".to_owned();
        let mut status = if is_range { "206 Partial" } else { "200 OK" }.to_owned();
        let mut said = range.clone();
        let mut breaks = false;
        let mut body = self.content[range.clone()].to_vec();
        match manner {
            Manner::Good => {}
            // A client that reused the connection would take the body after this status as the next answer.
            Manner::Status(204) => (status, body) = ("204 No Content".to_owned(), Vec::new()),
            Manner::Status(code) => (status, body) = (format!("{code} Refused"), b"because\n of\n this".to_vec()),
            Manner::Whole => (status, body) = ("200 OK".to_owned(), self.content.clone()),
            Manner::Longer(more) => body.resize((body.len() as i64 + more) as usize, 7),
            Manner::Shifted(by) => said = range.start + by..range.end + by,
            Manner::Broken => breaks = true,
            Manner::Garbage => {
                stream.write_all(b"\x00\xffno HTTP at all\r\n\r\n").ok()?;
                return None;
            }
            Manner::Stuck => {
                let mut stuck = self.stuck.lock().expect("no test panics with it");
                *stuck += 1;
                self.changed.notify_all();
                drop(self.changed.wait_while(stuck, |stuck| *stuck < GO_ON));
            }
            Manner::Tagged(other) => tag = format!("ETag: {other}\r\n"),
            Manner::Dated(date) => tag = format!("Last-Modified: {date}\r\n"),
        }
        if if_match.is_some_and(|wanted| wanted != "\"first\"") {
            status = "412 Precondition Failed".to_owned();
        }
        let about = format!("Content-Range: bytes {}-{}/{}\r\n", said.start, said.end - 1, self.content.len());
        let about = if status.starts_with("206") { about } else { String::new() };
        let head = format!("HTTP/1.1 {status}\r\n{tag}{about}Content-Length: {}\r\n\r\n", body.len());
        stream.write_all(head.as_bytes()).ok()?;
        if method != "HEAD" {
            let end = if breaks { body.len() / 2 } else { body.len() };
            stream.write_all(&body[..end]).ok()?;
        }
        if breaks {
            stream.shutdown(std::net::Shutdown::Both).ok()?;
            return None;
        }
        Some(())
    }

    fn wait_until_stuck(&self) {
        let stuck = self.stuck.lock().expect("no test panics with it");
        drop(self.changed.wait_while(stuck, |stuck| *stuck == 0));
    }

    fn go_on(&self) {
        *self.stuck.lock().expect("no test panics with it") = GO_ON;
        self.changed.notify_all();
    }
}

fn patience(max_retries: usize) -> RetryConfig {
    let wait = Duration::from_millis(1);
    let backoff = BackoffConfig { init_backoff: wait, max_backoff: wait, base: 2. };
    RetryConfig { backoff, max_retries, retry_timeout: Duration::from_secs(600) }
}

fn opened(name: &str) -> ObjectBacking {
    ObjectBacking::open(name, &patience(5)).expect("it can be served")
}

fn read(object: &ObjectBacking, offset: u64, length: usize) -> Result<Vec<u8>, String> {
    let mut buffers: Vec<BytesMut> = (0..length.div_ceil(4096)).map(|_| BytesMut::zeroed(4096)).collect();
    buffers.iter_mut().for_each(|buffer| buffer.fill(9));
    object.read(offset, &mut buffers).map_err(|error| error.to_string())?;
    Ok(buffers.concat())
}

/// Checks the bytes from `offset` on.
fn reads(object: &ObjectBacking, offset: u64, content: &[u8]) {
    match read(object, offset, content.len()) {
        Ok(read) => assert!(read == content, "{offset}: other bytes"),
        Err(error) => panic!("{offset}: {error}"),
    }
}

#[test]
fn a_read_is_one_request_for_a_range_and_zeroes_beyond_the_end() {
    let (web, name) = Web::start(|_, _, _| Manner::Good);
    let object = opened(&name);
    assert_eq!(object.about().size_bytes, 1_200_000);
    let before = web.requests.load(Ordering::SeqCst);
    reads(&object, 8192, &web.content[8192..8192 + 409_600]);
    let end = read(&object, 1_196_032, 8192).expect("it is there");
    assert_eq!((&end[..3968], &end[3968..]), (&web.content[1_196_032..], &[0; 4224][..]));
    assert_eq!(web.requests.load(Ordering::SeqCst) - before, 2);
}

#[test]
fn an_object_keeps_the_promises_of_a_backing() {
    let (web, name) = Web::start(|_, _, _| Manner::Good);
    let object: Arc<dyn Backing> = Arc::new(opened(&name));
    conformance::backing(&object, &web.content, false);
}

#[test]
fn what_cannot_be_served_is_one_line() {
    for (manner, said) in [
        (Manner::Status(404), "there is no such object (404)"),
        (Manner::Status(403), "access is denied (403)"),
        (Manner::Status(401), "the credentials are missing or wrong (401)"),
        (Manner::Status(500), "500"),
        (Manner::Garbage, "HTTP"),
    ] {
        let (_, name) = Web::start(move |_, _, _| manner);
        let error = backing::open(&name, &Settings::default()).err().expect("it is refused").to_string();
        assert!(
            error.starts_with(&name) && error.contains(said) && error.contains("; allowed: http://HOST"),
            "{error}"
        );
        assert!(!error.contains('\n'), "{error}");
    }
    let (_, name) = Web::start(|_, _, _| Manner::Whole);
    let refused = |name: &str, writable| {
        let settings = Settings { writable, ..Settings::default() };
        backing::open(name, &settings).err().expect("it is refused").to_string()
    };
    assert!(refused(&name, false).contains("does not answer range requests"));
    assert!(refused(&name, true).contains("can only be read; allowed: the same without --writable"));
    assert!(refused(&format!("{name}?key=secret"), false).contains("a query"));
    assert!(refused("http://127.0.0.1:1/nothing", false).contains("refused"));
    assert!(refused("s3://bucket//key", false).contains("begins or ends with a slash"));
    assert!(refused("s3://bucket", false).contains("names no object; allowed: s3://BUCKET/KEY"));
}

#[test]
fn paths_are_sent_as_they_are_written() {
    let (web, name) = Web::start(|_, _, _| Manner::Good);
    let server = name.strip_suffix("/a%20folder/image").expect("its path");
    for path in WRITTEN {
        let name = format!("{server}{path}");
        reads(&opened(&name), 4096, &web.content[4096..8192]);
    }
}

#[test]
fn a_server_may_refuse_head() {
    for refusal in [403, 404, 405, 501] {
        let manner = move |method: &str, _: &Range<usize>, _| match method {
            "HEAD" => Manner::Status(refusal),
            _ => Manner::Good,
        };
        let (web, name) = Web::start(manner);
        let object = opened(&name);
        assert_eq!(object.about().size_bytes, 1_200_000, "{refusal}");
        reads(&object, 0, &web.content[..4096]);
    }
}

#[test]
fn keys_that_would_name_another_object_are_refused() {
    for store in ["s3://bucket", "gs://bucket", "az://container"] {
        for key in ["/key", "key/", "a//b", "%2Fkey", "a/%2F", "a%2f/b", "a/../b", "."] {
            let error = ObjectBacking::open(&format!("{store}/{key}"), &patience(0)).err().expect("it is refused");
            let said = ["begins or ends with a slash or has two in a row", "illegal character sequence"];
            assert!(said.iter().any(|part| error.contains(part)), "{store}/{key}: {error}");
        }
    }
}

#[test]
fn servers_in_trouble_are_asked_again_within_limits() {
    let (web, name) = Web::start(|_, _, number| match number {
        1 | 2 => Manner::Status(503),
        3 => Manner::Status(500),
        6 => Manner::Broken,
        number if number > 7 => Manner::Status(503),
        _ => Manner::Good,
    });
    let object = opened(&name);
    reads(&object, 0, &web.content[..4096]);
    assert_eq!(web.requests.load(Ordering::SeqCst), 5);
    reads(&object, 4096, &web.content[4096..8192]);
    // The connection breaks halfway: the rest is requested and appended.
    reads(&object, 0, &web.content[..65536]);
    assert_eq!(web.requests.load(Ordering::SeqCst), 8);
    assert!(read(&object, 0, 4096).is_err_and(|error| error.contains("503")));
    assert_eq!(web.requests.load(Ordering::SeqCst), 8 + 1 + 5);
}

#[test]
fn answers_of_another_length_or_place_fail_the_read() {
    for manner in [
        Manner::Longer(-1),
        Manner::Longer(-4096),
        Manner::Longer(1),
        Manner::Longer(100_000),
        Manner::Shifted(4096),
        Manner::Whole,
        Manner::Status(404),
        Manner::Status(204),
        Manner::Garbage,
    ] {
        let (web, name) = Web::start(move |_, range, _| if range.start == 40_960 { manner } else { Manner::Good });
        let object = opened(&name);
        assert!(read(&object, 40_960, 8192).is_err(), "{manner:?}");
        reads(&object, 8192, &web.content[8192..12_288]);
    }
}

#[test]
fn an_object_that_changes_is_an_error_and_no_mixture() {
    const MONDAY: Manner = Manner::Dated("Mon, 23 Nov 2026 10:00:00 GMT");
    const TUESDAY: Manner = Manner::Dated("Tue, 24 Nov 2026 10:00:00 GMT");
    const WEAK: Manner = Manner::Tagged("W/\"first\"");
    for (first, then, reads) in [
        (Manner::Good, Manner::Good, true),
        (Manner::Good, Manner::Tagged("\"second\""), false),
        // The server compares the tag itself.
        (Manner::Good, Manner::Status(412), false),
        (Manner::Good, MONDAY, false),
        (MONDAY, MONDAY, true),
        (MONDAY, TUESDAY, false),
        (WEAK, WEAK, true),
        (WEAK, Manner::Good, false),
    ] {
        let (_, name) = Web::start(move |_, _, number| if number < 1 { first } else { then });
        let got = read(&opened(&name), 0, 4096);
        assert_eq!(got.is_ok(), reads, "{first:?} {then:?} {got:?}");
        assert!(reads || got.is_err_and(|error| error.contains("changed since the start")), "{first:?} {then:?}");
    }
}

#[test]
fn a_request_that_is_stuck_delays_no_other() {
    let (web, name) = Web::start(|_, range, _| if range.start == 4096 { Manner::Stuck } else { Manner::Good });
    let object = opened(&name);
    thread::scope(|scope| {
        let stuck = scope.spawn(|| read(&object, 4096, 4096));
        web.wait_until_stuck();
        for page in 2..50 {
            let at = page * 4096;
            reads(&object, at as u64, &web.content[at..at + 4096]);
        }
        web.go_on();
        assert!(stuck.join().expect("it ends").is_ok_and(|read| read == web.content[4096..8192]));
    });
}
