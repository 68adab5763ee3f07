//! dinero and cscope1: one file, read from start to end again and again.

use rand_chacha::ChaCha8Rng;

use super::super::draw::below;
use super::{between, shares, Program, Script};

/// "This application reads one file sequentially multiple times": 8867 reads of 986 blocks are 9 passes less 7 reads.
///
/// Two draws explain the 7, with equal odds: the file has 986 blocks and some later passes stop before its end, 7
/// blocks in all; or it has 985 blocks and one block of another file is read twice, before a pass each time.
pub(super) fn dinero(program: &Program, rng: &mut ChaCha8Rng) -> Script {
    const PASSES: u64 = 9;
    let mut script = Script::default();
    if below(2, rng) == 0 {
        let file = script.file("din", program.distinct);
        let mut ends = [program.distinct; PASSES as usize];
        for _ in program.reads..PASSES * program.distinct {
            ends[between(1, PASSES - 1, rng) as usize] -= 1;
        }
        for end in ends {
            (0..end).for_each(|block| script.read(file, block));
        }
    } else {
        let blocks = program.distinct - 1;
        let (file, other) = (script.file("din", blocks), script.file("other", 1));
        let again = between(1, PASSES - 1, rng);
        for pass in 0..PASSES {
            if pass == 0 || pass == again {
                script.read(other, 0);
            }
            (0..blocks).for_each(|block| script.read(file, block));
        }
    }
    script
}

/// Eight symbols: the cross-reference file is scanned once for each.
///
/// 8673 reads are 8 passes over 1073 blocks and 89 more. cscope keeps the lists of its sources in a trailer at the end
/// of the cross-reference and displays lines of sources. Ranges: 0 to 40 of the blocks are of sources, each read once,
/// after the query that found it; the trailer has 4 to 48 blocks, and what remains of the reads goes to it before each
/// query, in order.
pub(super) fn cscope1(program: &Program, rng: &mut ChaCha8Rng) -> Script {
    const QUERIES: u64 = 8;
    let (sources, trailer) = (between(0, 40, rng), between(4, 48, rng));
    let blocks = program.distinct - sources;
    let mut script = Script::default();
    let file = script.file("cscope.out", blocks);
    let of_query = |total| shares(&[1; QUERIES as usize], total);
    let mut shown = 0;
    for (again, found) in of_query(program.reads - QUERIES * blocks - sources).into_iter().zip(of_query(sources)) {
        (0..again).for_each(|read| script.read(file, blocks - trailer + read % trailer));
        (0..blocks).for_each(|block| script.read(file, block));
        for _ in 0..found {
            let source = script.file(format!("source{shown}"), 1);
            script.read(source, 0);
            shown += 1;
        }
    }
    script
}

#[cfg(test)]
mod tests {
    use super::super::tests::{drawn, places};

    #[test]
    fn dinero_reads_its_file_9_times_in_order() {
        let mut others = 0;
        for seed in 1..=20 {
            let (files, records) = drawn("dinero", seed);
            let seen = places(&records);
            let starts = seen.iter().filter(|place| **place == (0, 0)).count();
            let steps = seen.iter().filter(|place| place.0 == 0).map(|place| place.1).collect::<Vec<_>>();
            let backwards = steps.windows(2).filter(|pair| pair[1] != pair[0] + 1).count();
            assert_eq!((starts, backwards), (9, 8), "seed {seed}");
            others += files.len() - 1;
        }
        assert!((5..=15).contains(&others), "{others} of 20 draws have another file");
    }

    #[test]
    fn cscope1_scans_its_cross_reference_8_times() {
        let mut sources = Vec::new();
        for seed in 1..=20 {
            let (files, records) = drawn("cscope1", seed);
            let blocks = files[0].size_bytes / 8192;
            assert_eq!(blocks as usize + files.len() - 1, 1073);
            // The trailer is short: block 0 is read by the scans alone.
            let mut scans = places(&records).into_iter().filter(|place| place.0 == 0 && place.1 < blocks - 48);
            for _ in 0..8 {
                assert!((0..blocks - 48).all(|block| scans.next() == Some((0, block))), "seed {seed}");
            }
            assert_eq!(scans.next(), None);
            sources.push(files.len() - 1);
        }
        assert!(sources.iter().min() < Some(&10) && sources.iter().max() > Some(&30), "{sources:?}");
    }
}
