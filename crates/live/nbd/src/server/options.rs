//! Parses options, and builds the replies to them.

use crate::wire::{self, info, option_reply, Reader};
use crate::Export;

/// Parses the name and the queries of INFO and GO.
pub(super) fn parse_choice(data: &[u8]) -> Option<(&str, Vec<u16>)> {
    let mut reader = Reader(data);
    let name = reader.string()?;
    let count = reader.u16()?;
    let infos = (0..count).map(|_| reader.u16()).collect::<Option<_>>()?;
    reader.0.is_empty().then_some((name, infos))
}

/// Parses the export's name and the queries of `LIST_META_CONTEXT` and `SET_META_CONTEXT`.
pub(super) fn parse_queries(data: &[u8]) -> Option<(&str, Vec<&str>)> {
    let mut reader = Reader(data);
    let name = reader.string()?;
    let count = reader.u32()?;
    let queries = (0..count).map(|_| reader.string()).collect::<Option<_>>()?;
    reader.0.is_empty().then_some((name, queries))
}

/// Appends the replies to an option.
pub(super) struct Answers<'a> {
    pub option: u32,
    pub out: &'a mut Vec<u8>,
}

impl Answers<'_> {
    fn reply(&mut self, kind: u32, data: &[&[u8]]) {
        let length: usize = data.iter().map(|part| part.len()).sum();
        self.out.extend_from_slice(&wire::OPTION_REPLY_MAGIC.to_be_bytes());
        for number in [self.option, kind, length as u32] {
            self.out.extend_from_slice(&number.to_be_bytes());
        }
        for part in data {
            self.out.extend_from_slice(part);
        }
    }

    pub fn ack(&mut self) {
        self.reply(option_reply::ACK, &[]);
    }

    pub fn error(&mut self, kind: u32, message: &str) {
        self.reply(kind, &[message.as_bytes()]);
    }

    pub fn server(&mut self, name: &str, description: &str) {
        let length = (name.len() as u32).to_be_bytes();
        self.reply(option_reply::SERVER, &[&length, name.as_bytes(), description.as_bytes()]);
    }

    pub fn allocation(&mut self, id: u32) {
        self.reply(option_reply::META_CONTEXT, &[&id.to_be_bytes(), wire::ALLOCATION.as_bytes()]);
    }

    /// The replies to INFO and GO: size, flags and block sizes always, name and description if `asked`.
    pub fn infos(&mut self, export: &Export, asked: &dyn Fn(u16) -> bool) {
        let kind = |info: u16| info.to_be_bytes();
        let (size, flags) = (export.size_bytes.to_be_bytes(), export.flags.0.to_be_bytes());
        self.reply(option_reply::INFO, &[&kind(info::EXPORT), &size, &flags]);
        if asked(info::NAME) {
            self.reply(option_reply::INFO, &[&kind(info::NAME), export.name.as_bytes()]);
        }
        if asked(info::DESCRIPTION) && !export.description.is_empty() {
            self.reply(option_reply::INFO, &[&kind(info::DESCRIPTION), export.description.as_bytes()]);
        }
        let sizes = [export.blocks.bytes_min, export.blocks.bytes_preferred, export.blocks.bytes_max];
        let [min, preferred, max] = sizes.map(u32::to_be_bytes);
        self.reply(option_reply::INFO, &[&kind(info::BLOCK_SIZE), &min, &preferred, &max]);
    }
}
