//! Readers and writers of traces: samples of every format, broken input, and workloads.

mod as_tools_print;
mod bad_input;
mod block_formats;
mod cache_formats;
mod common;
mod convert;
mod csv_as_written;
mod event_formats;
mod formats;
mod fuzz_mutated;
mod fuzz_short;
mod hints;
mod moving_calls;
#[path = "common/mutate.rs"]
mod mutate;
mod patterns;
mod pending;
mod samples;
mod selected;
mod system_calls;
mod workloads;
