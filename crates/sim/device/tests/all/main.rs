//! Device models compared with hand-worked cases, naive models and the published drive, and the contract of every
//! device.

mod arrays;
mod common;
mod devices;
mod divided_buffers;
mod flash;
mod flash_managed;
mod flash_sheets;
mod fuzz_mutated;
mod hp97560;
mod layout_and_keys;
mod least_reads;
#[path = "../../../trace/tests/all/common/mutate.rs"]
mod mutate;
mod naive_drive;
mod naive_reading;
mod naive_segments;
mod object_store;
mod plausible;
mod profile_input;
mod profiles;
mod queueing;
mod queues;
mod random_reads;
mod read_ahead;
mod scheduler_anticipatory;
mod scheduler_deadline;
mod scheduler_orders;
mod segments;
mod sequential;
mod slow_bus;
mod small_drive;
