//! The server's side of fixed newstyle negotiation: a greeting, the client's flags, then options until one of them
//! chooses an export. The state machine states how many bytes come next, so that a host never reads past the
//! negotiation.

use super::options::{self, Answers};
use super::Session;
use crate::wire::{self, option, option_reply, Reader, Violation};
use crate::{Export, Exports, Flags};

/// Maximum number of options before an export is chosen. Clients send four or five, and request a list of exports once.
const OPTIONS_MAX: u32 = 256;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tls {
    /// No TLS: STARTTLS is refused.
    Never,
    /// Everything else is refused before STARTTLS.
    Required,
}

/// What to do after [`Handshake::advance`], once its output is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// Read [`Handshake::needed`] bytes.
    Negotiating,
    /// Start TLS on the connection, then continue. A host that has read more bytes than needed must drop them.
    StartTls,
    /// Requests follow.
    Transmitting(Session),
    /// The client wants no export: close the connection.
    Aborted,
}

#[derive(Debug, Clone, Copy)]
enum State {
    ClientFlags,
    Header,
    Data { option: u32, length: usize },
    Over,
}

/// The negotiation of one connection.
#[derive(Debug)]
pub struct Handshake {
    state: State,
    tls: Tls,
    secured: bool,
    fixed: bool,
    no_zeroes: bool,
    option_count: u32,
    structured: bool,
    /// Name of the export for which base:allocation was last chosen.
    allocation_of: Option<String>,
}

impl Handshake {
    /// Appends the greeting to `out`.
    #[must_use]
    pub fn new(tls: Tls, out: &mut Vec<u8>) -> Self {
        out.extend_from_slice(&wire::GREETING_MAGIC.to_be_bytes());
        out.extend_from_slice(&wire::OPTION_MAGIC.to_be_bytes());
        out.extend_from_slice(&(wire::FIXED_NEWSTYLE | wire::NO_ZEROES).to_be_bytes());
        Self {
            state: State::ClientFlags,
            tls,
            secured: false,
            fixed: false,
            no_zeroes: false,
            option_count: 0,
            structured: false,
            allocation_of: None,
        }
    }

    /// Number of bytes that [`Self::advance`] takes next, at most 64 KiB.
    #[must_use]
    pub fn needed(&self) -> usize {
        match self.state {
            State::ClientFlags => 4,
            State::Header => 16,
            State::Data { length, .. } => length,
            State::Over => 0,
        }
    }

    /// Takes the next bytes, and appends the answer to `out`. Write it before anything else, even after a violation.
    ///
    /// # Errors
    /// The client violated the protocol, or chose an export that does not exist by `EXPORT_NAME`, which has no error
    /// reply.
    ///
    /// # Panics
    /// If `input` is not [`Self::needed`] long.
    pub fn advance(
        &mut self,
        input: &[u8],
        exports: &(impl Exports + ?Sized),
        out: &mut Vec<u8>,
    ) -> Result<Progress, Violation> {
        assert_eq!(input.len(), self.needed(), "the handshake takes what it needs, no more and no less");
        let mut reader = Reader(input);
        match self.state {
            State::ClientFlags => {
                let flags = reader.u32().expect("four bytes");
                let known = u32::from(wire::FIXED_NEWSTYLE | wire::NO_ZEROES);
                if flags & !known != 0 {
                    return Violation::new(format!("unknown client flags {flags:#x}"));
                }
                self.fixed = flags & u32::from(wire::FIXED_NEWSTYLE) != 0;
                self.no_zeroes = flags & u32::from(wire::NO_ZEROES) != 0;
                self.state = State::Header;
                Ok(Progress::Negotiating)
            }
            State::Header => {
                let magic = reader.u64().expect("16 bytes");
                let (option, length) = (reader.u32().expect("16 bytes"), reader.u32().expect("16 bytes"));
                if magic != wire::OPTION_MAGIC {
                    return Violation::new("an option without its magic number");
                }
                if length > wire::OPTION_BYTES_MAX {
                    return Violation::new(format!(
                        "option {option} of {length} bytes; at most {}",
                        wire::OPTION_BYTES_MAX
                    ));
                }
                self.option_count += 1;
                if self.option_count > OPTIONS_MAX {
                    return Violation::new(format!("more than {OPTIONS_MAX} options"));
                }
                self.state = State::Data { option, length: length as usize };
                if length == 0 {
                    return self.advance(&[], exports, out);
                }
                Ok(Progress::Negotiating)
            }
            State::Data { option, .. } => {
                self.state = State::Header;
                let progress = self.option(option, input, exports, out)?;
                if matches!(progress, Progress::Transmitting(_) | Progress::Aborted) {
                    self.state = State::Over;
                }
                Ok(progress)
            }
            State::Over => Ok(Progress::Aborted),
        }
    }

    fn option(
        &mut self,
        option: u32,
        data: &[u8],
        exports: &(impl Exports + ?Sized),
        out: &mut Vec<u8>,
    ) -> Result<Progress, Violation> {
        if !self.fixed && option != option::EXPORT_NAME {
            return Violation::new(format!("option {option} from a client without fixed newstyle negotiation"));
        }
        let plain = self.tls == Tls::Required && !self.secured;
        let mut answers = Answers { option, out };
        match option {
            option::EXPORT_NAME if plain => return Violation::new("an export was chosen before TLS"),
            option::EXPORT_NAME => {
                let Some(export) = wire::string(data).and_then(|name| exports.find(name)) else {
                    return Violation::new(format!("no export {:?}", String::from_utf8_lossy(data)));
                };
                let session = self.session(export, data);
                out.extend_from_slice(&session.export.size_bytes.to_be_bytes());
                out.extend_from_slice(&session.export.flags.0.to_be_bytes());
                if !self.no_zeroes {
                    out.extend_from_slice(&[0; 124]);
                }
                return Ok(Progress::Transmitting(session));
            }
            option::ABORT => {
                answers.ack();
                return Ok(Progress::Aborted);
            }
            option::STARTTLS if self.tls == Tls::Never => answers.error(option_reply::POLICY, "this server has no TLS"),
            option::STARTTLS if self.secured => answers.error(option_reply::INVALID, "TLS has been started"),
            option::STARTTLS if !data.is_empty() => answers.error(option_reply::INVALID, "STARTTLS has no data"),
            option::STARTTLS => {
                answers.ack();
                (self.secured, self.structured, self.allocation_of) = (true, false, None);
                return Ok(Progress::StartTls);
            }
            _ if plain => answers.error(option_reply::TLS_REQD, "TLS has to be started first"),
            option::LIST if data.is_empty() => {
                for (name, description) in exports.list() {
                    answers.server(&name, &description);
                }
                answers.ack();
            }
            option::STRUCTURED_REPLY if data.is_empty() => {
                self.structured = true;
                answers.ack();
            }
            option::LIST | option::STRUCTURED_REPLY => answers.error(option_reply::INVALID, "the option has no data"),
            option::INFO | option::GO => return Ok(self.choose(data, exports, answers)),
            option::LIST_META_CONTEXT | option::SET_META_CONTEXT => self.contexts(data, exports, answers),
            _ => answers.error(option_reply::UNSUP, "the option is unknown"),
        }
        Ok(Progress::Negotiating)
    }

    /// INFO and GO.
    fn choose(&self, data: &[u8], exports: &(impl Exports + ?Sized), mut answers: Answers<'_>) -> Progress {
        let Some((name, infos)) = options::parse_choice(data) else {
            answers.error(option_reply::INVALID, "not a name and a list of informations");
            return Progress::Negotiating;
        };
        let Some(export) = exports.find(name) else {
            answers.error(option_reply::UNKNOWN, "there is no export of that name");
            return Progress::Negotiating;
        };
        let asked = |info| infos.contains(&info);
        let session = self.session(export, name.as_bytes());
        answers.infos(&session.export, &asked);
        let go = answers.option == option::GO;
        // As in qemu-nbd: INFO without a query for block sizes gets an error; GO succeeds, and unaligned requests are
        // refused later.
        if !go && session.export.blocks.bytes_min > 1 && !asked(wire::info::BLOCK_SIZE) {
            answers.error(option_reply::BLOCK_SIZE_REQD, "ask for the block sizes too");
            return Progress::Negotiating;
        }
        answers.ack();
        if go {
            Progress::Transmitting(session)
        } else {
            Progress::Negotiating
        }
    }

    /// `LIST_META_CONTEXT` and `SET_META_CONTEXT`.
    fn contexts(&mut self, data: &[u8], exports: &(impl Exports + ?Sized), mut answers: Answers<'_>) {
        let set = answers.option == option::SET_META_CONTEXT;
        if set {
            self.allocation_of = None;
        }
        let Some((name, queries)) = options::parse_queries(data).filter(|_| self.structured) else {
            let why =
                if self.structured { "not a name and a list of queries" } else { "structured replies come first" };
            return answers.error(option_reply::INVALID, why);
        };
        let Some(export) = exports.find(name) else {
            return answers.error(option_reply::UNKNOWN, "there is no export of that name");
        };
        let listed = !set && (queries.is_empty() || queries.contains(&"base:"));
        if export.allocation && (listed || queries.contains(&wire::ALLOCATION)) {
            answers.allocation(if set { Session::CONTEXT } else { 0 });
            if set {
                self.allocation_of = Some(name.to_owned());
            }
        }
        answers.ack();
    }

    /// The session for `export`, chosen by `name`.
    fn session(&self, mut export: Export, name: &[u8]) -> Session {
        let flags = export.flags.with(Flags::HAS_FLAGS);
        export.flags = if self.structured { flags.with(Flags::DF) } else { flags.without(Flags::DF) };
        let allocation = self.structured && self.allocation_of.as_ref().is_some_and(|chosen| chosen.as_bytes() == name);
        Session { export, structured: self.structured, allocation }
    }
}
