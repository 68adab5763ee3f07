//! The client's side of the negotiation: TLS if requested, structured replies and base:allocation if the server
//! supports them, then GO, or `EXPORT_NAME` if the server is too old for GO.

use crate::wire::{self, info, option, option_reply, Reader, Violation};
use crate::{BlockSizes, Flags, PAYLOAD_BYTES_MAX};

/// The export as the server described it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerExport {
    pub size_bytes: u64,
    /// Commands and flags that may be sent.
    pub flags: Flags,
    /// Limits of offsets and lengths. `bytes_max` is at most [`PAYLOAD_BYTES_MAX`].
    pub blocks: BlockSizes,
    /// A sentence for humans, if the server has one.
    pub description: String,
    /// Whether replies are structured.
    pub structured: bool,
    /// The id of base:allocation, if `BLOCK_STATUS` is supported.
    pub allocation: Option<u32>,
}

/// Why there is no session.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The server has no such export.
    #[error("the server has no export {name:?}{}", said(message))]
    NoExport {
        /// The requested name.
        name: String,
        /// The server's message; may be empty.
        message: String,
    },
    /// The server requires TLS.
    #[error("the server requires TLS; allowed: nbds:// or nbds+unix://")]
    TlsRequired,
    /// The server has no TLS.
    #[error("the server has no TLS{}", said(message))]
    NoTls {
        /// The server's message; may be empty.
        message: String,
    },
    /// The server gave another reason.
    #[error("the server refused the export {name:?} (reply {code:#x}){}", said(message))]
    Other {
        /// The requested name.
        name: String,
        /// Code of its reply.
        code: u32,
        /// The server's message; may be empty.
        message: String,
    },
    /// The server violated the protocol, or is no NBD server.
    #[error("not a usable NBD server: {0}")]
    Violation(#[from] Violation),
}

fn said(message: &str) -> String {
    let printable: String = message.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect();
    if printable.is_empty() {
        String::new()
    } else {
        format!(": it says {printable:?}")
    }
}

#[derive(Debug, Clone, Copy)]
enum State {
    Greeting,
    ReplyHeader,
    ReplyData {
        kind: u32,
        length: usize,
    },
    /// The server waits for TLS.
    Securing,
    Exported {
        bytes: usize,
    },
    Over,
}

/// The negotiation of one connection. The server speaks first.
#[derive(Debug)]
pub struct Handshake {
    state: State,
    name: String,
    /// The last option sent.
    option: u32,
    /// Start TLS before anything else.
    tls: bool,
    no_zeroes: bool,
    export: ServerExport,
}

impl Handshake {
    /// Negotiates the export `name`.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            state: State::Greeting,
            name: name.to_owned(),
            option: 0,
            tls: false,
            no_zeroes: false,
            export: ServerExport {
                size_bytes: 0,
                flags: Flags::default(),
                blocks: BlockSizes::default(),
                description: String::new(),
                structured: false,
                allocation: None,
            },
        }
    }

    /// Like [`Self::new`], over TLS; [`Self::waits_for_tls`] tells when to start it.
    #[must_use]
    pub fn with_tls(name: &str) -> Self {
        Self { tls: true, ..Self::new(name) }
    }

    /// Whether TLS must start on the connection now; then call [`Self::secured`].
    #[must_use]
    pub fn waits_for_tls(&self) -> bool {
        matches!(self.state, State::Securing)
    }

    /// Continues over the secure connection. Appends the bytes to send to `out`.
    ///
    /// # Panics
    /// If it was not waiting for TLS.
    pub fn secured(&mut self, out: &mut Vec<u8>) {
        assert!(self.waits_for_tls(), "TLS begins when the server is ready for it");
        self.send(option::STRUCTURED_REPLY, &[], out);
    }

    /// Number of bytes that [`Self::advance`] takes next, at most 64 KiB.
    #[must_use]
    pub fn needed(&self) -> usize {
        match self.state {
            State::Greeting => 18,
            State::ReplyHeader => 20,
            State::ReplyData { length, .. } => length,
            State::Exported { bytes } => bytes,
            State::Securing | State::Over => 0,
        }
    }

    /// Takes the next bytes, and appends the bytes to send to `out`. Returns the export once requests may be sent.
    ///
    /// # Errors
    /// The server refused, or is no NBD server.
    ///
    /// # Panics
    /// If `input` is not [`Self::needed`] long.
    pub fn advance(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Option<ServerExport>, Refused> {
        assert_eq!(input.len(), self.needed(), "the handshake takes what it needs, no more and no less");
        let short = || Violation("a reply that ends early".to_owned());
        let mut reader = Reader(input);
        match self.state {
            State::Greeting => self.greeting(&mut reader, out).ok_or_else(short)??,
            State::ReplyHeader => {
                let magic = reader.u64().ok_or_else(short)?;
                let (option, kind) = (reader.u32().ok_or_else(short)?, reader.u32().ok_or_else(short)?);
                let length = reader.u32().ok_or_else(short)?;
                if magic != wire::OPTION_REPLY_MAGIC || option != self.option {
                    return Err(Violation("not a reply to the option that was sent".to_owned()).into());
                }
                if length > wire::OPTION_BYTES_MAX {
                    return Err(Violation(format!("a reply of {length} bytes to an option")).into());
                }
                self.state = State::ReplyData { kind, length: length as usize };
                if length == 0 {
                    return self.advance(&[], out);
                }
            }
            State::ReplyData { kind, .. } => {
                self.state = State::ReplyHeader;
                return self.reply(kind, input, out);
            }
            State::Exported { .. } => {
                self.export.size_bytes = reader.u64().ok_or_else(short)?;
                self.export.flags = Flags(reader.u16().ok_or_else(short)?);
                return self.over().map(Some);
            }
            State::Securing => {}
            State::Over => return Err(Violation("the handshake is over".to_owned()).into()),
        }
        Ok(None)
    }

    fn greeting(&mut self, reader: &mut Reader<'_>, out: &mut Vec<u8>) -> Option<Result<(), Violation>> {
        let (magic, style, flags) = (reader.u64()?, reader.u64()?, reader.u16()?);
        if magic != wire::GREETING_MAGIC {
            return Some(Violation::new("it does not greet as one"));
        }
        if style != wire::OPTION_MAGIC {
            let why =
                if style == wire::OLDSTYLE_MAGIC { "it speaks the oldstyle protocol" } else { "an unknown style" };
            return Some(Violation::new(why));
        }
        self.no_zeroes = flags & wire::NO_ZEROES != 0;
        let fixed = flags & wire::FIXED_NEWSTYLE != 0;
        out.extend_from_slice(&u32::from(flags & (wire::FIXED_NEWSTYLE | wire::NO_ZEROES)).to_be_bytes());
        if fixed {
            let first = if self.tls { option::STARTTLS } else { option::STRUCTURED_REPLY };
            self.send(first, &[], out);
        } else if self.tls {
            return Some(Violation::new("it is too old for TLS"));
        } else {
            self.send_export_name(out);
        }
        Some(Ok(()))
    }

    fn send(&mut self, option: u32, data: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(&wire::OPTION_MAGIC.to_be_bytes());
        out.extend_from_slice(&option.to_be_bytes());
        out.extend_from_slice(&(data.len() as u32).to_be_bytes());
        out.extend_from_slice(data);
        self.option = option;
        self.state = State::ReplyHeader;
    }

    fn send_export_name(&mut self, out: &mut Vec<u8>) {
        self.send(option::EXPORT_NAME, self.name.clone().as_bytes(), out);
        self.state = State::Exported { bytes: if self.no_zeroes { 10 } else { 134 } };
    }

    fn send_context(&mut self, out: &mut Vec<u8>) {
        let mut data = Vec::new();
        wire::put_string(&mut data, &self.name);
        data.extend_from_slice(&1_u32.to_be_bytes());
        wire::put_string(&mut data, wire::ALLOCATION);
        self.send(option::SET_META_CONTEXT, &data, out);
    }

    fn send_go(&mut self, out: &mut Vec<u8>) {
        let mut data = Vec::new();
        wire::put_string(&mut data, &self.name);
        for number in [2, info::DESCRIPTION, info::BLOCK_SIZE] {
            data.extend_from_slice(&number.to_be_bytes());
        }
        self.send(option::GO, &data, out);
    }

    fn reply(&mut self, kind: u32, data: &[u8], out: &mut Vec<u8>) -> Result<Option<ServerExport>, Refused> {
        let mut reader = Reader(data);
        match (self.option, kind) {
            (option::STARTTLS, option_reply::ACK) => self.state = State::Securing,
            (option::STARTTLS, kind) if kind & option_reply::ERROR != 0 => {
                return Err(Refused::NoTls { message: String::from_utf8_lossy(data).into_owned() });
            }
            (_, option_reply::TLS_REQD) => return Err(Refused::TlsRequired),
            (option::STRUCTURED_REPLY, option_reply::ACK) => {
                self.export.structured = true;
                self.send_context(out);
            }
            (option::STRUCTURED_REPLY, _) => self.send_go(out),
            (option::SET_META_CONTEXT, option_reply::META_CONTEXT) => {
                let id = reader.u32();
                self.export.allocation = id.filter(|_| reader.0 == wire::ALLOCATION.as_bytes());
            }
            // A server that does not know the export repeats the error in its reply to GO.
            (option::SET_META_CONTEXT, _) => self.send_go(out),
            (option::GO, option_reply::INFO) => {
                if self.info(&mut reader).is_none() {
                    return Err(Violation("an information that ends early".to_owned()).into());
                }
            }
            (option::GO, option_reply::ACK) if self.export.flags.contains(Flags::HAS_FLAGS) => {
                return self.over().map(Some);
            }
            (option::GO, option_reply::UNSUP) => self.send_export_name(out),
            (_, kind) if kind & option_reply::ERROR != 0 => {
                let (name, message) = (self.name.clone(), String::from_utf8_lossy(data).into_owned());
                return Err(match kind {
                    option_reply::UNKNOWN => Refused::NoExport { name, message },
                    code => Refused::Other { name, code, message },
                });
            }
            _ => return Err(Violation(format!("reply {kind} to option {}", self.option)).into()),
        }
        Ok(None)
    }

    fn info(&mut self, reader: &mut Reader<'_>) -> Option<()> {
        match reader.u16()? {
            info::EXPORT => {
                self.export.size_bytes = reader.u64()?;
                self.export.flags = Flags(reader.u16()?).with(Flags::HAS_FLAGS);
            }
            info::BLOCK_SIZE => {
                let [bytes_min, bytes_preferred, bytes_max] = [reader.u32()?, reader.u32()?, reader.u32()?];
                self.export.blocks = BlockSizes { bytes_min, bytes_preferred, bytes_max };
            }
            info::DESCRIPTION => self.export.description = String::from_utf8_lossy(reader.0).into_owned(),
            _ => {}
        }
        Some(())
    }

    fn over(&mut self) -> Result<ServerExport, Refused> {
        self.state = State::Over;
        let blocks = &mut self.export.blocks;
        if !blocks.bytes_min.is_power_of_two() || blocks.bytes_min > 64 << 10 || blocks.bytes_max < blocks.bytes_min {
            return Err(
                Violation(format!("impossible block sizes {} to {}", blocks.bytes_min, blocks.bytes_max)).into()
            );
        }
        blocks.bytes_max = blocks.bytes_max.min(PAYLOAD_BYTES_MAX) / blocks.bytes_min * blocks.bytes_min;
        if i64::try_from(self.export.size_bytes).is_err() {
            return Err(Violation(format!("an impossible size of {} bytes", self.export.size_bytes)).into());
        }
        Ok(self.export.clone())
    }
}
