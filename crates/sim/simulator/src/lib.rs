//! The simulator: one of the hosts of the policies. It controls virtual time; drives, processes and workloads are
//! simulated, levels and policies are the real ones.
//!
//! [`simulate()`] turns a [`Scenario`] into a [`Report`].

mod bound;
mod build;
mod checked;
mod curve;
mod disclosing;
mod journal;
mod known;
mod live;
pub mod model;
mod open_files;
mod outcome;
mod progress;
mod read_ahead_env;
mod report;
mod run;
mod simulate;
mod storage;
mod timeline;
mod workload;

pub use bound::lower_bound;
pub use checked::checked;
pub use curve::{curve, Cache, Curve, CurveKeys, CurveSize, Filtered, Line, Point, SizeOf, OF_BYTES};
pub use headstart_assemble::check_devices;
pub use headstart_scenario::{read_selection, schema, Error, Scenario, Source, Traces};
pub use journal::Event;
pub use live::{playable, played, Description};
pub use progress::{OnProgress, Progress};
pub use report::{IntervalReport, PeriodsReport, ProcessReport, Report};
pub use run::Machine;
pub use simulate::{carries, reads_at_once, simulate};
pub use timeline::{timeline, EVENTS_MAX};
