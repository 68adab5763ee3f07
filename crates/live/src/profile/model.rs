//! The model of a device: its numbers, each with its error, and how far it is off as a whole, for people and programs.

use std::fmt::Write;

use serde::Serialize;

use super::check::{Check, Places};
use super::findings::ArmFound;
use super::fit::{shown, Parameter};
use super::lab::WIDTH;

/// The model that a profile holds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelFound {
    /// "mechanical", "flash" or "object-store".
    pub name: &'static str,
    /// Its numbers.
    pub parameters: Vec<Parameter>,
    /// Of the whole.
    pub check: Check,
}

/// The figures of a drive with an arm.
pub(super) fn of_arm(arm: &ArmFound) -> Vec<Parameter> {
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
    let seek = |point: &super::SeekPoint| {
        let error = WIDTH * arm.turn_ns as f64 / f64::from(point.reads + 1);
        Parameter::new("seek_at_one_distance", point.ns as f64, "ns", Some(error))
    };
    // That which is known least.
    all.extend(arm.seeks.iter().map(seek).max_by(|a, b| a.error.unwrap_or(0.0).total_cmp(&b.error.unwrap_or(0.0))));
    all
}

impl ModelFound {
    /// The check as comments at the end of a profile.
    pub(super) fn comments(&self) -> String {
        let Check { held_out, mean_error, largest_error, demerit } = &self.check;
        let mut text = format!(
            "\n# [V] the model beside reads that nothing was fitted to: off by {:.1} % on average, {:.1} % at most; demerit {:.1} %\n",
            mean_error * 100.0,
            largest_error * 100.0,
            demerit * 100.0
        );
        for row in held_out {
            let places = match row.places {
                Places::Anywhere => "anywhere",
                Places::Nearby => "nearby",
                Places::InOrder => "in order",
            };
            // Writing to a string does not fail.
            let _ = write!(
                text,
                "#   {} reads of {} KiB {places}, {} at once: measured {}, simulated {} each",
                row.reads,
                row.request_bytes / 1024,
                row.depth,
                shown(row.measured_ns, "ns"),
                shown(row.simulated_ns, "ns"),
            );
            let _ = match (row.chance_ns, row.demerit) {
                (Some(chance), Some(demerit)) => writeln!(
                    text,
                    " ({:+.1} %; by chance {:.1} %; demerit {:.1} %)",
                    row.off() * 100.0,
                    chance / row.measured_ns.max(1.0) * 100.0,
                    demerit * 100.0
                ),
                _ => writeln!(text, " ({:+.1} %)", row.off() * 100.0),
            };
        }
        text
    }
}
