//! Sequences worked by hand.

use headstart_policy::readahead::{Asked, ReadAhead};

use crate::common::{named, Level};

/// The blocks that `predictor` names after each of `blocks`, which all lie in one file.
fn names(predictor: &mut dyn ReadAhead, blocks: &[u64]) -> Vec<Vec<u64>> {
    let mut level = Level::new(1 << 16);
    blocks
        .iter()
        .map(|block| level.read(predictor, *block, 1).iter().flat_map(|run| run.0..run.0 + u64::from(run.1)).collect())
        .collect()
}

fn last(predictor: &str, keys: &str, blocks: &[u64]) -> Vec<u64> {
    names(&mut *named(predictor, keys), blocks).pop().unwrap()
}

#[test]
fn the_last_successor_is_predicted() {
    // 1 2 3, 1 5: after the second 1 comes 2, after the third 5.
    let all = names(&mut *named("last-successor", ""), &[1, 2, 3, 1, 5, 1]);
    assert_eq!(all, [vec![], vec![], vec![], vec![2], vec![], vec![5]]);
    // A chain follows the successors until it comes back to the request.
    assert_eq!(last("last-successor", "depth = 9", &[1, 2, 3, 1]), [2, 3]);
    assert_eq!(last("last-successor", "depth = 1", &[4, 4, 4]), [0u64; 0], "a block does not follow itself");
}

#[test]
fn a_stable_successor_survives_one_stray_reference() {
    // 2 has followed 1 once, then twice.
    assert_eq!(last("stable-successor", "", &[1, 2, 1]), [0u64; 0]);
    assert_eq!(last("stable-successor", "", &[1, 2, 1, 2, 1]), [2]);
    // 5 has come once: 2 stays; twice: 5 replaces it.
    assert_eq!(last("stable-successor", "", &[1, 2, 1, 2, 1, 5, 1]), [2]);
    assert_eq!(last("stable-successor", "", &[1, 2, 1, 2, 1, 5, 1, 5, 1]), [5]);
    assert_eq!(last("stable-successor", "stability = 1", &[1, 2, 1]), [2]);
}

#[test]
fn an_arc_counts_what_came_within_the_window() {
    // Within two references of 1 came 2, 3 and 2, 4: arcs 2 (2), 3 (1), 4 (1); chances 1/2, 1/4, 1/4.
    let blocks = [1, 2, 3, 9, 8, 1, 2, 4, 9, 8, 1];
    assert_eq!(last("probability-graph", "chance = 0.5", &blocks), [2]);
    assert_eq!(last("probability-graph", "chance = 0.25", &blocks), [2, 3, 4]);
    assert_eq!(last("probability-graph", "chance = 0.51", &blocks), [0u64; 0]);
    assert_eq!(last("probability-graph", "lookahead = 1\nchance = 1.0", &blocks), [2]);
}

#[test]
fn a_file_that_followed_a_file_is_fetched_whole() {
    let mut predictor = named("probability-graph", "lookahead = 1");
    let mut level = Level { file_blocks: Some(3), ..Level::new(1000) };
    let mut open = |file: u32, first: u64| {
        let runs = level.ask(&mut *predictor, Asked { file, first, count: 1, client: 0, ends_inside: false });
        runs.iter().map(|run| (run.file, run.first, run.count)).collect::<Vec<_>>()
    };
    // The second block of file 1 does not open it.
    assert!(open(1, 0).is_empty() && open(1, 1).is_empty() && open(2, 0).is_empty() && open(7, 0).is_empty());
    assert_eq!(open(1, 0), [(2, 0, 3)]);
}

#[test]
fn libcachesims_graph_counts_arcs_when_their_source_leaves() {
    // The window has two slots: 1 leaves it when 3 comes, and finds 3 and 2 there, one each of two.
    let keys = |version: &str| format!("version = \"{version}\"\nlookahead = 2\nchance = 0.4\nmetadata = 1.0");
    assert_eq!(last("probability-graph", &keys("libcachesim-fixed"), &[1, 2]), [0u64; 0]);
    assert_eq!(last("probability-graph", &keys("libcachesim-fixed"), &[1, 3, 2, 4, 1]), [2, 3]);
    // The heap gives 2, which lies in the first slot, before 3: it is issued last.
    assert_eq!(last("probability-graph", &keys("libcachesim"), &[1, 3, 2, 4, 1]), [3, 2]);
}

#[test]
fn libcachesims_graph_loses_the_arc_that_fails() {
    let keys = |version: &str| format!("version = \"{version}\"\nlookahead = 2\nchance = 0.5\nmetadata = 1.0");
    // No chance is above a half. The lookup at 1 takes one of its two arcs, and that one never returns; with `fixed`, 3
    // and 2 return when they have come again.
    let blocks = [1, 2, 3, 1, 2, 2, 1, 2, 2, 1];
    assert_eq!(last("probability-graph", &keys("libcachesim-fixed"), &blocks), [2]);
    let lost = names(&mut *named("probability-graph", &keys("libcachesim")), &[1, 2, 3, 1, 3, 3, 1, 3, 3, 1]);
    assert_eq!(lost.concat(), [0u64; 0], "the arc to 3 is the first in the heap");
}

#[test]
fn a_context_grows_by_one_block_each_time() {
    // The second 1 knows that 2 follows; what follows 1 2 is known from the second 1 2 3, and predicted at the third 1.
    let all = names(&mut *named("ppm", ""), &[1, 2, 3, 9, 1, 2, 3, 8, 1]);
    assert_eq!(all[4], [2]);
    assert_eq!(all[5], [3]);
    assert_eq!(all[8], [2, 3]);
    // 2 follows 1 in two of three cases, 5 in one.
    assert_eq!(last("ppm", "threshold = 0.6", &[1, 2, 1, 2, 1, 5, 1]), [2, 1]);
    assert_eq!(last("ppm", "threshold = 0.7", &[1, 2, 1, 2, 1, 5, 1]), [0u64; 0]);
}

#[test]
fn leap_follows_the_majority() {
    // Distances 3, 3, 3: three of the last four, and the request follows them: one request ahead.
    assert_eq!(last("leap", "", &[0, 3, 6, 9]), [12]);
    // Two of three are no majority of four.
    assert_eq!(last("leap", "", &[0, 3, 6]), [0u64; 0]);
    // One stray distance: 100 does not follow the trend, and there were no hits; but half the last window is left of
    // two.
    let all = names(&mut *named("leap", ""), &[0, 3, 6, 9, 12, 15, 100, 103]);
    assert_eq!(all[3], [12]);
    // 12 was a hit: two requests ahead, at the next miss.
    assert_eq!(all[5], [18, 21]);
    assert_eq!(all[6], [103]);
    // Growing windows: of the last 4 none has more than two, of the last 8 five are 2. 112 was a hit: two ahead.
    assert_eq!(last("leap", "history = 8\nsplits = 2", &[0, 2, 4, 6, 8, 107, 110, 112, 211]), [213, 215]);
    assert_eq!(last("leap", "history = 8\nsplits = 2", &[0, 2, 4, 6, 8, 107, 110, 210, 212]), [214]);
}

#[test]
fn regular_portions_are_followed_into_the_next() {
    // Portions of two blocks, ten apart. After two of a kind the third is foreseen: its second block, then the
    // fourth's.
    let all = names(&mut *named("patterns", "degree = 3\nslack = 0"), &[0, 1, 10, 11, 20, 21]);
    assert_eq!(all[1], [2, 3, 4], "one portion: no end is known");
    assert_eq!(all[4], [21, 30, 31], "two alike: what is left of this one, and the next");
    assert_eq!(all[5], [30, 31, 40]);
}

#[test]
fn global_portions_are_those_of_all_processes_together() {
    // Three processes take every third block: none reads sequentially itself.
    let ask = |keys: &str| {
        let (mut predictor, mut level) = (named("patterns", keys), Level::new(1000));
        let mut last = Vec::new();
        for block in [0u64, 2, 1, 3] {
            last = level.ask(
                &mut *predictor,
                Asked { file: 5, first: block, count: 1, client: (block % 3) as u32, ends_inside: false },
            );
        }
        last.iter().map(|run| (run.file, run.first, run.count)).collect::<Vec<_>>()
    };
    assert_eq!(ask("degree = 4"), [(5, 4, 4)]);
    assert!(ask("degree = 4\nslack = 0").is_empty());
}

#[test]
fn mithril_mines_what_is_requested_together() {
    // 1 and 2 are recorded twice, one after the other; the mining table has room for two.
    let keys = "mining = 4\nblock_bytes = 65536";
    assert_eq!(last("mithril", &format!("{keys}\nrecord = \"each\""), &[1, 2, 9, 1, 2, 7, 1]), [2]);
    // Misses alone: 1 and 2 are cached by then.
    assert_eq!(last("mithril", keys, &[1, 2, 9, 1, 2, 7, 1]), [0u64; 0]);
    // Thirty requests between them: no.
    let far: Vec<u64> = [1].into_iter().chain(10..40).chain([2, 1]).chain(50..80).chain([2, 1]).collect();
    assert_eq!(last("mithril", &format!("{keys}\nrecord = \"each\""), &far), [0u64; 0]);
    assert_eq!(last("mithril", &format!("{keys}\nrecord = \"each\"\nlookahead = 40"), &far), [2]);
}
