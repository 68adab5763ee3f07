//! The fitted model: its numbers with their errors, and its overall error.

use std::fmt::Write;

use schemars::JsonSchema;
use serde::Serialize;

use super::check::{Check, Places};
use super::fit::{shown, Parameter};

/// The model in a profile.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ModelFound {
    /// "mechanical", "flash" or "object-store".
    pub name: &'static str,
    /// Its numbers.
    pub parameters: Vec<Parameter>,
    /// Overall error.
    pub check: Check,
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
            // Writing to a string cannot fail.
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
