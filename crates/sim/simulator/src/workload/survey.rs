//! A first pass over the records, for what must be known before the first reference.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use headstart_layout::{FileSize, Pages};
use headstart_scenario::{Processes, Survey};
use headstart_trace::{Carries, Record};
use headstart_types::KeyError;

use super::cutting::Cutter;
use super::records::Opened;
use crate::Error;

/// Passes over the records once; `collect` keeps the distinct blocks, which takes memory.
///
/// # Errors
/// An error of the trace.
pub fn survey(opened: &Opened, cutter: &Cutter, collect: bool) -> Result<Arc<Survey>, Error> {
    let (traces, path) = opened.shared();
    traces.survey(path, || format!("{opened:?} {cutter:?} {collect}"), || look(opened, cutter, collect))
}

fn look(opened: &Opened, cutter: &Cutter, collect: bool) -> Result<Survey, Error> {
    // Only a reader that decodes the trace itself has its final note.
    let mut records = opened.alone().read()?;
    let mut sizes: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    let mut found = Survey::default();
    let (mut blocks, mut distinct) = (Pages::default(), 0);
    let mut last: Option<Record> = None;
    loop {
        if !records.advance()? {
            break;
        }
        for record in records.batch() {
            let cut = cutter.cut(record, &records)?;
            found.references += cut.blocks;
            found.compute += last.map_or(0, |last| u128::from(cutter.think(&last, Some(record)).0));
            if collect {
                for at in cut.first..cut.first + cut.blocks {
                    distinct += u32::from(blocks.number(cut.file, at, distinct) == distinct);
                }
                records.check_distinct(distinct as usize, record)?;
            }
            let size = sizes.entry(cut.file).or_default();
            *size = (size.0.max(cut.first + cut.blocks), size.1.max(record.offset.saturating_add(record.size)));
            last = Some(*record);
        }
    }
    found.compute += last.map_or(0, |last| u128::from(cutter.think(&last, None).0));
    found.contents.blocks = blocks.sorted();
    found.note = records.reader().note();
    for entry in records.reader().files() {
        let (blocks, bytes) = sizes.remove(&entry.file).unwrap_or((0, 0));
        found.contents.files.push((entry.file, blocks.max(entry.size_bytes.div_ceil(cutter.block_bytes()))));
        found.contents.file_bytes.push(FileSize { file: entry.file, bytes: bytes.max(entry.size_bytes) });
    }
    found.contents.files.extend(sizes.iter().map(|(file, (blocks, _))| (*file, *blocks)));
    found.contents.file_bytes.extend(sizes.iter().map(|(file, (_, bytes))| FileSize { file: *file, bytes: *bytes }));
    Ok(found)
}

/// Processes in order of their first requests.
///
/// # Errors
/// An error of the trace; if it does not distinguish processes, or files if these are dealt.
pub fn pids(opened: &Opened, processes: Processes, carries: Carries) -> Result<Vec<u32>, Error> {
    if processes == Processes::Dealt && !carries.files {
        let allowed = "\"merged\", or a trace with files";
        return Err(KeyError::new("workload.processes", "the trace does not distinguish files", allowed).into());
    }
    if processes == Processes::PerPid && !carries.processes {
        let allowed = "\"merged\", or a trace with processes";
        return Err(KeyError::new("workload.processes", "the trace does not distinguish processes", allowed).into());
    }
    let (mut records, mut seen, mut order) = (opened.read()?, BTreeSet::new(), Vec::new());
    loop {
        let batch = records.next_batch()?;
        if batch.is_empty() {
            return Ok(order);
        }
        order.extend(batch.iter().map(|record| record.pid).filter(|pid| seen.insert(*pid)));
    }
}
