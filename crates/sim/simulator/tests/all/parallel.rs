//! Parallel programs: barriers, idle times and their effect on the gains of hits, worked by hand; random programs whose
//! accounts must add up.

use headstart_sim::Report;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::common;

const MS: u64 = 1_000_000;

/// A trace of processes, each with the blocks that it reads; 8 KiB each, in rounds.
fn of_processes(name: &str, processes: &[&[u64]]) -> common::Trace {
    let mut text = "time,op,pid,file,offset,size,dur_us\n".to_owned();
    let rounds = processes.iter().map(|blocks| blocks.len()).max().unwrap_or(0);
    for round in 0..rounds {
        for (pid, blocks) in (1..).zip(processes) {
            if let Some(block) = blocks.get(round) {
                text += &format!("0.{round:06},R,{pid},1,{},8192,0\n", block * 8192);
            }
        }
    }
    common::Trace::of_text(name, &text)
}

/// Processes of a trace, 2 ms of think time after each read, on 24 disks of 10 ms: no process waits for another's
/// request.
fn run_processes(name: &str, processes: &[&[u64]], process: &str) -> Report {
    let trace = of_processes(name, processes);
    common::run(&format!(
        "workload = {{trace = \"{}\", processes = \"per-pid\", compute = \"2ms\", placement = \"address\"}}\n\
         cache = {{blocks = 64}}\npolicy = \"demand\"\nprocess = {{{process}}}\n\
         device = {{model = \"uniform\", fetch_time = \"10ms\", count = 24}}\n",
        trace.path()
    ))
}

fn ms(time: u64) -> u64 {
    assert_eq!(time % MS, 0, "{time} is no whole number of ms");
    time / MS
}

/// (start, end, critical, slack) of each interval, in ms.
fn intervals(report: &Report) -> Vec<(u64, u64, u32, u64)> {
    let interval = report.intervals.iter();
    interval.map(|each| (ms(each.start_ns), ms(each.end_ns), each.critical, ms(each.slack_ns))).collect()
}

/// Figure 2 of kotz-ellis: three processes that meet after every two reads.
#[test]
fn hits_that_do_not_shorten_the_critical_path_gain_nothing() {
    let every_two = "barrier = {every = 2, scope = \"process\"}";
    // (a) Every read a miss: 10 + 2 + 10 + 2 to each meeting.
    let misses = run_processes("figure2a", &[&[0, 1, 2, 3], &[6, 7, 8, 9], &[12, 13, 14, 15]], every_two);
    assert_eq!((ms(misses.elapsed_ns), misses.counts.misses), (48, 12));
    assert_eq!(intervals(&misses), [(0, 24, 2, 0), (24, 48, 2, 0)]);
    assert_eq!(ms(misses.barrier_ns), 0);
    // (b) Three hits, all of process 0: it reaches the first barrier at 14, and ends at 28; no other process is
    // earlier.
    let one = run_processes("figure2b", &[&[0, 0, 0, 0], &[6, 7, 8, 9], &[12, 13, 14, 15]], every_two);
    assert_eq!((ms(one.elapsed_ns), one.counts.misses, one.counts.hits_ready), (48, 9, 3));
    assert_eq!(intervals(&one), [(0, 24, 2, 0), (24, 48, 2, 0)]);
    let first = &one.processes[0];
    assert_eq!([first.barrier_ns, first.stall_ns, first.compute_ns, first.idle_ns].map(ms), [10, 10, 8, 20]);
    assert_eq!((ms(first.barrier_actual_ns()), first.hits_ready, first.read_ns_mean), (10, 3, 10 * MS / 4));
    // (c) Three hits, one of each process, in the first interval: 10 + 2 + 2.
    let each = run_processes("figure2c", &[&[0, 0, 2, 3], &[6, 6, 8, 9], &[12, 12, 14, 15]], every_two);
    assert_eq!((ms(each.elapsed_ns), each.counts.misses, each.counts.hits_ready), (38, 9, 3));
    assert_eq!(intervals(&each), [(0, 14, 2, 0), (14, 38, 2, 0)]);
    assert!(each.intervals[0].read_ns_mean < misses.intervals[0].read_ns_mean);
    let critical = &each.intervals[1];
    assert_eq!([critical.critical_compute_ns, critical.critical_own_io_ns].map(ms), [4, 20]);
}

trait Actual {
    fn barrier_actual_ns(&self) -> u64;
}

impl Actual for headstart_sim::ProcessReport {
    fn barrier_actual_ns(&self) -> u64 {
        self.periods.barrier_actual_ns
    }
}

#[test]
fn who_shares_a_fetch_waits_for_other_io() {
    // All read 0: one miss, two unready hits, at the same instant. 10 + 2; then a miss each: 24.
    let report = run_processes("shares", &[&[0, 1], &[0, 7], &[0, 13]], "barrier = \"none\"");
    assert_eq!((report.counts.misses, report.counts.hits_unready, report.devices[0].requests), (4, 2, 1));
    assert_eq!((ms(report.elapsed_ns), report.intervals.len()), (24, 0));
    let io: Vec<_> = report
        .processes
        .iter()
        .map(|each| (ms(each.own_io_ns), ms(each.other_io_ns), ms(each.hit_wait_ns_mean)))
        .collect();
    assert_eq!(io, [(20, 0, 0), (10, 10, 10), (10, 10, 10)]);
    let periods = &report.processes[1].periods;
    assert_eq!((periods.other_io_periods, ms(periods.other_io_necessary_ns)), (1, 10));
}

#[test]
fn all_meet_after_so_many_reads_together() {
    // Three misses at 0. At 12 process 0 reads 0 again, a hit, the fourth of all: the others are held from 12 on, and
    // process 0 comes at 14.
    let report = run_processes(
        "together",
        &[&[0, 0, 0, 0, 0], &[6, 7, 8], &[12, 13, 14]],
        "barrier = {every = 4, scope = \"all\"}",
    );
    // Second interval from 14: 0 (a hit, to 16), 7 and 13 (to 26), 0 at 16 (to 18): the fourth. All there at 26.
    // Third: 0 (to 28), 8 and 14 (to 38): all have read all; process 0 leaves at 28.
    assert_eq!(intervals(&report), [(0, 14, 0, 2), (14, 26, 2, 0), (26, 38, 2, 0)]);
    assert_eq!(ms(report.elapsed_ns), 38);
    let references: Vec<u64> = report.intervals.iter().map(|each| each.references).collect();
    assert_eq!(references, [4, 4, 3]);
}

/// One process that reads three blocks, each on a disk of its own of 10 ms, with 2 ms of thought after each.
fn three_blocks(process: &str) -> Report {
    common::run(&format!(
        "workload = {{compute = \"2ms\"}}\ncache = {{blocks = 3}}\npolicy = \"rapid-transit\"\n\
         device = {{model = \"uniform\", fetch_time = \"10ms\", count = 3}}\n\
         process = {{count = 1, pattern = {{name = \"gw\", blocks = 3, reads = 3}}, buffers = 2, \
         prefetch_action = \"6ms\", {process}}}\n"
    ))
}

#[test]
fn an_action_that_overruns() {
    // 0: block 0 is missing, 0-10. Actions 0-6 for block 1 (its disk: 6-16) and 6-12 for block 2 (12-22). Block 0 is
    // there at 10, the processor at 12: 2 of overrun. 14: block 1 is there at 16; 18: block 2 at 22; thought until 24.
    let end = three_blocks("action_issues = \"end\"");
    let process = &end.processes[0];
    assert_eq!((ms(end.elapsed_ns), process.actions, ms(process.action_ns), ms(process.overrun_ns)), (24, 2, 12, 2));
    assert_eq!(
        [process.compute_ns, process.own_io_ns, process.other_io_ns, process.overhead_ns].map(ms),
        [6, 10, 6, 2]
    );
    let periods = &process.periods;
    assert_eq!((ms(periods.own_io_necessary_ns), ms(periods.own_io_actual_ns)), (10, 12));
    assert_eq!((process.misses, process.hits_unready, ms(process.hit_wait_ns_mean)), (1, 2, 3));
    assert_eq!((ms(process.read_ns_mean), end.counts.prefetches, end.counts.prefetches_late), (6, 2, 2));
    // Requests at the starts of the actions: block 1 0-10, block 2 6-16. 14: a hit; 16: a hit; thought until 18.
    let start = three_blocks("action_issues = \"start\"");
    assert_eq!((ms(start.elapsed_ns), start.counts.hits_ready, ms(start.processes[0].overrun_ns)), (18, 2, 2));
    // A least idle time: none is known before the first period ends, then the period of 10 is the estimate; the waits
    // for blocks 1 and 2 are of another kind.
    let least = three_blocks("min_time = \"7ms\"");
    assert_eq!((least.elapsed_ns, least.processes[0].actions), (end.elapsed_ns, 2));
    // A least lead of 2: block 1 is not prefetched, block 2 is by the first action, 6-16. Block 0 is there at 10; 12:
    // block 1, 12-22; 24: a hit; thought until 26.
    let lead = three_blocks("min_lead = 1");
    assert_eq!((ms(lead.elapsed_ns), lead.processes[0].actions, lead.counts.misses), (26, 1, 2));
}

#[test]
fn shared_structures_are_held_by_one_at_a_time() {
    // Two processes, a block each: the first looks up 0-1, the second waits and looks up 1-2; fetches of 10 ms.
    let report = common::run(
        "cache = {blocks = 2}\ndevice = {model = \"uniform\", fetch_time = \"10ms\", count = 2}\n\
         process = {count = 2, pattern = {name = \"gw\", blocks = 2, reads = 2}, contention = \"1ms\"}\n",
    );
    let overheads: Vec<u64> = report.processes.iter().map(|process| ms(process.overhead_ns)).collect();
    assert_eq!((ms(report.elapsed_ns), overheads), (12, vec![1, 2]));
}

#[test]
fn buffers_of_other_nodes_cost_more() {
    // Process 0 reads block 0: 0-10. Process 1 reads block 6: 0-10, thinks until 12, and finds block 0.
    let run = |place: &str| {
        let keys = format!("buffer_place = \"{place}\", remote_cost = \"1ms\"");
        let report = run_processes(&format!("nodes-{place}"), &[&[0], &[6, 0]], &keys);
        let of = |process: usize| (report.processes[process].remote_reads, ms(report.processes[process].overhead_ns));
        (ms(report.elapsed_ns), of(0), of(1))
    };
    // Block 0 is process 0's; its reading costs process 1 another ms: 13, and 15 after thinking.
    assert_eq!(run("requester"), (15, (0, 0), (1, 1)));
    // In turn it is the same: block 0 comes first, block 6 second.
    assert_eq!(run("shared"), (15, (0, 0), (1, 1)));
    // Disks 0 and 6 are both at process 0's node: 11 and 13 for block 6, 14 and 16 for block 0.
    assert_eq!(run("disk"), (16, (0, 0), (2, 2)));
}

/// A process that reads four blocks on four disks of 10 ms and thinks 2 ms after each; actions of 4 ms, two buffers.
fn four_blocks(process: &str) -> Report {
    let trace = of_processes("four-blocks", &[&[0, 1, 2, 3]]);
    common::run(&format!(
        "workload = {{trace = \"{}\", processes = \"per-pid\", compute = \"2ms\", placement = \"address\"}}\n\
         cache = {{blocks = 64}}\npolicy = \"rapid-transit\"\nprocess = {{prefetch_action = \"4ms\", buffers = 2{process}}}\n\
         device = {{model = \"uniform\", fetch_time = \"10ms\", count = 24}}\n",
        trace.path()
    ))
}

#[test]
fn io_processors_do_the_actions() {
    // The process reads 0 until 10. Meanwhile the other processor acts for 1 until 4, for 2 until 8; they come at 14
    // and 18, and no buffer is left. At 12 block 1 is asked for: an action for 3, until 16, which comes at 26. 1:
    // 14-16, 2: 18-20, 3: 26-28.
    let apart = four_blocks(", io_processors = 1");
    let [process, io] = &apart.processes[..] else { panic!("a process and a processor") };
    assert_eq!((ms(apart.elapsed_ns), process.actions, process.overruns), (28, 0, 0));
    assert_eq!((io.actions, ms(io.action_ns), ms(io.idle_ns), io.references), (3, 12, 28, 0));
    // The process's own processor begins the last action at 12 too, and overruns from 14 to 16.
    let alone = four_blocks("");
    assert_eq!((ms(alone.elapsed_ns), alone.processes[0].actions, ms(alone.processes[0].overrun_ns)), (28, 3, 2));
    // Of buffers at the I/O processor all but the first block are remote; the disks are attached to it too.
    for (place, remote) in [("requester", 3), ("disk", 4)] {
        let report = four_blocks(&format!(", io_processors = 1, buffer_place = \"{place}\", remote_cost = \"1us\""));
        assert_eq!(report.processes[0].remote_reads, remote, "{place}");
    }
}

#[test]
fn a_trace_s_processes_can_be_prefetched_for() {
    let trace = of_processes("told", &[&[0, 1, 2, 3], &[6, 7, 8, 9]]);
    let run = |policy: &str, actions: &str| {
        common::run(&format!(
            "workload = {{trace = \"{}\", processes = \"per-pid\", compute = \"2ms\", placement = \"address\"}}\n\
             cache = {{blocks = 8}}\npolicy = \"{policy}\"\nprocess = {{barrier = {{every = 2}}{actions}}}\n\
             device = {{model = \"uniform\", fetch_time = \"10ms\", count = 24}}\n",
            trace.path()
        ))
    };
    let (demand, rapid) = (run("demand", ""), run("rapid-transit", ", prefetch_action = \"2ms\""));
    assert_eq!((ms(demand.elapsed_ns), demand.counts.misses), (48, 8));
    assert!(rapid.elapsed_ns < demand.elapsed_ns && rapid.counts.misses < 8);
    assert_eq!((rapid.counts.fetches, rapid.counts.prefetches_wasted), (8, 0));
}

#[test]
fn processes_share_hints() {
    // Two processes, each with its own blocks, 2 ms of think time: merged 0 6 1 7 2 8 3 9. Everything is fetched ahead.
    let trace = of_processes("hints", &[&[0, 1, 2, 3], &[6, 7, 8, 9]]);
    let run = |policy: &str, processes: &str| {
        common::try_run(common::table(&format!(
            "workload = {{trace = \"{}\", processes = \"{processes}\", compute = \"2ms\", placement = \"address\"}}\n\
             cache = {{blocks = 8}}\npolicy = {policy}\n\
             device = {{model = \"uniform\", fetch_time = \"10ms\", count = 24}}\n",
            trace.path()
        )))
    };
    for name in ["aggressive", "fixed-horizon", "forestall"] {
        let report = run(&format!("\"{name}\""), "per-pid").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((report.counts.fetches, report.counts.references), (8, 8), "{name}");
        assert!(report.elapsed_ns < 48 * MS, "{name} is no worse than demand");
        adds_up_but_for_actions(&report);
    }
    // All eight at once, in the first 10 ms: 10 + 4 * 2.
    let aggressive = run("\"aggressive\"", "per-pid").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(ms(aggressive.elapsed_ns), 18);
    for policy in [
        "\"reverse-aggressive\"",
        "{name = \"demand\", replacement = \"min\"}",
        "{name = \"forestall\", hints = {window = 3}}",
    ] {
        let error = run(policy, "per-pid").expect_err(policy);
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

/// The laws of processes that are not part of a program.
fn adds_up_but_for_actions(report: &Report) {
    let sum = |part: fn(&headstart_sim::ProcessReport) -> u64| report.processes.iter().map(part).sum::<u64>();
    assert_eq!(sum(|each| each.references), report.counts.references);
    assert_eq!(sum(|each| each.hits_unready), report.counts.hits_unready);
    assert_eq!((sum(|each| each.actions), sum(|each| each.barrier_ns)), (0, 0));
}

#[test]
fn no_process_of_one_seed_thinks_as_one_of_the_next() {
    // With a seed of seed + process for each, three of these four would, and means over seeds would hardly deviate.
    let compute = |seed| -> Vec<u64> {
        let report = common::run(&format!(
            "seed = {seed}\nworkload = {{compute = \"exp:5ms\"}}\ncache = {{blocks = 40}}\n\
             process = {{count = 4, pattern = {{name = \"lfp\", blocks = 40, reads = 40}}}}\n"
        ));
        report.processes.iter().map(|process| process.compute_ns).collect()
    };
    let (one, next) = (compute(1), compute(2));
    assert!(one.iter().all(|time| !next.contains(time)), "{one:?} {next:?}");
}

const PREDICTORS: [&str; 7] =
    ["last-successor", "stable-successor", "probability-graph", "ppm", "mithril", "leap", "patterns"];
const PATTERNS: [&str; 6] = ["lfp", "lrp", "lw", "gfp", "grp", "gw"];

/// A parallel program drawn at random, on demand or with prefetching.
fn random_program(rng: &mut ChaCha8Rng, seed: u64) -> String {
    let count = rng.random_range(1..8);
    let pattern = PATTERNS[rng.random_range(0..PATTERNS.len())];
    let reads = if pattern == "lw" { count * rng.random_range(1..9) } else { rng.random_range(count..120) };
    let barrier = match rng.random_range(0..4) {
        0 => "\"none\"".to_owned(),
        1 => "\"portion\"".to_owned(),
        at => format!("{{every = {}, scope = \"{}\"}}", rng.random_range(1..12), ["process", "all"][at - 2]),
    };
    let contention = ["0s", "0s", "300us", "2ms"][rng.random_range(0..4)];
    let compute = ["0s", "5ms", "exp:5ms"][rng.random_range(0..3)];
    let driver = ["0s", "0s", "700us"][rng.random_range(0..3)];
    let buffers = rng.random_range(1..9);
    let (policy, actions) = match rng.random_bool(0.3) {
        true => ("demand", String::new()),
        false => ("rapid-transit", random_actions(rng, buffers)),
    };
    // A frame for each process and each buffer suffices.
    let frames = count + buffers + rng.random_range(0..20);
    let (disks, blocks) = (rng.random_range(1..6), rng.random_range(9..150));
    let io_processors = match actions.contains("for_others = true") && rng.random_bool(0.3) {
        true => format!(", io_processors = {}", rng.random_range(1..5)),
        false => String::new(),
    };
    let place = ["shared", "requester", "disk"][rng.random_range(0..3)];
    let remote = ["0s", "0s", "800us"][rng.random_range(0..3)];
    let nodes = format!(", buffer_place = \"{place}\", remote_cost = \"{remote}\"{io_processors}");
    format!(
        "seed = {seed}\nworkload = {{compute = \"{compute}\"}}\ncache = {{blocks = {frames}}}\n\
         policy = {{name = \"{policy}\", replacement = \"ru-set\"}}\n\
         device = {{model = \"uniform\", fetch_time = \"9ms\", count = {disks}}}\n\
         host = {{driver_overhead = \"{driver}\", hit_time = \"40us\"}}\n\
         process = {{count = {count}, pattern = {{name = \"{pattern}\", blocks = {blocks}, reads = {reads}}}, \
         barrier = {barrier}, contention = \"{contention}\"{actions}{nodes}}}\n",
    )
}

fn random_actions(rng: &mut ChaCha8Rng, buffers: u32) -> String {
    let predictor = match rng.random_bool(0.4) {
        true => format!(", predictor = \"{}\"", PREDICTORS[rng.random_range(0..PREDICTORS.len())]),
        false => String::new(),
    };
    format!(
        ", buffers = {buffers}, prefetch_action = \"{}\", action_issues = \"{}\", min_time = \"{}\", min_lead = {}, \
         for_others = {}",
        ["0s", "3ms", "uniform:6ms:16ms"][rng.random_range(0..3)],
        ["start", "end"][rng.random_range(0..2)],
        ["0s", "0s", "4ms"][rng.random_range(0..3)],
        if predictor.is_empty() { [0, 0, 5][rng.random_range(0..3)] } else { 0 },
        rng.random_bool(0.7),
    ) + &predictor
}

/// The laws of every parallel program; the code itself asserts that no process passes a barrier early, and that each
/// one's time adds up.
fn adds_up(report: &Report, text: &str) {
    let counts = &report.counts;
    let sum = |part: fn(&headstart_sim::ProcessReport) -> u64| report.processes.iter().map(part).sum::<u64>();
    assert_eq!(sum(|each| each.references), counts.references, "{text}");
    assert_eq!(sum(|each| each.hits_ready), counts.hits_ready, "{text}");
    assert_eq!(sum(|each| each.misses), counts.misses, "{text}");
    assert_eq!(counts.demand_fetches, counts.misses, "each miss is fetched once\n{text}");
    assert_eq!(counts.prefetches, sum(|each| each.actions), "each action is a fetch\n{text}");
    assert_eq!(sum(|each| each.own_io_ns + each.other_io_ns), report.stall_ns, "{text}");
    for each in &report.processes {
        let periods = &each.periods;
        let actual = periods.own_io_actual_ns + periods.other_io_actual_ns + periods.barrier_actual_ns;
        let necessary = periods.own_io_necessary_ns + periods.other_io_necessary_ns + periods.barrier_necessary_ns;
        assert!(actual >= necessary + each.overrun_ns, "{text}");
        assert!(actual <= necessary + each.overrun_ns + each.driver_ns, "{text}");
        assert!(each.overrun_ns <= each.action_ns && each.overrun_ns <= each.overhead_ns, "{text}");
    }
    let Some(last) = report.intervals.last() else { return };
    assert_eq!((report.intervals[0].start_ns, last.end_ns), (0, report.elapsed_ns), "{text}");
    assert!(report.intervals.windows(2).all(|pair| pair[0].end_ns == pair[1].start_ns), "{text}");
    let sum = |part: fn(&headstart_sim::IntervalReport) -> u64| report.intervals.iter().map(part).sum::<u64>();
    assert_eq!(sum(|each| each.references), counts.references, "{text}");
    assert_eq!(sum(|each| each.hits_unready), counts.hits_unready, "{text}");
    let all: u64 = report.processes.iter().map(|each| each.action_ns + each.overrun_ns).sum();
    assert_eq!(sum(|each| each.action_ns + each.overrun_ns), all, "{text}");
}

#[test]
fn random_programs_add_up() {
    for seed in 0..1500 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let text = random_program(&mut rng, seed);
        let report = common::run(&text);
        adds_up(&report, &text);
        if seed % 25 == 0 {
            let again = serde_json::to_string(&common::run(&text)).expect("plain values");
            assert_eq!(serde_json::to_string(&report).expect("plain values"), again, "the same again\n{text}");
        }
    }
}

/// What two runs have in common: everything except the scenario.
fn but_the_scenario(report: &Report) -> serde_json::Value {
    let mut value = serde_json::to_value(report).expect("plain values");
    let object = value.as_object_mut().expect("an object");
    object.remove("scenario");
    for process in object.get_mut("processes").and_then(serde_json::Value::as_array_mut).expect("processes") {
        // Idle periods are only distinguished in parallel programs.
        let keep =
            |key: &String| !key.contains("_periods") && !key.ends_with("_necessary_ns") && !key.ends_with("_actual_ns");
        process.as_object_mut().expect("an object").retain(|key, _| keep(key));
    }
    value
}

#[test]
fn a_program_of_one_process_that_meets_nobody_is_no_program() {
    for seed in 0..300 {
        let text = common::random_system(seed);
        if !text.contains("name = \"demand\"") {
            continue;
        }
        let mut table = common::table(&text);
        let alone = common::run(&text);
        table.insert("process".into(), common::table("barrier = \"none\"").into());
        let program = common::try_run(table).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(but_the_scenario(&alone), but_the_scenario(&program), "{text}");
    }
}

#[test]
fn prefetches_that_take_no_time_end_where_frames_are_short() {
    // The level below has the blocks, and actions take no time: each prefetch is there at once. With a frame for each
    // of two processes and five buffers, prefetches would take each other's frames for ever.
    let report = common::run(
        "process = {count = 2, pattern = {name = \"lfp\", blocks = 30, reads = 60}, buffers = 5, \
         prefetch_action = \"0s\", barrier = {every = 2}}\n\
         [[level]]\nblocks = 2\npolicy = \"rapid-transit\"\n[[level]]\nblocks = 30\n",
    );
    assert_eq!(report.counts.references, 60);
}

#[test]
fn a_request_of_many_blocks_may_take_the_frames_of_prefetched_ones() {
    // Requests of up to six blocks asked for whole: a frame for each process and each buffer does not keep what is
    // prefetched. By process, first block and number of blocks:
    let requests = [(1, 8, 1), (2, 5, 1), (1, 0, 4), (3, 3, 6), (2, 6, 5), (1, 8, 5)];
    let lines = requests.map(|(process, first, count)| format!("0,R,{process},1,{},{},0", first * 8192, count * 8192));
    let text = format!("time,op,pid,file,offset,size,dur_us\n{}\n", lines.join("\n"));
    let trace = common::Trace::of_text("whole", &text);
    let report = common::run(&format!(
        "workload = {{trace = \"{}\", processes = \"per-pid\", issue = \"whole\", placement = \"address\"}}\n\
         cache = {{blocks = 10}}\npolicy = {{name = \"rapid-transit\", replacement = \"ru-set\"}}\n\
         process = {{barrier = {{every = 3}}, prefetch_action = \"1ms\"}}\n\
         device = {{model = \"uniform\", fetch_time = \"2ms\"}}\n",
        trace.path()
    ));
    assert_eq!(report.counts.references, 22);
}

#[test]
fn what_a_process_asks_for_after_a_meeting_is_not_at_hand_before() {
    // A hint's fetch of the block behind the barrier was counted as demanded, though its process meets the others first
    // and the driver's work then keeps it from asking: more demand fetches than misses.
    for policy in ["aggressive", "fixed-horizon", "forestall"] {
        let trace = of_processes("behind", &[&[1, 9, 7, 2]]);
        let report = common::run(&format!(
            "workload = {{trace = \"{}\", placement = \"address\", compute = \"0s\"}}\ncache = {{blocks = 1}}\n\
             policy = \"{policy}\"\nprocess = {{barrier = {{every = 3}}}}\nhost = {{driver_overhead = \"1ms\"}}\n\
             device = {{model = \"uniform\", fetch_time = \"2ms\"}}\n",
            trace.path()
        ));
        assert_eq!(report.counts.references, 4, "{policy}");
        assert!(report.counts.demand_fetches <= report.counts.misses, "{policy}");
    }
}

/// Five processors, blocks of 1 KiB, 30 ms of compute, and a meeting every 10 reads of each, as in the study of
/// kotz-ellis.
fn predicted(pattern: &str, policy: &str, keys: &str) -> Report {
    common::run(&format!(
        "workload = {{block_size = \"1KiB\", compute = \"exp:30ms\"}}\ncache = {{blocks = 20}}\n\
         policy = {{name = \"{policy}\", replacement = \"ru-set\"}}\n\
         device = {{model = \"uniform\", fetch_time = \"30ms\", count = 5, stripe_unit = \"1KiB\"}}\n\
         process = {{count = 5, pattern = {{name = \"{pattern}\", blocks = 1000, reads = 1000}}, \
         barrier = {{every = 10, scope = \"process\"}}{keys}}}\nhost = {{driver_overhead = \"0s\"}}\n"
    ))
}

#[test]
fn predictors_gain_what_they_can_and_cost_their_actions() {
    for pattern in PATTERNS {
        let demand = predicted(pattern, "demand", "").elapsed_ns as f64;
        let known = predicted(pattern, "rapid-transit", "").elapsed_ns as f64;
        for predictor in PREDICTORS {
            let report = predicted(pattern, "rapid-transit", &format!(", predictor = \"{predictor}\""));
            let counts = &report.counts;
            let ratio = report.elapsed_ns as f64 / demand;
            println!(
                "{pattern} {predictor}: {ratio:.3} of demand, known {:.3}, {} prefetches, {} used",
                known / demand,
                counts.prefetches,
                counts.prefetches_used
            );
            assert_eq!(counts.references, 1000, "{pattern} {predictor}");
            assert!(counts.prefetches_used <= counts.prefetches && counts.prefetches_used + counts.misses <= 1000);
            // Slowdowns of the paper are less than 5 %.
            assert!(ratio < 1.05, "{pattern} {predictor}: {ratio:.3}");
        }
    }
}

#[test]
fn contradictions_are_refused() {
    let refused = |text: &str, says: &str| {
        let error = common::try_run(common::table(text)).expect_err(says);
        assert!(error.contains(says) && error.lines().count() == 1, "{error:?} should contain {says:?}");
    };
    let process = |keys: &str| format!("process = {{{keys}}}\n");
    let traced = format!("workload = {{trace = \"t.csv\"}}\n{}", process("count = 3"));
    refused(&traced, "process.count: the trace determines");
    refused(&process("pattern = \"xyz\""), "process.pattern: unknown pattern \"xyz\"");
    refused(&process("pattern = {name = \"gw\", portions = 3}"), "process.pattern.portions: unknown key");
    refused(&process("pattern = \"gw\", count = 0"), "process.count: 0 is out of range");
    refused(&process("pattern = \"gw\", barrier = {every = 0}"), "process.barrier.every: 0 is out of range");
    refused(&process("pattern = \"gw\", barrier = \"never\""), "process.barrier.scope: \"never\" is unknown");
    refused(&process("pattern = \"gw\", barrier = {scope = \"portion\", every = 3}"), "process.barrier.every");
    refused(&process("pattern = \"gw\", barrier = {each = 3}"), "process.barrier.each: unknown key");
    refused(&process("pattern = \"gw\", prefetch_action = \"uniform:6ms\""), "process.prefetch_action");
    refused(&process("pattern = \"gw\", buffers = 20"), "process.buffers: demand has no prefetch actions");
    refused(&process("pattern = \"gw\", action_issues = \"late\""), "process.action_issues");
    refused(
        "policy = \"rapid-transit\"\nworkload = {references = [\"A\"]}\n",
        "policy.name: rapid-transit needs to know",
    );
    refused(
        &format!("policy = \"obl\"\n{}", process("pattern = \"gw\"")),
        "policy.name: obl prefetches without using processors",
    );
    refused(
        &format!("policy = {{name = \"rapid-transit\", buffers = 3}}\n{}", process("pattern = \"gw\"")),
        "policy.buffers: belongs in [process]",
    );
    let predicted =
        |keys: &str| format!("policy = \"rapid-transit\"\n{}", process(&format!("pattern = \"gw\", {keys}")));
    refused(&predicted("predictor = \"linux\""), "process.predictor.name: unknown predictor \"linux\"");
    refused(&predicted("predictor = {name = \"leap\", speed = 1}"), "process.predictor.speed: unknown key");
    refused(&predicted("predictor = \"leap\", min_lead = 1"), "process.min_lead");
    refused(&predicted("predictor = \"leap\", prefetch_for = \"critical\""), "process.prefetch_for");
    refused(&predicted("io_processors = 1, for_others = false"), "process.io_processors");
    refused(&process("pattern = \"gw\", io_processors = 1"), "process.io_processors: demand has no prefetch actions");
    refused(&process("pattern = \"gw\", buffer_place = \"near\""), "process.buffer_place");
    refused(&process("pattern = \"gw\", remote_cost = \"2h\""), "process.remote_cost");
    refused(&process("pattern = \"gw\", predictor = \"leap\""), "process.predictor: demand has no prefetch actions");
    refused(&process("pattern = \"gw\", speed = 3"), "process.speed: unknown key");
    let beside = |workload: &str| format!("workload = {{{workload}}}\nprocess = {{pattern = \"gw\"}}\n");
    refused(&beside("generator = \"synth\""), "workload.generator: given together with process.pattern");
    refused(&beside("writes = \"back\""), "workload.writes: given together with process.pattern");
    refused(
        &format!("policy = \"forestall\"\n{}", process("pattern = \"gw\"")),
        "policy: the process of each reference",
    );
    refused(&format!("policy = \"rapid-transit\"\n{}", beside("arrival = \"open\"")), "workload.arrival");
    refused(
        "workload = {generator = \"synth\"}\nprocess = {barrier = \"portion\"}\n",
        "process.barrier.scope: a trace has no portions",
    );
    refused(
        "workload = {generator = \"oltp\", arrival = \"open\"}\nprocess = {barrier = \"none\"}\n",
        "workload.arrival",
    );
}
