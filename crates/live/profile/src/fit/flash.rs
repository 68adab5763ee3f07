//! The model `flash`: a solid-state drive, or any device with constant times on parallel channels followed by a link.
//!
//! The link's rate is the slope of the medians by size. The rest of a read's time belongs to the channel and the
//! controller; its division and the number of channels follow from how throughput grows with the queue depth. Either
//! the channels or the commands on the link limit it. For each of these kinds, the best drive is searched by
//! simulation, on a grid and then in decreasing steps. The errors cover all drives that fit about as well.

use headstart_types::{Bytes, Nanos};
use toml::{Table, Value};

use super::super::Error;
use super::curve::{all_off, depths_off};
use super::line::Line;
use super::{device_of, Fit, Parameter, Samples};

/// Channels, and shares of a read's time on one, at which the search begins.
const CHANNELS: [f64; 13] = [1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 16.0, 24.0, 32.0, 64.0, 96.0, 128.0, 256.0];
const SHARES: [f64; 8] = [1.0, 0.9, 0.7, 0.5, 0.35, 0.2, 0.1, 0.05];
/// The last steps: channels and shares change by these factors until nothing improves.
const STEPS: [f64; 4] = [1.25, 1.1, 1.04, 1.015];
const STEPS_MOST: usize = 200;
/// Link time of commands, as shares of the time at which they would be the limit.
const HIDDEN: [f64; 5] = [0.0625, 0.125, 0.25, 0.5, 0.75];
/// A drive fits as well if its error exceeds the best by at most this much.
const AS_GOOD: f64 = 0.02;
/// Page sizes in KiB.
const PAGES: [u64; 4] = [4, 8, 16, 32];
/// Maximum number of commands; no measurement shows a lower one.
const QUEUE: i64 = 1_024;
/// Rate that is assumed if longer reads take no longer.
const RATE_MOST: f64 = 1e12;

/// A candidate drive. Times are nanoseconds.
#[derive(Debug, Clone, Copy)]
struct Drive {
    channels: f64,
    read_ns: f64,
    overhead_ns: f64,
    command_ns: f64,
    page_kib: u64,
}

/// What is known before the search.
struct Known<'a> {
    samples: &'a Samples,
    line: Line,
    rate: f64,
}

impl Known<'_> {
    /// A drive with this number of channels and this share of a read's time on one.
    fn drive(&self, channels: f64, share: f64, command_ns: f64) -> Drive {
        let time = (self.line.first_ns - command_ns).max(2.0);
        let read_ns = (share * time).clamp(1.0, time);
        Drive {
            channels: channels.round().max(1.0),
            read_ns,
            overhead_ns: time - read_ns,
            command_ns,
            page_kib: PAGES[2],
        }
    }

    fn keys(&self, drive: &Drive) -> Table {
        let time = |ns: f64| Value::String(Nanos(ns.round().max(0.0) as u64).to_string());
        let size = |bytes: u64| Value::String(Bytes(bytes).to_string());
        let number = |number: f64| Value::Integer(number.round() as i64);
        [
            ("capacity", size(self.samples.capacity_bytes)),
            ("page_size", size(drive.page_kib << 10)),
            ("channels", number(drive.channels)),
            ("read_time", time(drive.read_ns)),
            ("read_overhead", time(drive.overhead_ns)),
            ("link_bytes_per_second", number(self.rate)),
            ("link_command", time(drive.command_ns)),
            ("queue_depth", Value::Integer(QUEUE)),
            ("program_time", time(drive.read_ns)),
            ("write_overhead", time(drive.overhead_ns)),
            ("duplex", Value::Boolean(true)),
            ("write_buffer", size(32 << 20)),
            ("over_provisioning", Value::Float(0.0)),
            ("mapping_size", size(4 << 10)),
            ("block_pages", Value::Integer(256)),
            ("erase_time", time(3e6)),
            ("filled", Value::Boolean(true)),
        ]
        .map(|(key, value)| (key.to_owned(), value))
        .into_iter()
        .collect()
    }

    fn off(&self, drive: &Drive) -> Result<f64, Error> {
        depths_off(&*device_of("nvme", self.keys(drive))?, &self.samples.small)
    }
}

pub(super) fn fit(samples: &Samples) -> Result<Fit, Error> {
    let line = Line::through(&samples.by_size);
    let (rate, rate_error) = line.rate().map_or((RATE_MOST, None), |(rate, error)| (rate.min(RATE_MOST), Some(error)));
    let known = Known { samples, line, rate };
    let most = samples.small.iter().map(|point| point.requests_per_s).fold(1.0, f64::max);
    // Link time of a command, if commands limit the throughput.
    let on_link = 1e9 / most - 8.0 * 512e9 / rate;
    let mut tried: Vec<(Drive, f64)> = Vec::new();
    for command_ns in [0.0, on_link.clamp(0.0, known.line.first_ns)] {
        if command_ns > 0.0 || tried.is_empty() {
            search(&known, command_ns, most, &mut tried)?;
        }
    }
    hide_commands(&known, on_link, &mut tried)?;
    let (mut best, least) = best_of(&tried);
    best.page_kib = page(&known, best)?;
    let as_good: Vec<&Drive> =
        tried.iter().filter(|(_, off)| *off <= least + AS_GOOD).map(|(drive, _)| drive).collect();
    let error = |of: fn(&Drive) -> f64, rounded: f64| {
        Some(as_good.iter().map(|drive| (of(drive) - of(&best)).abs()).fold(rounded, f64::max))
    };
    let of_time = known.line.first_error_ns.max(1.0);
    // A longer link time of a command that changes throughput by no more than the tolerance.
    let of_command = AS_GOOD * 1e9 / most;
    let parameters = vec![
        Parameter::new("page_size", (best.page_kib << 10) as f64, "bytes", None),
        Parameter::new("channels", best.channels, "", error(|drive| drive.channels, 0.5)),
        Parameter::new("read_time", best.read_ns, "ns", error(|drive| drive.read_ns, of_time)),
        Parameter::new("read_overhead", best.overhead_ns, "ns", error(|drive| drive.overhead_ns, of_time)),
        Parameter::new("link_bytes_per_second", known.rate, "bytes/s", rate_error),
        Parameter::new("link_command", best.command_ns, "ns", error(|drive| drive.command_ns, of_command)),
    ];
    let mut keys = known.keys(&best);
    // The key in the profile.
    keys.remove("capacity");
    Ok(Fit { model: "flash", keys, parameters })
}

fn best_of(tried: &[(Drive, f64)]) -> (Drive, f64) {
    *tried.iter().min_by(|a, b| a.1.total_cmp(&b.1)).expect("some were tried")
}

/// Tries drives with a given link time per command: the best of a grid and its neighbours.
fn search(known: &Known<'_>, command_ns: f64, most: f64, tried: &mut Vec<(Drive, f64)>) -> Result<(), Error> {
    let first = tried.len();
    let time = (known.line.first_ns - command_ns).max(2.0);
    for channels in CHANNELS {
        for share in SHARES {
            // Skips channels whose throughput is far below the measured one, or without a limit by the link far above.
            let brought = channels * 1e9 / (share * time) / most;
            if brought > 0.7 && (command_ns > 0.0 || brought < 4.0) {
                let drive = known.drive(channels, share, command_ns);
                tried.push((drive, known.off(&drive)?));
            }
        }
    }
    if tried.len() == first {
        let drive = known.drive((most * time / 1e9).ceil(), 1.0, command_ns);
        tried.push((drive, known.off(&drive)?));
    }
    let (mut best, mut least) = best_of(&tried[first..]);
    let mut steps = 0;
    for step in STEPS {
        let mut better = true;
        while better && steps < STEPS_MOST {
            better = false;
            for (channels, share) in
                [(step, step), (1.0 / step, 1.0 / step), (step, 1.0), (1.0 / step, 1.0), (1.0, step), (1.0, 1.0 / step)]
            {
                steps += 1;
                let more = if channels == 1.0 { best.channels } else { apart(best.channels, channels) };
                let next = known.drive(more, best.read_ns / time * share, command_ns);
                let off = known.off(&next)?;
                tried.push((next, off));
                if off < least - 1e-6 {
                    (best, least, better) = (next, off, true);
                }
            }
        }
    }
    Ok(())
}

/// Tries the best drive with more link time and less controller time per command; if channels are the limit, the
/// difference is invisible.
fn hide_commands(known: &Known<'_>, on_link: f64, tried: &mut Vec<(Drive, f64)>) -> Result<(), Error> {
    let (best, _) = best_of(tried);
    for share in HIDDEN {
        let command_ns = share * on_link;
        let overhead_ns = best.overhead_ns + best.command_ns - command_ns;
        if command_ns > 0.0 && overhead_ns >= 0.0 {
            let drive = Drive { command_ns, overhead_ns, ..best };
            tried.push((drive, known.off(&drive)?));
        }
    }
    Ok(())
}

/// `count` times `factor`, changed by at least one.
fn apart(count: f64, factor: f64) -> f64 {
    match factor > 1.0 {
        true => (count * factor).max(count + 1.0),
        false => (count * factor).min(count - 1.0).max(1.0),
    }
}

/// The page size with which longer reads fit best.
fn page(known: &Known<'_>, best: Drive) -> Result<u64, Error> {
    let mut nearest = (best.page_kib, f64::INFINITY);
    for page_kib in PAGES {
        let drive = Drive { page_kib, ..best };
        let off = all_off(&*device_of("nvme", known.keys(&drive))?, known.samples)?;
        if off < nearest.1 - 1e-6 {
            nearest = (page_kib, off);
        }
    }
    Ok(nearest.0)
}
