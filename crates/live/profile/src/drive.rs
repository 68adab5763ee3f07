//! Drives with an arm: combines the measurements into a profile that the simulator loads.

use headstart_analytic::competitive::{competitive_depth, whole_pages};
use headstart_device::{Device, Mechanical, SECTOR_BYTES};
use headstart_types::{toml_problem, Bytes, DriveFacts};
use toml::Table;

use super::findings::{ArmFound, ZoneRate};
use super::fit::Parameter;
use super::lab::{Lab, WIDTH};
use super::look::DriveTraits;
use super::map::Map;
use super::rotation::{rotation, Turn};
use super::seeks::SeekPoint;
use super::text::{text, Head, Numbers, Overhead, ZoneNumbers};
use super::{errors, overhead, rates, seeks, tracks, Error};

/// Page size in bytes in which depths are given.
const PAGE_BYTES: f64 = 4096.0;
/// Share of the bus's rate from which on a long read is limited by the bus. A read below it also is, if it is slower
/// than the media rate by more than head switches explain.
const BUS_BOUND: f64 = 0.97;
const NEARLY_BOUND: (f64, f64) = (0.85, 0.7);
/// Upper limit of a bus's rate, and the rate that is assumed if the bus cannot be observed.
const BUS_MOST: u64 = 10_000_000_000;
/// Maximum number of cylinders in a profile; with more tracks it gets more surfaces.
const CYLINDERS: f64 = 100_000.0;
/// Overheads of hits and misses that differ by less, in nanoseconds, are merged.
const SAME_OVERHEAD: u64 = 80_000;

/// A depth with a larger relative error needs more measuring time; `tune --watch` also changes a depth only beyond an
/// eighth.
const TOO_MUCH: f64 = 0.125;
/// Tolerance for inner zones that hold more than an outer one: a sector or two per track.
const IN_ORDER: f64 = 0.002;

/// The outcome of a measurement.
pub(super) struct DriveFound {
    pub arm: ArmFound,
    pub toml: String,
    pub facts: DriveFacts,
    /// The simulated drive of the profile.
    pub built: Mechanical,
    pub notes: Vec<String>,
}

/// All measurements.
struct Measured {
    turn: Turn,
    map: Map,
    overhead_ns: f64,
    overhead_error_ns: f64,
    /// Relative error of the mean rate.
    rate_error: f64,
    /// The overhead of misses could not be measured, so that of buffer hits is used.
    as_hit: bool,
    seeks: Vec<SeekPoint>,
    bus_bytes_per_s: Option<u64>,
    bus_error: Option<f64>,
}

pub(super) fn drive(lab: &mut Lab<'_>, traits: &DriveTraits, name: &str) -> Result<DriveFound, Error> {
    let unclear = |problem: &str| Error::Unclear {
        problem: problem.to_owned(),
        allowed: "a single disk, idle but for the measurement".to_owned(),
    };
    let turn = rotation(lab, traits)?.ok_or_else(|| {
        unclear("reads take longer the farther away they are, but nothing turns: their ends never repeat")
    })?;
    let tracks = tracks::tracks(lab, traits, &turn)?
        .ok_or_else(|| unclear("tracks cannot be measured: the buffer answers every read"))?;
    let overheads = overhead::overhead(lab, traits, &turn, &tracks)?;
    let as_hit = overheads.is_empty();
    let overhead_ns = overheads.iter().copied().min_by(f64::total_cmp);
    let overhead_ns = overhead_ns.or_else(|| traits.hit_overhead_ns()).unwrap_or(0.0);
    let overhead_error_ns = if as_hit { overhead_ns } else { errors::least_ns(&overheads) };
    let found = rates::rates(lab, traits, &turn, &tracks)?;
    let rate_error = errors::rate_share(&tracks, &found, lab.sectors());
    let shares: Vec<f64> = found.iter().map(|found| found.share).collect();
    let map = Map::new(lab.sectors(), &tracks, &shares);
    let seeks = seeks::seeks(lab, traits, &turn, &map, overhead_ns)?;
    if seeks.len() < 4 {
        return Err(unclear("seeks cannot be measured: the buffer answers every read"));
    }
    let bus = |sector_ns: f64| ((SECTOR_BYTES as f64 * 1e9 / sector_ns.max(1e-3)) as u64).min(BUS_MOST);
    let bus_bytes_per_s = traits.buffer.map(|buffer| bus(buffer.bus_sector_ns));
    let bus_error = traits.buffer.map(|buffer| WIDTH * buffer.bus_error_ns / buffer.bus_sector_ns.max(1e-3));
    let measured =
        Measured { turn, map, overhead_ns, overhead_error_ns, rate_error, as_hit, seeks, bus_bytes_per_s, bus_error };
    measured.found(lab, traits, name)
}

impl Measured {
    fn found(self, lab: &Lab<'_>, traits: &DriveTraits, name: &str) -> Result<DriveFound, Error> {
        let zones: Vec<ZoneRate> = self.map.zones.iter().map(|zone| self.zone(zone)).collect();
        let numbers = self.numbers(lab, traits, &zones);
        let head = Head { name, reads: lab.reads, turn_ns: self.turn.ns, fit: self.turn.fit };
        let mut toml = text(&head, &numbers);
        let built = build(&toml)?;
        let facts = built.mechanics().map(|mechanics| mechanics.facts()).ok_or_else(|| Error::Unclear {
            problem: "the drive has no arm".to_owned(),
            allowed: "a drive with one".to_owned(),
        })?;
        let switch_ns = (facts.mean_seek + facts.half_turn).0 as f64;
        // The expected service time of a request, which is known only after the curve.
        toml = toml.replace(Numbers::SERVICE, &format!("{:.1}ms", (switch_ns + self.overhead_ns) / 1e6));
        let rate = facts.mean_rate_of_places(None);
        let depth = competitive_depth(switch_ns, rate);
        let seek_error = errors::mean_seek_ns(&self.seeks, self.map.tracks(), self.turn.ns, self.overhead_error_ns);
        // Tracks that are out of order are wrong by this much, and so are rates of places without long reads.
        let rate_error = self.rate_error + out_of_order(&zones).map_or(0.0, |(_, most)| most);
        let depth_error = errors::depth_share(seek_error, self.turn.error_ns, switch_ns, rate_error);
        let arm = ArmFound {
            turn_ns: self.turn.ns.round() as u64,
            turn_error_ns: self.turn.error_ns.ceil() as u64,
            rpm: numbers.rpm,
            turn_fit: self.turn.fit,
            overhead_ns: self.overhead_ns.round() as u64,
            overhead_error_ns: self.overhead_error_ns.ceil() as u64,
            bus_bytes_per_s: self.bus_bytes_per_s,
            bus_error_bytes_per_s: self
                .bus_bytes_per_s
                .zip(self.bus_error)
                .map(|(rate, share)| (rate as f64 * share).ceil() as u64),
            segments: traits.buffer.map_or(0, |buffer| buffer.segments),
            mean_seek_ns: facts.mean_seek.0,
            mean_seek_error_ns: seek_error.ceil() as u64,
            mean_bytes_per_s: rate.round() as u64,
            mean_error_bytes_per_s: (rate * rate_error).ceil() as u64,
            competitive_depth_bytes: depth.round() as u64,
            competitive_depth_error_bytes: (depth * depth_error).ceil() as u64,
            competitive_depth_pages: (whole_pages(depth, PAGE_BYTES) / PAGE_BYTES) as u64,
            zones,
            seeks: self.seeks.clone(),
        };
        let at = toml.find("name = ").unwrap_or_default();
        toml.insert_str(at, &errors_of(&arm));
        let notes = self.notes(&arm);
        Ok(DriveFound { arm, toml, facts, built, notes })
    }

    fn zone(&self, zone: &super::map::ZoneFound) -> ZoneRate {
        let passing = f64::from(zone.track_sectors) * SECTOR_BYTES as f64 * 1e9 / self.turn.ns;
        let rate = passing * zone.share;
        ZoneRate {
            first_sector: zone.first,
            sectors: zone.sectors,
            sectors_per_track: zone.track_sectors,
            bytes_per_s: rate.round() as u64,
            bus_bound: self.bus_bytes_per_s.is_some_and(|bus| {
                let (near, lost) = NEARLY_BOUND;
                rate > BUS_BOUND * bus as f64 || (rate > near * bus as f64 && zone.share < lost)
            }),
        }
    }

    /// Numbers of a drive with the measured rates and seeks.
    fn numbers(&self, lab: &Lab<'_>, traits: &DriveTraits, zones: &[ZoneRate]) -> Numbers {
        let surfaces = (self.map.tracks() / CYLINDERS).ceil().max(1.0) as u32;
        // The skew is what long reads lose to switches; a switch fits into it, otherwise it would cost a revolution.
        let skew_share = |(zone, found): (&ZoneRate, &super::map::ZoneFound)| {
            (!zone.bus_bound).then(|| (1.0 / found.share.min(1.0) - 1.0).min(0.9))
        };
        let skews: Vec<Option<f64>> = zones.iter().zip(&self.map.zones).map(skew_share).collect();
        let shortest = self.seeks.first().map_or(0, |seek| seek.ns) as f64;
        let room = skews.iter().flatten().copied().fold(f64::INFINITY, f64::min) * self.turn.ns;
        let switch_ns = shortest.min(room);
        let mut held = 0;
        let mut numbers: Vec<ZoneNumbers> = Vec::with_capacity(zones.len());
        for (index, (zone, skew)) in zones.iter().zip(skews).enumerate() {
            let cylinder = u64::from(zone.sectors_per_track) * u64::from(surfaces);
            let cylinders = if index + 1 == zones.len() {
                lab.capacity().saturating_sub(held).div_ceil(cylinder)
            } else {
                (zone.sectors + cylinder / 2) / cylinder
            };
            let cylinders = cylinders.max(1);
            held += cylinders * cylinder;
            let track = f64::from(zone.sectors_per_track);
            let skew = match skew {
                Some(share) => (share * track).round(),
                None => (switch_ns / self.turn.ns * track).ceil() + 1.0,
            };
            let least = (switch_ns / self.turn.ns * track).ceil();
            numbers.push(ZoneNumbers {
                cylinders,
                sectors_per_track: zone.sectors_per_track,
                skew: skew.max(least).min(track - 1.0) as u32,
                bytes_per_s: zone.bytes_per_s,
                bus_bound: zone.bus_bound,
            });
        }
        let cylinders: u64 = numbers.iter().map(|zone| zone.cylinders).sum();
        Numbers {
            rpm: (60e9 / self.turn.ns).round() as u32,
            surfaces,
            head_switch_ns: switch_ns as u64,
            sectors: lab.capacity(),
            curve: curve(&self.seeks, surfaces, cylinders, switch_ns),
            zones: numbers,
            overhead: self.overhead(traits),
            bus_bytes_per_s: self.bus_bytes_per_s,
            segments: traits.buffer.map(|buffer| buffer.segments),
        }
    }

    fn overhead(&self, traits: &DriveTraits) -> Overhead {
        let miss_ns = self.overhead_ns.round() as u64;
        let hit_ns = traits.hit_overhead_ns().map(|ns| ns.round() as u64);
        match hit_ns {
            Some(hit_ns) if hit_ns.abs_diff(miss_ns) > SAME_OVERHEAD => Overhead::Two { hit_ns, miss_ns },
            _ => Overhead::One { ns: miss_ns },
        }
    }

    fn notes(&self, arm: &ArmFound) -> Vec<String> {
        let mut notes = Vec::new();
        let bound = arm.zones.iter().filter(|zone| zone.bus_bound).count();
        if bound > 0 {
            let all = arm.zones.len();
            let of = if bound == all { "every zone".to_owned() } else { format!("{bound} of {all} zones") };
            notes.push(format!("in {of} the bus hides the media: the rate is the bus's"));
        }
        if let Some((zones, most)) = out_of_order(&arm.zones) {
            let problem =
                format!("{zones} of {} zones hold more sectors a track than one outside them", arm.zones.len());
            let percent = most * 100.0;
            notes.push(format!(
                "{problem}, by up to {percent:.1} %, which no drive does: tracks and rates are no better than that; \
                 measure again with more --time on an idle disk"
            ));
        }
        let depth_error = arm.competitive_depth_error_bytes as f64 / arm.competitive_depth_bytes.max(1) as f64;
        if depth_error > TOO_MUCH {
            let percent = depth_error * 100.0;
            notes.push(format!("the competitive depth may be off by {percent:.0} %: measure again with more --time"));
        }
        if arm.segments == 0 {
            notes.push("nothing is answered from a buffer: of the bus nothing can be seen".to_owned());
        }
        if self.as_hit {
            notes.push(
                "the overhead is that of buffer hits: that of misses could not be separated from the seeks".to_owned(),
            );
        }
        notes
    }
}

/// The numbers of a drive with an arm, with their errors.
pub(super) fn parameters(arm: &ArmFound) -> Vec<Parameter> {
    let figure = |name, value: u64, error: u64, unit| Parameter::new(name, value as f64, unit, Some(error as f64));
    let mut all = vec![
        figure("mean_seek", arm.mean_seek_ns, arm.mean_seek_error_ns, "ns"),
        figure("turn", arm.turn_ns, arm.turn_error_ns, "ns"),
        figure("overhead", arm.overhead_ns, arm.overhead_error_ns, "ns"),
        figure("mean_bytes_per_second", arm.mean_bytes_per_s, arm.mean_error_bytes_per_s, "bytes/s"),
        figure("competitive_depth", arm.competitive_depth_bytes, arm.competitive_depth_error_bytes, "bytes"),
    ];
    if let (Some(rate), Some(error)) = (arm.bus_bytes_per_s, arm.bus_error_bytes_per_s) {
        all.push(figure("bus_bytes_per_second", rate, error, "bytes/s"));
    }
    let seek = |point: &SeekPoint| {
        let error = WIDTH * arm.turn_ns as f64 / f64::from(point.reads + 1);
        Parameter::new("seek_at_one_distance", point.ns as f64, "ns", Some(error))
    };
    // The least certain one.
    all.extend(arm.seeks.iter().map(seek).max_by(|a, b| a.error.unwrap_or(0.0).total_cmp(&b.error.unwrap_or(0.0))));
    all
}

/// The errors, as comments of the profile.
fn errors_of(arm: &ArmFound) -> String {
    let ms = |ns: u64| format!("{:.4} ms", ns as f64 / 1e6);
    let megabytes = |bytes: u64| format!("{:.3} MB/s", bytes as f64 / 1e6);
    format!(
        "# mean seek {} +- {}, turn {} +- {}, overhead +- {}\n# mean rate {} +- {}, competitive depth {} +- {}\n\
         # (the truth is within nineteen times out of twenty)\n",
        ms(arm.mean_seek_ns),
        ms(arm.mean_seek_error_ns),
        ms(arm.turn_ns),
        ms(arm.turn_error_ns),
        ms(arm.overhead_error_ns),
        megabytes(arm.mean_bytes_per_s),
        megabytes(arm.mean_error_bytes_per_s),
        Bytes(arm.competitive_depth_bytes).rounded(),
        Bytes(arm.competitive_depth_error_bytes).rounded(),
    )
}

/// Number of zones that hold more than an outer one, and the largest relative excess; `None` within [`IN_ORDER`].
fn out_of_order(zones: &[ZoneRate]) -> Option<(usize, f64)> {
    let mut least = f64::INFINITY;
    let (mut count, mut most) = (0, 0.0_f64);
    for zone in zones {
        let sectors = f64::from(zone.sectors_per_track);
        let beyond = sectors / least - 1.0;
        if beyond > IN_ORDER {
            count += 1;
            most = most.max(beyond);
        }
        least = least.min(sectors);
    }
    (count > 0).then_some((count, most))
}

/// Builds the drive of an unfinished profile.
fn build(toml: &str) -> Result<Mechanical, Error> {
    let text = toml.replace(Numbers::SERVICE, "10ms");
    let table: Table = text.parse().map_err(|error| Error::Unclear {
        problem: format!("the profile of what was measured: {}", toml_problem(&text, &error).1),
        allowed: "measurements of a single disk, idle but for them".to_owned(),
    })?;
    Ok(Mechanical::from_table(table)?)
}

/// The seek curve in cylinders: distances and nanoseconds. The shortest is a switch's. The longest exceeds any measured
/// distance and is extrapolated linearly from the last measured ones.
fn curve(seeks: &[SeekPoint], surfaces: u32, cylinders: u64, switch_ns: f64) -> Vec<(u64, u64)> {
    let mut curve: Vec<(u64, u64)> = Vec::with_capacity(seeks.len() + 2);
    for seek in seeks {
        let distance = (seek.tracks + u64::from(surfaces) / 2) / u64::from(surfaces);
        match curve.last_mut() {
            Some(last) if last.0 >= distance => last.1 = seek.ns,
            _ if distance == 0 || distance >= cylinders => (),
            _ => curve.push((distance, seek.ns)),
        }
    }
    if let Some(first) = curve.first_mut().filter(|first| first.0 == 1) {
        first.1 = first.1.min(switch_ns as u64);
    }
    let end = cylinders.saturating_sub(1);
    let tail = &curve[curve.len().saturating_sub(8)..];
    if let Some(last) = curve.last().copied().filter(|last| last.0 < end) {
        let longest = line(tail, end as f64).max(last.1 as f64);
        curve.push((end, longest as u64));
    }
    curve
}

/// The least-squares line through `points`, at `x`.
fn line(points: &[(u64, u64)], x: f64) -> f64 {
    let count = points.len() as f64;
    let mean = |value: &dyn Fn(&(u64, u64)) -> f64| points.iter().map(value).sum::<f64>() / count;
    let (across, up) = (mean(&|point| point.0 as f64), mean(&|point| point.1 as f64));
    let covariance = mean(&|point| (point.0 as f64 - across) * (point.1 as f64 - up));
    let variance = mean(&|point| (point.0 as f64 - across).powi(2));
    if variance > 0.0 {
        up + covariance / variance * (x - across)
    } else {
        up
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_goes_on_to_the_last_cylinder() {
        let seek = |tracks, ns| SeekPoint { tracks, ns, reads: 1 };
        let seeks = [seek(1, 500), seek(2, 600), seek(10, 1_000), seek(20, 2_000), seek(30, 3_000)];
        // One surface: as measured, the first one limited to the switch, the last on the regression line.
        let found = curve(&seeks, 1, 41, 450.0);
        assert_eq!(found[..5], [(1, 450), (2, 600), (10, 1_000), (20, 2_000), (30, 3_000)]);
        assert_eq!(found[5].0, 40);
        assert!((3_000..4_100).contains(&found[5].1), "{found:?}");
        // Two: tracks 1 and 2 are one cylinder away.
        assert_eq!(curve(&seeks, 2, 16, 9_999.0), [(1, 600), (5, 1_000), (10, 2_000), (15, 3_000)]);
    }

    #[test]
    fn zones_that_no_drive_has_say_how_wrong_they_are() {
        let zones = |sectors: &[u32]| -> Vec<ZoneRate> {
            let zone = |sectors_per_track| ZoneRate {
                first_sector: 0,
                sectors: 1,
                sectors_per_track,
                bytes_per_s: 1,
                bus_bound: false,
            };
            sectors.iter().copied().map(zone).collect()
        };
        assert_eq!(out_of_order(&zones(&[1000, 900, 900, 800])), None);
        assert_eq!(out_of_order(&zones(&[1000, 900, 901, 800])), None);
        let (count, most) = out_of_order(&zones(&[1000, 900, 990, 945, 800])).expect("two are");
        assert_eq!((count, (most * 1000.0).round()), (2, 100.0));
    }

    #[test]
    fn a_line_through_points() {
        assert!((line(&[(1, 10), (2, 20), (3, 30)], 5.0) - 50.0).abs() < 1e-9);
        assert_eq!(line(&[(4, 7)], 9.0), 7.0);
    }
}
