//! Seek curves: DiskSim's seek types as the `[seek]` table of a profile.
//!
//! Sources: DiskSim 4.0 manual, section "Mechanical model" (dm_mech_g1) for the types and their equations; Lee's curve
//! through minimum, average and maximum (Lee and Katz 1993); Ruemmler and Wilkes 1994 (hpl); Worthington, Ganger and
//! Patt, UM CSE-TR-194-94 (ten measured times, then hpl). Where DiskSim's code differs from its manual (`linear` and
//! `curve` lost their initialisation when the mechanics became a library, `hpl` compares with an unset value) we follow
//! the manual.

use std::fmt::Write;
use std::path::Path;

use headstart_device::limits::DISTANCE_MAX;
use headstart_types::Nanos;

use crate::error::{file_name, FilePosition, ImportError};
use crate::files::{find, Files};
use crate::params::{number, time, write_list, wrong, Notes, Params};

/// A seek curve, times in ms.
pub(crate) enum Curve {
    /// Ascending distances, and their times.
    Table(Vec<(u64, f64)>, String),
    /// Root for d < v1, else linear; the first times individually.
    Hpl { v: [f64; 5], first: Vec<f64> },
    /// Minimum, average, maximum; Lee's curve, or straight lines.
    ThreePoints { lee: bool, points: [f64; 3] },
    /// A constant time.
    Constant(f64),
}

const KINDS: &str = "extracted, hpl, hplplus10, curve, linear, constant";

/// The curve of a `dm_mech_g1` block for a drive of `cylinders`.
pub(crate) fn curve(
    params: &mut Params,
    cylinders: u64,
    files: (&dyn Files, &Path),
    notes: &mut Notes,
) -> Result<Curve, ImportError> {
    let (kind, at) = params.word("Seek type", KINDS)?.ok_or_else(|| params.missing("Seek type"))?;
    match kind {
        "extracted" => table(params, files, notes),
        "hpl" => Ok(Curve::Hpl { v: hpl(params)?, first: hpl_single(params)? }),
        "hplplus10" => Ok(Curve::Hpl { v: hpl(params)?, first: numbers(params, "First ten seek times", 10)? }),
        "curve" | "linear" => three_points(params, kind == "curve", cylinders, at, notes),
        "constant" => Ok(Curve::Constant(params.need_millis("Constant seek time")?)),
        other => Err(ImportError::at(at, format!("unknown Seek type {other}"), KINDS)),
    }
}

fn three_points(
    params: &mut Params,
    lee: bool,
    cylinders: u64,
    at: &FilePosition,
    notes: &mut Notes,
) -> Result<Curve, ImportError> {
    let names = ["Single cylinder seek time", "Average seek time", "Full strobe seek time"];
    let mut points = [0.0; 3];
    for (point, name) in points.iter_mut().zip(names) {
        *point = params.need_millis(name)?;
    }
    let [minimum, average, maximum] = points;
    if !(minimum <= average && average <= maximum) {
        return Err(ImportError::at(at, format!("seek times {minimum}, {average}, {maximum}"), "rising times"));
    }
    // Lee's coefficients of sqrt(d - 1) and d - 1; if one is below zero, the curve decreases somewhere.
    let root = (-10.0 * minimum + 15.0 * average - 5.0 * maximum) / (3.0 * (cylinders as f64).sqrt());
    let linear = (7.0 * minimum - 15.0 * average + 8.0 * maximum) / (3.0 * cylinders as f64);
    let bent = lee && (root < 0.0 || linear < 0.0);
    if bent {
        notes.warn(at, "no curve of Lee's rises through these three seek times: straight lines instead");
    }
    Ok(Curve::ThreePoints { lee: lee && !bent, points })
}

fn numbers(params: &mut Params, name: &str, count: usize) -> Result<Vec<f64>, ImportError> {
    let list = params.list(name)?;
    if list.len() < count {
        return match params.get(name) {
            Some(value) => Err(wrong(name, value, &format!("a list of {count} numbers"))),
            None => Err(params.missing(name)),
        };
    }
    // Only V6 of the six may be below zero: -1 means that there is none.
    let least = |index: usize| if count == 6 && index == 5 { -1.0 } else { 0.0 };
    let each = |(index, value)| {
        let in_range = |number: &f64| (least(index)..=3_600_000.0).contains(number);
        number(value).filter(in_range).ok_or_else(|| wrong(name, value, "numbers, not below zero but for V6 = -1"))
    };
    list[..count].iter().enumerate().map(each).collect()
}

const HPL: &str = "HPL seek equation values";

fn hpl(params: &mut Params) -> Result<[f64; 5], ImportError> {
    let values = numbers(params, HPL, 6)?;
    let mut v = [0.0; 5];
    v.copy_from_slice(&values[..5]);
    Ok(v)
}

/// V6, the time of a single cylinder, unless it is -1.
fn hpl_single(params: &mut Params) -> Result<Vec<f64>, ImportError> {
    let v6 = numbers(params, HPL, 6)?[5];
    Ok(if v6 < 0.0 { Vec::new() } else { vec![v6] })
}

/// The file of measured times: a line "Seek distances measured: N", then "distance, ms" (and a deviation).
fn table(params: &mut Params, files: (&dyn Files, &Path), notes: &mut Notes) -> Result<Curve, ImportError> {
    const NAME: &str = "Full seek curve";
    let (name, at) = params.word(NAME, "the name of a file")?.ok_or_else(|| params.missing(NAME))?;
    let (files, first) = files;
    let (path, bytes) = find(files, &at.file, first, name).map_err(|(path, source)| ImportError::Read {
        at: at.clone(),
        path,
        source,
    })?;
    let text = String::from_utf8_lossy(&bytes);
    let mut place = FilePosition::whole(&path);
    let mut points: Vec<(u64, f64)> = Vec::new();
    for line in text.lines() {
        place.line += 1;
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') || line.starts_with("Seek distances measured:") {
            continue;
        }
        let Some((distance, millis)) = point(line) else {
            notes.warn(&place, &format!("passed over, not \"distance, ms\": {line}"));
            continue;
        };
        if !(0.0..=3_600_000.0).contains(&millis) {
            return Err(ImportError::at(&place, format!("a seek of {millis} ms"), "0 to 3600000 ms"));
        }
        if distance > DISTANCE_MAX {
            let allowed = format!("a number of cylinders up to {DISTANCE_MAX}");
            return Err(ImportError::at(&place, format!("a distance of {distance}"), allowed));
        }
        if points.last().is_some_and(|(before, _)| *before >= distance) {
            return Err(ImportError::at(&place, format!("distance {distance} out of order"), "rising distances"));
        }
        if distance > 0 {
            points.push((distance, millis));
        }
    }
    if points.len() < 2 {
        let problem = format!("{} seek distances", points.len());
        return Err(ImportError::at(&FilePosition::whole(&path), problem, "lines \"distance, ms\", at least two"));
    }
    Ok(Curve::Table(points, file_name(&path)))
}

fn point(line: &str) -> Option<(u64, f64)> {
    let mut parts = line.split([',', ' ', '\t']).filter(|part| !part.is_empty());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

impl Curve {
    /// Time over a third of the drive's cylinders, in ms: only for the nominal service time.
    fn third_millis(&self, cylinders: u64) -> f64 {
        let distance = (cylinders / 3).max(1);
        let d = distance as f64;
        match self {
            Curve::Constant(time) => *time,
            Curve::Hpl { first, .. } if distance <= first.len() as u64 => first[distance as usize - 1],
            Curve::Hpl { v, .. } if d < v[0] => v[1] + v[2] * d.sqrt(),
            Curve::Hpl { v, .. } => v[3] + v[4] * d,
            // Both forms pass through the average there.
            Curve::ThreePoints { points, .. } => points[1],
            Curve::Table(points, _) => {
                let after = points.partition_point(|(at, _)| *at < distance).clamp(1, points.len() - 1);
                let ((d1, t1), (d2, t2)) = (points[after - 1], points[after]);
                if distance <= d1 {
                    return t1;
                }
                (t1 + (t2 - t1) * (d - d1 as f64) / (d2 - d1) as f64).max(0.0)
            }
        }
    }

    /// The `[seek]` table.
    pub(crate) fn write(&self, out: &mut String) {
        let pair = |a: f64, b: f64| format!("[{}, {}]", time(a), time(b));
        _ = match self {
            Curve::Table(points, _) => {
                out.push_str("form = \"table\"\n");
                let each = |text: &dyn Fn(&(u64, f64)) -> String| points.iter().map(text).collect::<Vec<_>>();
                write_list(out, "distances", &each(&|(distance, _)| distance.to_string()));
                write_list(out, "times_ms", &each(&|(_, millis)| format!("{millis:?}")));
                Ok(())
            }
            Curve::Hpl { v, first } => {
                let boundary = (v[0].ceil() as u64).saturating_sub(1);
                let (root, linear) = (pair(v[1], v[2]), pair(v[3], v[4]));
                let written =
                    writeln!(out, "form = \"root-linear\"\nboundary = {boundary}\nroot = {root}\nlinear = {linear}");
                if !first.is_empty() {
                    let first: Vec<String> = first.iter().map(|millis| format!("{millis:?}")).collect();
                    write_list(out, "first_ms", &first);
                }
                written
            }
            Curve::ThreePoints { lee, points: [minimum, average, maximum] } => writeln!(
                out,
                "form = \"{}\"\nminimum = {}\naverage = {}\nmaximum = {}",
                if *lee { "min-average-max" } else { "line" },
                time(*minimum),
                time(*average),
                time(*maximum)
            ),
            Curve::Constant(millis) => writeln!(out, "form = \"constant\"\ntime = {}", time(*millis)),
        };
    }
}

/// A third of the stroke, half a revolution and the overhead, to 0.1 ms: the approximate time of a random request.
pub(crate) fn nominal(curve: &Curve, cylinders: u64, rpm: i64, overhead_millis: f64) -> Nanos {
    let millis = curve.third_millis(cylinders) + 30_000.0 / rpm as f64 + overhead_millis;
    Nanos(((millis * 10.0).round() as u64).max(1) * 100_000)
}
