//! Negotiation, byte by byte as in `doc/proto.md`, and between the crate's own two sides.

mod common;

use common::{all_flags, export};
use headstart_nbd::client::{Handshake as ClientHandshake, Refused};
use headstart_nbd::server::{Handshake, Progress, Session, Tls};
use headstart_nbd::{BlockSizes, Export, Flags};

fn be(numbers: &[(u64, usize)]) -> Vec<u8> {
    numbers.iter().flat_map(|(number, bytes)| number.to_be_bytes()[8 - bytes..].to_vec()).collect()
}

fn option(option: u32, data: &[u8]) -> Vec<u8> {
    [b"IHAVEOPT", be(&[(option.into(), 4), (data.len() as u64, 4)]).as_slice(), data].concat()
}

fn reply(option: u32, kind: u32, data: &[u8]) -> Vec<u8> {
    let header = be(&[(0x0003_e889_0455_65a9, 8), (option.into(), 4), (kind.into(), 4), (data.len() as u64, 4)]);
    [header.as_slice(), data].concat()
}

fn string(text: &str) -> Vec<u8> {
    [be(&[(text.len() as u64, 4)]).as_slice(), text.as_bytes()].concat()
}

const ERROR: u32 = 1 << 31;

/// A server that has received the client's flags.
struct Served {
    handshake: Handshake,
    exports: Vec<Export>,
}

impl Served {
    fn new(tls: Tls, client_flags: u64) -> Self {
        let mut out = Vec::new();
        let mut handshake = Handshake::new(tls, &mut out);
        assert_eq!(out, [b"NBDMAGIC".as_slice(), b"IHAVEOPT", &[0, 3]].concat());
        assert_eq!(handshake.needed(), 4);
        let exports = vec![export("a", 1 << 20, all_flags()), export("b", 4096, Flags::READ_ONLY)];
        let progress = handshake.advance(&be(&[(client_flags, 4)]), exports.as_slice(), &mut out);
        assert_eq!(progress, Ok(Progress::Negotiating));
        Self { handshake, exports }
    }

    /// Sends bytes as they are needed; returns the last progress and the server's output.
    fn hear(&mut self, mut bytes: &[u8]) -> Result<(Progress, Vec<u8>), String> {
        let (mut out, mut progress) = (Vec::new(), Progress::Negotiating);
        while !bytes.is_empty() {
            let (input, rest) = bytes.split_at(self.handshake.needed());
            bytes = rest;
            progress = self.handshake.advance(input, self.exports.as_slice(), &mut out).map_err(|e| e.to_string())?;
        }
        Ok((progress, out))
    }

    fn session(&mut self, bytes: &[u8]) -> (Session, Vec<u8>) {
        match self.hear(bytes).unwrap() {
            (Progress::Transmitting(session), out) => (session, out),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn export_name_with_and_without_zeroes() {
    for (client_flags, zeroes) in [(1, 124), (3, 0), (0, 124)] {
        let (session, out) = Served::new(Tls::Never, client_flags).session(&option(1, b"b"));
        assert_eq!(out, [be(&[(4096, 8), (0b11, 2)]), vec![0; zeroes]].concat());
        assert_eq!((session.export.name.as_str(), session.structured, session.allocation), ("b", false, false));
    }
}

#[test]
fn an_unknown_name_ends_export_name_without_a_word() {
    let error = Served::new(Tls::Never, 3).hear(&option(1, b"zz")).unwrap_err();
    assert!(error.contains("no export \"zz\""), "{error}");
}

#[test]
fn go_with_structured_replies_and_context() {
    let mut server = Served::new(Tls::Never, 3);
    assert_eq!(server.hear(&option(8, b"")).unwrap().1, reply(8, 1, b""));
    let query = [string("a"), be(&[(2, 4)]), string("base:allocation"), string("x-other:y")].concat();
    let context = [be(&[(1, 4)]).as_slice(), b"base:allocation"].concat();
    assert_eq!(server.hear(&option(10, &query)).unwrap().1, [reply(10, 4, &context), reply(10, 1, b"")].concat());
    let data = [string("a"), be(&[(3, 2), (1, 2), (2, 2), (3, 2)])].concat();
    let (session, out) = server.session(&option(7, &data));
    // HAS_FLAGS FLUSH FUA TRIM WRITE_ZEROES DF MULTI_CONN CACHE FAST_ZERO
    let flags = 0b1101_1110_1101;
    let expected = [
        reply(7, 3, &be(&[(0, 2), (1 << 20, 8), (flags, 2)])),
        reply(7, 3, b"\0\x01a"),
        reply(7, 3, b"\0\x02the export a"),
        reply(7, 3, &be(&[(3, 2), (1, 4), (4096, 4), (32 << 20, 4)])),
        reply(7, 1, b""),
    ];
    assert_eq!(out, expected.concat());
    assert!(session.structured && session.allocation);
    assert_eq!(server.handshake.needed(), 0, "the next byte is a request's");
}

#[test]
fn a_context_of_another_export_is_not_this_ones() {
    let mut server = Served::new(Tls::Never, 3);
    server.hear(&option(8, b"")).unwrap();
    server.hear(&option(10, &[string("b"), be(&[(1, 4)]), string("base:allocation")].concat())).unwrap();
    let (session, _) = server.session(&option(7, &[string("a"), be(&[(0, 2)])].concat()));
    assert!(session.structured && !session.allocation);
}

#[test]
fn info_then_list_then_abort() {
    let mut server = Served::new(Tls::Never, 3);
    let (progress, out) = server.hear(&option(6, &[string("b"), be(&[(0, 2)])].concat())).unwrap();
    assert_eq!(progress, Progress::Negotiating);
    assert!(out.ends_with(&reply(6, 1, b"")));
    let rows = ["a", "b"].map(|name| reply(3, 2, &[string(name), format!("the export {name}").into_bytes()].concat()));
    assert_eq!(server.hear(&option(3, b"")).unwrap().1, [rows.concat(), reply(3, 1, b"")].concat());
    assert_eq!(server.hear(&option(2, b"")).unwrap(), (Progress::Aborted, reply(2, 1, b"")));
}

#[test]
fn list_of_contexts() {
    let mut server = Served::new(Tls::Never, 3);
    server.hear(&option(8, b"")).unwrap();
    let context = reply(9, 4, &[be(&[(0, 4)]).as_slice(), b"base:allocation"].concat());
    for (queries, found) in
        [(vec![], true), (vec!["base:"], true), (vec!["base:allocation"], true), (vec!["qemu:"], false)]
    {
        let count = be(&[(queries.len() as u64, 4)]);
        let data = [string("a"), count, queries.iter().flat_map(|query| string(query)).collect()].concat();
        let expected = [if found { context.clone() } else { Vec::new() }, reply(9, 1, b"")].concat();
        assert_eq!(server.hear(&option(9, &data)).unwrap().1, expected, "{queries:?}");
    }
}

#[test]
fn options_that_are_refused() {
    let go = |name: &str| [string(name), be(&[(0, 2)])].concat();
    let cases = [
        ("unknown", 77, vec![1, 2, 3], ERROR | 1),
        ("STARTTLS", 5, vec![], ERROR | 2),
        ("LIST with data", 3, vec![0], ERROR | 3),
        ("STRUCTURED_REPLY with data", 8, vec![0], ERROR | 3),
        ("GO without data", 7, vec![], ERROR | 3),
        ("GO with half a name", 7, be(&[(9, 4), (0, 2)]), ERROR | 3),
        ("GO with more than it says", 7, [go("a"), vec![0]].concat(), ERROR | 3),
        ("GO with a zero byte in the name", 7, go("a\0"), ERROR | 3),
        ("GO of nothing", 7, go("zz"), ERROR | 6),
        ("INFO of nothing", 6, go("zz"), ERROR | 6),
        ("contexts before structured replies", 10, [string("a"), be(&[(0, 4)])].concat(), ERROR | 3),
    ];
    for (what, number, data, kind) in cases {
        let mut server = Served::new(Tls::Never, 3);
        let (progress, out) = server.hear(&option(number, &data)).unwrap();
        assert_eq!(progress, Progress::Negotiating, "{what}");
        assert_eq!(out[..16], reply(number, kind, b"")[..16], "{what}");
        assert_eq!(server.hear(&option(2, b"")).unwrap().0, Progress::Aborted, "{what}: the connection goes on");
    }
}

#[test]
fn a_query_count_beyond_the_data_allocates_nothing() {
    let mut server = Served::new(Tls::Never, 3);
    server.hear(&option(8, b"")).unwrap();
    let (_, out) = server.hear(&option(10, &[string("a"), be(&[(u32::MAX.into(), 4)])].concat())).unwrap();
    assert_eq!(out[..16], reply(10, ERROR | 3, b"")[..16]);
}

#[test]
fn what_ends_a_connection() {
    let long = [b"IHAVEOPT", be(&[(7, 4), (u32::MAX.into(), 4)]).as_slice()].concat();
    let error = Served::new(Tls::Never, 3).hear(&long).unwrap_err();
    assert!(error.contains("option 7 of 4294967295 bytes"), "{error}");
    let error = Served::new(Tls::Never, 3).hear(&[0; 16]).unwrap_err();
    assert!(error.contains("magic"), "{error}");
    let error = Served::new(Tls::Never, 0).hear(&option(3, b"")).unwrap_err();
    assert!(error.contains("without fixed newstyle"), "{error}");
    let mut server = Served::new(Tls::Never, 3);
    let error = (0..300).find_map(|_| server.hear(&option(3, b"")).err()).unwrap();
    assert!(error.contains("more than 256 options"), "{error}");
    let mut handshake = Handshake::new(Tls::Never, &mut Vec::new());
    assert!(handshake.advance(&[0, 0, 0, 7], server.exports.as_slice(), &mut Vec::new()).is_err(), "unknown flags");
}

#[test]
fn a_server_that_requires_tls() {
    let mut server = Served::new(Tls::Required, 3);
    for (number, data) in [(3, vec![]), (8, vec![]), (7, [string("a"), be(&[(0, 2)])].concat())] {
        let (_, out) = server.hear(&option(number, &data)).unwrap();
        assert_eq!(out[..16], reply(number, ERROR | 5, b"")[..16], "option {number}");
    }
    assert_eq!(server.hear(&option(5, b"")).unwrap(), (Progress::StartTls, reply(5, 1, b"")));
    assert_eq!(server.hear(&option(5, b"")).unwrap().1[..16], reply(5, ERROR | 3, b"")[..16], "once only");
    let (session, _) = server.session(&option(1, b"a"));
    assert!(!session.structured);
    assert!(Served::new(Tls::Required, 3).hear(&option(1, b"a")).is_err(), "EXPORT_NAME cannot be refused");
}

#[test]
fn info_without_block_sizes_of_an_export_that_has_them() {
    let mut server = Served::new(Tls::Never, 3);
    server.exports[0].blocks.bytes_min = 512;
    let data = [string("a"), be(&[(0, 2)])].concat();
    let (_, out) = server.hear(&option(6, &data)).unwrap();
    assert!(out.windows(16).any(|part| part == &reply(6, ERROR | 8, b"")[..16]));
    let (session, _) = server.session(&option(7, &data));
    assert_eq!(session.export.blocks.bytes_min, 512);
}

/// Lets a client negotiate with `exports`; returns what both agreed on.
fn agree(
    name: &str,
    exports: &[Export],
    tls: Tls,
    secure: bool,
) -> Result<(headstart_nbd::client::ServerExport, Session), Refused> {
    let mut to_client = Vec::new();
    let mut server = Handshake::new(tls, &mut to_client);
    let (mut client, mut to_server) = (ClientHandshake::new(name), Vec::new());
    if secure {
        client = ClientHandshake::with_tls(name);
    }
    let (mut exported, mut session) = (None, None);
    while exported.is_none() || session.is_none() {
        while exported.is_none() && !client.waits_for_tls() && to_client.len() >= client.needed() {
            let input: Vec<u8> = to_client.drain(..client.needed()).collect();
            exported = client.advance(&input, &mut to_server)?;
        }
        if client.waits_for_tls() {
            client.secured(&mut to_server);
        }
        while session.is_none() && to_server.len() >= server.needed() {
            let input: Vec<u8> = to_server.drain(..server.needed()).collect();
            if let Progress::Transmitting(agreed) = server.advance(&input, exports, &mut to_client)? {
                session = Some(agreed);
            }
        }
    }
    assert!(to_client.is_empty() && to_server.is_empty());
    Ok((exported.unwrap(), session.unwrap()))
}

#[test]
fn client_and_server_agree() {
    let blocks = BlockSizes { bytes_min: 512, bytes_preferred: 8192, bytes_max: 1 << 20 };
    let exports = [Export { blocks, ..export("a", 1 << 30, all_flags()) }, export("b", 7, Flags::READ_ONLY)];
    for (name, chosen) in [("a", &exports[0]), ("b", &exports[1]), ("", &exports[0])] {
        let (seen, session) = agree(name, &exports, Tls::Never, false).unwrap();
        assert_eq!(agree(name, &exports, Tls::Required, true).unwrap().0, seen);
        assert_eq!(
            (seen.size_bytes, seen.flags, seen.blocks),
            (chosen.size_bytes, session.export.flags, chosen.blocks)
        );
        assert_eq!((seen.structured, seen.allocation.is_some()), (session.structured, session.allocation));
        assert!(seen.structured && session.allocation && seen.description == chosen.description);
    }
    let error = agree("zz", &exports, Tls::Never, false).unwrap_err().to_string();
    assert!(error.contains("no export \"zz\": it says \"there is no export of that name\""), "{error}");
    assert_eq!(agree("a", &exports, Tls::Required, false).unwrap_err(), Refused::TlsRequired);
    let error = agree("a", &exports, Tls::Never, true).unwrap_err().to_string();
    assert_eq!(error, "the server has no TLS: it says \"this server has no TLS\"");
}

/// A client's output and result after it has received `heard`.
fn client(heard: &[&[u8]]) -> (Vec<u8>, Result<Option<headstart_nbd::client::ServerExport>, Refused>) {
    let (mut client, mut out, mut end) = (ClientHandshake::new("a"), Vec::new(), Ok(None));
    let mut bytes = heard.concat();
    while end == Ok(None) && !bytes.is_empty() {
        let input: Vec<u8> = bytes.drain(..client.needed()).collect();
        end = client.advance(&input, &mut out);
    }
    (out, end)
}

#[test]
fn a_client_of_an_old_server_falls_back_to_export_name() {
    let greeting = [b"NBDMAGIC".as_slice(), b"IHAVEOPT", &[0, 1]].concat();
    let heard: [&[u8]; 4] = [
        &greeting,
        &reply(8, ERROR | 1, b""),
        &reply(7, ERROR | 1, b"what?"),
        &[be(&[(99, 8), (3, 2)]), vec![0; 124]].concat(),
    ];
    let (out, end) = client(&heard);
    let go = [string("a"), be(&[(2, 2), (2, 2), (3, 2)])].concat();
    assert_eq!(out, [vec![0, 0, 0, 1], option(8, b""), option(7, &go), option(1, b"a")].concat());
    let export = end.unwrap().unwrap();
    assert_eq!((export.size_bytes, export.flags, export.structured), (99, Flags(3), false));
    // Not even fixed newstyle: only EXPORT_NAME can be sent.
    let plain = [b"NBDMAGIC".as_slice(), b"IHAVEOPT", &[0, 0]].concat();
    assert_eq!(client(&[&plain]).0, [vec![0; 4], option(1, b"a")].concat());
}

#[test]
fn a_client_refuses_what_is_no_server() {
    let greeting = [b"NBDMAGIC".as_slice(), b"IHAVEOPT", &[0, 3]].concat();
    let agreed = [greeting.as_slice(), &reply(8, ERROR | 1, b"")].concat();
    let size = |bytes: u64| reply(7, 3, &be(&[(0, 2), (bytes, 8), (1, 2)]));
    let blocks = reply(7, 3, &be(&[(3, 2), (3, 4), (4096, 4), (4096, 4)]));
    let cases: [(&[u8], &str); 7] = [
        (b"HTTP/1.1 400 Bad Request\r\n", "does not greet"),
        (&[b"NBDMAGIC".as_slice(), &be(&[(0x0000_4202_8186_1253, 8)]), &[0, 0]].concat(), "oldstyle"),
        (&[greeting.as_slice(), &reply(7, 1, b"")].concat(), "not a reply to the option"),
        (&[agreed.as_slice(), &reply(7, 1, b"")].concat(), "reply 1 to option 7"),
        (&[agreed.as_slice(), &size(1), &blocks, &reply(7, 1, b"")].concat(), "impossible block sizes"),
        (&[agreed.as_slice(), &size(1 << 63), &reply(7, 1, b"")].concat(), "impossible size"),
        (&[agreed.as_slice(), &reply(7, ERROR | 7, b"go\naway\x1b[2J")].concat(), "it says \"go away [2J\""),
    ];
    for (heard, part) in cases {
        let error = client(&[heard]).1.unwrap_err().to_string();
        assert!(error.contains(part) && !error.contains('\n'), "{error}");
    }
}
