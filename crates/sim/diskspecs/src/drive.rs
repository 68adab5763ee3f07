//! The `disksim_disk` block: overheads, bus and buffer as `[controller]`, `[bus]` and `[buffer]`.
//!
//! Source: DiskSim 4.0 manual, section on disks (`disksim_disk`), name by name. Overheads are multiplied by "Time scale
//! for overheads"; a transfer takes the slowest of disk, bus and controller. Features without a model in headstart are
//! in the lists below: parameters that change times cause a warning when they are on, the others are only listed.

use std::fmt::Write;

use crate::choose::{not_zero, scheduler, way};
use crate::error::ImportError;
use crate::params::{leftover, shown, time, Notes, Params};
use crate::parser::{Block, Document};

/// The overheads that every profile has: DiskSim's name, our key.
const OVERHEADS: [(&str, &str); 8] = [
    ("Read hit over. after read", "read_hit_after_read"),
    ("Read hit over. after write", "read_hit_after_write"),
    ("Read miss over. after read", "read_miss_after_read"),
    ("Read miss over. after write", "read_miss_after_write"),
    ("Write hit over. after read", "write_hit_after_read"),
    ("Write hit over. after write", "write_hit_after_write"),
    ("Write miss over. after read", "write_miss_after_read"),
    ("Write miss over. after write", "write_miss_after_write"),
];

/// The same for optional ones.
const OPTIONAL: [(&str, &str); 10] = [
    ("Per-request overhead time", "per_request"),
    ("Read completion overhead", "read_completion"),
    ("Write completion overhead", "write_completion"),
    ("Data preparation overhead", "data_preparation"),
    ("First reselect overhead", "first_reselect"),
    ("Other reselect overhead", "other_reselect"),
    ("Read disconnect afterread", "read_disconnect_after_read"),
    ("Read disconnect afterwrite", "read_disconnect_after_write"),
    ("Write disconnect overhead", "write_disconnect"),
    ("Minimum seek delay", "minimum_seek"),
];

/// The same for a write that disconnects from the bus before its data.
const EXTRA: [(&str, &str); 5] = [
    ("Extradisc command overhead", "command"),
    ("Extradisc disconnect overhead", "disconnect"),
    ("Extradisc inter-disconnect delay", "pause"),
    ("Extradisc 2nd disconnect overhead", "second_disconnect"),
    ("Extradisc seek delta", "seek_delta"),
];

/// Flags of the buffer: DiskSim's name, ours, our default.
const FLAGS: [(&str, &str, bool); 9] = [
    ("Read-ahead on idle hit", "read_ahead_on_hit", false),
    ("Read any free blocks", "read_before", false),
    ("Immediate buffer read", "zero_latency_read", false),
    ("Immediate buffer write", "zero_latency_write", false),
    ("Combine seq writes", "combine_writes", true),
    ("Allow read hits on write data", "hit_on_written", true),
    ("Allow almost read hits", "hit_under_way", false),
    ("Immed transfer partial hit", "partial_hit", true),
    ("Enable caching in buffer", "caching", true),
];

/// Parameters that change times and are not modelled.
const CHANGES_TIMES: [&str; 5] = [
    "Preseeking level",
    "Allow sneaky full read hits",
    "Allow sneaky partial read hits",
    "Allow sneaky intermediate read hits",
    "Allow write prebuffering",
];

/// Not modelled, and without effect on the time of a request that has bus and drive to itself, as ours do.
const WITHOUT_EFFECT: [&str; 10] = [
    "Hold bus entire read xfer",
    "Hold bus entire write xfer",
    "Never disconnect",
    "Low (write) water mark",
    "Max queue length",
    "Print stats",
    "Avg sectors per cylinder",
    "Calc sector by sector",
    "Disconnect write if seek",
    "Read directly to buffer",
];

/// The parts of a profile that come from the disk block.
#[derive(Default)]
pub(crate) struct Electronics {
    /// The tables `[controller]`, `[bus]` and `[buffer]`.
    pub(crate) text: String,
    /// Overhead of a read that misses after a read, for the nominal service time.
    pub(crate) read_miss_millis: f64,
}

/// Reads a disk block below the components `above`.
pub(crate) fn electronics(
    document: &Document,
    params: &mut Params,
    above: &[&Block],
    notes: &mut Notes,
) -> Result<Electronics, ImportError> {
    let from = format!("{}:{}", params.at().file_name(), params.at().line);
    let mut made = Electronics::default();
    _ = writeln!(made.text, "\n[controller]  # {from}");
    made.read_miss_millis = controller(params, &mut made.text, notes)?;
    _ = writeln!(made.text, "\n[bus]  # {from}");
    bus(document, params, above, &mut made.text, notes)?;
    _ = writeln!(made.text, "\n[buffer]  # {from}");
    buffer(params, &mut made.text, notes)?;
    not_zero(params, &CHANGES_TIMES, notes)?;
    scheduler(document, params, notes)?;
    for name in WITHOUT_EFFECT {
        if let Some(value) = params.get(name) {
            notes.unused(&format!("{name} = {}", shown(value)));
        }
    }
    leftover(params, notes);
    Ok(made)
}

/// The electronics if only a model file is given: nothing takes time.
pub(crate) fn none(notes: &mut Notes, params: &Params) -> Electronics {
    let at = params.at();
    notes.warn(at, "a model without its disk: no overheads, no bus time, no buffer (import the .diskspecs or .parv)");
    Electronics {
        text: "\n[controller]  # not in the source\noverhead = \"0s\"\n\n[bus]  # not in the source\n\
               sector_time = \"0s\"\n\n[buffer]  # not in the source\nsize = \"0B\"\nread_ahead = false\n"
            .to_owned(),
        read_miss_millis: 0.0,
    }
}

fn controller(params: &mut Params, out: &mut String, notes: &mut Notes) -> Result<f64, ImportError> {
    let scale = params.real("Time scale for overheads", 0.0, 1_000.0)?.unwrap_or(1.0);
    let mut read_miss = 0.0;
    for (name, key) in OVERHEADS {
        let millis = match params.millis(name)? {
            Some(millis) => scaled(params, name, millis, scale)?,
            None => {
                notes.warn(params.at(), &format!("{name} is missing: no such overhead"));
                0.0
            }
        };
        if key == "read_miss_after_read" {
            read_miss = millis;
        }
        _ = writeln!(out, "{key} = {}", time(millis));
    }
    for (name, key) in OPTIONAL {
        if let Some(millis) = params.millis(name)?.filter(|millis| *millis > 0.0) {
            _ = writeln!(out, "{key} = {}", time(scaled(params, name, millis, scale)?));
        }
    }
    let extra = params.flag("Extra write disconnect")?;
    if extra {
        out.push_str("\n[controller.extra_write_disconnect]\n");
    }
    for (name, key) in EXTRA {
        let millis = params.millis(name)?.unwrap_or(0.0);
        match extra {
            true => _ = writeln!(out, "{key} = {}", time(scaled(params, name, millis, scale)?)),
            false if millis > 0.0 => notes.unused(&format!("{name} = {millis}, as Extra write disconnect = 0")),
            false => {}
        }
    }
    Ok(read_miss)
}

/// An overhead multiplied by the time scale, still at most an hour.
fn scaled(params: &Params, name: &str, millis: f64, scale: f64) -> Result<f64, ImportError> {
    match millis * scale {
        product if product <= 3_600_000.0 => Ok(product),
        _ => Err(ImportError::at(params.at(), format!("{name} = {millis} times {scale}"), "at most an hour")),
    }
}

fn bus(
    document: &Document,
    params: &mut Params,
    above: &[&Block],
    out: &mut String,
    notes: &mut Notes,
) -> Result<(), ImportError> {
    let own = params.millis("Bulk sector transfer time")?.unwrap_or(0.0);
    let way = way(document, above, notes)?;
    let (read, write) = (own.max(way.read_millis), own.max(way.write_millis));
    if read > own || write > own {
        let places: Vec<String> = way.from.iter().map(|at| format!("{}:{}", at.file_name(), at.line)).collect();
        _ = writeln!(out, "# slower than the disk's own {own} ms: {}", places.join(", "));
    }
    if above.is_empty() {
        notes.unused("bus and controller above the disk: not in the source, only the disk's own transfer time counts");
    }
    if read == 0.0 {
        notes.warn(params.at(), "no time to transfer a sector to the host: the bus takes none");
    }
    _ = writeln!(out, "sector_time = {}", time(read));
    if read != write {
        _ = writeln!(out, "write_sector_time = {}", time(write));
    }
    Ok(())
}

fn buffer(params: &mut Params, out: &mut String, notes: &mut Notes) -> Result<(), ImportError> {
    let segments = params.whole("Number of buffer segments", 0, 1_000_000)?.unwrap_or(0);
    let sectors = params.whole("Segment size (in blks)", 1, 1 << 31)?.unwrap_or(0);
    let apart = params.flag("Use separate write segment")?;
    let writing = params.whole("Maximum number of write segments", 0, 1 << 31)?.unwrap_or(segments);
    let ahead = read_ahead(params, sectors, notes)?;
    let reporting = params.whole("Fast write level", 0, 2)?.unwrap_or(0);
    let mut flags = String::new();
    for (name, key, default) in FLAGS {
        let flag = params.whole(name, 0, 2)?.map_or(default, |flag| flag != 0);
        if flag != default {
            _ = writeln!(flags, "{key} = {flag}");
        }
    }
    if params.flag("Stop prefetch in sector")? {
        flags.push_str("stop_within_sector = true\n");
    }
    if params.whole("Write hit stop prefetch", 0, 1)? == Some(0) {
        notes.warn(params.at(), "Write hit stop prefetch = 0 changes times and is not modelled: any write stops it");
    }
    let mark = params.real("High (read) water mark", 0.0, 1.0)?.unwrap_or(0.0);
    let of_request = params.flag("Set watermark by reqsize")?;
    if mark > 0.0 {
        let of = if of_request { "request" } else { "segment" };
        _ = writeln!(flags, "read_watermark = {mark:?}\nwatermark_of = \"{of}\"");
    }
    if segments == 0 || sectors == 0 {
        notes.warn(params.at(), "no buffer segments: no buffer");
        out.push_str("size = \"0B\"\nread_ahead = false\n");
        return Ok(());
    }
    _ = writeln!(out, "segments = {segments}\nsegment_sectors = {sectors}");
    // DiskSim uses one separate segment regardless of the maximum.
    let writing = if apart { 1 } else { writing.clamp(1, segments) };
    _ = writeln!(out, "write_segments = {writing}");
    if apart {
        out.push_str("write_segment_apart = true\n");
    }
    out.push_str(&ahead);
    _ = writeln!(out, "write_reporting = \"{}\"", ["media", "append", "buffer"][reporting as usize]);
    out.push_str(&flags);
    Ok(())
}

fn read_ahead(params: &mut Params, sectors: i64, notes: &mut Notes) -> Result<String, ImportError> {
    const KINDS: [&str; 5] = ["none", "track", "cylinder", "segment", "next-track"];
    let mut out = String::new();
    let kind = params.whole("Buffer continuous read", 0, 4)?.unwrap_or(0);
    _ = writeln!(out, "read_ahead = \"{}\"", KINDS[kind as usize]);
    for (name, key) in
        [("Minimum read-ahead (blks)", "read_ahead_minimum"), ("Maximum read-ahead (blks)", "read_ahead_maximum")]
    {
        let given = params.whole(name, 0, 1 << 31)?.unwrap_or(0);
        if given > sectors {
            notes.warn(params.at(), &format!("{name} = {given} is more than a segment: {sectors}"));
        }
        // With a maximum of 0, only the segment limits the read-ahead.
        if given.min(sectors) > 0 {
            _ = writeln!(out, "{key} = {}", given.min(sectors));
        }
    }
    match params.whole("Read-ahead over requested", -1, 1)?.unwrap_or(0) {
        1 => out.push_str("keep_requested = true\n"),
        -1 => out.push_str("drop_requested = true\n"),
        _ => {}
    }
    Ok(out)
}
