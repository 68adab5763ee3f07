//! Every read-ahead by name: one row each. Help, docs and the conformance tests iterate the table.

use serde::Serialize;
use toml::Table;

use headstart_types::{typed_keys, KeyError};

use super::depth_keys::{CompetitiveKeys, FixedDepthKeys, OracleDepthKeys};
use super::keys::{
    at_least_one, at_most, defaults, AmpKeys, FfsKeys, FsspecKeys, InnoDbKeys, Linux26Keys, LinuxKeys, MountpointKeys,
    OblKeys, PostgresKeys, RaKeys, RocksDbKeys, SarcKeys, StrideKeys, ZfsKeys, STRIDE_DEGREE_MAX,
};
use super::{
    Amp, Competitive, Ffs, FixedDepth, FsspecReadahead, InnoDb, Integrated, Linux, Linux26, MountpointS3, Obl,
    OracleDepth, Postgres, ReadAhead, ReadAheadContext, RocksDb, Sarc, Stride, Zfs,
};

/// Makes a policy from its keys.
pub type Make<P> = fn(Table, &ReadAheadContext) -> Result<Box<P>, KeyError>;

/// How a row makes its read-ahead.
pub enum BuildReadAhead {
    /// Beside a replacement that the scenario chooses.
    Apart(Make<dyn ReadAhead>),
    /// With a replacement of its own.
    WithReplacement(Make<dyn Integrated>),
}

/// What a read-ahead has to be told beside what a level has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Needs {
    /// Nothing.
    Nothing,
    /// [`ReadAheadContext::drive`]: it is for devices with an arm.
    Drive,
    /// [`ReadAheadContext::future`]: it is for the level that processes ask, and for processes whose references are
    /// known.
    Future,
}

/// A read-ahead's row.
pub struct ReadAheadRow {
    /// The name in scenarios.
    pub name: &'static str,
    /// One line for help.
    pub summary: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Whether it names only blocks after the request that it is told of.
    pub only_ahead: bool,
    /// Whether a first request of one block, away from the start of its file, makes it prefetch nothing.
    pub spares_random: bool,
    /// What the host has to tell it.
    pub needs: Needs,
    /// Its keys with their defaults.
    pub defaults: fn() -> Table,
    /// Builds it from its keys (without `name` and `replacement`).
    ///
    /// # Errors
    /// An unknown key or a value out of range.
    pub build: BuildReadAhead,
}

/// The read-aheads.
pub static READ_AHEADS: &[ReadAheadRow] = &[
    ReadAheadRow {
        name: "obl",
        summary: "one block lookahead: always, on a miss, or tagged",
        source: "Smith, ACM Computing Surveys 14(3), 1982, section 2.1",
        only_ahead: true,
        spares_random: false,
        needs: Needs::Nothing,
        defaults: defaults::<OblKeys>,
        build: BuildReadAhead::Apart(|keys, _| {
            let keys: OblKeys = typed_keys(keys)?;
            Ok(Box::new(Obl::new(keys.when)))
        }),
    },
    ReadAheadRow {
        name: "ra",
        summary: "the P blocks after each request, P fixed or adaptive",
        source: "zhang-pfc, section 2.2; Dahlgren, Dubois and Stenström, ICPP 1993",
        only_ahead: true,
        spares_random: false,
        needs: Needs::Nothing,
        defaults: defaults::<RaKeys>,
        build: BuildReadAhead::Apart(|keys, _| Ok(Box::new(typed_keys::<RaKeys>(keys)?.build()?))),
    },
    ReadAheadRow {
        name: "linux-2.6",
        summary: "groups that double from 3 to 32 blocks while a file is read in its window",
        source: "zhang-pfc, section 2.2; Butt, Gniady and Hu, SIGMETRICS 2005",
        only_ahead: true,
        spares_random: false,
        needs: Needs::Nothing,
        defaults: defaults::<Linux26Keys>,
        build: BuildReadAhead::Apart(|keys, context| {
            let keys: Linux26Keys = typed_keys(keys)?;
            let min = keys.min.some_blocks("min", context.block_bytes)?;
            let max = keys.max.some_blocks("max", context.block_bytes)?;
            at_least_one("files", keys.files)?;
            Ok(Box::new(Linux26::new(min, max, keys.trigger, keys.files as usize)))
        }),
    },
    ReadAheadRow {
        name: "sarc",
        summary: "groups of fixed size ahead of sequential blocks, which share the cache with random ones by utility",
        source: "Gill and Modha, USENIX 2005; zhang-pfc, section 2.2",
        only_ahead: true,
        spares_random: true,
        needs: Needs::Nothing,
        defaults: defaults::<SarcKeys>,
        build: BuildReadAhead::WithReplacement(|keys, context| {
            let setting = typed_keys::<SarcKeys>(keys)?.setting(context)?;
            Ok(Box::new(Sarc::new(context.frames, setting)))
        }),
    },
    ReadAheadRow {
        name: "amp",
        summary: "a degree and a trigger distance for each stream, grown by use, shrunk by waste",
        source: "Gill and Bathen, FAST 2007",
        only_ahead: true,
        spares_random: true,
        needs: Needs::Nothing,
        defaults: defaults::<AmpKeys>,
        build: BuildReadAhead::Apart(|keys, context| {
            let keys: AmpKeys = typed_keys(keys)?;
            let max_degree = keys.max_degree.some_blocks("max_degree", context.block_bytes)?;
            Ok(Box::new(Amp::new(context.frames, u64::from(keys.threshold), max_degree)))
        }),
    },
    ReadAheadRow {
        name: "linux",
        summary: "the kernel's on-demand read-ahead: a window that ramps up, renewed at a marked page",
        source: "Linux 6.12.107 and 6.17, mm/readahead.c and mm/filemap.c",
        only_ahead: false,
        spares_random: true,
        needs: Needs::Nothing,
        defaults: defaults::<LinuxKeys>,
        build: BuildReadAhead::Apart(|keys, context| {
            let keys: LinuxKeys = typed_keys(keys)?;
            let max = keys.read_ahead.some_blocks("read_ahead", context.block_bytes)?;
            let request_max = keys.max_request.blocks(context.block_bytes);
            at_least_one("files", keys.files)?;
            Ok(Box::new(Linux::new(keys.version, max, request_max, keys.files as usize, context.frames as usize)))
        }),
    },
    ReadAheadRow {
        name: "fixed-depth",
        summary: "linux's streams, slow start: windows of 64 KiB that double up to a fixed depth",
        source: "Li, Shen and Papathanasiou, EuroSys 2007, sections 4.3 and 6.2 (AP)",
        only_ahead: false,
        spares_random: true,
        needs: Needs::Nothing,
        defaults: defaults::<FixedDepthKeys>,
        build: BuildReadAhead::Apart(|keys, context| {
            let keys: FixedDepthKeys = typed_keys(keys)?;
            let depth = keys.depth.some_blocks("depth", context.block_bytes)?;
            let start = keys.start.some_blocks("start", context.block_bytes)?;
            let request_max = keys.max_request.blocks(context.block_bytes);
            let files = at_least_one("files", keys.files)? as usize;
            Ok(Box::new(FixedDepth::new(start, depth, request_max, files, context.frames as usize)))
        }),
    },
    ReadAheadRow {
        name: "competitive",
        summary: "the same up to what the disk transfers in its average switch: \
                  but for the slow start, at most twice the work of an oracle",
        source: "Li, Shen and Papathanasiou, EuroSys 2007, sections 4, 5 and 7 (CP)",
        only_ahead: false,
        spares_random: true,
        needs: Needs::Drive,
        defaults: defaults::<CompetitiveKeys>,
        build: BuildReadAhead::Apart(|keys, context| {
            let setting = typed_keys::<CompetitiveKeys>(keys)?.setting(context)?;
            let drive = context.drive.as_ref().ok_or_else(|| {
                let problem = "competitive weighs seeks against transfers, and the device has no arm";
                KeyError::new("name", problem, "fixed-depth or another policy, or a drive with an arm")
            })?;
            Ok(Box::new(Competitive::new(&setting, drive)))
        }),
    },
    ReadAheadRow {
        name: "oracle-depth",
        summary: "an oracle: when a stream begins, all that it is going to use at once, and nothing else",
        source: "Li, Shen and Papathanasiou, EuroSys 2007, section 6.2 (OPT)",
        only_ahead: true,
        spares_random: true,
        needs: Needs::Future,
        defaults: defaults::<OracleDepthKeys>,
        build: BuildReadAhead::Apart(|keys, context| {
            let keys: OracleDepthKeys = typed_keys(keys)?;
            let request_max = keys.max_request.some_blocks("max_request", context.block_bytes)?;
            let future = context.future.clone().ok_or_else(|| {
                let problem = "oracle-depth works from what processes will read, which is not known here";
                KeyError::new("name", problem, "the level that processes ask, or another policy")
            })?;
            Ok(Box::new(OracleDepth::new(future, context.frames, request_max)))
        }),
    },
    ReadAheadRow {
        name: "ffs",
        summary: "4.4BSD's clusters: requests that double up to 64 KiB, one prefetch ahead of a sequential reader",
        source: "Shriver, Small and Smith, USENIX 1999, section 2.1; 4.4BSD-Lite, sys/kern/vfs_cluster.c",
        only_ahead: false,
        spares_random: true,
        needs: Needs::Nothing,
        defaults: defaults::<FfsKeys>,
        build: BuildReadAhead::Apart(|keys, context| {
            let keys: FfsKeys = typed_keys(keys)?;
            let first = keys.first.some_blocks("first", context.block_bytes)?;
            let max = keys.max.some_blocks("max", context.block_bytes)?;
            if first > max {
                let problem = format!("{first} blocks are more than max, {max}");
                return Err(KeyError::new("first", problem, "as many as max at most"));
            }
            let files = at_least_one("files", keys.files)? as usize;
            Ok(Box::new(Ffs::new(first, max, files)))
        }),
    },
    ReadAheadRow {
        name: "stride",
        summary: "requests at a constant distance, predicted once two distances agree",
        source: "Baer and Chen, IEEE Transactions on Computers 44(5), 1995",
        only_ahead: false,
        spares_random: true,
        needs: Needs::Nothing,
        defaults: defaults::<StrideKeys>,
        build: BuildReadAhead::Apart(|keys, _| {
            let keys: StrideKeys = typed_keys(keys)?;
            let degree = at_most("degree", at_least_one("degree", keys.degree)?, STRIDE_DEGREE_MAX)?;
            Ok(Box::new(Stride::new(degree, at_least_one("files", keys.files)? as usize)))
        }),
    },
    ReadAheadRow {
        name: "rocksdb",
        summary: "8 KiB from the third sequential read on, doubled up to 256 KiB",
        source: "RocksDB 9.11.2, table/block_based/block_prefetcher.cc",
        only_ahead: true,
        spares_random: true,
        needs: Needs::Nothing,
        defaults: defaults::<RocksDbKeys>,
        build: BuildReadAhead::Apart(|keys, context| {
            let keys: RocksDbKeys = typed_keys(keys)?;
            let initial = keys.initial.some_blocks("initial", context.block_bytes)?;
            let max = keys.max.some_blocks("max", context.block_bytes)?;
            Ok(Box::new(RocksDb::new(initial, max, keys.reads, at_least_one("files", keys.files)? as usize)))
        }),
    },
    ReadAheadRow {
        name: "zfs",
        summary: "zfetch: up to 8 streams a file, the distance doubles to 4 MiB and creeps to 64 MiB",
        source: "OpenZFS 2.3 and later, module/zfs/dmu_zfetch.c",
        only_ahead: false,
        spares_random: true,
        needs: Needs::Nothing,
        defaults: defaults::<ZfsKeys>,
        build: BuildReadAhead::Apart(|keys, context| {
            let keys: ZfsKeys = typed_keys(keys)?;
            let files = at_least_one("files", keys.files)? as usize;
            Ok(Box::new(Zfs::new(keys.setting(context)?, files)))
        }),
    },
    ReadAheadRow {
        name: "innodb",
        summary: "linear read-ahead: the next extent of 64 pages after one read in order, 56 pages at least",
        source: "MySQL 8.4.8, storage/innobase/buf/buf0rea.cc",
        only_ahead: false,
        spares_random: true,
        needs: Needs::Nothing,
        defaults: defaults::<InnoDbKeys>,
        build: BuildReadAhead::Apart(|keys, context| {
            let keys: InnoDbKeys = typed_keys(keys)?;
            if keys.threshold > 64 {
                return Err(KeyError::new("threshold", format!("{} is out of range", keys.threshold), "0 to 64"));
            }
            // Each extent worth remembering has a page in the pool.
            let extents = at_least_one("extents", keys.extents)?.min(context.frames) as usize;
            Ok(Box::new(InnoDb::new(context.frames, keys.threshold, extents)))
        }),
    },
    ReadAheadRow {
        name: "postgres",
        summary: "read stream: a distance that doubles with each read of a scan and shrinks with each hit",
        source: "PostgreSQL 18.6, src/backend/storage/aio/read_stream.c",
        only_ahead: false,
        spares_random: true,
        needs: Needs::Nothing,
        defaults: defaults::<PostgresKeys>,
        build: BuildReadAhead::Apart(|keys, context| {
            let keys: PostgresKeys = typed_keys(keys)?;
            let combine = keys.io_combine_limit.some_blocks("io_combine_limit", context.block_bytes)?;
            if keys.effective_io_concurrency > 1000 {
                let problem = format!("{} is out of range", keys.effective_io_concurrency);
                return Err(KeyError::new("effective_io_concurrency", problem, "0 to 1000"));
            }
            let files = at_least_one("files", keys.files)? as usize;
            Ok(Box::new(Postgres::new(combine, keys.effective_io_concurrency, files)))
        }),
    },
    ReadAheadRow {
        name: "mountpoint-s3",
        summary: "a window of 1.125 MiB ahead of the reader, 8 MiB and then doubled as he waits, anew after a seek",
        source:
            "mountpoint-s3 at 064de784 (1.20), mountpoint-s3-fs/src/prefetch.rs and prefetch/backpressure_controller.rs",
        only_ahead: true,
        spares_random: false,
        needs: Needs::Nothing,
        defaults: defaults::<MountpointKeys>,
        build: BuildReadAhead::Apart(|keys, context| {
            let keys: MountpointKeys = typed_keys(keys)?;
            let files = at_least_one("files", keys.files)? as usize;
            Ok(Box::new(MountpointS3::new(keys.setting(context)?, context.frames, files)))
        }),
    },
    ReadAheadRow {
        name: "fsspec-readahead",
        summary: "5 MiB beyond each read that leaves the buffer of the last one",
        source: "fsspec 2025.9.0, fsspec/caching.py, ReadAheadCache",
        only_ahead: true,
        spares_random: false,
        needs: Needs::Nothing,
        defaults: defaults::<FsspecKeys>,
        build: BuildReadAhead::Apart(|keys, context| {
            let keys: FsspecKeys = typed_keys(keys)?;
            let blocks = keys.block_size.blocks(context.block_bytes);
            Ok(Box::new(FsspecReadahead::new(blocks, at_least_one("files", keys.files)? as usize)))
        }),
    },
];

/// The row of read-ahead `name`.
///
/// # Errors
/// There is none; lists the names.
pub fn read_ahead(name: &str) -> Result<&'static ReadAheadRow, KeyError> {
    let unknown = || KeyError::unknown("name", "read-ahead", name, READ_AHEADS.iter().map(|row| row.name));
    READ_AHEADS.iter().find(|row| row.name == name).ok_or_else(unknown)
}
