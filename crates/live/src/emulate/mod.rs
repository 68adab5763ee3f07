//! An emulated disk: a file whose reads take the time that a simulated drive needs for them.

mod clocked;

pub use clocked::ClockedDrive;
