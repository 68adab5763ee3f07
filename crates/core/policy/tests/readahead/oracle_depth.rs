//! What an oracle knows, and that it fetches exactly that.

use std::collections::BTreeSet;

use headstart_policy::readahead::{streams, Asked, Cached, OracleDepth, ReadAheadContext, Run, Stream};
use headstart_policy::ReadAhead;
use proptest::prelude::*;

use crate::common::{context, row, try_build, Level};

fn stream(at: u64, file: u32, blocks: std::ops::Range<u64>) -> Stream {
    Stream { at, file, first: blocks.start, end: blocks.end }
}

/// The streams of reads of (file, block) in a level of 1000 frames.
fn of(reads: &[(u32, u64)]) -> Vec<Stream> {
    streams(reads.iter().copied(), 1000)
}

#[test]
fn a_stream_goes_on_where_it_ended() {
    // Two files in turn, and the first one once more from its start.
    let reads = [(1, 0), (1, 1), (2, 7), (1, 2), (2, 8), (1, 0), (2, 9)];
    assert_eq!(of(&reads), [stream(0, 1, 0..3), stream(2, 2, 7..10), stream(5, 1, 0..1)]);
    // Two places of one file in turn; at 101 the first reaches where the second one is, and that is its block then.
    let reads = [(1, 99), (1, 101), (1, 100), (1, 102), (1, 101)];
    assert_eq!(of(&reads), [stream(0, 1, 99..102), stream(1, 1, 101..103)]);
    // The last block once more is no other stream; one before it is.
    assert_eq!(of(&[(1, 0), (1, 1), (1, 1), (1, 2)]), [stream(0, 1, 0..3)]);
    assert_eq!(of(&[(1, 0), (1, 1), (1, 0), (1, 2)]), [stream(0, 1, 0..3), stream(2, 1, 0..1)]);
}

#[test]
fn who_comes_back_too_late_begins_anew() {
    // Two frames: with two other reads in between the stream continues at the third, with three it does not.
    let away = |others: u64| {
        let reads = std::iter::once((1, 0)).chain((0..others).map(|other| (2, 10 * other))).chain([(1, 1)]);
        streams(reads, 2).iter().filter(|stream| stream.file == 1).count()
    };
    assert_eq!((away(0), away(1), away(2), away(9)), (1, 1, 2, 2));
}

/// An oracle that knows a process's future requests, in a level of `frames` frames.
fn oracle(requests: &[Asked], frames: u32) -> OracleDepth {
    let clients = requests.iter().map(|asked| asked.client + 1).max().unwrap_or(0);
    let of_client = |client| {
        let own = requests.iter().filter(|asked| asked.client == client);
        streams(own.flat_map(|asked| (asked.first..asked.end()).map(|index| (asked.file, index))), frames)
    };
    OracleDepth::new((0..clients).map(of_client).collect(), frames, 128)
}

fn ask(file: u32, first: u64, count: u32, client: u32) -> Asked {
    Asked { file, first, count, client, ends_inside: false }
}

/// The range that each of `requests` makes an oracle name, as (first, end).
fn named(requests: &[Asked], frames: u32) -> Vec<Vec<(u64, u64)>> {
    let (mut oracle, mut level) = (oracle(requests, frames), Level::new(frames as usize));
    let runs = |asked: &Asked| -> Vec<Run> { level.ask(&mut oracle, *asked) };
    requests.iter().map(runs).map(|runs| runs.iter().map(|run| (run.first, run.end())).collect()).collect()
}

#[test]
fn each_stream_is_one_request() {
    // 50 blocks of file 1 and 30 of file 2, in turn, 10 at a time; a single request of file 3.
    let turns = (0..5).flat_map(|turn| {
        let second = (turn < 3).then(|| ask(2, 100 + 10 * turn, 10, 0));
        [Some(ask(1, 10 * turn, 10, 0)), second].into_iter().flatten()
    });
    let requests: Vec<Asked> = turns.chain([ask(3, 0, 10, 0)]).collect();
    let named = named(&requests, 1000);
    assert_eq!((&named[0][..], &named[1][..]), (&[(10, 50)][..], &[(110, 130)][..]));
    assert!(named[2..].iter().all(Vec::is_empty), "{named:?}");
}

#[test]
fn each_process_has_streams_of_its_own() {
    // Two processes read one file, the second half of it; the requests of one are no reads of the other.
    let requests = [ask(1, 0, 5, 0), ask(1, 20, 5, 1), ask(1, 5, 5, 0), ask(1, 25, 5, 1), ask(1, 25, 5, 0)];
    assert_eq!(named(&requests, 1000), [vec![(5, 10)], vec![(25, 30)], vec![], vec![], vec![]]);
}

#[test]
fn a_stream_longer_than_half_of_the_frames_goes_on_where_it_was_cut() {
    // 40 frames, so 20 blocks ahead. 0..5 asked for: 5..25. With 20..25 all of them are read: 25..45, and so on to 60.
    let requests: Vec<Asked> = (0..12).map(|number| ask(1, 5 * number, 5, 0)).collect();
    let named = named(&requests, 40);
    let expected = [(0, (5, 25)), (4, (25, 45)), (8, (45, 60))];
    for (number, runs) in named.iter().enumerate() {
        let expected: Vec<_> = expected.iter().filter(|(at, _)| *at == number).map(|(_, run)| *run).collect();
        assert_eq!(runs, &expected, "request {number}");
    }
}

#[test]
fn what_is_evicted_unread_is_asked_for_again() {
    let requests: Vec<Asked> = (0..4).map(|number| ask(1, number, 1, 0)).collect();
    let (mut oracle, mut level) = (oracle(&requests, 100), Level::new(100));
    assert_eq!(level.ask(&mut oracle, requests[0]).len(), 1);
    level.cached.remove(&(1, 1));
    level.cached.remove(&(1, 3));
    let runs = level.ask(&mut oracle, requests[1]);
    assert_eq!((runs.len(), runs[0].first, runs[0].end()), (1, 2, 4));
    assert!(level.is_cached(1, 3));
}

#[test]
fn it_has_to_be_told() {
    let unknown = ReadAheadContext { future: None, ..context(10) };
    let error = try_build(row("oracle-depth"), "", &unknown).err().expect("refused");
    assert_eq!(error.key, "name");
    assert!(error.to_string().contains("unknown here"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn every_block_is_fetched_once_and_none_that_is_not_read(
        steps in prop::collection::vec((0u32..3, 0u32..2, 0u64..300, 1u32..7, 1u64..30), 1..20),
    ) {
        // Scans of three files by two processes, one after another: a frame for each block.
        let scan = |(file, client, first, count, length): (u32, u32, u64, u32, u64)| {
            (0..length).map(move |number| ask(file, first + number * u64::from(count), count, client))
        };
        let requests: Vec<Asked> = steps.into_iter().flat_map(scan).collect();
        let (mut oracle, mut level) = (oracle(&requests, 1 << 20), Level::new(1 << 20));
        let (mut read, mut begun) = (BTreeSet::new(), 0);
        for asked in &requests {
            let runs = level.ask(&mut oracle, *asked);
            begun += u64::from(!runs.is_empty());
            read.extend((asked.first..asked.end()).map(|index| (asked.file, index)));
        }
        prop_assert_eq!(level.cached.keys().copied().collect::<BTreeSet<_>>(), read);
        prop_assert_eq!(oracle.remembered(), 0, "streams that have not ended");
        prop_assert!(begun <= 20, "a scan is a stream, or goes on with one: {}", begun);
    }

    #[test]
    fn never_more_than_half_of_the_frames_are_ahead(
        lengths in prop::collection::vec(1u64..60, 1..6), frames in 4u32..80, count in 1u32..4,
    ) {
        // Files in turn, each to its own end.
        let turn = |turn: u64| lengths.iter().zip(0..).filter(move |(length, _)| turn < **length)
            .map(move |(_, file)| ask(file, turn * u64::from(count), count, 0));
        let requests: Vec<Asked> = (0..60).flat_map(turn).collect();
        let (mut oracle, mut level) = (oracle(&requests, frames), Level::new(frames as usize));
        // By file: read up to, and named up to.
        let mut reached = vec![(0u64, 0u64); lengths.len()];
        for asked in &requests {
            let runs = level.ask(&mut oracle, *asked);
            let (read, named) = &mut reached[asked.file as usize];
            *read = asked.end();
            *named = runs.iter().map(Run::end).max().unwrap_or(0).max(*named).max(*read);
            prop_assert!(*named <= lengths[asked.file as usize] * u64::from(count));
            let ahead: u64 = reached.iter().map(|(read, named)| named - read).sum();
            prop_assert!(ahead <= u64::from(frames / 2), "{ahead} of {frames}");
        }
    }
}
