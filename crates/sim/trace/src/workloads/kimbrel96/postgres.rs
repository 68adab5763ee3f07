//! postgres-join and postgres-select: the Wisconsin benchmark's relations of 32 MB and 3.2 MB.
//!
//! MB may be decimal or binary: 32 MB are 3906 to 4096 blocks, 3.2 MB are 391 to 410. Tuples lie in no order of the
//! index: with a clustered one, 2 % of the tuples would be in 80 blocks, where Table 3 has 3085.

use std::collections::BTreeSet;

use rand_chacha::ChaCha8Rng;

use super::super::draw::{below, happens};
use super::{between, choose, shuffle, Program, Script};

/// Blocks of the large relation.
fn relation(rng: &mut ChaCha8Rng) -> u64 {
    between(3906, 4096, rng)
}

/// A join: the small relation is read in order, and for its tuples the index of the large one and its matching tuples.
///
/// "The index blocks are accessed much more frequently than the data blocks." Ranges: the index has 200 to 500 blocks
/// (100,000 keys in blocks that hold 200 to 500); the tuples that match lie in as many random blocks as Table 3 leaves,
/// each read 1.2 to 2 times in the mean; the other reads are of the index, of which 1 to 4 blocks near the root take 0 to
/// 50 % and the leaves the rest, in random order. Reads of index and data alternate evenly.
pub(super) fn join(program: &Program, rng: &mut ChaCha8Rng) -> Script {
    let mut script = Script::default();
    let (outer_blocks, index_blocks) = (between(391, 410, rng), between(200, 500, rng));
    let inner_blocks = relation(rng);
    let outer = script.file("outer", outer_blocks);
    let index = script.file("index", index_blocks);
    let inner = script.file("inner", inner_blocks);

    let distinct = program.distinct - outer_blocks - index_blocks;
    let data_reads = distinct * between(120, 200, rng) / 100;
    let mut data: Vec<u64> = (0..inner_blocks).collect();
    choose(&mut data, distinct as usize, rng);
    data.truncate(distinct as usize);
    for _ in distinct..data_reads {
        data.push(data[below(distinct, rng) as usize]);
    }
    shuffle(&mut data, rng);

    let index_reads = program.reads - outer_blocks - data_reads;
    let (hot, share) = (between(1, 4, rng), between(0, 50, rng) as f64 / 100.0);
    let mut keys: Vec<u64> = (0..index_blocks).collect();
    for _ in index_blocks..index_reads {
        let near_root = happens(share, rng);
        keys.push(if near_root { below(hot, rng) } else { between(hot, index_blocks - 1, rng) });
    }
    shuffle(&mut keys, rng);

    let probes = alternate((index, &keys), (inner, &data));
    let total = probes.len() as u64;
    for (number, (file, block)) in (0..).zip(probes) {
        // The next block of the small relation, when its share of the probes is done.
        let due = |probe: u64| (probe * outer_blocks).div_ceil(total);
        (due(number)..due(number + 1)).for_each(|block| script.read(outer, block));
        script.read(file, block);
    }
    script
}

/// A selection of 2 % of the tuples by an index: keys in order, each with its tuple.
///
/// Ranges: 2300 to 3600 tuples (2 % of 32 MB in tuples of 182 to 280 bytes) at random places. The index has the blocks
/// that Table 3 leaves, at most 1024, a quarter of the relation: if the tuples lie in too few blocks for that, some of
/// those that share a block are moved. The other reads are of the index, in order, several of a block in a row.
pub(super) fn select(program: &Program, rng: &mut ChaCha8Rng) -> Script {
    const INDEX_MAX: u64 = 1024;
    let mut script = Script::default();
    let relation_blocks = relation(rng);
    let tuples = between(2300, 3600, rng);
    let mut data: Vec<u64> = (0..tuples).map(|_| below(relation_blocks, rng)).collect();
    let mut seen: BTreeSet<u64> = data.iter().copied().collect();
    while seen.len() as u64 + INDEX_MAX < program.distinct {
        let (tuple, block) = (below(tuples, rng) as usize, below(relation_blocks, rng));
        let shared = data.iter().filter(|other| **other == data[tuple]).count() > 1;
        if shared && seen.insert(block) {
            data[tuple] = block;
        }
    }
    let index_blocks = program.distinct - seen.len() as u64;
    let (index, file) = (script.file("index", index_blocks), script.file("relation", relation_blocks));
    let index_reads = program.reads - tuples;
    let keys: Vec<u64> = (0..index_reads).map(|read| read * index_blocks / index_reads).collect();
    alternate((index, &keys), (file, &data)).into_iter().for_each(|(file, block)| script.read(file, block));
    script
}

/// Reads of an index, each before the reads of data that it leads to: both in their order, evenly mixed.
fn alternate(index: (u32, &[u64]), data: (u32, &[u64])) -> Vec<(u32, u64)> {
    let (keys, tuples) = (index.1.len(), data.1.len());
    let mut mixed = Vec::with_capacity(keys + tuples);
    let mut done = 0;
    for (number, block) in data.1.iter().enumerate() {
        let due = ((number + 1) * keys).div_ceil(tuples);
        mixed.extend(index.1[done..due].iter().map(|key| (index.0, *key)));
        mixed.push((data.0, *block));
        done = due;
    }
    mixed
}

#[cfg(test)]
mod tests {
    use super::super::tests::{drawn, places};
    use super::*;

    #[test]
    fn a_join_reads_the_small_relation_once_and_index_blocks_more_often_than_data() {
        for seed in 1..=20 {
            let (files, records) = drawn("postgres-join", seed);
            let blocks: Vec<u64> = files.iter().map(|entry| entry.size_bytes / 8192).collect();
            let seen = places(&records);
            let of = |file| seen.iter().filter(move |place| place.0 == file).map(|place| place.1);
            assert_eq!(of(0).collect::<Vec<_>>(), (0..blocks[0]).collect::<Vec<_>>(), "seed {seed}");
            assert_eq!(seen[0], (0, 0));
            let distinct = of(2).collect::<BTreeSet<_>>().len() as f64;
            let (index, data) = (of(1).count() as f64 / blocks[1] as f64, of(2).count() as f64 / distinct);
            assert!(index > 2.0 * data && (1.19..=2.0).contains(&data), "seed {seed}: {index}, {data}");
        }
    }

    #[test]
    fn a_selection_goes_through_its_index_in_order() {
        for seed in 1..=20 {
            let (files, records) = drawn("postgres-select", seed);
            let blocks: Vec<u64> = files.iter().map(|entry| entry.size_bytes / 8192).collect();
            let seen = places(&records);
            let keys: Vec<u64> = seen.iter().filter(|place| place.0 == 0).map(|place| place.1).collect();
            assert!(keys.windows(2).all(|pair| pair[1] - pair[0] <= 1), "seed {seed}");
            assert_eq!((keys[0], keys[keys.len() - 1]), (0, blocks[0] - 1), "seed {seed}");
            assert!(blocks[0] <= 1024 && (2300..=3600).contains(&(seen.len() - keys.len())));
            assert_eq!((seen[0].0, seen[seen.len() - 1].0), (0, 1), "a key first, a tuple last");
        }
    }

    #[test]
    fn keys_come_before_their_tuples() {
        assert_eq!(alternate((0, &[1, 2]), (1, &[7, 8, 9])), [(0, 1), (1, 7), (0, 2), (1, 8), (1, 9)]);
        assert_eq!(alternate((0, &[1, 2, 3]), (1, &[7])), [(0, 1), (0, 2), (0, 3), (1, 7)]);
    }
}
