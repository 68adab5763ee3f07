//! Questions and their answers; the drives of the paper; the seeks of equation (5) compared with those of simulated
//! drives.

use super::*;
use headstart_device::{build_device, build_scheduler, probe, Load};
use serde_json::{from_value, json, Value};

fn ask(mut question: Value) -> Result<Answer, String> {
    for (key, default) in [("page", "4KiB"), ("slow_start", "64KiB")] {
        if question.get(key).is_none() {
            question[key] = default.into();
        }
    }
    competitive(&from_value(question).expect("a question")).map_err(|error| error.to_string())
}

fn answer(question: Value) -> Answer {
    ask(question).expect("an answer")
}

fn near(ours: u64, printed: f64, within: f64) {
    assert!((ours as f64 / printed - 1.0).abs() < within, "{ours} against {printed}");
}

/// Section 5 of the paper, on the profiles built from its averages.
#[test]
fn the_shipped_profiles_have_the_papers_depths() {
    for (drive, seek, rate, depth) in
        [("ibm-36gb-10k", 7.53e6, 37.3e6, 393e3), ("seagate-146gb-10k", 4.98e6, 55.8e6, 446e3)]
    {
        let average = answer(json!({"drive": drive})).average;
        assert_eq!((average.rotation_ns, average.switch_ns), (3_000_000, average.seek_ns + 3_000_000));
        near(average.seek_ns, seek, 0.005);
        assert_eq!(average.depths[1].place, "mean");
        near(average.depths[1].bytes_per_s, rate, 0.01);
        near(average.depths[1].depth_bytes, depth, 0.01);
    }
}

#[test]
fn numbers_alone_by_hand() {
    let found = answer(json!({"seek": "7.53ms", "rotation": "3.00ms", "rate": "37.3MB/s"}));
    let given = Depth { place: "given", bytes_per_s: 37_300_000, depth_bytes: 392_769, depth_pages: 96 };
    let average =
        Switch { requests: 2, seek_ns: 7_530_000, rotation_ns: 3_000_000, switch_ns: 10_530_000, depths: vec![given] };
    assert_eq!((found.average, found.concurrency.len(), found.dataset_bytes), (average, 0, None));
    // 64, 128, 256 KiB, then 96 pages: 2, slightly above 2, 5, 5.
    let [plain, pages, slow, both] = &found.guarantees[..] else { panic!("four: {:?}", found.guarantees) };
    assert_eq!((plain.bound, plain.worst_ratio, plain.worst_above_bytes), (Some(2.0), 2.0, Some(0)));
    assert_eq!((pages.bound, pages.depth_bytes, pages.slow_prefetches), (None, 393_216, 0));
    assert!((pages.worst_ratio - (1.0 + 393_216.0 / 392_769.0)).abs() < 1e-12);
    assert_eq!((slow.bound, slow.slow_prefetches, slow.slow_bytes), (Some(5.0), 3, 458_752));
    // Four switches and 458,752 + 392,769 bytes, against one switch and 458,752.
    let by_hand = (4.0 * 392_769.0 + 458_752.0 + 392_769.0) / (392_769.0 + 458_752.0);
    assert!((slow.worst_ratio - by_hand).abs() < 1e-12 && slow.worst_above_bytes == Some(458_752));
    assert_eq!((both.depth_bytes, both.slow_prefetches, both.whole_pages), (393_216, 3, true));
    let quick = answer(json!({"seek": 1e6, "rotation": 0, "rate": 1e9, "slow_start": 0}));
    assert_eq!((quick.average.depths[0].depth_bytes, quick.guarantees.len()), (1_000_000, 2));
}

#[test]
fn more_requests_are_nearer_each_other() {
    let found = answer(json!({"drive": "ibm-36gb-10k", "concurrency": [2, 1, 4, 64]}));
    let depths: Vec<u64> = found.concurrency.iter().map(|row| row.depths[1].depth_bytes).collect();
    assert_eq!(found.concurrency[0], found.average);
    assert!(depths[1] > depths[0] && depths[0] > depths[2] && depths[2] > depths[3], "{depths:?}");
    // Never less than half a revolution and the shortest seek.
    assert!(found.concurrency[3].switch_ns > 3_800_000, "{:?}", found.concurrency[3]);
    assert_eq!(answer(json!({"drive": "ibm-36gb-10k"})).concurrency.len(), CONCURRENCY.len());
}

/// 24 GB of the 36.4 GB, as in section 6: shorter seeks, and only the faster zones.
#[test]
fn data_on_a_part_of_the_drive() {
    let whole = answer(json!({"drive": "seagate-146gb-10k"}));
    let part = answer(json!({"drive": "seagate-146gb-10k", "dataset": "24GB"}));
    assert!(part.average.seek_ns < whole.average.seek_ns / 2, "{part:?}");
    let rates = |answer: &Answer| answer.average.depths.iter().map(|depth| depth.bytes_per_s).collect::<Vec<_>>();
    // 17.80 GB of the first zone and 6.20 GB of the second, at 66.74 and 64.05 MB/s.
    assert_eq!((rates(&part)[0], part.dataset_bytes), (rates(&whole)[0], Some(24_000_000_000)));
    near(rates(&part)[2], 64.05e6, 1e-3);
    near(rates(&part)[1], (17.80 * 66.74e6 + 6.20 * 64.05e6) / 24.0, 1e-3);
    assert!(rates(&whole)[2] < rates(&part)[2]);
}

#[test]
fn mistakes_say_what_is_allowed() {
    let refused = |question: Value| ask(question).expect_err("a mistake");
    let begins = |question: Value, line: &str| {
        let found = refused(question);
        assert!(found.starts_with(line), "{found}");
    };
    begins(json!({}), "drive: is missing; allowed: a drive, or seek, rotation and rate together");
    begins(json!({"seek": 1e6, "rate": 1e6}), "rotation: is missing; allowed: a drive, or ");
    begins(json!({"drive": "ibm-36gb-10k", "rate": 1e6}), "rate: is given together with a drive, which has its own; ");
    begins(json!({"drive": "nvme"}), "drive: \"nvme\" has no seeks, hence no competitive depth; ");
    begins(json!({"drive": "uniform", "keys": {"fetch_time": "2ms"}}), "drive: \"uniform\" has no seeks");
    begins(json!({"drive": "ibm-36gb"}), "drive.model: unknown ");
    let numbers = json!({"seek": 1e6, "rotation": 1e6, "rate": 1e6});
    let with = |key: &str, value: Value| {
        let mut question = numbers.clone();
        question[key] = value;
        question
    };
    begins(with("concurrency", json!([1])), "concurrency: needs a drive, ");
    begins(with("dataset", json!("1GB")), "dataset: needs a drive, ");
    begins(with("keys", json!({"rpm": 1})), "keys: needs a drive, ");
    begins(with("page", json!(0)), "page: 0 bytes is out of range; allowed: 1 to ");
    begins(with("slow_start", json!(-1)), "slow_start: -1 bytes is out of range; allowed: 0 to ");
    begins(with("rate", json!("fast")), "rate: \"fast\" ");
    begins(json!({"seek": 0, "rotation": 0, "rate": 1e6}), "seek: there is no switch to amortise; allowed: ");
    begins(json!({"drive": "ibm-36gb-10k", "concurrency": [0]}), "concurrency: a number is out of range; ");
    begins(json!({"drive": "ibm-36gb-10k", "dataset": "40GB"}), "dataset: 40GB do not fit ");
}

/// Mean seek of a simulated drive, in milliseconds: 20,000 reads at random positions, `depth` of them outstanding.
fn simulated_seek_ms(drive: &str, scheduler: &str, depth: u32) -> f64 {
    let device = build_device(drive, Table::new()).expect("shipped");
    let scheduler = build_scheduler(scheduler, Table::new()).expect("a scheduler");
    let statistics = probe(device, scheduler, &Load::random(8, 20_000, 1).at_depth(depth)).statistics;
    statistics.seek.0 as f64 / statistics.requests as f64 / 1e6
}

/// Equation (5) assumes that the requests ahead of the arm are spread evenly. They are not: few are left where the arm
/// has just been, many where it has not been for long, so the next one is nearer than in (5).
#[test]
fn expected_seeks_beside_simulated_ones() {
    for drive in ["ibm-36gb-10k", "seagate-146gb-10k"] {
        let found = answer(json!({"drive": drive}));
        let expected_ms = |row: &Switch| row.seek_ns as f64 / 1e6;
        // Order of arrival: two random positions.
        let random = expected_ms(&found.average) / simulated_seek_ms(drive, "fcfs", 1);
        assert!((0.99..1.01).contains(&random), "{drive}: {random}");
        for row in &found.concurrency[1..] {
            let above = expected_ms(row) / simulated_seek_ms(drive, "cscan", row.requests);
            assert!((1.06..1.16).contains(&above), "{drive}, {} requests: {above}", row.requests);
        }
    }
}
