//! Patterns of parallel programs: properties from the paper, small ones by hand, and errors for wrong keys.

use headstart_trace::patterns::{pattern, PatternContext, Strings, PATTERNS};
use proptest::prelude::*;
use toml::Table;

fn strings(name: &str, text: &str, processes: u32, seed: u64) -> Strings {
    pattern(name).unwrap().strings(text.parse::<Table>().unwrap(), &PatternContext { processes, seed }).unwrap()
}

/// Each string as its portions.
fn portions(strings: &Strings) -> Vec<Vec<Vec<u32>>> {
    let mut ends = strings.portion_ends.iter().map(|end| *end as usize).peekable();
    let mut begin = 0;
    let string = |end: &u32| {
        let mut portions = Vec::new();
        while let Some(portion_end) = ends.next_if(|portion_end| *portion_end <= *end as usize) {
            portions.push(strings.blocks[begin..portion_end].to_vec());
            begin = portion_end;
        }
        assert_eq!(begin, *end as usize, "a string ends where a portion ends");
        portions
    };
    strings.string_ends.iter().map(string).collect()
}

#[test]
fn small_ones_by_hand() {
    let keys = "blocks = 12\nreads = 8\nportion = 2\nstride = 3";
    // 2 blocks, from the second one 3 on to the first of the next. Process 1 begins at 12 / 2 + 1.
    let local = strings("lfp", keys, 2, 0);
    assert_eq!(portions(&local), [[[0, 1], [4, 5]], [[7, 8], [11, 0]]]);
    assert_eq!(portions(&strings("lfp", &format!("{keys}\napart = 4"), 2, 0))[1], [[4, 5], [8, 9]]);
    assert_eq!(portions(&strings("gfp", keys, 2, 0)), [[[0, 1], [4, 5], [8, 9], [0, 1]]]);
    // 7 reads of 3 processes: 3, 2, 2; the last portion of the first is cut.
    let uneven = strings("lfp", "blocks = 100\nreads = 7\nportion = 2\nstride = 1\napart = 10", 3, 0);
    assert_eq!((&uneven.string_ends[..], &uneven.portion_ends[..]), (&[3, 5, 7][..], &[2, 3, 5, 7][..]));
    assert_eq!(uneven.blocks, [0, 1, 2, 10, 11, 20, 21]);
    assert_eq!(portions(&strings("lw", "blocks = 100\nreads = 6", 2, 0)), [[[0, 1, 2]], [[0, 1, 2]]]);
    // More reads than blocks: the file is read repeatedly; each pass is a portion.
    assert_eq!(strings("gw", "blocks = 3\nreads = 5", 2, 0).portion_ends, [3, 5]);
    assert_eq!(strings("gw", "blocks = 3\nreads = 5", 2, 0).blocks, [0, 1, 2, 0, 1]);
}

#[test]
fn the_papers_parameters_are_the_defaults() {
    for row in PATTERNS {
        let made = strings(row.name, "", 20, 1);
        assert_eq!((made.blocks.len(), made.file_blocks, made.string_of.len()), (2000, 2000, 20), "{}", row.name);
        assert_eq!(made.shared, row.name.starts_with('g'));
        assert_eq!(made.regular, !row.name.ends_with("rp"));
        let expected: Vec<u32> = if made.shared { vec![2000] } else { (1..=20).map(|end| 100 * end).collect() };
        assert_eq!(made.string_ends, expected);
        assert_eq!(made.string_of, if made.shared { vec![0; 20] } else { (0..20).collect() });
    }
    // Each block once, in order.
    assert!(strings("gw", "", 20, 1).blocks.into_iter().eq(0..2000));
    // Every process reads the same 100 blocks.
    assert!(strings("lw", "", 20, 1).blocks.chunks(100).all(|string| string.iter().copied().eq(0..100)));
    // With the guessed lengths, gfp reads each block once.
    let mut blocks = strings("gfp", "", 20, 1).blocks;
    blocks.sort_unstable();
    assert!(blocks.into_iter().eq(0..2000));
    // The processes begin at different places, each on a different one of 20 disks.
    let local = strings("lfp", "", 20, 1);
    let mut disks: Vec<u32> = local.blocks.chunks(100).map(|string| string[0] % 20).collect();
    disks.sort_unstable();
    assert!(disks.into_iter().eq(0..20));
}

#[test]
fn random_portions_have_their_means_and_differ_by_process_and_seed() {
    let made = strings("lrp", "blocks = 1000000\nreads = 200000\nportion_mean = 7\ngap_mean = 4", 2, 5);
    let portions = portions(&made);
    assert_ne!(portions[0], portions[1]);
    for string in &portions {
        let whole = &string[..string.len() - 1];
        let lengths: Vec<usize> = whole.iter().map(Vec::len).collect();
        assert_eq!((lengths.iter().min(), lengths.iter().max()), (Some(&1), Some(&13)));
        let mean = lengths.iter().sum::<usize>() as f64 / lengths.len() as f64;
        // Uniform on 13 values: a standard deviation of 3.7, of 0.03 for the mean of some 14,000.
        assert!((mean - 7.0).abs() < 0.15, "{mean}");
        let gap = |pair: &[Vec<u32>]| (pair[1][0] + 1_000_000 - pair[0].last().unwrap() - 1) % 1_000_000;
        let gaps: Vec<u32> = whole.windows(2).map(gap).collect();
        assert_eq!((gaps.iter().min(), gaps.iter().max()), (Some(&0), Some(&8)));
        let mean = f64::from(gaps.iter().sum::<u32>()) / gaps.len() as f64;
        assert!((mean - 4.0).abs() < 0.12, "{mean}");
    }
    assert_ne!(strings("grp", "", 20, 1), strings("grp", "", 20, 2));
    // Adding processes does not change a string.
    let more = strings("lrp", "blocks = 1000000\nreads = 300000\nportion_mean = 7\ngap_mean = 4", 3, 5);
    assert_eq!(more.blocks[..200_000], made.blocks[..]);
    // The same blocks on every machine.
    assert_eq!(strings("grp", "", 20, 1).blocks[..4], [70, 71, 72, 73]);
}

#[test]
fn wrong_keys_say_what_is_allowed() {
    let error = |name: &str, text: &str, processes| {
        let context = PatternContext { processes, seed: 0 };
        pattern(name).unwrap().strings(text.parse::<Table>().unwrap(), &context).unwrap_err().to_string()
    };
    let unknown = pattern("spiral").err().unwrap().to_string();
    assert_eq!(unknown, "pattern: unknown pattern \"spiral\"; allowed: lfp, lrp, lw, gfp, grp, gw");
    assert_eq!(error("gw", "portion = 3", 20), "portion: unknown key; allowed: blocks, reads");
    assert_eq!(error("grp", "stride = 3", 20), "stride: unknown key; allowed: blocks, reads, portion_mean, gap_mean");
    assert!(error("gfp", "stride = 0", 20).starts_with("stride: 0 is out of range; allowed: a whole number from 1"));
    assert!(error("lw", "reads = 19", 20).starts_with("reads: 19 is out of range; allowed: a whole number from 20"));
    assert!(error("gw", "blocks = 0", 20).starts_with("blocks: 0 is out of range"));
    assert!(error("gw", "", 0).starts_with("count: 0 is out of range"));
}

proptest! {
    #[test]
    fn every_row_is_whole(
        row in 0..PATTERNS.len(), processes in 1u32..9, blocks in 1u32..50, more in 0u32..200, seed in 0u64..9,
    ) {
        let reads = processes + more;
        let text = format!("blocks = {blocks}\nreads = {reads}");
        let made = strings(PATTERNS[row].name, &text, processes, seed);
        prop_assert_eq!(made.blocks.len() as u32, reads);
        prop_assert!(made.blocks.iter().all(|block| *block < blocks));
        prop_assert_eq!(made.string_ends.last(), Some(&reads));
        prop_assert!(made.string_ends.is_sorted_by(|a, b| a < b) && made.portion_ends.is_sorted_by(|a, b| a < b));
        prop_assert_eq!(made.string_ends.len(), if made.shared { 1 } else { processes as usize });
        for portion in portions(&made).concat() {
            prop_assert!(!portion.is_empty());
            prop_assert!(portion.windows(2).all(|pair| pair[1] == (pair[0] + 1) % blocks));
        }
        prop_assert_eq!(&made, &strings(PATTERNS[row].name, &text, processes, seed));
    }
}
