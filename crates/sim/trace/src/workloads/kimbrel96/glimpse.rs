//! glimpse: four keywords in 40 MB of news articles.
//!
//! "The index files are accessed repeatedly, whereas the data files are accessed infrequently." For each keyword
//! glimpse searches its index for the parts of the data that may have it, then these parts. Ranges: the index has 100 to
//! 460 blocks (glimpse's manual: 2 to 9 % of the text for its tiny and small kinds); the other blocks are 200 to 800
//! files of exponential size (43 MB in blocks of 40 MB of text); a block of data is visited 1 to 1.8 times in the mean,
//! each file for one keyword at least; 1 to 16 files are read between two looks into the index; each visit is one read,
//! or, with equal odds, two in a row (a buffer of 4 KB). The other reads are of the index, in order, from its start for
//! each keyword and from its start again at its end.

use rand_chacha::ChaCha8Rng;

use super::super::draw::below;
use super::{between, shares, split, Program, Script};

const KEYWORDS: usize = 4;

pub(super) fn script(program: &Program, rng: &mut ChaCha8Rng) -> Script {
    let mut script = Script::default();
    let index_blocks = between(100, 460, rng);
    let index = script.file("index", index_blocks);
    let data = program.distinct - index_blocks;
    let sizes = split(data, between(200, 800, rng), rng);
    let files: Vec<u32> = sizes.iter().zip(0..).map(|(size, n)| script.file(format!("news{n}"), *size)).collect();

    let found = matches(&sizes, data * between(100, 180, rng) / 100, rng);
    let data_visits: u64 = found.iter().flatten().map(|file| sizes[*file]).sum();
    let (per_look, repeat) = (between(1, 16, rng) as usize, between(1, 2, rng));
    let index_visits = program.reads / repeat - data_visits;
    let looks: usize = found.iter().map(|files| files.len().div_ceil(per_look)).sum();
    let mut of_look = shares(&vec![1; looks], index_visits).into_iter();

    (0..program.reads % repeat).for_each(|_| script.read(index, 0));
    for found in found {
        let mut at = 0;
        for (group, visits) in found.chunks(per_look).zip(&mut of_look) {
            for _ in 0..visits {
                (0..repeat).for_each(|_| script.read(index, at % index_blocks));
                at += 1;
            }
            for file in group {
                for block in 0..sizes[*file] {
                    (0..repeat).for_each(|_| script.read(files[*file], block));
                }
            }
        }
    }
    script
}

/// The files that each keyword may be in: each file in one at least, `visits` blocks or somewhat more in all.
fn matches(sizes: &[u64], visits: u64, rng: &mut ChaCha8Rng) -> [Vec<usize>; KEYWORDS] {
    let mut of_file: Vec<[bool; KEYWORDS]> = Vec::with_capacity(sizes.len());
    for _ in sizes {
        let mut keywords = [false; KEYWORDS];
        keywords[below(KEYWORDS as u64, rng) as usize] = true;
        of_file.push(keywords);
    }
    let mut sum: u64 = sizes.iter().sum();
    while sum < visits {
        let (file, keyword) = (below(sizes.len() as u64, rng) as usize, below(KEYWORDS as u64, rng) as usize);
        if !std::mem::replace(&mut of_file[file][keyword], true) {
            sum += sizes[file];
        }
    }
    std::array::from_fn(|keyword| (0..sizes.len()).filter(|file| of_file[*file][keyword]).collect())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{drawn, places};

    #[test]
    fn index_blocks_are_read_again_and_again_and_data_blocks_rarely() {
        for seed in 1..=20 {
            let (files, records) = drawn("glimpse", seed);
            let index_blocks = files[0].size_bytes / 8192;
            let mut seen = places(&records);
            seen.dedup();
            let of_index = seen.iter().filter(|place| place.0 == 0).count() as f64 / index_blocks as f64;
            let of_data = seen.iter().filter(|place| place.0 > 0).count() as f64 / (5247 - index_blocks) as f64;
            assert!((100..=460).contains(&index_blocks) && of_index > 8.0, "seed {seed}: {of_index}");
            assert!((1.0..1.9).contains(&of_data), "seed {seed}: {of_data}");
        }
    }
}
