//! Curves without time compared with runs: the same misses, for every replacement, at every size; and samples close to
//! them.

use headstart_policy::registry::{ReplacementRow, REPLACEMENTS};
use headstart_sim::{curve, simulate, Curve, CurveKeys, CurveSize, Scenario, OF_BYTES};
use headstart_trace::reuse::Sample;
use headstart_types::Chosen;
use proptest::prelude::*;

use crate::common::{table, Trace};

fn scenario(text: &str) -> Scenario {
    Scenario::from_table(table(text)).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn on_line() -> impl Iterator<Item = &'static ReplacementRow> {
    REPLACEMENTS.iter().copied().filter(|row| !row.hinted)
}

fn row(name: &str) -> &'static ReplacementRow {
    headstart_policy::registry::replacement(name).expect("a row")
}

fn found(text: &str, sizes: Vec<CurveSize>, sample: Sample, rows: &[&'static ReplacementRow]) -> Curve {
    let replacements = rows.iter().map(|row| Chosen::plain(*row)).collect();
    let keys = CurveKeys { sizes, sample, seeds: 3, admitted_max: None, replacements };
    curve(&scenario(text), &keys, &mut |_| true).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn misses_of_run(workload: &str, replacement: &str, blocks: u64) -> u64 {
    let text = format!(
        "workload = {workload}\ncache.blocks = {blocks}\ndevice.model = {{name = \"uniform\", fetch_time = \"1ms\"}}\n\
         policy = {{name = \"demand\", replacement = \"{replacement}\"}}"
    );
    simulate(&scenario(&text), &mut |_| true).unwrap_or_else(|error| panic!("{error}\n{text}")).counts.misses
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn every_replacement_misses_as_in_a_run_at_every_size(blocks in prop::collection::vec(0u8..12, 1..120)) {
        let names: Vec<String> = blocks.iter().map(|block| format!("\"{block}\"")).collect();
        let workload = format!("{{references = [{}]}}", names.join(", "));
        let sizes: Vec<CurveSize> = (1..14).map(CurveSize::Blocks).collect();
        let rows: Vec<_> = on_line().collect();
        let curve = found(&format!("workload = {workload}"), sizes, Sample::All, &rows);
        for line in &curve.lines {
            for (at, point) in line.points.iter().enumerate() {
                let misses = misses_of_run(&workload, line.replacement, at as u64 + 1);
                prop_assert_eq!(point.misses, misses as f64, "{} of {} blocks", line.replacement, at + 1);
                prop_assert_eq!(point.miss_bytes, misses as f64 * 8192.0);
            }
        }
    }

    #[test]
    fn objects_of_many_sizes_are_cached_by_bytes(
        objects in prop::collection::vec(0u8..9, 1..150),
        sizes in prop::collection::vec(1u64..40, 9),
        capacity in 1u64..120,
        admitted_max in prop::option::of(1u64..40),
    ) {
        // At least two sizes differ: objects of one size are blocks.
        let sizes = [&[1, 2], &sizes[2..]].concat();
        let objects = [&[0, 1], &objects[..]].concat();
        let text: String = objects.iter().map(|id| format!("{id},{}\n", sizes[usize::from(*id)])).collect();
        let trace = Trace::of_text("objects", &format!("id,size\n{text}"));
        let (mut misses, mut miss_bytes, mut list) = (0u64, 0u64, Vec::<u8>::new());
        let size = |id: u8| sizes[usize::from(id)];
        for id in objects {
            if let Some(at) = list.iter().position(|each| *each == id) {
                list.remove(at);
                list.push(id);
                continue;
            }
            (misses, miss_bytes) = (misses + 1, miss_bytes + size(id));
            if size(id) > capacity.min(admitted_max.unwrap_or(u64::MAX)) {
                continue;
            }
            while list.iter().map(|each| size(*each)).sum::<u64>() + size(id) > capacity {
                list.remove(0);
            }
            list.push(id);
        }
        let text = format!("workload = {{trace = \"{}\", format = \"csv\", block_size = \"object\"}}", trace.path());
        let replacements = vec![Chosen::plain(row("lru"))];
        let sizes = vec![CurveSize::Bytes(capacity)];
        let keys = CurveKeys { sizes, sample: Sample::All, seeds: 1, admitted_max, replacements };
        let curve = curve(&scenario(&text), &keys, &mut |_| true).expect("a curve");
        let point = curve.lines[0].points[0];
        prop_assert_eq!((point.misses, point.miss_bytes), (misses as f64, miss_bytes as f64));
        prop_assert_eq!(curve.block_bytes, None);
    }
}

const ZIPF: &str = "workload = {generator = \"zipf\", requests = 150000, blocks = 30000, alpha = 0.8}";

#[test]
fn samples_are_near_and_say_how_near() {
    let sizes: Vec<CurveSize> = [0.02, 0.1, 0.3, 0.6, 1.0].into_iter().map(CurveSize::Share).collect();
    let rows = [row("lru"), row("sieve"), row("arc")];
    let exact = found(ZIPF, sizes, Sample::All, &rows);
    let same: Vec<CurveSize> = exact.sizes.iter().map(|size| CurveSize::Bytes(size.bytes)).collect();
    for sample in [Sample::Rate(0.1), Sample::Blocks(2000)] {
        let sampled = found(ZIPF, same.clone(), sample, &rows);
        assert_eq!(sampled.references, exact.references);
        for (line, exact) in sampled.lines.iter().zip(&exact.lines) {
            for (point, exact) in line.points.iter().zip(&exact.points) {
                let error = (point.misses - exact.misses).abs() / sampled.references as f64;
                assert!(error < 0.03, "{sample:?} {}: {point:?}, {exact:?}", line.replacement);
                assert!(point.misses_min <= point.misses && point.misses <= point.misses_max);
                assert!(point.misses_min < point.misses_max);
            }
        }
    }
}

/// Replacements that hold bytes do not depend on the number of frames.
#[test]
fn replacements_of_bytes_do_not_ask_for_frames() {
    use headstart_sim::Cache;
    use headstart_types::Block;
    for name in OF_BYTES {
        let mut blocks = Cache::try_new(&Chosen::plain(row(name)), 50, 1).expect("a cache");
        let mut bytes = Cache::try_new(&Chosen::plain(row(name)), 50 << 20, 1 << 20).expect("a cache");
        let mut state = 1u64;
        for _ in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let block = Block(((state >> 40) % 120) as u32);
            assert_eq!(blocks.reference(block, 1), bytes.reference(block, 1 << 20), "{name}");
        }
    }
}

#[test]
fn what_depends_on_time_needs_runs() {
    let rest = "workload = {generator = \"zipf\"}\nlevel = [{blocks = 9}, {blocks = 9}]\n";
    let curve = found(rest, vec![CurveSize::Blocks(10)], Sample::All, &[row("lru")]);
    assert_eq!((curve.needs_runs, curve.lines.len()), (Some("there are several levels"), 0));
    assert!(curve.distinct_blocks > 0);
}

#[test]
fn writes_take_frames_and_are_no_misses() {
    // Two frames. Read A (miss), write B, read B (hit), write C in place of A, read A (miss) in place of B, read C
    // (hit).
    let trace = Trace::new("curve-writes", &[(false, 0), (true, 1), (false, 1), (true, 2), (false, 0), (false, 2)], 1);
    let of = |writes: &str| {
        let text = trace.scenario(writes, "");
        let curve = found(&text, vec![CurveSize::Blocks(2)], Sample::All, &[row("lru"), row("fifo")]);
        let misses: Vec<f64> = curve.lines.iter().map(|line| line.points[0].misses).collect();
        (curve.references, misses, curve.notes)
    };
    let note = "2 of 6 references are writes: they use frames, need no fetch and do not trigger read-ahead".to_owned();
    let (references, misses, notes) = of("back");
    assert_eq!((references, misses), (4, vec![2.0, 2.0]));
    assert!(notes.contains(&note), "{notes:?}");
    let (references, misses, notes) = of("as-read");
    assert_eq!((references, misses), (6, vec![4.0, 4.0]));
    assert!(!notes.contains(&note));
}

#[test]
fn a_sample_of_extents_keeps_their_requests_whole() {
    let requests: Vec<(bool, u64)> = (0..900).map(|at| (false, at * 5 % 4096)).collect();
    let trace = Trace::new("extents", &requests, 1);
    let run = |sample: &str| {
        let text = format!("workload = {{trace = \"{}\", placement = \"address\"{sample}}}", trace.path());
        simulate(&scenario(&text), &mut |_| true).unwrap_or_else(|error| panic!("{error}\n{text}"))
    };
    let all = run("");
    assert_eq!(run(", sample = {rate = 1.0}").counts.references, all.counts.references);
    let some = run(", sample = {rate = 0.25, extent = \"64KiB\"}");
    // Extents of 8 blocks are included entirely or not at all.
    assert_eq!(some.counts.references, some.requests);
    assert!((140..320).contains(&some.counts.references), "{}", some.counts.references);
    let wrong = "workload = {generator = \"zipf\", sample = {rate = 1.5}}";
    let error = Scenario::from_table(table(wrong)).expect_err("a rate");
    assert_eq!(error.to_string(), "workload.sample.rate: 1.5 is not a share; allowed: a number above 0 and at most 1");
}

/// In a run of two levels, the lower one gets exactly what the filter writes, and misses as often on it.
#[test]
fn what_passes_a_cache_is_what_the_level_below_gets() {
    use headstart_sim::Filtered;
    use headstart_trace::{convert, open};
    // Requests of one to four blocks, some in order, some far away and back; think times of 1 ms on average.
    let mut state = 1u64;
    let mut text = "file,offset,size,think_us\n".to_owned();
    for index in 0..3000u64 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1442695040888963407);
        let block = if state >> 63 == 0 { index % 700 } else { (state >> 40) % 900 };
        let blocks = 1 + (state >> 33) % 4;
        text += &format!("{},{},{},{}\n", block % 3, block * 8192 + 100, blocks * 8192 - 200, state >> 53);
    }
    let trace = Trace::of_text("above", &text);
    for replacement in ["lru", "arc"] {
        let two = format!(
            "workload = {{trace = \"{}\", issue = \"blocks\"}}\nlevel = [{{name = \"L1\", blocks = 100, replacement = \"{replacement}\"}}, \
             {{name = \"L2\", blocks = 300, replacement = \"lru\", link = {{alpha = \"0us\", beta = \"0us\"}}}}]\n\
             device.model = {{name = \"uniform\", fetch_time = \"1ms\"}}",
            trace.path()
        );
        let report = simulate(&scenario(&two), &mut |_| true).unwrap_or_else(|error| panic!("{error}"));
        let reader = open(std::path::Path::new(&trace.path().to_string()), "csv").expect("a trace");
        let mut filtered = Filtered::try_new(reader, &Chosen::plain(row(replacement)), 100, 8192).expect("a filter");
        let below = Trace::of_text("below", "");
        let path = below.path().to_string();
        convert(&mut filtered, "csv", std::path::Path::new(&path), 8192).expect("written");
        assert_eq!(filtered.misses, report.levels[0].counts.misses);
        let one = format!(
            "workload = {{trace = \"{path}\", issue = \"blocks\"}}\ncache.blocks = 300\n\
             device.model = {{name = \"uniform\", fetch_time = \"1ms\"}}"
        );
        let alone = simulate(&scenario(&one), &mut |_| true).unwrap_or_else(|error| panic!("{error}"));
        let lower = &report.levels[1].counts;
        assert_eq!((alone.counts.references, alone.counts.misses), (lower.references, lower.misses), "{replacement}");
        assert_eq!(alone.compute_ns, report.compute_ns, "think times add up");
    }
}
