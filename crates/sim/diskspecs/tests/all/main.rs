//! Drive descriptions of disk simulators: import, errors, measurements and fuzzed input.

mod drives;
mod errors;
mod fuzz;
mod fuzz_mutated;
mod import;
mod input;
mod measured;
#[path = "../../../trace/tests/all/common/mutate.rs"]
mod mutate;
mod toy_files;
