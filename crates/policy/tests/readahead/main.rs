//! Read-ahead policies against hand-worked request sequences and against what all of them promise.

mod amp;
mod common;
mod every_row;
mod ffs;
mod fixed_depth;
mod level;
mod linux;
mod sarc;
mod simple;
mod systems;
