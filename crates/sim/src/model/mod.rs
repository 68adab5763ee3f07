//! The analytic file-system model on the drives and scenarios of this crate.
//!
//! [`drive()`] turns a device into what the equations need of it, [`model()`] a scenario, and [`sheet()`] what Python asks for.
//! The equations stand in `headstart_analytic::file_system`.

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
