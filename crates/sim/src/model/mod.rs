//! The analytic file-system model on the drives and scenarios of this crate.
//!
//! [`drive()`] turns a device into what the equations need of it, [`sheet()`] does so with what Python asks for. The equations
//! stand in `headstart_analytic::file_system`.

pub mod competitive;
mod drive;
mod question;

pub use drive::{drive, Modelled};
pub use question::{sheet, Question};
