//! Checked requests and written replies, byte by byte; and the client reads what the server writes.

mod common;

use common::{all_flags, export};
use headstart_nbd::client::{Replies, Reply};
use headstart_nbd::server::Session;
use headstart_nbd::{BlockSizes, Command, Errno, Extent, Flags, Request};
use proptest::prelude::*;

const SIZE: u64 = 1 << 20;

fn session(structured: bool) -> Session {
    let mut export = export("a", SIZE, all_flags());
    if structured {
        export.flags = export.flags.with(Flags::DF);
    }
    Session { export, structured, allocation: structured }
}

/// A header with the specification's numbers.
fn header(flags: u16, code: u16, cookie: u64, offset: u64, length: u32) -> [u8; 28] {
    let mut bytes = vec![0x25, 0x60, 0x95, 0x13];
    bytes.extend(flags.to_be_bytes());
    bytes.extend(code.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes.extend(offset.to_be_bytes());
    bytes.extend(length.to_be_bytes());
    bytes.try_into().unwrap()
}

const READ: Command = Command::Read { single_chunk: false };

#[test]
fn requests_that_pass() {
    let zeroes = |fua, no_hole, fast| Command::WriteZeroes { fua, no_hole, fast };
    for (flags, code, command) in [
        (0, 0, READ),
        (4, 0, Command::Read { single_chunk: true }),
        (0, 1, Command::Write { fua: false }),
        (1, 1, Command::Write { fua: true }),
        (1, 4, Command::Trim { fua: true }),
        (0, 5, Command::Cache),
        (0, 6, zeroes(false, false, false)),
        (0b10011, 6, zeroes(true, true, true)),
        (8, 7, Command::BlockStatus { one_extent: true }),
    ] {
        let bytes = header(flags, code, 7, SIZE - 512, 512);
        let incoming = session(true).check(&bytes).unwrap();
        let request = Request { cookie: 7, command, offset: SIZE - 512, length: 512 };
        assert_eq!((incoming.request, incoming.cookie), (Ok(request), 7));
        assert_eq!(incoming.payload_bytes, if code == 1 { 512 } else { 0 });
        assert_eq!(request.header(), bytes);
    }
    let mut large = session(false);
    large.export.size_bytes = 1 << 40;
    let cached = |length| large.check(&header(0, 5, 7, 0, length)).unwrap().request;
    assert_eq!(cached(32 << 20).map(|request| request.length), Ok(32 << 20));
    assert_eq!(cached((32 << 20) + 1).map_err(|refusal| refusal.errno), Err(Errno::Inval), "it is read");
    let flush = Request { cookie: 1, command: Command::Flush, offset: 0, length: 0 };
    assert_eq!(session(false).check(&header(1, 3, 1, 0, 0)).unwrap().request, Ok(flush), "FUA is allowed everywhere");
    let disconnect = session(false).check(&header(9, 2, 0, 5, 5)).unwrap().request.unwrap();
    assert_eq!(disconnect.command, Command::Disconnect);
}

#[test]
fn requests_that_are_refused() {
    let refusal =
        |session: &Session, bytes: [u8; 28]| session.check(&bytes).unwrap().request.map_err(|refusal| refusal.errno);
    let all = session(true);
    for (what, flags, code, offset, length, errno) in [
        ("a read beyond the end", 0, 0, SIZE - 1, 2, Errno::Inval),
        ("a read whose end overflows", 0, 0, u64::MAX, 2, Errno::Inval),
        ("a write beyond the end", 0, 1, SIZE, 1, Errno::NoSpc),
        ("zeroes beyond the end", 0, 6, SIZE, 1, Errno::NoSpc),
        ("a trim beyond the end", 0, 4, SIZE, 1, Errno::Inval),
        ("a cache beyond the end", 0, 5, SIZE, 1, Errno::Inval),
        ("block status beyond the end", 0, 7, SIZE, 1, Errno::Inval),
        ("nothing", 0, 0, 0, 0, Errno::Inval),
        ("an unknown command", 0, 8, 0, 1, Errno::Inval),
        ("another flag", 1 << 9, 0, 0, 1, Errno::Inval),
        ("DF of a write", 4, 1, 0, 1, Errno::Inval),
        ("NO_HOLE of a read", 2, 0, 0, 1, Errno::Inval),
        ("a flush of something", 0, 3, 0, 1, Errno::Inval),
    ] {
        assert_eq!(refusal(&all, header(flags, code, 3, offset, length)), Err(errno), "{what}");
    }
    let mut bare = session(false);
    bare.export.flags = Flags::HAS_FLAGS;
    for (what, flags, code) in [
        ("FUA", 1, 1),
        ("FLUSH", 0, 3),
        ("TRIM", 0, 4),
        ("CACHE", 0, 5),
        ("ZEROES", 0, 6),
        ("STATUS", 0, 7),
        ("DF", 4, 0),
    ] {
        let length = if code == 3 { 0 } else { 512 };
        assert_eq!(refusal(&bare, header(flags, code, 3, 0, length)), Err(Errno::Inval), "{what} was not offered");
    }
    let mut read_only = session(true);
    read_only.export.flags = all_flags().with(Flags::READ_ONLY);
    for code in [1, 4, 6] {
        assert_eq!(refusal(&read_only, header(0, code, 3, 0, 512)), Err(Errno::Perm), "command {code}");
    }
    let mut blocks = session(true);
    blocks.export.blocks = BlockSizes { bytes_min: 512, bytes_preferred: 4096, bytes_max: 4096 };
    assert_eq!(refusal(&blocks, header(0, 0, 3, 256, 512)), Err(Errno::Inval), "the offset is not aligned");
    assert_eq!(refusal(&blocks, header(0, 0, 3, 512, 256)), Err(Errno::Inval), "the length is not aligned");
    assert_eq!(refusal(&blocks, header(0, 0, 3, 0, 8192)), Err(Errno::Inval), "longer than the largest payload");
    assert!(refusal(&blocks, header(0, 4, 3, 0, 8192)).is_ok(), "a trim has no payload");
    let long = blocks.check(&header(0, 1, 3, 0, 8192)).unwrap();
    assert_eq!((long.payload_bytes, long.request.is_err()), (8192, true), "what comes with it is to be skipped");
    assert!(all.check(&[0; 28]).is_err(), "no request");
}

#[test]
fn replies_as_bytes() {
    let request = Request { cookie: 0x0102_0304, command: READ, offset: 0x10, length: 2 };
    let simple = |errno: u8| vec![0x67, 0x44, 0x66, 0x98, 0, 0, 0, errno, 0, 0, 0, 0, 1, 2, 3, 4];
    let chunk = |done: u8, kind: [u8; 2], length: u8| {
        let mut bytes = vec![0x66, 0x8e, 0x33, 0xef, 0, done, kind[0], kind[1], 0, 0, 0, 0, 1, 2, 3, 4];
        bytes.extend([0, 0, 0, length]);
        bytes
    };
    let written = |structured: bool, write: &dyn Fn(&Session, &mut Vec<u8>)| {
        let mut out = Vec::new();
        write(&session(structured), &mut out);
        out
    };
    let offset = [0, 0, 0, 0, 0, 0, 0, 0x10];
    let cookie = request.cookie;
    assert_eq!(written(false, &|s, out| s.done(cookie, out)), simple(0));
    assert_eq!(written(true, &|s, out| s.done(cookie, out)), simple(0));
    assert_eq!(written(false, &|s, out| s.failed(cookie, Errno::Io, "no", out)), simple(5));
    assert_eq!(written(false, &|s, out| s.read_header(&request, out)), simple(0));
    assert_eq!(written(true, &|s, out| s.read_header(&request, out)), [chunk(1, [0, 1], 10), offset.to_vec()].concat());
    let error = [chunk(1, [0x80, 1], 8), vec![0, 0, 0, 28, 0, 2], b"no".to_vec()].concat();
    assert_eq!(written(true, &|s, out| s.failed(cookie, Errno::NoSpc, "no", out)), error);
    let at = [chunk(0, [0x80, 2], 14), vec![0, 0, 0, 5, 0, 0], offset.to_vec()].concat();
    assert_eq!(written(true, &|s, out| s.failed_at(cookie, Errno::Io, 0x10, false, out)), at);
    let hole = [chunk(0, [0, 2], 12), offset.to_vec(), vec![0, 0, 0, 2]].concat();
    assert_eq!(written(true, &|s, out| s.hole(cookie, 0x10, 2, false, out)), hole);
    assert_eq!(written(true, &|s, out| s.end(cookie, out)), chunk(1, [0, 0], 0));
    let extents = [Extent { length: 1, hole: true, zero: true }, Extent { length: 9, hole: false, zero: false }];
    let status = [chunk(1, [0, 5], 20), vec![0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 0]].concat();
    let of = |one_extent| Request { command: Command::BlockStatus { one_extent }, ..request };
    assert_eq!(
        written(true, &|s, out| s.block_status(&of(false), &extents, out)),
        status,
        "cut to the request's two bytes"
    );
    let first = [chunk(1, [0, 5], 12), vec![0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 3]].concat();
    assert_eq!(written(true, &|s, out| s.block_status(&of(true), &extents, out)), first);
}

/// The first reply in `bytes`, and its length.
fn first_reply(bytes: &[u8]) -> (Result<Reply, String>, usize) {
    let (mut replies, mut at) = (Replies::default(), 0);
    loop {
        let input = &bytes[at..at + replies.needed()];
        at += input.len();
        match replies.advance(input) {
            Ok(None) => {}
            Ok(Some(reply)) => return (Ok(reply), at),
            Err(violation) => return (Err(violation.to_string()), at),
        }
    }
}

#[test]
fn replies_that_are_none() {
    let chunk = |flags: u16, kind: u16, payload: &[u8]| {
        let mut bytes = vec![0x66, 0x8e, 0x33, 0xef];
        bytes.extend(flags.to_be_bytes());
        bytes.extend(kind.to_be_bytes());
        bytes.extend([0; 8]);
        bytes.extend((payload.len() as u32).to_be_bytes());
        bytes.extend(payload);
        bytes
    };
    for (what, bytes) in [
        ("no magic number", vec![0; 16]),
        ("an end that is not the end", chunk(0, 0, &[])),
        ("an end with something in it", chunk(1, 0, &[1])),
        ("content without content", chunk(1, 1, &[0; 8])),
        ("a hole of no length", chunk(1, 2, &[0; 12])),
        ("extents and a half", chunk(1, 5, &[1; 16])),
        ("an empty extent", chunk(1, 5, &[0; 12])),
        ("an unknown type", chunk(1, 9, &[])),
        ("an error that is none", chunk(1, 0x8001, &[0; 6])),
        ("a message longer than the error", chunk(1, 0x8001, &[0, 0, 0, 5, 0, 1])),
    ] {
        assert!(first_reply(&bytes).0.is_err(), "{what}");
    }
    let unknown_error = chunk(1, 0x8005, &[0, 0, 0, 99, 0, 0, 7]);
    let failed = Reply::Failed { cookie: 0, error: Errno::Inval, message: String::new(), last: true };
    assert_eq!(first_reply(&unknown_error), (Ok(failed), unknown_error.len()));
}

#[test]
fn a_reply_has_a_thousand_extents_at_most() {
    let extents = vec![Extent { length: 512, hole: false, zero: false }; 3000];
    let request =
        Request { cookie: 1, command: Command::BlockStatus { one_extent: false }, offset: 0, length: 1 << 20 };
    let mut out = Vec::new();
    session(true).block_status(&request, &extents, &mut out);
    let (reply, taken) = first_reply(&out);
    // 20 bytes of the reply's head, 4 of the context, 8 of each extent.
    assert_eq!(taken, 20 + 4 + 8 * 1024);
    assert!(matches!(reply, Ok(Reply::Status { extents, .. }) if extents.len() == 1024));
}

fn command() -> impl Strategy<Value = Command> {
    let flag = any::<bool>;
    prop_oneof![
        flag().prop_map(|single_chunk| Command::Read { single_chunk }),
        flag().prop_map(|fua| Command::Write { fua }),
        flag().prop_map(|fua| Command::Trim { fua }),
        Just(Command::Cache),
        (flag(), flag(), flag()).prop_map(|(fua, no_hole, fast)| Command::WriteZeroes { fua, no_hole, fast }),
        flag().prop_map(|one_extent| Command::BlockStatus { one_extent }),
    ]
}

proptest! {
    #[test]
    fn what_a_client_sends_is_what_a_server_hears(
        command in command(), cookie in any::<u64>(), offset in 0..SIZE, length in 1_u32..=1 << 20, structured in any::<bool>(),
    ) {
        let request = Request { cookie, command, offset, length };
        let session = session(structured);
        let incoming = session.check(&request.header()).unwrap();
        let inside = offset + u64::from(length) <= SIZE;
        let agreed = match command {
            Command::Read { single_chunk } => structured || !single_chunk,
            Command::BlockStatus { .. } => structured,
            _ => true,
        };
        prop_assert_eq!(incoming.cookie, cookie);
        if inside && agreed {
            prop_assert_eq!(incoming.request, Ok(request));
        } else {
            prop_assert!(incoming.request.is_err());
            let mut out = Vec::new();
            session.refused(&incoming, &mut out);
            let (reply, taken) = first_reply(&out);
            prop_assert_eq!(taken, out.len());
            let matched = matches!(reply.unwrap(),
                Reply::Simple { cookie: c, error: Some(_) } | Reply::Failed { cookie: c, last: true, .. } if c == cookie);
            prop_assert!(matched);
        }
    }

    #[test]
    fn what_a_server_sends_is_what_a_client_hears(
        cookie in any::<u64>(), offset in any::<u64>(), length in 1_u32..1 << 20, last in any::<bool>(), message in ".{0,40}",
        pieces in proptest::collection::vec((1_u32..1000, any::<bool>(), any::<bool>()), 1..30),
    ) {
        let (session, mut out) = (session(true), Vec::new());
        let extents: Vec<Extent> = pieces.iter().map(|&(length, hole, zero)| Extent { length, hole, zero }).collect();
        let status = Request { cookie, command: Command::BlockStatus { one_extent: false }, offset: 0, length: 1 << 20 };
        session.data(cookie, offset, length, last, &mut out);
        session.hole(cookie, offset, length, last, &mut out);
        session.failed(cookie, Errno::Io, &message, &mut out);
        session.block_status(&status, &extents, &mut out);
        session.end(cookie, &mut out);
        session.done(cookie, &mut out);
        let expected = [
            Reply::Data { cookie, offset, length, last },
            Reply::Hole { cookie, offset, length, last },
            Reply::Failed { cookie, error: Errno::Io, message, last: true },
            Reply::Status { cookie, context: 1, extents, last: true },
            Reply::End { cookie },
            Reply::Simple { cookie, error: None },
        ];
        let mut rest = out.as_slice();
        for reply in expected {
            let (heard, taken) = first_reply(rest);
            prop_assert_eq!(heard.unwrap(), reply);
            rest = &rest[taken..];
        }
        prop_assert!(rest.is_empty());
    }
}
