//! Devices, schedulers and arrays: what a request costs, which request is served next, and which disk holds a block.
//!
//! A *device* turns (now, request) into a completion and nothing else: it has no queue and no clock. A *scheduler*
//! orders the queue in front of it. A [`Drive`] combines both and counts; a simulator has one per disk. A *layout* maps
//! a block of the volume to a disk and sector.
//!
//! [`replay()`] replays requests that were timed on a real drive, and [`rms_demerit`] measures the model's error.
//!
//! A device is a file under `models/` (or only a TOML profile of the mechanical model) whose row is listed in
//! [`MODELS`]; a scheduler is a file under `schedulers/` whose row is listed in [`SCHEDULERS`].
//!
//! Everything is integer arithmetic on [`Nanos`](headstart_types::Nanos): the same requests take the same times on
//! every machine.

mod array;
mod arrays;
mod commands;
mod device;
mod drive;
mod driver_cost;
pub mod limits;
mod models;
mod probe;
mod registry;
mod replay;
mod row;
mod schedulers;
mod sequential;
mod shared_bus;
mod statistics;
mod time;

pub use array::{CapacityError, Concat, Explicit, Layout, Stripe};
pub use arrays::{array, build_array, build_layout, ARRAYS};
pub use commands::CommandQueue;
pub use device::{sectors_of, Band, Device, Mechanics, Request, Service, Wanted, SECTOR_BYTES};
pub use drive::{Drive, Finished, Started};
pub use driver_cost::DriverCost;
pub use models::flash::Flash;
pub use models::mechanical::Mechanical;
pub use models::object_store::ObjectStore;
pub use models::profile::{overlay, ProfileKeys, NO_ARM};
pub use models::uniform::Uniform;
pub use models::MODELS;
pub use probe::{probe, Load, Pattern, Probed};
pub use registry::{build_device, build_scheduler, driver_cost, model, scheduler, DeviceError};
pub use replay::{replay, rms_demerit, Timed};
pub use row::{ArrayKind, ArrayRow, JoinDisks, LayDisks, Model, SchedulerRow};
pub use schedulers::anticipatory::Anticipatory;
pub use schedulers::cscan::Cscan;
pub use schedulers::deadline::Deadline;
pub use schedulers::fcfs::Fcfs;
pub use schedulers::scan::Scan;
pub use schedulers::sptf::Sptf;
pub use schedulers::sstf::Sstf;
pub use schedulers::{Next, Promise, Queued, Scheduler, Stroke, SCHEDULERS};
pub use sequential::{sequential_read, Limit, SequentialRead};
pub use shared_bus::{on_shared_bus, SharedBusKeys};
pub use statistics::{Areas, Statistics, Unfinished};
