//! cscope2 and cscope3: four text strings, for each of which cscope reads all sources of a package.
//!
//! 20,206 reads of 2462 blocks are 8.2 a block, 30,200 of 3910 are 7.7: about twice what four searches need. The
//! second read of a block follows the first: a buffer smaller than a block, and the read that finds the end of a file.
//! (Eight separate passes are excluded: they would need 10,736 fetches at least on cscope2, and section 4.4 prints 6771
//! of aggressive's.) So each file's last block is read once more, and the remaining reads are second reads of random
//! blocks; each search reads alike. Ranges: 1 to 20 blocks are of cscope.out and read once each at the start, and those
//! reads that do not divide by four are of its first block. The number of files follows from the package: 18 MB in
//! 2462 blocks leave 2 to 8 KB a file unused if there are 160 to 1060 files; 10 MB in 3910 blocks are at least 2630
//! files, and there are no more than 3640 second reads. Sizes are exponential.

use rand_chacha::ChaCha8Rng;

use super::{between, choose, split, Program, Script};

const SEARCHES: u64 = 4;

pub(super) fn cscope2(program: &Program, rng: &mut ChaCha8Rng) -> Script {
    script(program, between(160, 1060, rng), rng)
}

pub(super) fn cscope3(program: &Program, rng: &mut ChaCha8Rng) -> Script {
    script(program, between(2630, 3640, rng), rng)
}

fn script(program: &Program, files: u64, rng: &mut ChaCha8Rng) -> Script {
    let mut script = Script::default();
    let others = between(1, 20, rng);
    let list = script.file("cscope.out", others);
    (0..others).for_each(|block| script.read(list, block));
    let blocks = program.distinct - others;
    let sizes = split(blocks, files, rng);
    let names: Vec<u32> = sizes.iter().zip(0..).map(|(size, n)| script.file(format!("source{n}"), *size)).collect();

    let more = program.reads - others - SEARCHES * blocks;
    let again = second_reads(&sizes, more / SEARCHES, rng);
    let odd = more % SEARCHES;
    for search in 0..SEARCHES {
        if search < odd {
            script.read(list, 0);
        }
        let mut of_block = again.iter();
        for (file, size) in names.iter().zip(&sizes) {
            for (block, more) in (0..*size).zip(&mut of_block) {
                (0..=*more).for_each(|_| script.read(*file, block));
            }
        }
    }
    script
}

/// How often each block, file by file, is read again in a search: `total` times in all.
fn second_reads(sizes: &[u64], total: u64, rng: &mut ChaCha8Rng) -> Vec<u64> {
    let left = total - sizes.len() as u64;
    let blocks: u64 = sizes.iter().sum();
    let mut again = vec![left / blocks; blocks as usize];
    let mut order: Vec<usize> = (0..again.len()).collect();
    choose(&mut order, (left % blocks) as usize, rng);
    order[..(left % blocks) as usize].iter().for_each(|block| again[*block] += 1);
    let mut end = 0;
    for size in sizes {
        end += *size as usize;
        again[end - 1] += 1;
    }
    again
}

#[cfg(test)]
mod tests {
    use super::super::tests::{drawn, places};

    #[test]
    fn four_searches_read_all_files_in_the_same_order_and_blocks_twice_in_a_row() {
        for (program, files, seed) in [("cscope2", 160..=1060, 4), ("cscope3", 2630..=3640, 5)] {
            let (table, records) = drawn(program, seed);
            assert!(files.contains(&(table.len() - 1)), "{program}: {} files", table.len());
            let mut seen = places(&records);
            let reads = seen.len();
            seen.retain(|place| place.0 > 0);
            let of_sources = seen.len();
            seen.dedup();
            let distinct = seen.len() / 4;
            assert!(of_sources + 25 > reads && of_sources > 7 * distinct, "{program}: {of_sources} of {distinct}");
            let (first, rest) = seen.split_at(distinct);
            assert_eq!(rest, [first, first, first].concat(), "{program}");
            assert!(first.windows(2).all(|pair| pair[0] < pair[1]), "{program}: in the order of the table");
        }
    }
}
