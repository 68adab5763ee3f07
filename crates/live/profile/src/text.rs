//! The profile as TOML, with the origin of each number.

use std::fmt::Write;

/// The measured figures, as comments of the file.
pub(super) struct Head<'a> {
    pub name: &'a str,
    pub reads: u64,
    pub turn_ns: f64,
    pub fit: f64,
}

/// The numbers of a profile. Times are nanoseconds.
pub(super) struct Numbers {
    pub rpm: u32,
    pub surfaces: u32,
    pub head_switch_ns: u64,
    pub sectors: u64,
    pub zones: Vec<ZoneNumbers>,
    /// Distances in cylinders, and times.
    pub curve: Vec<(u64, u64)>,
    pub overhead: Overhead,
    pub bus_bytes_per_s: Option<u64>,
    pub segments: Option<usize>,
}

pub(super) struct ZoneNumbers {
    pub cylinders: u64,
    pub sectors_per_track: u32,
    pub skew: u32,
    pub bytes_per_s: u64,
    pub bus_bound: bool,
}

/// The controller's time for a read: one value, or one each for buffer hits and misses.
pub(super) enum Overhead {
    One { ns: u64 },
    Two { hit_ns: u64, miss_ns: u64 },
}

impl Numbers {
    /// Placeholder of the service time.
    pub const SERVICE: &'static str = "SERVICE";
}

/// Rate of a bus that cannot be observed: faster than any disk.
const BUS_UNSEEN: u64 = 10_000_000_000;

/// Rate in bytes per second that separates modern buses (the first Serial ATA: 150 MB/s) from SCSI before 2000 (at most
/// 80 MB/s).
const BUS_OF_TODAY: u64 = 100_000_000;

/// Sectors of a segment: 256 KiB.
const SEGMENT_SECTORS: u32 = 512;

fn ms(ns: u64) -> String {
    format!("{:.4}", ns as f64 / 1e6)
}

pub(super) fn text(head: &Head<'_>, numbers: &Numbers) -> String {
    let mut text = String::new();
    let name = toml::Value::String(head.name.to_owned());
    let service = Numbers::SERVICE;
    let Numbers { rpm, surfaces, sectors, .. } = numbers;
    let turn_ms = head.turn_ns / 1e6;
    let switch = ms(numbers.head_switch_ns);
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "\
# Measured by headstart profile {version} through direct reads of a device: {reads} of them before this was written.
#   [M]  measured
#   [D]  derived from what was measured, so that rates and seeks come out as they were
#   [G]  guess: reads from outside do not tell
name = {name}
rpm = {rpm}  # [M] a turn of {turn_ms:.4} ms; it fits the reads' ends by {fit:.3} of 1
surfaces = {surfaces}  # [G] with one, a track is a cylinder; more only to have at most 100,000 cylinders
head_switch = \"{switch}ms\"  # [D] seek to the next track, if that fits into the skews
nominal_service = \"{service}\"  # [D] mean seek, half a turn, overhead
sectors = {sectors}  # [M] what the device says
",
        version = env!("CARGO_PKG_VERSION"),
        reads = head.reads,
        fit = head.fit,
    );
    zones(&mut text, numbers);
    let distances: Vec<String> = numbers.curve.iter().map(|(distance, _)| distance.to_string()).collect();
    let times: Vec<String> = numbers.curve.iter().map(|(_, ns)| ms(*ns)).collect();
    let _ = write!(
        text,
        "
# [M] least time at each distance, less overhead, transfer and the turn that chance leaves; [D] the last of all
[seek]
form = \"table\"
distances = [{}]
times_ms = [{}]
",
        wrapped(&distances),
        wrapped(&times),
    );
    controller(&mut text, &numbers.overhead);
    match numbers.bus_bytes_per_s {
        Some(rate) => _ = write!(text, "\n[bus]\nbytes_per_second = {rate}  # [M] two sizes from the buffer\n"),
        None => _ = write!(text, "\n[bus]\nbytes_per_second = {BUS_UNSEEN}  # [G] so fast that it does not show\n"),
    }
    let of_today = numbers.bus_bytes_per_s.is_some_and(|rate| rate >= BUS_OF_TODAY);
    buffer(&mut text, numbers.segments, of_today);
    text
}

fn zones(text: &mut String, numbers: &Numbers) {
    let _ = write!(
        text,
        "
# [M] sectors of a track, by the angle between two of them; [D] cylinders, from the places half-way between those measured;
# [D] skews, from what long reads lose to switches. Where the bus hides that, they are as long as the switch.
"
    );
    for zone in &numbers.zones {
        let bound = if zone.bus_bound { ", which is the bus's" } else { "" };
        let _ = write!(
            text,
            "
[[zones]]  # [M] long reads: {:.2} MB/s{bound}
cylinders = {}
sectors_per_track = {}
track_skew = {skew}
cylinder_skew = {skew}
",
            zone.bytes_per_s as f64 / 1e6,
            zone.cylinders,
            zone.sectors_per_track,
            skew = zone.skew,
        );
    }
}

fn controller(text: &mut String, overhead: &Overhead) {
    match overhead {
        Overhead::One { ns } => {
            let _ = write!(text, "\n[controller]\noverhead = \"{}ms\"  # [M] of reads; [G] of writes\n", ms(*ns));
        }
        Overhead::Two { hit_ns, miss_ns } => {
            let (hit, miss) = (ms(*hit_ns), ms(*miss_ns));
            let _ = write!(
                text,
                "
[controller]  # [M] reads after reads; [G] the others: as those
read_hit_after_read = \"{hit}ms\"
read_hit_after_write = \"{hit}ms\"
read_miss_after_read = \"{miss}ms\"
read_miss_after_write = \"{miss}ms\"
write_hit_after_read = \"{hit}ms\"
write_hit_after_write = \"{hit}ms\"
write_miss_after_read = \"{miss}ms\"
write_miss_after_write = \"{miss}ms\"
"
            );
        }
    }
}

fn buffer(text: &mut String, segments: Option<usize>, of_today: bool) {
    match segments {
        None => text.push_str(
            "\n[buffer]  # [M] a second read is no faster than a first\nsize = \"0KiB\"\nread_ahead = false\n",
        ),
        Some(segments) => {
            let _ = write!(
                text,
                "
[buffer]
segments = {segments}  # [M] places that are kept, at most 64 are looked for
segment_sectors = {SEGMENT_SECTORS}  # [G]
read_ahead = \"segment\"  # [G]
write_reporting = \"media\"  # [G]
"
            );
            if of_today {
                text.push_str(
                    "\
# [G] as modern drives do: no new seek for what the head is about to pass, and a hit reads on
read_ahead_on_hit = true
hit_under_way = true
hit_ahead = true
",
                );
            }
        }
    }
}

/// A list over several lines.
fn wrapped(items: &[String]) -> String {
    let lines: Vec<String> = items.chunks(12).map(|line| line.join(", ")).collect();
    format!("\n    {},\n", lines.join(",\n    "))
}
