//! The four measured drives: values read by eye from their files, and every number of zones, slips and seek times
//! compared with a second, line-by-line reading. Skipped with a note if the drives' files are missing.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use headstart_device::{build_device, Device, Mechanical, Request};
use headstart_diskspecs::{import, Imported};
use headstart_types::Nanos;
use toml::{Table, Value};

fn folder() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/disks");
    if folder.is_dir() {
        return Some(folder);
    }
    // Bypasses the capture of passing tests' output.
    let _ = writeln!(std::io::stderr(), "SKIPPED: {} is absent", folder.display());
    None
}

/// The profile, which must build a drive with the capacity that the import reports.
fn table(imported: &Imported) -> Table {
    let table: Table = imported.profile.parse().unwrap();
    let drive = Mechanical::from_table(table.clone()).unwrap();
    assert_eq!(drive.capacity_sectors(), Some(imported.sectors));
    table
}

struct Drive {
    file: &'static str,
    /// The shipped model, entered without the importer.
    shipped: &'static str,
    name: &'static str,
    /// The profile's non-repeating parts, without what the second reading compares.
    profile: &'static str,
    zones: usize,
    seeks: usize,
    block_count: u64,
    sectors: u64,
}

const DRIVES: [Drive; 4] = [
    Drive {
        file: "cheetah9LP",
        shipped: "seagate-cheetah-9lp",
        name: "SEAGATE_ST39102LW_validate",
        profile: "surfaces = 12
            rpm = 10045
            head_switch = '30us'
            write_settle = '461us'
            mapping = 'forward'
            sparing = 'zone'
            controller = {read_hit_after_read = '66us', read_hit_after_write = '273us',
              read_miss_after_read = '283.62us', read_miss_after_write = '86.73us', write_hit_after_read = '748us',
              write_hit_after_write = '500us', write_miss_after_read = '906.92us', write_miss_after_write = '896.4us'}
            bus = {sector_time = '105us'}
            buffer = {segments = 3, segment_sectors = 561, write_segments = 3, read_ahead = 'next-track',
              read_ahead_maximum = 561, keep_requested = true, write_reporting = 'buffer'}",
        zones: 11,
        seeks: 106,
        block_count: 17_783_240,
        sectors: 17_918_387,
    },
    Drive {
        file: "cheetah4LP",
        shipped: "seagate-cheetah-4lp",
        name: "SEAGATE_ST34501N_validate",
        profile: "surfaces = 8
            rpm = 10033
            head_switch = '195us'
            write_settle = '0s'
            mapping = 'forward'
            sparing = 'range'
            sparing_range = 12
            controller = {read_hit_after_read = '68us', read_hit_after_write = '309us',
              read_miss_after_read = '607.73us', read_miss_after_write = '568.83us', write_hit_after_read = '474us',
              write_hit_after_write = '95us', write_miss_after_read = '431.33us', write_miss_after_write = '537.76us'}
            bus = {sector_time = '106us'}
            buffer = {segments = 3, segment_sectors = 282, write_segments = 1, read_ahead = 'segment',
              read_ahead_maximum = 282, keep_requested = true, write_reporting = 'append'}",
        zones: 7,
        seeks: 103,
        block_count: 8_887_200,
        sectors: 8_887_940,
    },
    Drive {
        file: "barracuda",
        shipped: "seagate-barracuda-st32171w",
        name: "SEAGATE_ST32171W",
        profile: "surfaces = 5
            rpm = 7200
            head_switch = '100us'
            write_settle = '0s'
            mapping = 'forward'
            sparing = 'range'
            sparing_range = 6
            controller = {read_hit_after_read = '82us', read_hit_after_write = '596us',
              read_miss_after_read = '613.07us', read_miss_after_write = '568.13us', write_hit_after_read = '1.01ms',
              write_hit_after_write = '929.1us', write_miss_after_read = '1.05363ms', write_miss_after_write = '815.6us'}
            bus = {sector_time = '134us'}
            buffer = {segments = 3, segment_sectors = 281, write_segments = 1, read_ahead = 'segment',
              read_ahead_maximum = 281, keep_requested = true, write_reporting = 'append'}",
        zones: 11,
        seeks: 87,
        block_count: 4_110_000,
        sectors: 4_217_670,
    },
    Drive {
        file: "atlas10k",
        shipped: "quantum-atlas-10k",
        name: "QUANTUM_TORNADO_validate",
        profile: "surfaces = 6
            rpm = 10025
            head_switch = '176us'
            write_settle = '487us'
            mapping = 'serpentine'
            sparing = 'zone'
            controller = {read_hit_after_read = '184us', read_hit_after_write = '184us', read_miss_after_read = '0s',
              read_miss_after_write = '0s', write_hit_after_read = '186us', write_hit_after_write = '189us',
              write_miss_after_read = '344.92us', write_miss_after_write = '496.73us'}
            bus = {sector_time = '99us'}
            buffer = {segments = 10, segment_sectors = 374, write_segments = 1, read_ahead = 'next-track',
              read_ahead_maximum = 354, read_before = true, zero_latency_read = true, zero_latency_write = true,
              write_reporting = 'buffer'}",
        zones: 24,
        seeks: 138,
        block_count: 17_938_986,
        sectors: 17_966_953,
    },
];

#[test]
fn values_read_by_eye() {
    let Some(folder) = folder() else { return };
    for drive in &DRIVES {
        let imported = import(&folder.join(drive.file).with_extension("parv")).unwrap();
        assert_eq!(imported.name, drive.name);
        assert_eq!(imported.warnings, [""; 0], "{}", drive.file);
        assert_eq!(imported.sectors, drive.sectors, "{}", drive.file);
        let difference = format!("Block count = {}: the zones hold {} sectors", drive.block_count, drive.sectors);
        assert!(imported.profile.contains(&difference), "{difference}");
        let mut table = table(&imported);
        for repeated in ["name", "zones", "seek", "nominal_service"] {
            table.remove(repeated).unwrap();
        }
        // A table within braces must be on one line.
        let expected = drive.profile.replace(",\n", ",");
        assert_eq!(table, expected.parse::<Table>().unwrap(), "{}", drive.file);
    }
}

/// Numbers after `name` in the lines of a file, in order.
fn lines(text: &str, name: &str) -> Vec<f64> {
    let value = |line: &str| {
        line.trim().strip_prefix(name)?.trim().strip_prefix('=')?.trim_end_matches(',').trim().parse().ok()
    };
    text.lines().filter_map(value).collect()
}

/// The whole numbers of each list called `name`, in order.
fn lists(text: &str, name: &str) -> Vec<Vec<i64>> {
    let numbers =
        |list: &str| list.split([',', '[', ']', ' ', '\n', '\r']).filter_map(|item| item.parse().ok()).collect();
    let begin = format!("{name} =");
    let after = text.split(&begin).skip(1);
    after.map(|rest| numbers(&rest[..rest.find(']').unwrap()])).collect()
}

fn whole(zone: &Value, key: &str) -> i64 {
    zone.get(key).map_or(0, |value| value.as_integer().unwrap())
}

#[test]
fn zones_and_seeks_against_a_second_reading() {
    let Some(folder) = folder() else { return };
    for drive in &DRIVES {
        let path = folder.join(drive.file);
        let table = table(&import(&path.with_extension("diskspecs")).unwrap());
        let text = std::fs::read_to_string(path.with_extension("model")).unwrap();
        let zones = table["zones"].as_array().unwrap();
        assert_eq!(zones.len(), drive.zones);
        let first = lines(&text, "First cylinder number");
        let last = lines(&text, "Last cylinder number");
        let ours = |key: &str| zones.iter().map(|zone| whole(zone, key) as f64).collect::<Vec<_>>();
        assert_eq!(ours("first_cylinder"), first);
        let cylinders: Vec<f64> = first.iter().zip(&last).map(|(first, last)| last - first + 1.0).collect();
        assert_eq!(ours("cylinders"), cylinders);
        for (key, name) in [
            ("sectors_per_track", "Blocks per track"),
            ("track_skew", "Skew for track switch"),
            ("cylinder_skew", "Skew for cylinder switch"),
            ("offset", "Offset of first block"),
            ("reserved", "Empty space at zone front"),
            ("spares", "Number of spares"),
        ] {
            assert_eq!(ours(key), lines(&text, name), "{name}");
        }
        let (slips, defects) = (lists(&text, "slips"), lists(&text, "defects"));
        assert_eq!((slips.len(), defects.len()), (drive.zones, drive.zones));
        for ((zone, mut slips), defects) in zones.iter().zip(slips).zip(defects) {
            slips.sort_unstable();
            let list = |key: &str| zone.get(key).map_or(Vec::new(), |list| list.as_array().unwrap().clone());
            let ours: Vec<i64> = list("slips").iter().map(|slip| slip.as_integer().unwrap()).collect();
            assert_eq!(ours, slips);
            let mut pairs: Vec<Value> =
                defects.chunks(2).filter(|pair| pair[0] != pair[1]).map(|pair| Value::from(pair.to_vec())).collect();
            pairs.sort_by_key(|pair| pair[0].as_integer());
            assert_eq!(list("defects"), pairs);
        }
        let text = std::fs::read_to_string(path.with_extension("seek")).unwrap();
        let seek = table["seek"].as_table().unwrap();
        let (distances, times) = (seek["distances"].as_array().unwrap(), seek["times_ms"].as_array().unwrap());
        assert_eq!((distances.len(), times.len()), (drive.seeks, drive.seeks));
        let points: Vec<&str> = text.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())).collect();
        assert_eq!(points.len(), drive.seeks);
        for ((point, distance), time) in points.into_iter().zip(distances).zip(times) {
            let (left, right) = point.split_once(',').unwrap();
            assert_eq!(left.trim().parse::<i64>().ok(), distance.as_integer());
            assert_eq!(right.trim().parse::<f64>().ok(), time.as_float());
        }
    }
}

/// The imported drives and the shipped profiles serve random and sequential reads and writes in the same times.
#[test]
fn imported_and_shipped_drives_are_the_same() {
    let Some(folder) = folder() else { return };
    for drive in &DRIVES {
        let imported = import(&folder.join(drive.file).with_extension("parv")).unwrap();
        let mut imported = Mechanical::from_table(table(&imported)).unwrap();
        let mut shipped = build_device(drive.shipped, Table::new()).unwrap();
        assert_eq!(shipped.capacity_sectors(), Some(drive.block_count));
        let (mut now, mut sector, mut state) = (Nanos::ZERO, 0, 42u64);
        for index in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let random = state >> 33;
            let count = 1 + random as u32 % 64;
            // Two of three continue where the previous one ended, and one of four is a write.
            sector = if random % 3 == 0 { random * 2_862_933_555 % (drive.block_count - 5_000) } else { sector };
            sector = sector.min(drive.block_count - 64);
            let mut request = Request::read(sector, count, 0);
            request.write = random % 4 == 1;
            let [one, other] = [imported.serve(now, &request), shipped.serve(now, &request)];
            assert_eq!(one.end, other.end, "{} request {index}: {request:?}", drive.file);
            sector += u64::from(count);
            now = one.end + Nanos(random % 7 * 1_000_000);
        }
    }
}
