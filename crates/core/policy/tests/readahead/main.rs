//! Read-ahead policies against hand-worked request sequences and against their common promises.

mod amp;
mod common;
mod competitive;
mod every_row;
mod ffs;
mod fixed_depth;
mod kernels;
mod kernels_naive;
mod level;
mod linux;
mod oracle_depth;
mod recorded;
mod sarc;
mod simple;
mod systems;
