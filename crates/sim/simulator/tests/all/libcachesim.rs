//! libCacheSim's prefetchers (aa0fc40, October 2024), compared with its counts: misses, prefetches, used ones.
//!
//! The counts of real traces come from an independently read and emulated program; runs that hit its memory errors are
//! not included. They need the traces in `HEADSTART_TRACES`, or next to this project, and are skipped with a note
//! otherwise. A small string, worked out by the same emulation, needs none.

use std::io::Write as _;
use std::path::PathBuf;

use headstart_sim::{simulate, Report, Scenario};

const LRU: &str = "name = \"demand\"\nreplacement = \"lru\"";
const OBL_4: &str = "name = \"obl\"\nwhen = \"run\"";
const OBL_1: &str = "name = \"obl\"\nwhen = \"run\"\nconfidence = 1";
const MITHRIL: &str = "name = \"mithril\"\nversion = \"libcachesim\"\nblock_bytes = 65536";
const M_A: &str =
    "name = \"mithril\"\nversion = \"libcachesim\"\nblock_bytes = 65536\nlookahead = 50\nlist = 5\nmining = 1024";
const M_B: &str =
    "name = \"mithril\"\nversion = \"libcachesim\"\nblock_bytes = 65536\nmin_support = 4\nmax_support = 12\n\
                   confidence = 2\nmining = 1024";
const PG: &str =
    "name = \"probability-graph\"\nversion = \"libcachesim\"\nblock_bytes = 65536\nlookahead = 20\nchance = 0.05";
const P_A: &str =
    "name = \"probability-graph\"\nversion = \"libcachesim\"\nblock_bytes = 65536\nlookahead = 5\nchance = 0.1";
const P_B: &str =
    "name = \"probability-graph\"\nversion = \"libcachesim\"\nblock_bytes = 4096\nlookahead = 2\nchance = 0.3";

/// Misses, prefetches and used ones in a cache; 0 if the source does not give it.
type Counts = (u64, u64, u64);

const CLOUD_PHYSICS_COUNTS: &[(&str, &[Counts])] = &[
    (LRU, &[(100215, 0, 0), (94823, 0, 0), (91527, 0, 0), (79438, 0, 0), (72053, 0, 0)]),
    (OBL_4, &[(98981, 1243, 0), (93588, 1243, 0), (90293, 1243, 0), (78203, 1243, 0), (70818, 1243, 0)]),
    (OBL_1, &[(97924, 2358, 0), (92514, 2357, 0), (89216, 2354, 0), (77136, 2336, 0), (69749, 2336, 0)]),
    (
        MITHRIL,
        &[(92885, 12287, 7454), (81610, 18257, 13288), (79349, 13498, 12468), (75072, 6851, 5885), (72014, 150, 39)],
    ),
    (M_A, &[(92116, 13660, 8345), (80930, 17152, 13941), (79417, 13071, 12316), (74359, 6777, 6164), (72007, 142, 46)]),
    (M_B, &[(99830, 386, 386), (92598, 3346, 2246), (90147, 1499, 1447), (79423, 19, 15), (72053, 0, 0)]),
    (PG, &[(99371, 1468, 913), (94644, 345, 180), (91235, 426, 307), (79257, 248, 182), (71923, 170, 130)]),
    (
        P_A,
        &[
            (97239, 5042, 3137),
            (66004, 62628, 28951),
            (60701, 58188, 32276),
            (57666, 42457, 27578),
            (52504, 22386, 19562),
        ],
    ),
    (
        P_B,
        &[
            (98212, 2071, 2011),
            (93815, 2225, 1018),
            (74068, 30284, 18388),
            (62281, 27175, 21092),
            (55117, 18997, 16949),
        ],
    ),
];

const SPRITE_COUNTS: &[(&str, &[Counts])] = &[
    (LRU, &[(105079, 0, 0), (29074, 0, 0), (12544, 0, 0), (7824, 0, 0)]),
    (OBL_4, &[(101144, 4266, 0), (25484, 3733, 0), (9245, 3333, 0), (4839, 2989, 0)]),
    (OBL_1, &[(91996, 43248, 0), (23735, 17553, 0), (6195, 9137, 0), (2130, 5857, 0)]),
    (MITHRIL, &[(90330, 18664, 15834), (26686, 2920, 2708), (12525, 63, 34), (7824, 0, 0)]),
    (M_A, &[(46892, 110772, 67639), (19477, 21843, 17001), (11043, 2053, 1732), (7797, 30, 27)]),
    (M_B, &[(54716, 79387, 57171), (21041, 10677, 9747), (12179, 426, 387), (7824, 0, 0)]),
    (PG, &[(103219, 2956, 2061), (27697, 1818, 1579), (12274, 329, 275), (7819, 8, 5)]),
    (P_A, &[(67432, 44561, 38563), (19581, 11508, 10274), (10069, 3161, 2624), (7411, 551, 424)]),
    (P_B, &[(102062, 3267, 3046), (24100, 5406, 5134), (10663, 2172, 1944), (7443, 450, 385)]),
];

/// Misses without the errors of the heap, and of the times that are compared.
const FIXED: [(&str, [u64; 4]); 4] = [
    (P_A, [64714, 50592, 61112, 16495]),
    (PG, [94239, 71920, 100439, 25556]),
    (MITHRIL, [81562, 72014, 90715, 26716]),
    (M_B, [92738, 72053, 50825, 21001]),
];

/// Each reference thinks for longer than its fetches take, one after another in the order of issue, so time has no
/// effect.
fn run(workload: &str, frames: u32, policy: &str) -> Report {
    let text = format!(
        "[workload]\n{workload}\ncompute = \"1s\"\n[cache]\nblocks = {frames}\n[policy]\n{policy}\n[device]\n\
         model = {{name = \"uniform\", fetch_time = \"1us\"}}\nscheduler = \"fcfs\"\n"
    );
    let table = text.parse().expect("TOML");
    let scenario = Scenario::from_table(table).unwrap_or_else(|error| panic!("{error}\n{text}"));
    simulate(&scenario, &mut |_| true).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn counts(report: &Report) -> Counts {
    (report.counts.misses, report.counts.prefetches, report.counts.prefetches_used)
}

fn trace(name: &str) -> Option<String> {
    let ours = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/traces");
    let folder = std::env::var_os("HEADSTART_TRACES").map_or(ours, PathBuf::from);
    let path = folder.join("third-party").join(name);
    if !path.exists() {
        // Bypasses the capture of passing tests' output.
        let _ = writeln!(std::io::stderr(), "SKIPPED: {} is not there: no comparison", path.display());
        return None;
    }
    Some(format!("trace = \"{}\"\nblock_size = \"object\"", path.display()))
}

/// The same numbers as addresses of blocks, in their order: OBL takes the next number as the next block.
fn as_addresses(name: &str) -> Option<String> {
    let workload = trace(name)?;
    let path = workload.split('"').nth(1).expect("its path");
    let mut reader = headstart_trace::open(path.as_ref(), "auto").expect("a trace");
    let mut records = Vec::new();
    let mut offsets = String::new();
    while reader.read(&mut records).expect("records") {
        records.drain(..).for_each(|record| offsets += &format!("{}\n", record.offset * 4096));
    }
    let copy = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}.offsets", name.replace('/', "-")));
    std::fs::write(&copy, offsets).expect("there is room");
    let keys = "format = \"offsets\"\nrequest_size = \"4KiB\"\nblock_size = \"4KiB\"";
    Some(format!("trace = \"{}\"\n{keys}", copy.display()))
}

fn check(name: &str, sizes: &[u32], table: &[(&str, &[Counts])]) {
    let (Some(objects), Some(addresses)) = (trace(name), as_addresses(name)) else { return };
    for (policy, row) in table {
        let workload = if policy.contains("obl") { &addresses } else { &objects };
        for (frames, expected) in sizes.iter().zip(*row) {
            let (misses, prefetches, used) = counts(&run(workload, *frames, policy));
            let used = if expected.2 == 0 && policy.contains("obl") { 0 } else { used };
            assert_eq!((misses, prefetches, used), *expected, "{name}, {frames} blocks:\n{policy}");
        }
    }
}

const CLOUD_PHYSICS: &str = "blocks/cloudPhysicsIO.oracleGeneral.bin";
const SPRITE: &str = "buffer-cache/sprite.trace.gz";

#[test]
fn counts_of_cloud_physics() {
    check(CLOUD_PHYSICS, &[100, 1000, 5000, 10_000, 20_000], CLOUD_PHYSICS_COUNTS);
}

#[test]
fn counts_of_sprite() {
    check(SPRITE, &[100, 500, 1000, 3000], SPRITE_COUNTS);
}

#[test]
fn counts_without_its_errors() {
    let runs = [(CLOUD_PHYSICS, 1000), (CLOUD_PHYSICS, 20_000), (SPRITE, 100), (SPRITE, 500)];
    for (policy, expected) in FIXED {
        let policy = policy.replace("libcachesim", "libcachesim-fixed");
        for ((name, frames), misses) in runs.iter().zip(expected) {
            let Some(workload) = trace(name) else { continue };
            assert_eq!(run(&workload, *frames, &policy).counts.misses, misses, "{name}, {frames} blocks:\n{policy}");
        }
    }
}

/// Loops over 60 blocks, of 54 to 60 references and steps 1 to 3: enough repetition to learn, and enough change to be
/// wrong.
fn loops() -> String {
    let loops = (0..40u32).flat_map(|round| (0..60 - round % 7).map(move |at| (at * (1 + round % 3)) % 60));
    let names: Vec<String> = loops.map(|block| format!("\"{block:02}\"")).collect();
    format!("references = [{}]", names.join(", "))
}

#[test]
fn counts_of_a_small_string() {
    let little = P_B.replace("4096", "256");
    for (policy, expected) in [
        (OBL_4, (557, 673, 666)),
        (OBL_1, (528, 702, 695)),
        (P_A, (166, 1313, 1161)),
        (&P_B.replace("4096", "65536"), (452, 884, 824)),
        // Learning stops at 24 nodes and arcs.
        (&little, (1172, 81, 74)),
    ] {
        assert_eq!(counts(&run(&loops(), 30, policy)), expected, "{policy}");
    }
}
