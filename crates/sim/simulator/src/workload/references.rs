//! The references of a scenario, a chunk at a time.

use std::collections::BTreeMap;
use std::sync::Arc;

use headstart_device::Device;
use headstart_layout::{Addresses, FfsKeys, Opens, Placement, Places, Universe};
use headstart_scenario::{Arrival, BlockSize, ComputeKey, Input, Scenario, Survey, WorkloadKeys};
use headstart_trace::{Carries, RecordReader};
use headstart_types::{Block, Bytes, Chosen, KeyError, Program};

use super::cutting::{Cutter, RecordedThink};
use super::filling::Marks;
use super::fitting::fitting;
use super::inline::Inline;
use super::patterned::Patterned;
use super::reading::Reading;
use super::records::Opened;
use super::survey::{pids, survey};
use super::thinking::{factor, thinking, Factor};
use crate::Error;

/// The fields that blocks carry if a scenario labels or places them itself.
const PLACED: Carries = Carries { addresses: true, ..Carries::NOTHING };

/// The references of a scenario, in order.
pub struct References {
    /// Number of distinct blocks if needed; else zero.
    pub distinct: usize,
    /// Blocks of the cache, resolved.
    pub frames: u32,
    /// Initially resident blocks.
    pub initial: Vec<Block>,
    /// The placement that is used; `None` for inline references.
    pub placement: Option<Placement>,
    /// The fields that the trace carries.
    pub carries: Carries,
    /// The source of recorded think times.
    pub recorded: RecordedThink,
    /// Notes on the trace and its processing.
    pub notes: Vec<String>,
    /// Processes in order of their first requests, if each issues its own.
    pub pids: Vec<u32>,
    /// The strings that processes read by a pattern, and whether they share one.
    pub program: Option<Arc<Program>>,
    /// The references themselves; of the first process, if there are several.
    pub reading: Reading,
    /// The last file opened before the run.
    pub opened_last: Option<u32>,
}

impl References {
    /// Prepares the references of `scenario` for disks like `disk`, and the places of their blocks.
    ///
    /// # Errors
    /// An offending key, or an error of the trace.
    pub fn try_new(scenario: &Scenario, disk: &dyn Device) -> Result<(Self, Places), Error> {
        match Opened::new(scenario) {
            Some(opened) => Self::recorded(scenario, opened, disk),
            None if matches!(scenario.workload.input, Input::Pattern) => {
                Ok(Self::of_program(scenario, Patterned::try_new(scenario, disk)?))
            }
            None => Self::named(scenario, Inline::try_new(scenario, disk.capacity_sectors())?),
        }
    }

    /// Only places: processes take their references from the program's strings.
    fn of_program(scenario: &Scenario, patterned: Patterned) -> (Self, Places) {
        let keys = &scenario.workload;
        let Patterned { places, program, distinct } = patterned;
        let references = Self {
            distinct,
            frames: scenario.cache.size.frames(distinct),
            initial: Vec::new(),
            placement: Some(Placement::Address),
            carries: PLACED,
            recorded: RecordedThink::Nothing,
            notes: Vec::new(),
            pids: Vec::new(),
            program: Some(Arc::new(program)),
            reading: Reading::inline(
                None,
                Factor::Scale(keys.section.compute_scale),
                thinking(keys.compute, scenario.seed, 0),
            ),
            opened_last: None,
        };
        (references, places)
    }

    fn named(scenario: &Scenario, inline: Inline) -> Result<(Self, Places), Error> {
        let keys = &scenario.workload;
        let Inline { universe, references, initial, frames } = inline;
        let found = Survey { references: references.len() as u64, ..Survey::default() };
        let thinking = thinking(keys.compute, scenario.seed, 0);
        // Inline blocks have no times.
        time_scale(keys, Carries::default())?;
        let factor = factor(keys, &thinking, &found, scenario.seed)?;
        let references = Self {
            distinct: universe.disk_of.len(),
            frames,
            initial,
            placement: None,
            carries: PLACED,
            recorded: RecordedThink::Nothing,
            notes: Vec::new(),
            pids: Vec::new(),
            program: None,
            reading: Reading::inline(Some(references), factor, thinking),
            opened_last: None,
        };
        Ok((references, Places::new(universe, None, BTreeMap::new())))
    }

    fn recorded(scenario: &Scenario, opened: Opened, disk: &dyn Device) -> Result<(Self, Places), Error> {
        let keys = &scenario.workload;
        let records = opened.read()?;
        let carries = records.carries();
        check_records(scenario, carries)?;
        let by_default = if carries.files { Placement::TableOrder } else { Placement::Address };
        let placement = keys.placement.unwrap_or(by_default);
        let cutter = Cutter::new(keys, carries, placement != Placement::Address);
        let distinct = matches!(keys.addresses, Addresses::Compact { .. }) || scenario.has_footprints();
        let pids = if keys.section.processes.are_several() {
            pids(&opened, keys.section.processes, carries)?
        } else {
            Vec::new()
        };
        let opened_last = match placement {
            Placement::Ffs(FfsKeys { opens: Opens::Before, .. }) => last_to_begin(&opened, pids.last().copied())?,
            _ => None,
        };
        let needed = distinct || placement != Placement::Address || keys.section.compute_total.is_some();
        let found = if needed { survey(&opened, &cutter, distinct)? } else { Arc::default() };
        let mut notes = Vec::new();
        let place = |addresses, found: &Survey| super::placing(scenario, placement, addresses, disk, found);
        let (placing, found) = match keys.addresses {
            Addresses::Auto => {
                let (placing, found, note) = fitting(&opened, &cutter, found, place)?;
                notes.extend(note);
                (placing, found)
            }
            fixed => (place(fixed, &found)?, found),
        };
        // Counts in a note are known if the records have been read once.
        let of_trace = if found.references > 0 { found.note.clone() } else { records.reader().note() };
        notes.splice(0..0, of_trace);
        let frames = scenario.cache.size.frames(found.contents.blocks.len());
        let sizes = if placement == Placement::Address {
            BTreeMap::new()
        } else {
            found.contents.files.iter().copied().collect()
        };
        notes.extend(ignored_sizes(scenario, records.reader()));
        if !carries.addresses && disk.drive_facts().is_some() {
            notes.push(
                "the trace has no addresses: seeks follow the numbers of its objects, and differ from those of \
            a real device"
                    .to_owned(),
            );
        }
        let thinking = thinking(keys.compute, scenario.seed, 0);
        let factor = factor(keys, &thinking, &found, scenario.seed)?;
        let recorded = RecordedThink::of(keys, carries);
        let marks = Marks {
            writes: keys.section.writes.reach_devices(),
            time_scale: time_scale(keys, carries)?,
            bytes: scenario.host.pays_for_blocks(),
            opens: matches!(placement, Placement::Ffs(FfsKeys { opens: Opens::Read, .. })),
            thinks: recorded != RecordedThink::Nothing,
        };
        let references = Self {
            distinct: found.contents.blocks.len(),
            frames,
            initial: Vec::new(),
            placement: Some(placement),
            carries,
            recorded,
            notes,
            pids,
            program: None,
            reading: Reading::of_records(records, cutter, factor, thinking, marks),
            opened_last,
        };
        Ok((references, Places::new(Universe::default(), Some(placing), sizes)))
    }

    /// The references of one process of the same trace, from its first on, in the same universe of blocks.
    ///
    /// # Errors
    /// If the trace cannot be read again.
    pub fn of_process(&self, scenario: &Scenario, pid: u32) -> Result<Reading, Error> {
        let opened = Opened::new(scenario).expect("only records have processes");
        let thinking = thinking(scenario.workload.compute, scenario.seed, pid);
        Ok(self.reading.of_others(opened.of_process(pid).read()?, thinking))
    }
}

/// Checks that records have what the scenario's keys need.
fn check_records(scenario: &Scenario, carries: Carries) -> Result<(), Error> {
    let keys = &scenario.workload;
    if keys.block_size == BlockSize::Object && !carries.objects {
        let allowed = "a size such as \"8KiB\"";
        return Err(KeyError::new("workload.block_size", "the trace has no objects", allowed).into());
    }
    if !carries.addresses {
        without_addresses(scenario)?;
    }
    if keys.compute == ComputeKey::Gaps && !carries.time {
        let allowed = "a time such as \"1ms\", or a trace with times";
        return Err(KeyError::new("workload.compute", "the trace carries no times", allowed).into());
    }
    if !scenario.cache.section.initial.is_empty() {
        let problem = "has block labels, which only inline references have";
        return Err(KeyError::new("cache.initial", problem, "workload.references, or no initial").into());
    }
    Ok(())
}

/// Refuses policies that prefetch by position: object numbers do not represent positions.
fn without_addresses(scenario: &Scenario) -> Result<(), KeyError> {
    let refused = |key: String, name: &str| {
        let problem = format!(
            "{name} reads ahead by position, and the trace has no addresses: its numbers are objects, or blocks in \
            order of first use"
        );
        let allowed =
            "a policy without read-ahead (demand, demand:min, forestall, ...), a predictor such as mithril, or a \
                       trace with addresses (a CSV's column offset or lba; --request-size for a list of byte offsets)";
        Err(KeyError::new(key, problem, allowed))
    };
    let policies = std::iter::once(&scenario.policy).chain(scenario.lower.iter().map(|lower| &lower.policy));
    for (at, policy) in policies.enumerate() {
        if policy.row().is_by_position(&policy.policy.keys) {
            let key = if at == 0 { "policy.name".to_owned() } else { format!("level[{at}].policy.name") };
            return refused(key, policy.name());
        }
    }
    for (at, lower) in scenario.lower.iter().enumerate() {
        let Chosen { row, keys } = &lower.coordinator;
        if (row.by_position)(keys) {
            return refused(format!("level[{}].coordinator.name", at + 1), row.name);
        }
    }
    Ok(())
}

/// The note for a cache size in bytes if the trace's objects differ in size from a block.
fn ignored_sizes(scenario: &Scenario, reader: &dyn RecordReader) -> Option<String> {
    let block = scenario.workload.block_bytes();
    let ignored = reader.carries().objects && (reader.sizes_vary() || reader.unit_bytes() != block);
    (ignored && scenario.sizes_in_bytes()).then(|| {
        let block = Bytes(block);
        format!(
            "the sizes of the trace's objects are ignored: each takes one block, and a cache counts blocks of {block}"
        )
    })
}

/// The first file of the process that begins last: of `pid`, or of the only one.
fn last_to_begin(opened: &Opened, pid: Option<u32>) -> Result<Option<u32>, Error> {
    let opened = opened.clone();
    let mut records = pid.map_or(opened.clone(), |pid| opened.of_process(pid)).read()?;
    Ok(records.next_batch()?.first().map(|record| record.file))
}

/// The factor on arrival times, if they are used.
fn time_scale(keys: &WorkloadKeys, carries: Carries) -> Result<Option<f64>, KeyError> {
    match keys.arrival {
        Arrival::Closed => Ok(None),
        Arrival::Open(scale) if carries.time => Ok(Some(scale)),
        Arrival::Open(_) => {
            Err(KeyError::new("workload.arrival", "the workload carries no times", "\"closed\", or a trace with times"))
        }
    }
}
