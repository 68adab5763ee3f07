//! Output to a client: replies in order, with the pages of reads sent from where they are.

use std::collections::VecDeque;
use std::io::IoSlice;

use crate::work::Data;

/// Replies up to this length are joined.
const SMALL_BYTES: usize = 8 << 10;
/// Maximum number of buffers per system call, as the system allows.
const SLICES_MAX: usize = 1024;

#[derive(Debug)]
enum Part {
    Own(Vec<u8>),
    /// Data of a read's reply, and the memory it takes.
    Data(Data, usize),
}

impl Part {
    fn length(&self) -> usize {
        match self {
            Self::Own(bytes) => bytes.len(),
            Self::Data(data, _) => data.length(),
        }
    }

    fn cost(&self) -> usize {
        match self {
            Self::Own(bytes) => bytes.len(),
            Self::Data(_, cost) => *cost,
        }
    }
}

/// Output that has not been written.
#[derive(Debug, Default)]
pub struct Outgoing {
    parts: VecDeque<Part>,
    /// Written bytes of the first part.
    written: usize,
    cost: usize,
    sent: u64,
}

impl Outgoing {
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Memory that it takes.
    pub fn cost(&self) -> usize {
        self.cost
    }

    /// All bytes written so far.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Appends the data of a reply, which takes `cost` of memory.
    pub fn push_data(&mut self, data: Data, cost: usize) {
        self.cost += cost;
        self.parts.push_back(Part::Data(data, cost));
    }

    /// Appends other bytes.
    pub fn push(&mut self, bytes: Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        self.cost += bytes.len();
        match self.parts.back_mut() {
            Some(Part::Own(last)) if bytes.len() <= SMALL_BYTES && last.len() <= 8 * SMALL_BYTES => {
                last.extend_from_slice(&bytes);
            }
            _ => self.parts.push_back(Part::Own(bytes)),
        }
    }

    /// `bytes` were written. Appends completely written data of reads to `used`.
    pub fn wrote(&mut self, bytes: usize, used: &mut Vec<Data>) {
        self.sent += bytes as u64;
        self.written += bytes;
        while let Some(length) = self.parts.front().map(Part::length).filter(|length| *length <= self.written) {
            self.written -= length;
            let Some(part) = self.parts.pop_front() else { return };
            self.cost -= part.cost();
            if let Part::Data(data, _) = part {
                used.push(data);
            }
        }
    }

    /// Removes the unwritten data of reads.
    pub fn unsent(&mut self) -> impl Iterator<Item = Data> + '_ {
        self.parts.drain(..).filter_map(|part| if let Part::Data(data, _) = part { Some(data) } else { None })
    }

    /// Buffers to write next, of about `bytes`.
    pub fn slices(&self, bytes: usize) -> Vec<IoSlice<'_>> {
        let mut slices = Vec::new();
        let (mut at, mut left) = (self.written, bytes);
        for part in &self.parts {
            match part {
                Part::Own(own) => {
                    slices.push(IoSlice::new(&own[at..]));
                    left = left.saturating_sub(own.len() - at);
                }
                Part::Data(data, _) => {
                    for slice in data.slices(at).take(SLICES_MAX - slices.len()) {
                        if left == 0 {
                            break;
                        }
                        slices.push(IoSlice::new(slice));
                        left = left.saturating_sub(slice.len());
                    }
                }
            }
            if left == 0 || slices.len() == SLICES_MAX {
                break;
            }
            at = 0;
        }
        slices
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::BytesMut;

    use super::*;

    #[test]
    fn a_turn_has_its_bytes_and_a_page_more_at_most() {
        let mut out = Outgoing::default();
        let pages: Vec<_> = (0..300).map(|_| Arc::new(BytesMut::zeroed(4096))).collect();
        out.push(vec![1; 16]);
        out.push_data(Data::new(pages, 0, 300 * 4096), 300 * 4096 + 512);
        out.push(vec![2; 16]);
        let length = |out: &Outgoing, bytes| out.slices(bytes).iter().map(|slice| slice.len()).sum::<usize>();
        assert_eq!([length(&out, 10), length(&out, 17), length(&out, 65536)], [16, 16 + 4096, 16 + 16 * 4096]);
        assert_eq!(length(&out, 1 << 30), 300 * 4096 + 32);
        // The memory of a reply is released when all of it has been written.
        let mut used = Vec::new();
        out.wrote(16 + 4096 * 299, &mut used);
        assert_eq!((out.cost(), used.len(), length(&out, 65536)), (300 * 4096 + 512 + 16, 0, 4096 + 16));
        out.wrote(4096, &mut used);
        assert_eq!((out.cost(), used.len(), out.is_empty()), (16, 1, false));
        out.wrote(16, &mut used);
        assert_eq!((out.cost(), out.is_empty(), out.sent()), (0, true, 300 * 4096 + 32));
    }
}
