//! Mithril's tables for recording, mining and prefetching. See [`super::mithril`].

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use super::mithril_keys::MithrilKeys;
use super::{FileBlock, Version};

/// libCacheSim allocates the prefetch table in units of this many rows.
const SHARD_ROWS: usize = 2000;

/// Maximum share of the cache's size for the recording table (libCacheSim's constant).
const RECORDING_SHARE: f64 = 0.02;

/// Sizes and rules, from the keys.
#[derive(Debug, Clone)]
pub(super) struct Rules {
    version: Version,
    lookahead: i64,
    min_support: usize,
    max_support: usize,
    confidence: usize,
    list: usize,
    mining_threshold: usize,
    mining_rows: usize,
    recording_rows: usize,
    /// Rows of the prefetch table, numbered from 0; the first two are never used.
    prefetch_rows: usize,
    clock_mask: u64,
}

impl Rules {
    /// The table sizes are libCacheSim's in each version.
    pub fn of(keys: &MithrilKeys, cache_bytes: u64) -> Self {
        let [min_support, max_support, list] = [keys.min_support, keys.max_support, keys.list].map(|key| key as usize);
        let mining_rows = keys.mining as usize / min_support;
        let recording_row_bytes = 2 * min_support.div_ceil(2) + 12;
        let recording_rows = (cache_bytes as f64 * RECORDING_SHARE / recording_row_bytes as f64) as usize;
        let metadata_bytes = (cache_bytes as f64 * keys.metadata) as usize;
        let shard_bytes = SHARD_ROWS * (list * 8 + 12);
        let recorded = if max_support == 1 { 0 } else { ((min_support.div_ceil(4) + 1) * 8 + 4) * recording_rows };
        let shard_pointers = metadata_bytes / (SHARD_ROWS * list) * 8;
        let base = (max_support * 2 + 12) * mining_rows + shard_pointers + shard_bytes + recorded;
        let more = metadata_bytes.saturating_sub(base).saturating_sub(1) / shard_bytes;
        Self {
            version: keys.version,
            lookahead: keys.lookahead.into(),
            min_support,
            max_support,
            confidence: keys.confidence as usize,
            list,
            mining_threshold: keys.mining as usize,
            mining_rows,
            recording_rows,
            prefetch_rows: (1 + more) * SHARD_ROWS,
            clock_mask: if keys.version == Version::Paper { u32::MAX.into() } else { 0x7fff },
        }
    }

    /// Time `number` (from 1) of a row. libCacheSim packs four times into a word. It reads the count of times instead
    /// of a time if the number is divisible by 4, and the preceding word from the ninth time on.
    fn time(&self, times: &[u32], number: usize) -> i64 {
        if self.version != Version::LibCacheSim {
            return times[number - 1].into();
        }
        let (word, place) = (number / 5, number % 4);
        match place {
            0 => (times.len() - 4 * word).min(4) as i64,
            _ => times[4 * word + place - 1].into(),
        }
    }

    /// Whether a block with `times` and a later one with `others` are associated. `first`: no other block has been
    /// compared with the first one yet.
    fn associates(&self, times: &[u32], others: &[u32], first: bool) -> bool {
        let shorter = times.len().min(others.len());
        let distance = |number| (self.time(times, number) - self.time(others, number)).abs();
        let last = if self.version == Version::LibCacheSim { shorter - 1 } else { shorter };
        let mut associated = first || (shorter == 1 && distance(1) == 1);
        let mut exceptions = 0;
        for number in 1..=last {
            let distance = distance(number);
            exceptions += usize::from(distance > self.lookahead);
            if exceptions > self.confidence {
                return false;
            }
            associated |= distance == 1;
        }
        associated
    }
}

/// A block and the times at which it was recorded.
#[derive(Debug, Clone)]
struct Row {
    block: FileBlock,
    times: Vec<u32>,
}

#[derive(Debug, Clone, Copy)]
enum At {
    Recording(usize),
    Mining(usize),
}

/// The recording table and the mining table.
#[derive(Debug)]
pub(super) struct Mining {
    rules: Rules,
    at: HashMap<FileBlock, At, FxBuildHasher>,
    /// Used from row 1 on.
    recording: Vec<Option<Row>>,
    cursor: usize,
    mining: Vec<Row>,
}

impl Mining {
    pub fn new(rules: Rules) -> Self {
        Self { rules, at: HashMap::default(), recording: vec![None; 2], cursor: 1, mining: Vec::new() }
    }

    pub fn len(&self) -> usize {
        self.at.len()
    }

    /// Records that `block` was requested, or evicted, at `clock`.
    pub fn record(&mut self, block: FileBlock, clock: u64, targets: &mut Targets) {
        let time = (clock & self.rules.clock_mask) as u32;
        match self.at.get(&block).copied() {
            None if self.rules.min_support == 1 => self.start_mining(Row { block, times: vec![time] }),
            None => self.start_recording(block, time),
            Some(At::Recording(row)) => self.record_again(row, time),
            Some(At::Mining(row)) => {
                if self.mining[row].times.len() < self.rules.max_support {
                    self.mining[row].times.push(time);
                } else {
                    self.at.remove(&block);
                    self.mining.swap_remove(row);
                    if let Some(moved) = self.mining.get(row) {
                        self.at.insert(moved.block, At::Mining(row));
                    }
                }
            }
        }
        let single = self.rules.min_support == 1 && self.mining.len() > self.rules.mining_threshold / 8;
        if self.mining.len() >= self.rules.mining_rows || single {
            self.mine(targets);
        }
    }

    fn start_recording(&mut self, block: FileBlock, time: u32) {
        if self.rules.recording_rows < 3 {
            return;
        }
        self.at.insert(block, At::Recording(self.cursor));
        self.recording[self.cursor] = Some(Row { block, times: vec![time] });
        self.cursor += 1;
        if self.cursor >= self.rules.recording_rows {
            self.cursor = 1;
        }
        if self.cursor == self.recording.len() {
            self.recording.push(None);
        }
        if let Some(dropped) = self.recording[self.cursor].take() {
            self.at.remove(&dropped.block);
        }
    }

    /// The row before the cursor fills the hole of a row that moves to the mining table.
    fn record_again(&mut self, row: usize, time: u32) {
        let Some(recorded) = &mut self.recording[row] else { return };
        recorded.times.push(time);
        if recorded.times.len() < self.rules.min_support {
            return;
        }
        let recorded = self.recording[row].take();
        if self.cursor >= 2 {
            self.cursor -= 1;
            if row != self.cursor {
                self.recording[row] = self.recording[self.cursor].take();
                if let Some(moved) = &self.recording[row] {
                    self.at.insert(moved.block, At::Recording(row));
                }
            }
        }
        recorded.into_iter().for_each(|recorded| self.start_mining(recorded));
    }

    fn start_mining(&mut self, row: Row) {
        self.at.insert(row.block, At::Mining(self.mining.len()));
        self.mining.push(row);
    }

    fn mine(&mut self, targets: &mut Targets) {
        let mut mining = std::mem::take(&mut self.mining);
        for row in &mining {
            self.at.remove(&row.block);
        }
        mining.sort_by_key(|row| row.times[0]);
        for (number, row) in mining.iter().enumerate() {
            let mut first = true;
            for other in &mining[number + 1..] {
                if i64::from(other.times[0]) - i64::from(row.times[0]) > self.rules.lookahead {
                    break;
                }
                if row.times.len().abs_diff(other.times.len()) > self.rules.confidence {
                    continue;
                }
                if self.rules.associates(&row.times, &other.times, std::mem::take(&mut first)) {
                    targets.add(row.block, other.block);
                }
            }
        }
        mining.clear();
        self.mining = mining;
    }
}

/// The prefetch table.
#[derive(Debug)]
pub(super) struct Targets {
    list: usize,
    /// Maximum number of rows. A full table is reused from row 2 up to `reused_end`.
    rows_max: usize,
    reused_end: usize,
    full: bool,
    cursor: usize,
    row_of: HashMap<FileBlock, usize, FxBuildHasher>,
    rows: Vec<(FileBlock, Vec<FileBlock>)>,
}

impl Targets {
    pub fn new(rules: &Rules) -> Self {
        let rows_max = rules.prefetch_rows;
        let reused_end = if rules.version == Version::Paper { rows_max } else { SHARD_ROWS };
        let unused = vec![((0, 0), Vec::new()); 2];
        Self {
            list: rules.list,
            rows_max,
            reused_end,
            full: false,
            cursor: 1,
            row_of: HashMap::default(),
            rows: unused,
        }
    }

    pub fn len(&self) -> usize {
        self.rows.iter().map(|(_, targets)| targets.len()).sum()
    }

    /// The blocks to prefetch with `block`.
    pub fn of(&self, block: FileBlock) -> &[FileBlock] {
        self.row_of.get(&block).map_or(&[], |row| &self.rows[*row].1)
    }

    fn add(&mut self, block: FileBlock, target: FileBlock) {
        if let Some(row) = self.row_of.get(&block) {
            let targets = &mut self.rows[*row].1;
            if !targets.contains(&target) {
                if targets.len() == self.list {
                    targets.remove(0);
                }
                targets.push(target);
            }
            return;
        }
        self.cursor += 1;
        let row = (block, vec![target]);
        if self.full {
            let dropped = std::mem::replace(&mut self.rows[self.cursor], row);
            self.row_of.remove(&dropped.0);
        } else {
            self.rows.push(row);
        }
        self.row_of.insert(block, self.cursor);
        let end = if self.full { self.reused_end } else { self.rows_max };
        if self.cursor + 1 >= end {
            self.full = true;
            self.cursor = 1;
        }
    }
}
