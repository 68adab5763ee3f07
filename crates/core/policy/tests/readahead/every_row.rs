//! Promises of every read-ahead, for any requests.

use headstart_policy::readahead::{Asked, Needs};
use headstart_policy::registry::read_aheads;
use headstart_policy::registry::PolicyRow;
use proptest::prelude::*;

use crate::common::{build, Level};

fn one_request() -> impl Strategy<Value = Asked> {
    let first = prop_oneof![
        6 => 0u64..200,
        2 => 1_000_000u64..1_000_040,
        1 => (u64::MAX - 40)..=u64::MAX,
        1 => any::<u64>(),
    ];
    let count = prop_oneof![8 => 1u32..9, 1 => 1u32..400];
    (0u32..4, first, count, 0u32..3).prop_map(|(file, first, count, client)| Asked {
        file,
        first,
        count,
        client,
        ends_inside: false,
    })
}

/// Requests at random, and runs of them one after another, forwards, backwards and strided.
fn requests() -> impl Strategy<Value = Vec<Asked>> {
    let run = (one_request(), 1usize..30, -9i64..9).prop_map(|(start, length, step)| {
        let at = |number: usize| Asked { first: start.first.wrapping_add_signed(step * number as i64), ..start };
        (0..length).map(at).collect::<Vec<_>>()
    });
    prop::collection::vec(run, 1..12).prop_map(|runs| runs.concat())
}

fn answers(
    row: &PolicyRow,
    frames: usize,
    late: bool,
    blocks: Option<u64>,
    requests: &[Asked],
) -> Vec<Vec<(u32, u64, u32)>> {
    let mut read_ahead = build(row, "", frames as u32);
    let mut level = Level { late, file_blocks: blocks, ..Level::new(frames) };
    let answer = |asked: &Asked| {
        level.ask(&mut *read_ahead, *asked).iter().map(|run| (run.file, run.first, run.count)).collect()
    };
    requests.iter().map(answer).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn survives_anything_and_is_deterministic(
        requests in requests(), frames in 1usize..300, late: bool, blocks in prop::option::of(1u64..500),
    ) {
        for row in read_aheads() {
            let first = answers(row, frames, late, blocks, &requests);
            let again = answers(row, frames, late, blocks, &requests);
            prop_assert_eq!(&first, &again, "{}", row.name);
            for (asked, runs) in requests.iter().zip(&first) {
                for (file, first, count) in runs {
                    let own = row.is_predictor() || *file == asked.file;
                    prop_assert!(own, "{}: another file's blocks", row.name);
                    prop_assert!(!row.reads_ahead().unwrap().only_ahead || *count == 0 || *first >= asked.end(),
                        "{}: {:?} made it name {}", row.name, asked, first);
                }
            }
        }
    }

    #[test]
    fn a_first_random_read_is_spared(first in 1u64..1 << 40, file in 0u32..9) {
        for row in read_aheads().filter(|row| row.reads_ahead().unwrap().spares_random) {
            let (mut level, mut read_ahead) = (Level::new(1000), build(row, "", 1000));
            let runs = level.ask(&mut *read_ahead, Asked { file, first, count: 1, client: 0, ends_inside: false });
            // Naming the request's own block fetches nothing.
            prop_assert!(runs.iter().all(|run| run.first >= first && run.end() <= first + 1), "{}: {runs:?}", row.name);
        }
    }
}

#[test]
fn a_long_scan_is_prefetched_almost_whole() {
    const BLOCKS: u64 = 60_000;
    // On a first pass a predictor knows nothing.
    for row in read_aheads().filter(|row| row.needs() != Needs::Future && !row.is_predictor()) {
        let mut read_ahead = build(row, "", 30_000);
        let mut level = Level { file_blocks: Some(BLOCKS), ..Level::new(30_000) };
        for block in 0..BLOCKS {
            level.read(&mut *read_ahead, block, 1);
        }
        // The file is twice the cache, and every window is far smaller; the start-up may miss, and those that read
        // ahead only at a miss miss once a window.
        assert!(level.missed <= BLOCKS / 50, "{}: {} of {BLOCKS} blocks missed", row.name, level.missed);
        assert_eq!(level.missed + level.prefetched, BLOCKS, "{}: blocks fetched twice", row.name);
    }
}

#[test]
fn names_are_unique_and_defaults_build() {
    for (number, row) in read_aheads().enumerate() {
        assert!(read_aheads().take(number).all(|other| other.name != row.name), "{} twice", row.name);
        build(row, &toml::to_string(&row.keys.defaults()).unwrap(), 10);
    }
}

#[test]
fn keys_are_checked() {
    for row in read_aheads() {
        let error = row.keys.read("nonsense = 1".parse().unwrap()).err();
        assert_eq!(error.expect("refused").key, "nonsense", "{}", row.name);
    }
}

#[test]
fn state_beyond_the_limit_is_forgotten() {
    // Two files read in turn with room for the state of one: neither is ever seen to be read in sequence. With room
    // for two both are.
    for row in read_aheads()
        .filter(|row| row.reads_ahead().unwrap().spares_random && row.keys.defaults().contains_key("files"))
    {
        let named = |files: u32| {
            let (mut level, mut read_ahead) = (Level::new(1000), build(row, &format!("files = {files}"), 1000));
            let requests = (100..110u64)
                .flat_map(|first| [0, 1].map(|file| Asked { file, first, count: 1, client: 0, ends_inside: false }));
            let beyond = |asked: Asked| {
                let runs = level.ask(&mut *read_ahead, asked);
                runs.iter().any(|run| run.count > 0 && (run.first > asked.first || run.end() > asked.end()))
            };
            requests.map(beyond).filter(|named| *named).count()
        };
        // Linux sees by the cached blocks before a request that it is one of a stream, without any state.
        let traces = if ["linux", "fixed-depth", "competitive"].contains(&row.name) { 2 } else { 0 };
        assert!(named(1) <= 8 * traces, "{}: {}", row.name, named(1));
        assert!(named(2) > 0, "{}", row.name);
    }
}
