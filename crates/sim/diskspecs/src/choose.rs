//! Chooses the disk of the files, and collects the components between it and the host.

use crate::error::{FilePosition, ImportError};
use crate::params::{chain, number, Notes, Params};
use crate::parser::{split_number, Block, Component, Document, Kind, Value};

/// The chosen drive: its disk block, or its model block if there is no disk block.
pub(crate) enum Chosen<'a> {
    /// `disksim_disk`, with the components above it in the topology, outermost first.
    Disk(&'a Block, Vec<&'a Block>),
    /// `dm_disk`: mechanics and layout only.
    Model(&'a Block),
}

/// The disk that `name` (of its block, or of an instance) refers to; without a name the one that is instantiated, or
/// else the only one.
pub(crate) fn choose<'a>(document: &'a Document, name: Option<&str>) -> Result<Chosen<'a>, ImportError> {
    let (mut disks, mut models) = (Vec::new(), Vec::new());
    for block in &document.blocks {
        match chain(document, block)?.last().map(|base| base.kind.as_str()) {
            Some("disksim_disk") => disks.push(block),
            Some("dm_disk") => models.push(block),
            _ => {}
        }
    }
    let candidates = if disks.is_empty() { &models } else { &disks };
    let named = |block: &&&Block, name: &str| {
        block.name.as_deref() == Some(name) || instances_of(document, block).any(|list| holds(list, name))
    };
    let instantiated: Vec<&&Block> =
        candidates.iter().filter(|block| instances_of(document, block).next().is_some()).collect();
    let found: Vec<&&Block> = match name {
        Some(name) => candidates.iter().filter(|block| named(block, name)).collect(),
        None if instantiated.is_empty() => candidates.iter().collect(),
        None => instantiated,
    };
    let [block] = found[..] else { return Err(not_one(document, candidates, name)) };
    match disks.is_empty() {
        true => Ok(Chosen::Model(block)),
        false => Ok(Chosen::Disk(block, above(document, block, name))),
    }
}

fn not_one(document: &Document, candidates: &[&Block], name: Option<&str>) -> ImportError {
    let at = FilePosition::whole(&document.files[0]);
    let names: Vec<&str> = candidates.iter().filter_map(|block| block.name.as_deref()).collect();
    let listed = names.join(", ");
    match name {
        _ if candidates.is_empty() => {
            ImportError::at(&at, "holds no disk", "a file with a block disksim_disk or dm_disk, or that sources one")
        }
        Some(name) => ImportError::at(&at, format!("holds no one disk \"{name}\""), listed),
        None => ImportError::at(&at, format!("holds {} disks", names.len()), format!("the name of one: {listed}")),
    }
}

/// The lists of `instantiate [...] as` this block.
fn instances_of<'a>(document: &'a Document, block: &'a Block) -> impl Iterator<Item = &'a [Value]> {
    let of_block = move |kind: &String| block.name.as_ref() == Some(kind);
    document.instances.iter().filter(move |(_, kind, _)| of_block(kind)).map(|(list, ..)| list.as_slice())
}

/// Whether a list of `instantiate` contains this name.
fn holds(list: &[Value], name: &str) -> bool {
    list.iter().any(|value| match &value.kind {
        Kind::Word(word) => word == name,
        Kind::Range(prefix, first, last) => {
            split_number(name).is_some_and(|(same, number)| same == prefix && (*first..=*last).contains(&number))
        }
        _ => false,
    })
}

/// The blocks of the components between the host and the disk, outermost first; empty without a topology.
fn above<'a>(document: &'a Document, disk: &'a Block, name: Option<&str>) -> Vec<&'a Block> {
    let is_disk = |component: &Component| {
        let by_name = name.is_none_or(|name| disk.name.as_deref() == Some(name) || component.name == name);
        by_name && instances_of(document, disk).any(|list| holds(list, &component.name))
    };
    let mut path = Vec::new();
    if !document.topology.iter().any(|root| descend(root, &is_disk, &mut path)) {
        return Vec::new();
    }
    let block_of = |component: &&str| {
        let (_, kind, _) = document.instances.iter().find(|(list, ..)| holds(list, component))?;
        document.by_name.get(kind).map(|index| &document.blocks[*index])
    };
    path.iter().filter_map(block_of).collect()
}

/// The names from `component` down to the disk, without the disk; the parser bounds the depth.
fn descend<'a>(component: &'a Component, is_disk: &dyn Fn(&Component) -> bool, path: &mut Vec<&'a str>) -> bool {
    if is_disk(component) {
        return true;
    }
    path.push(&component.name);
    let below = component.below.iter().any(|value| match &value.kind {
        Kind::Component(component) => descend(component, is_disk, path),
        _ => false,
    });
    if !below {
        path.pop();
    }
    below
}

/// Transfer times of a sector to the host, and where they were found.
pub(crate) struct Way {
    pub(crate) read_millis: f64,
    pub(crate) write_millis: f64,
    /// Where they were found.
    pub(crate) from: Vec<FilePosition>,
}

/// The transfer time of a sector through the bus and controller above the disk: the slower of the innermost bus and the
/// controllers (DiskSim 4.0 manual, disk parameter "Bulk sector transfer time"). Warns about all other components above
/// that take time.
pub(crate) fn way(document: &Document, above: &[&Block], notes: &mut Notes) -> Result<Way, ImportError> {
    let mut way = Way { read_millis: 0.0, write_millis: 0.0, from: Vec::new() };
    let mut bus_seen = false;
    for block in above.iter().rev() {
        let mut params = Params::try_new(document, block)?;
        match params.base() {
            "disksim_bus" => {
                let read = params.millis("Read block transfer time")?.unwrap_or(0.0);
                let write = params.millis("Write block transfer time")?.unwrap_or(0.0);
                if !bus_seen {
                    way.slower(read, write, params.at());
                } else if read > 0.0 || write > 0.0 {
                    notes.warn(params.at(), "an outer bus takes time: only the bus at the disk is modelled");
                }
                bus_seen = true;
                not_zero(&mut params, &["Arbitration time"], notes)?;
            }
            "disksim_ctlr" => {
                let sector = params.millis("Bulk sector transfer time")?.unwrap_or(0.0);
                way.slower(sector, sector, params.at());
                not_zero(&mut params, &["Scale for delays"], notes)?;
            }
            "disksim_iodriver" => {
                not_zero(&mut params, &["Constant access time"], notes)?;
                scheduler(document, &mut params, notes)?;
            }
            _ => {}
        }
    }
    Ok(way)
}

impl Way {
    fn slower(&mut self, read: f64, write: f64, at: &FilePosition) {
        if read > self.read_millis || write > self.write_millis {
            self.from.push(at.clone());
        }
        self.read_millis = self.read_millis.max(read);
        self.write_millis = self.write_millis.max(write);
    }
}

/// Warns about a queue's delays before a request may start.
pub(crate) fn scheduler(document: &Document, params: &mut Params, notes: &mut Notes) -> Result<(), ImportError> {
    if let Some(block) = params.block("Scheduler")? {
        let mut queue = Params::try_new(document, block)?;
        not_zero(&mut queue, &["Write initiation delay", "Read initiation delay"], notes)?;
    }
    Ok(())
}

/// Warns about each of these parameters that is not zero: it changes times, and is not modelled.
pub(crate) fn not_zero(params: &mut Params, names: &[&str], notes: &mut Notes) -> Result<(), ImportError> {
    for name in names {
        let Some(value) = params.get(name) else { continue };
        match number(value) {
            Some(0.0) => {}
            Some(number) => {
                notes.warn(&value.at, &format!("{name} = {number} changes times and is not modelled"));
                notes.unused(&format!("{name} = {number}"));
            }
            None => return Err(crate::params::wrong(name, value, "a number")),
        }
    }
    Ok(())
}
