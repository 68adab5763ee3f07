//! Layouts worked out by hand, and properties of every layout.

use std::collections::BTreeMap;

use headstart_types::Bytes;
use proptest::prelude::*;

use super::*;

/// Blocks of 4 KiB, 32 per group: 128 KiB / (4 * 512) = 64 inodes, 32 per block: a header of 4 blocks.
const BLOCK: u64 = 4096;
const HEADER: u64 = 4;

fn keys() -> FfsKeys {
    FfsKeys {
        cylinder_group: Bytes(32 * BLOCK),
        cluster: Bytes(4 * BLOCK),
        direct_blocks: 6,
        fragment: Bytes(512),
        size: Some(Bytes(64 * 32 * BLOCK)),
        ..FfsKeys::default()
    }
}

fn laid(keys: &FfsKeys, gap_blocks: u64, sizes: &[u64]) -> Result<Ffs, KeyError> {
    let files: Vec<FileSize> = (0..).zip(sizes).map(|(file, bytes)| FileSize { file, bytes: *bytes }).collect();
    Ffs::try_new(keys, &Volume { block_bytes: BLOCK, blocks: None, gap_blocks }, &files, 7)
}

/// Addresses of a file's blocks, relative to the start of its inode's group.
fn from_home(ffs: &Ffs, file: u32, blocks: u64) -> Vec<i64> {
    let home = ffs.inode(file).expect("laid out") / 32 * 32;
    (0..blocks).map(|at| ffs.spot(file, at).expect("within the file").block as i64 - home as i64).collect()
}

#[test]
fn direct_blocks_lie_behind_the_inodes_of_their_group() {
    let ffs = laid(&keys(), 0, &[6 * BLOCK]).expect("room");
    assert_eq!(ffs.inode(0).expect("laid out") % 32, 2);
    assert_eq!(from_home(&ffs, 0, 6), [4, 5, 6, 7, 8, 9]);
    assert_eq!((ffs.contiguous(0, 0, 100), ffs.contiguous(0, 4, 100), ffs.contiguous(0, 0, 3)), (6, 2, 3));
    assert_eq!((ffs.spot(0, 6), ffs.contiguous(0, 6, 9), ffs.mapped_by(0, 5)), (None, 0, None));
}

#[test]
fn clusters_are_apart_by_the_rotational_delay() {
    // Clusters of 4, two blocks between them.
    let ffs = laid(&keys(), 2, &[6 * BLOCK]).expect("room");
    assert_eq!(from_home(&ffs, 0, 6), [4, 5, 6, 7, 10, 11]);
    assert_eq!((ffs.contiguous(0, 0, 100), ffs.contiguous(0, 4, 100)), (4, 2));
}

#[test]
fn an_indirect_block_and_what_it_points_to_are_in_another_group() {
    let ffs = laid(&keys(), 2, &[12 * BLOCK]).expect("room");
    let map = ffs.mapped_by(0, 6).expect("an indirect block");
    assert_ne!(map / 32, ffs.inode(0).expect("laid out") / 32);
    // The first place of that group, followed directly by its blocks, in a separate cluster.
    let addresses: Vec<u64> = (6..12).map(|at| ffs.spot(0, at).expect("within").block - map).collect();
    assert_eq!((map % 32, addresses), (HEADER, vec![1, 2, 3, 4, 7, 8]));
    assert_eq!(ffs.contiguous(0, 4, 100), 2);
    assert_eq!(ffs.indirect(0, 11).collect::<Vec<_>>(), [map]);
    assert!(ffs.spot(METADATA, map).is_some() && ffs.spot(METADATA, map + 1).is_none());
}

#[test]
fn a_small_file_ends_in_a_fragment_and_shares_its_block() {
    // 2.3 blocks: two, and 1229 bytes in 3 fragments of 512; three such files of one directory: 9 fragments, two
    // blocks.
    let keys = FfsKeys { directory_files: 3, ..keys() };
    let bytes = 2 * BLOCK + 1229;
    let ffs = laid(&keys, 0, &[bytes; 3]).expect("room");
    let tails: Vec<_> = (0..3).map(|file| ffs.spot(file, 2).expect("within")).collect();
    assert_eq!(from_home(&ffs, 0, 3), [4, 5, 6]);
    // The second file's blocks use the first place with two free; its fragments follow those of the first.
    assert_eq!((from_home(&ffs, 1, 3), from_home(&ffs, 2, 3)), (vec![7, 8, 6], vec![9, 10, 11]));
    assert_eq!(
        tails.iter().map(|tail| (tail.skip, tail.sectors)).collect::<Vec<_>>(),
        [(0, Some(3)), (3, Some(3)), (0, Some(3))]
    );
    // A fragment is never part of a run.
    assert_eq!(ffs.contiguous(0, 0, 100), 2);
    // Files with indirect blocks end in a whole block.
    let ffs = laid(&keys, 0, &[6 * BLOCK + 1]).expect("room");
    assert_eq!(ffs.spot(0, 6).expect("within").sectors, None);
}

#[test]
fn what_does_not_fit_is_refused() {
    let small = FfsKeys { size: Some(Bytes(2 * 32 * BLOCK)), ..keys() };
    assert!(laid(&small, 0, &[50 * BLOCK]).is_ok());
    assert_eq!(laid(&small, 0, &[60 * BLOCK]).expect_err("full").key, "workload.placement");
    let unsaid = FfsKeys { size: None, ..keys() };
    assert_eq!(laid(&unsaid, 0, &[BLOCK]).expect_err("no end").key, "workload.placement.size");
    let volume = Volume { block_bytes: BLOCK, blocks: Some(100), gap_blocks: 0 };
    let error = Ffs::try_new(&keys(), &volume, &[], 7).expect_err("too large");
    assert_eq!(error.key, "workload.placement.size");
}

#[test]
fn each_level_of_indirect_blocks_hangs_on_the_one_above() {
    // 2 direct blocks, 3 addresses per block: leaf 0; the double one with leaves 1 to 3; the triple one with 3 times 3.
    let mut map = FileMap::new(0, 2, 3);
    let mut address = 100;
    let mut at = 0;
    let mut chains = Vec::new();
    while at < 2 + 3 + 9 + 12 {
        if map.needs_leaf(at) {
            for _ in 0..map.new_maps(at) {
                map.push_map(address);
                address += 1;
            }
        }
        map.push(at, 1000 + 2 * at, 1);
        chains.push(map.indirect(at).collect::<Vec<_>>());
        at += 1;
    }
    let expected: Vec<Vec<u64>> = [
        (2, vec![]),
        (3, vec![100]),
        (3, vec![101, 102]),
        (3, vec![101, 103]),
        (3, vec![101, 104]),
        (3, vec![105, 106, 107]),
        (3, vec![105, 106, 108]),
        (3, vec![105, 106, 109]),
        (3, vec![105, 110, 111]),
    ]
    .into_iter()
    .flat_map(|(count, chain)| vec![chain; count])
    .collect();
    assert_eq!(chains, expected);
    // Later look-ups return the same.
    assert_eq!((0..at).map(|at| map.indirect(at).collect::<Vec<_>>()).collect::<Vec<_>>(), expected);
}

proptest! {
    /// Every block has a distinct place within the file system at any age; runs are contiguous; and the same seed gives
    /// the same addresses.
    #[test]
    fn blocks_have_places_of_their_own(
        sizes in prop::collection::vec(0u64..40 * BLOCK, 1..20),
        full in 0.0f64..0.5,
        gap in 0u64..4,
        directory_files in 1u32..5,
        run in 1u64..8,
    ) {
        let keys = FfsKeys { full, directory_files, free_run: Bytes(run * BLOCK), ..keys() };
        let ffs = laid(&keys, gap, &sizes).expect("at most 40 % of it is asked for");
        let mut sectors = BTreeMap::new();
        let mut take = |what: (u32, u64), spot: Spot| {
            for sector in 0..spot.sectors.map_or(8, u64::from) {
                let taken = sectors.insert(spot.block * 8 + spot.skip + sector, what);
                prop_assert_eq!(taken, None);
            }
            prop_assert!(spot.block < 64 * 32 && spot.block % 32 >= HEADER);
            Ok(())
        };
        for (file, bytes) in (0..).zip(&sizes) {
            let blocks = bytes.div_ceil(BLOCK);
            let mut maps: Vec<u64> = (0..blocks).flat_map(|at| ffs.indirect(file, at).collect::<Vec<_>>()).collect();
            maps.dedup();
            for map in maps {
                take((METADATA, map), ffs.spot(METADATA, map).expect("metadata"))?;
            }
            for at in 0..blocks {
                let spot = ffs.spot(file, at).expect("within the file");
                take((file, at), spot)?;
                let together = ffs.contiguous(file, at, 100);
                prop_assert_eq!(together == 0, spot.sectors.is_some());
                for ahead in 0..together {
                    prop_assert_eq!(ffs.spot(file, at + ahead).expect("within").block, spot.block + ahead);
                    prop_assert_eq!(ffs.mapped_by(file, at + ahead), ffs.mapped_by(file, at));
                }
            }
            prop_assert_eq!(ffs.spot(file, blocks), None);
            let inode = ffs.inode(file).expect("laid out");
            prop_assert!((2..HEADER).contains(&(inode % 32)));
        }
        let again = laid(&keys, gap, &sizes).expect("as before");
        for (file, bytes) in (0..).zip(&sizes) {
            for at in 0..bytes.div_ceil(BLOCK) {
                prop_assert_eq!(ffs.spot(file, at), again.spot(file, at));
            }
        }
    }
}
