//! Entry point for arbitrary input, used by the fuzz target and the short tests.

use crate::client::{Handshake as ClientHandshake, Replies, Reply};
use crate::server::{Handshake, Progress, Tls};
use crate::wire::Violation;
use crate::{BlockSizes, Command, Errno, Export, Extent, Flags, REQUEST_BYTES};

/// Exports for fuzzed connections: one with everything, and one read-only with blocks of 4 KiB.
fn exports() -> [Export; 2] {
    let all = (2..=11).filter(|bit| *bit != 9).fold(Flags::HAS_FLAGS, |flags, bit| flags.with(Flags(1 << bit)));
    let first = Export {
        name: "a".to_owned(),
        description: "all of it".to_owned(),
        size_bytes: 1 << 20,
        flags: all,
        blocks: BlockSizes::default(),
        allocation: true,
    };
    let flags = Flags::HAS_FLAGS.with(Flags::READ_ONLY);
    let blocks = BlockSizes { bytes_min: 4096, bytes_preferred: 4096, bytes_max: 65536 };
    [first.clone(), Export { name: "b".to_owned(), flags, blocks, allocation: false, ..first }]
}

/// Plays a connection whose peer sends `content`: the first byte selects the side under test (a server without TLS, one
/// that requires it, a client without and with it), the rest is its input. Returns the number of messages understood.
/// It must return for any input.
///
/// # Errors
/// As the state machines.
///
/// # Panics
/// A state machine breaks a promise, which fuzzing looks for.
pub fn fuzz_nbd(content: &[u8]) -> Result<u64, Violation> {
    let Some((selector, mut heard)) = content.split_first() else { return Ok(0) };
    match selector % 4 {
        0 => server(&mut heard, Tls::Never),
        1 => server(&mut heard, Tls::Required),
        2 => client(&mut heard, false),
        _ => client(&mut heard, true),
    }
}

fn take<'a>(heard: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = heard.split_at_checked(count)?;
    *heard = rest;
    Some(taken)
}

fn server(heard: &mut &[u8], tls: Tls) -> Result<u64, Violation> {
    let (exports, mut out, mut count) = (exports(), Vec::new(), 0);
    let mut handshake = Handshake::new(tls, &mut out);
    let session = loop {
        assert!(handshake.needed() <= 64 << 10);
        let Some(input) = take(heard, handshake.needed()) else { return Ok(count) };
        out.clear();
        match handshake.advance(input, exports.as_slice(), &mut out)? {
            Progress::Transmitting(session) => break session,
            Progress::Aborted => return Ok(count),
            Progress::Negotiating | Progress::StartTls => count += 1,
        }
        assert!(out.len() <= 16 << 10, "an answer is bounded");
    };
    while let Some(header) = take(heard, REQUEST_BYTES) {
        let incoming = session.check(header.try_into().expect("its length"))?;
        out.clear();
        session.refused(&incoming, &mut out);
        if let Ok(request) = incoming.request {
            let end = request.offset.checked_add(request.length.into()).expect("no overflow");
            assert!(request.command == Command::Disconnect || end <= session.export.size_bytes, "within the export");
            match request.command {
                Command::Disconnect => break,
                Command::Read { .. } => session.read_header(&request, &mut out),
                Command::BlockStatus { .. } => {
                    let extent = Extent { length: u32::MAX, hole: true, zero: true };
                    session.block_status(&request, &[extent], &mut out);
                }
                _ => session.done(request.cookie, &mut out),
            }
        }
        assert!(!out.is_empty(), "every request is answered");
        count += 1;
        if take(heard, incoming.payload_bytes as usize).is_none() {
            break;
        }
    }
    Ok(count)
}

fn client(heard: &mut &[u8], tls: bool) -> Result<u64, Violation> {
    let begin = if tls { ClientHandshake::with_tls } else { ClientHandshake::new };
    let (mut handshake, mut out, mut count) = (begin("a"), Vec::new(), 0);
    loop {
        assert!(handshake.needed() <= 64 << 10);
        let Some(input) = take(heard, handshake.needed()) else { return Ok(count) };
        out.clear();
        match handshake.advance(input, &mut out) {
            Ok(None) if handshake.waits_for_tls() => handshake.secured(&mut out),
            Ok(None) => count += 1,
            Ok(Some(export)) => {
                assert!(export.blocks.bytes_min > 0 && export.blocks.bytes_max >= export.blocks.bytes_min);
                break;
            }
            Err(error) => {
                let text = error.to_string();
                assert!(!text.contains('\n'), "{text:?}");
                return Violation::new(text);
            }
        }
    }
    let mut replies = Replies::default();
    loop {
        assert!(replies.needed() <= 1 << 20);
        let Some(input) = take(heard, replies.needed()) else { return Ok(count) };
        let Some(reply) = replies.advance(input)? else { continue };
        count += 1;
        match reply {
            Reply::Data { length, .. } if take(heard, length as usize).is_none() => return Ok(count),
            Reply::Failed { error, .. } => assert!(Errno::from_code(error.code()) == Some(error)),
            _ => {}
        }
    }
}
