//! A server over memory, built on the crate's state machines: one thread per connection, with faults on request.

#![allow(dead_code)]

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use headstart_nbd::server::{Handshake, Progress, Session, Tls};
use headstart_nbd::{Address, BlockSizes, Command, Errno, Export, Extent, Flags, Uri, REQUEST_BYTES};

/// Everything a server can offer.
pub fn all_flags() -> Flags {
    [Flags::FLUSH, Flags::FUA, Flags::TRIM, Flags::WRITE_ZEROES, Flags::MULTI_CONN, Flags::CACHE, Flags::FAST_ZERO]
        .into_iter()
        .fold(Flags::HAS_FLAGS, Flags::with)
}

pub fn export(name: &str, size_bytes: u64, flags: Flags) -> Export {
    let description = format!("the export {name}");
    Export { name: name.to_owned(), description, size_bytes, flags, blocks: BlockSizes::default(), allocation: true }
}

/// How a server misbehaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    None,
    /// Reads fail from this offset on.
    ReadsFailFrom(u64),
    /// The connection ends instead of this request.
    ClosesAt(u64),
    /// The content of a read comes in chunks of 1000 bytes, last ones first, with holes for zeroes.
    Scattered,
    /// The content of a read lacks its last byte.
    Short,
    /// Requests of a connection are answered in pairs, the second first.
    Pairs,
    /// This many requests are answered, and no others.
    Mute(u64),
    /// The first half of a reply comes, then nothing.
    Halfway,
    /// The first half of a reply comes, then the end of the connection.
    Broken,
    /// The connection ends before the greeting.
    Away,
}

pub type Memory = Arc<Mutex<Vec<u8>>>;

/// Serves `memory` on a free port of the loopback until the process ends.
pub fn serve_tcp(export: Export, memory: Memory, fault: Fault) -> Uri {
    serve_in_turn(vec![(export, fault)], memory).0
}

/// Like [`serve_tcp`], but each connection is the next of `turns`, and all later ones are the last. The counter is that of
/// connections.
pub fn serve_in_turn(turns: Vec<(Export, Fault)>, memory: Memory) -> (Uri, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let name = turns[0].0.name.clone();
    let counted = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&counted);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let turn = counter.fetch_add(1, Ordering::SeqCst).min(turns.len() - 1);
            let ((export, fault), memory, stream) = (turns[turn].clone(), Arc::clone(&memory), stream.unwrap());
            std::thread::spawn(move || _ = serve(stream, &export, &memory, fault));
        }
    });
    (Uri { address: Address::Tcp("127.0.0.1".to_owned(), port), export: name, tls: None }, counted)
}

/// Like [`serve_tcp`], on a Unix socket.
pub fn serve_unix(path: &Path, export: Export, memory: Memory) -> Uri {
    let listener = UnixListener::bind(path).unwrap();
    let name = export.name.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (export, memory, stream) = (export.clone(), Arc::clone(&memory), stream.unwrap());
            std::thread::spawn(move || _ = serve(stream, &export, &memory, Fault::None));
        }
    });
    Uri { address: Address::Unix(path.to_owned()), export: name, tls: None }
}

/// Serves one connection.
pub fn serve(mut stream: impl Read + Write, export: &Export, memory: &Memory, fault: Fault) -> std::io::Result<()> {
    if fault == Fault::Away {
        return Ok(());
    }
    let mut out = Vec::new();
    let mut handshake = Handshake::new(Tls::Never, &mut out);
    let session = loop {
        stream.write_all(&out)?;
        out.clear();
        let mut input = vec![0; handshake.needed()];
        stream.read_exact(&mut input)?;
        let exports = std::slice::from_ref(export);
        match handshake.advance(&input, exports, &mut out).map_err(std::io::Error::other)? {
            Progress::Transmitting(session) => break session,
            Progress::Negotiating => {}
            Progress::Aborted | Progress::StartTls => return stream.write_all(&out),
        }
    };
    stream.write_all(&out)?;
    let mut held = Vec::new();
    for count in 0.. {
        let mut header = [0; REQUEST_BYTES];
        stream.read_exact(&mut header)?;
        let incoming = session.check(&header).map_err(std::io::Error::other)?;
        let mut payload = vec![0; incoming.payload_bytes as usize];
        stream.read_exact(&mut payload)?;
        if fault == Fault::ClosesAt(count) {
            return Ok(());
        }
        if matches!(fault, Fault::Mute(answered) if count >= answered) {
            continue;
        }
        let mut out = Vec::new();
        session.refused(&incoming, &mut out);
        if let Ok(request) = incoming.request {
            if request.command == Command::Disconnect {
                return Ok(());
            }
            answer(&session, &request, &payload, &mut memory.lock().unwrap(), fault, &mut out);
        }
        if fault == Fault::Pairs && held.is_empty() {
            held = out;
            continue;
        }
        out.append(&mut held);
        if matches!(fault, Fault::Halfway | Fault::Broken) {
            out.truncate(out.len() / 2);
            stream.write_all(&out)?;
            if fault == Fault::Broken {
                return Ok(());
            }
            return std::io::copy(&mut stream, &mut std::io::sink()).map(drop);
        }
        stream.write_all(&out)?;
    }
    Ok(())
}

fn answer(
    session: &Session,
    request: &headstart_nbd::Request,
    payload: &[u8],
    memory: &mut [u8],
    fault: Fault,
    out: &mut Vec<u8>,
) {
    let end = request.offset + u64::from(request.length);
    let content = &mut memory[request.offset as usize..end as usize];
    match request.command {
        Command::Read { .. } if matches!(fault, Fault::ReadsFailFrom(from) if end > from) => {
            session.failed(request.cookie, Errno::Io, "a bad sector", out);
        }
        Command::Read { .. } if fault == Fault::Short => {
            session.data(request.cookie, request.offset, request.length - 1, true, out);
            out.extend_from_slice(&content[1..]);
        }
        Command::Read { single_chunk: false } if fault == Fault::Scattered && session.structured => {
            for (index, chunk) in content.chunks(1000).enumerate().rev() {
                let offset = request.offset + index as u64 * 1000;
                if chunk.iter().all(|byte| *byte == 0) {
                    session.hole(request.cookie, offset, chunk.len() as u32, false, out);
                } else {
                    session.data(request.cookie, offset, chunk.len() as u32, false, out);
                    out.extend_from_slice(chunk);
                }
            }
            session.end(request.cookie, out);
        }
        Command::Read { .. } => {
            session.read_header(request, out);
            out.extend_from_slice(content);
        }
        Command::Write { .. } => content.copy_from_slice(payload),
        Command::Trim { .. } | Command::WriteZeroes { .. } => content.fill(0),
        Command::BlockStatus { .. } => {
            // Page by page; the state machine drops surplus extents.
            let extents: Vec<Extent> = content
                .chunks(4096)
                .map(|page| {
                    let zero = page.iter().all(|byte| *byte == 0);
                    Extent { length: page.len() as u32, hole: zero, zero }
                })
                .collect();
            session.block_status(request, &extents, out);
        }
        Command::Flush | Command::Cache | Command::Disconnect => {}
    }
    if !matches!(request.command, Command::Read { .. } | Command::BlockStatus { .. }) {
        session.done(request.cookie, out);
    }
}
