//! The analytic file-system model for the drives and scenarios of this crate.
//!
//! [`drive()`] converts a device into parameters, [`model()`] a scenario, and [`sheet()`] a question from Python. The
//! equations are in `headstart_analytic::file_system`.

mod answer;
pub mod competitive;
mod drive;
mod open;
mod question;
mod scenario;
mod traced;

pub use answer::answer;
pub use drive::{drive, Modelled};
pub use open::{open, open_answer};
pub use question::{sheet, Question};
pub use scenario::{model, Model};
pub use traced::traced_answer;
