//! Read-aheads in whole systems drawn at random: none beats the lower bound, none fetches less than demand fetching
//! with MIN, each is reproducible, and each accounts for all that it fetched.

use std::fmt::Write as _;

use headstart_device::{build_device, MODELS};
use headstart_policy::readahead::{BuildReadAhead, Needs};
use headstart_policy::registry::read_aheads;
use headstart_policy::registry::{PolicyRow, REPLACEMENTS};
use headstart_sim::{lower_bound, simulate, Report, Scenario};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use toml::Table;

use crate::common;

/// Systems with each row in a quick run.
const SYSTEMS: u64 = 40;

fn run(scenario: &Scenario) -> Report {
    simulate(scenario, &mut |_| true).unwrap_or_else(|error| panic!("{error}"))
}

/// `scenario` under `row`, with a replacement drawn for those that leave it open.
fn under(row: &PolicyRow, scenario: &Table, rng: &mut ChaCha8Rng) -> Table {
    let mut policy = Table::from_iter([("name".to_owned(), row.name.into())]);
    if let BuildReadAhead::Separate(_) = row.reads_ahead().unwrap().build {
        let open: Vec<&str> = REPLACEMENTS.iter().filter(|row| !row.hinted).map(|row| row.name).collect();
        policy.insert("replacement".to_owned(), open[rng.random_range(0..open.len())].into());
    }
    let mut scenario = scenario.clone();
    scenario.insert("policy".to_owned(), policy.into());
    scenario
}

/// The properties of every row in `scenario`.
fn holds(scenario: &Table, seed: u64) {
    let mut rng = ChaCha8Rng::seed_from_u64(!seed);
    let model = scenario["device"]["model"].as_str().expect("a name");
    let has_arm = model != "uniform" && build_device(model, Table::new()).expect("a model").drive_facts().is_some();
    for row in read_aheads().filter(|row| has_arm || row.needs() != Needs::Drive) {
        let scenario = under(row, scenario, &mut rng);
        let read = Scenario::from_table(scenario.clone()).unwrap_or_else(|error| panic!("{error}\n{scenario}"));
        let (bound, report) = (lower_bound(&read).unwrap_or_else(|error| panic!("{error}\n{scenario}")), run(&read));
        let counts = &report.counts;
        let (elapsed, least) = (report.elapsed_ns, bound.elapsed_ns.0);
        assert!(elapsed >= least, "{} takes {elapsed} ns, the bound is {least}\n{scenario}", row.name);
        assert!(counts.fetches >= bound.min_fetches, "{}: {} fetches\n{scenario}", row.name, counts.fetches);
        let served = counts.hits_ready + counts.hits_unready + counts.misses;
        assert_eq!((served, counts.demand_fetches), (counts.references, counts.misses), "{}\n{scenario}", row.name);
        assert!(counts.prefetches_used + counts.prefetches_wasted <= counts.prefetches, "{}\n{scenario}", row.name);
        let json = |report: &Report| serde_json::to_string(report).expect("plain values");
        assert_eq!(json(&run(&read)), json(&report), "{} differs from itself\n{scenario}", row.name);
    }
}

#[test]
fn no_read_ahead_beats_the_lower_bound_of_a_generated_workload() {
    for seed in 0..common::times(SYSTEMS) {
        holds(&common::table(&common::random_system_of_any_model(seed)), seed);
    }
}

/// Scans, strides and random reads of up to 5 files, interleaved, as text in the format `headstart`.
fn streams(rng: &mut ChaCha8Rng) -> String {
    let mut streams: Vec<(u32, i64, i64, i64)> = (0..rng.random_range(1..6))
        .map(|_| (rng.random_range(1..6), rng.random_range(0..200), rng.random_range(-3..5), rng.random_range(1..20)))
        .collect();
    let mut text = "time,op,pid,file,offset,size,dur_us\n".to_owned();
    for number in 0..rng.random_range(1..300) {
        let at = rng.random_range(0..streams.len());
        let (file, index, step, blocks) = &mut streams[at];
        if rng.random_bool(0.05) {
            *index = rng.random_range(0..400);
        }
        let (offset, size) = (*index * 8192, *blocks * 8192);
        writeln!(text, "{}.{:06},R,1,{file},{offset},{size},0", number / 1000, number % 1000 * 1000)
            .expect("a string takes all");
        *index = (*index + *step * *blocks).max(0);
    }
    text
}

#[test]
fn no_read_ahead_beats_the_lower_bound_of_interleaved_streams() {
    for seed in 0..common::times(SYSTEMS) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let trace = common::Trace::of_text(&format!("read-ahead-bounds-{seed}"), &streams(&mut rng));
        let mut scenario = common::table(&common::random_system_of_any_model(seed));
        let workload = format!("trace = \"{}\"\ncompute = \"{}us\"\n", trace.path(), rng.random_range(0..3000));
        scenario.insert("workload".to_owned(), common::table(&workload).into());
        scenario.insert("cache".to_owned(), common::table(&format!("blocks = {}", rng.random_range(1..300))).into());
        holds(&scenario, seed);
    }
}

#[test]
fn a_reader_that_does_not_think_is_bounded_by_the_rate_of_its_device() {
    for model in MODELS.iter().filter(|row| row.name != "uniform") {
        let scenario = format!(
            "workload = {{generator = \"sequential\", blocks = 4000, compute = \"0s\"}}\ncache = {{blocks = 1000}}\n\
             policy = {{name = \"linux\"}}\ndevice = {{model = \"{}\"}}\n",
            model.name
        );
        let read = Scenario::from_table(common::table(&scenario)).expect("a scenario");
        let (bound, elapsed) = (lower_bound(&read).expect("a bound"), run(&read).elapsed_ns);
        let transfer = bound.disks[0].transfer_ns;
        // 32.768 MB on a new device: the time of its transfer, and no more than was read.
        assert_eq!(transfer, build_device(model.name, Table::new()).expect("a model").least_transfer(4_000 * 16));
        assert!(transfer <= bound.elapsed_ns && bound.elapsed_ns.0 <= elapsed, "{}", model.name);
        if model.name != "object-store" {
            assert!(bound.elapsed_ns.0 * 20 > elapsed, "{}: {} of {elapsed}", model.name, bound.elapsed_ns);
        }
    }
}

#[test]
fn blocks_that_are_there_from_the_start_can_be_evicted() {
    // SARC chooses its victims itself, and once was not notified of them: with a cache full of blocks that are never
    // read, nothing could ever be fetched.
    for row in read_aheads().filter(|row| row.needs() == Needs::Nothing) {
        let report = common::run(&format!(
            "workload = {{references = [\"A\", \"b\", \"C\", \"d\"]}}\ncache = {{blocks = 2, initial = [\"C\", \"d\"]}}\n\
             policy = \"{}\"\n",
            row.name
        ));
        assert_eq!(report.counts.references, 4, "{}", row.name);
    }
}

#[test]
fn blocks_may_lie_in_the_cache_for_centuries_before_they_are_used() {
    // Four reads in a row within an hour, and one of all that follows 139 years later: prefetched blocks have waited
    // for more time together than 64 bits hold. The sum left them.
    let rows = (0..4).map(|at| format!("0.00000{at},R,1,1,{},8192,0\n", at * 8192)).collect::<String>();
    let text = format!("time,op,pid,file,offset,size,dur_us\n{rows}4.4,R,1,1,32768,327680,0\n");
    let trace = common::Trace::of_text("centuries", &text);
    let mut longest = 0;
    for row in read_aheads().filter(|row| row.needs() == Needs::Nothing) {
        let report = common::run(&format!(
            "workload = {{trace = \"{}\", arrival = \"open\", time_scale = 1e9}}\ncache = {{blocks = 64}}\n\
             policy = \"{}\"\n",
            trace.path(),
            row.name
        ));
        let level = &report.levels[0];
        longest = longest.max(u128::from(level.prefetching.lead_ns_mean) * u128::from(report.counts.prefetches_used));
    }
    assert!(longest > u128::from(u64::MAX), "{longest} ns fit into 64 bits");
}
