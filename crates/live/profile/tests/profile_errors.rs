//! The errors that a measurement reports: on all shipped drives the true value is nearly always within them.

use headstart_device::{build_scheduler, Drive, MODELS};
use headstart_profile::{measure, ArmFound, Profile, Settings, SimulatedProbe};
use headstart_types::{DriveFacts, Nanos};
use toml::Table;

/// Every shipped drive with an arm: its name and facts.
fn drives() -> Vec<(&'static str, DriveFacts)> {
    let facts = |model: &headstart_device::Model| model.build(Table::new()).ok()?.drive_facts();
    MODELS.iter().filter_map(|model| Some((model.name, facts(model)?))).collect()
}

fn measured(name: &str, seconds: u64, seed: u64) -> (ArmFound, Profile) {
    let device = headstart_device::build_device(name, Table::new()).expect("shipped");
    let mut probe =
        SimulatedProbe::new(Drive::new(device, build_scheduler("fcfs", Table::new()).expect("it is there")));
    let settings = Settings { time: Nanos(seconds * 1_000_000_000), seed };
    let found = measure(&mut probe, "a drive", &settings, &mut |_| true).expect("it can be measured");
    (found.findings.arm.clone().expect("an arm"), found)
}

/// By figure: how far off it is, how far it says that it may be, and the truth.
fn figures(arm: &ArmFound, truth: &DriveFacts) -> [(&'static str, f64, f64, f64); 4] {
    let rate = truth.mean_rate_of_places(None);
    let switch_ns = (truth.mean_seek + truth.half_turn).0 as f64;
    let figure = |name, found: u64, truth: f64, error: u64| (name, (found as f64 - truth).abs(), error as f64, truth);
    [
        figure("turn", arm.turn_ns, 2.0 * truth.half_turn.0 as f64, arm.turn_error_ns),
        figure("seek", arm.mean_seek_ns, truth.mean_seek.0 as f64, arm.mean_seek_error_ns),
        figure("rate", arm.mean_bytes_per_s, rate, arm.mean_error_bytes_per_s),
        figure("depth", arm.competitive_depth_bytes, switch_ns * rate / 1e9, arm.competitive_depth_error_bytes),
    ]
}

#[test]
fn the_truth_is_within_the_error() {
    let (mut all, mut within) = (0, 0);
    let (mut most, mut asked) = ([0.0_f64; 4], 0);
    for (name, truth) in drives() {
        for (seconds, seed) in [(60, 1), (60, 2), (60, 3), (40, 4), (40, 5), (30, 6), (30, 3)] {
            let (arm, found) = measured(name, seconds, seed);
            let asks = found.findings.notes.iter().any(|note| note.contains("more --time"));
            asked += u32::from(asks);
            for (at, (figure, off, error, truth)) in figures(&arm, &truth).into_iter().enumerate() {
                all += 1;
                within += u32::from(off <= error);
                if !asks {
                    most[at] = most[at].max(error / truth);
                }
                if off > error {
                    println!(
                        "{name}, {seconds} s, seed {seed}: {figure} off by {off:.0}, said {error:.0}, of {truth:.0}"
                    );
                }
                // Values outside the error are not far outside.
                assert!(off <= 3.0 * error, "{name}, {seconds} s, seed {seed}: {figure} {off} of {error}");
            }
        }
    }
    println!(
        "{within} of {all}; {asked} ask for more time; of the others most of turn, seek, rate and depth: {most:.4?}"
    );
    // 2 standard errors would be 19 of 20.
    assert!(all >= 250 && within * 100 >= all * 93, "{within} of {all}");
    // An error that is always large says nothing.
    assert!(asked * 10 < all / 4, "{asked}");
    assert!(most[0] < 0.001 && most[1..].iter().all(|share| *share < 0.125), "{most:?}");
}

#[test]
fn less_time_says_larger_errors() {
    for name in ["ibm-36gb-10k", "seagate-exos-x20"] {
        let [short, long] = [20, 90].map(|seconds| measured(name, seconds, 1).0.mean_seek_error_ns);
        assert!(short as f64 > 1.3 * long as f64, "{name}: {short} and {long}");
    }
    // A large drive and little time: the measurement requests more.
    let (arm, found) = measured("seagate-exos-x20", 5, 1);
    assert!(arm.competitive_depth_error_bytes * 8 > arm.competitive_depth_bytes, "{arm:?}");
    let asks = found.findings.notes.iter().any(|note| note.contains("may be off by") && note.contains("more --time"));
    assert!(asks, "{:?}", found.findings.notes);
}
