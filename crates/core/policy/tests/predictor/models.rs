//! Minimal models: they keep the whole past and evaluate all of it at each reference.

use headstart_policy::readahead::{Asked, Found, ReadAhead};
use headstart_types::Nanos;
use proptest::prelude::*;

use crate::common::{named, Level};

/// The blocks that `predictor` names at each block of file 0, in order; nothing is ever cached.
fn names(predictor: &mut dyn ReadAhead, blocks: &[u64]) -> Vec<Vec<u64>> {
    let level = Level::new(1);
    let ask = |block: &u64| {
        let (asked, mut runs) = (Asked { file: 0, first: *block, count: 1, client: 0, ends_inside: false }, Vec::new());
        predictor.asked(Nanos::ZERO, &asked, &[Found::Absent], &level, &mut runs);
        runs.iter().flat_map(|run| run.first..run.end()).collect()
    };
    blocks.iter().map(ask).collect()
}

/// Blocks in loops and at random.
fn references() -> impl Strategy<Value = Vec<u64>> {
    let part = prop_oneof![
        (0u64..12, 1usize..20)
            .prop_map(|(start, length)| (0..length as u64).map(|at| (start + at) % 12).collect::<Vec<_>>()),
        prop::collection::vec(0u64..12, 1..20),
    ];
    prop::collection::vec(part, 1..8).prop_map(|parts| parts.concat())
}

/// The last run of `stability` equal successors of `block` in the past.
fn successor(past: &[u64], block: u64, stability: usize) -> Option<u64> {
    let pairs = past.windows(2).filter(|pair| pair[0] == block && pair[1] != block);
    let followers: Vec<u64> = pairs.map(|pair| pair[1]).collect();
    followers.windows(stability).rev().find(|run| run.iter().all(|one| *one == run[0])).map(|run| run[0])
}

/// The blocks that came within `lookahead` references after each `block` of the past, by the paper's count.
fn likely(past: &[u64], block: u64, lookahead: usize, chance: f64) -> Vec<u64> {
    // A repetition of the same block is not a new reference.
    let mut distinct = past.to_vec();
    distinct.dedup();
    let mut counts = std::collections::BTreeMap::new();
    for (at, target) in distinct.iter().enumerate() {
        let window = &distinct[at.saturating_sub(lookahead)..at];
        for _ in window.iter().filter(|source| **source == block && *target != block) {
            *counts.entry(*target).or_insert(0u64) += 1;
        }
    }
    let total: u64 = counts.values().sum();
    let mut found: Vec<(u64, u64)> =
        counts.into_iter().filter(|(_, count)| *count as f64 >= chance * total as f64).collect();
    found.sort_by_key(|(target, count)| (std::cmp::Reverse(*count), *target));
    found.into_iter().map(|(target, _)| target).collect()
}

/// Contexts by their text: how often each pattern that has been counted has come.
fn ppm(references: &[u64], order: usize, threshold: f64) -> Vec<Vec<u64>> {
    let mut counts = std::collections::BTreeMap::<Vec<u64>, u64>::new();
    let mut contexts: Vec<Vec<u64>> = Vec::new();
    let mut answers = Vec::new();
    for block in references {
        let mut longer = Vec::new();
        for context in contexts.iter().filter(|context| context.len() < order) {
            let pattern = [context.as_slice(), &[*block]].concat();
            let known = counts.contains_key(&pattern);
            *counts.entry(pattern.clone()).or_insert(0) += 1;
            longer.extend(known.then_some(pattern));
        }
        *counts.entry(vec![*block]).or_insert(0) += 1;
        longer.push(vec![*block]);
        contexts = longer;
        let mut answer = Vec::new();
        for context in &contexts {
            let mut at = context.clone();
            loop {
                let of = |pattern: &Vec<u64>| pattern.len() == at.len() + 1 && pattern.starts_with(&at);
                let children: Vec<(&Vec<u64>, &u64)> = counts.iter().filter(|(pattern, _)| of(pattern)).collect();
                let total: u64 = children.iter().map(|(_, count)| **count).sum();
                let best = children.iter().find(|(_, count)| **count as f64 / total as f64 >= threshold);
                let Some((pattern, _)) = best else { break };
                let next = *pattern.last().unwrap();
                if !answer.contains(&next) {
                    answer.push(next);
                }
                at = pattern.to_vec();
            }
        }
        answers.push(answer);
    }
    answers
}

/// Leap over misses alone: the majority by counting, of windows that double; no hits, so the window is 1 or 0.
fn leap(references: &[u64], history: usize, splits: usize) -> Vec<Vec<u64>> {
    let distances: Vec<i64> = references.windows(2).map(|pair| pair[1] as i64 - pair[0] as i64).collect();
    let mut trend = None;
    let mut answers = vec![vec![]];
    for (at, distance) in distances.iter().enumerate() {
        let mut window = history / splits;
        let found = loop {
            let latest = &distances[(at + 1).saturating_sub(window)..=at];
            let votes = |one: &i64| latest.iter().filter(|other| *other == one).count();
            let majority = latest.iter().find(|one| votes(one) > window / 2);
            if majority.is_some() || window >= history {
                break majority.copied();
            }
            window = (2 * window).min(history);
        };
        trend = found.or(trend);
        let next = trend
            .filter(|trend| trend == distance && *trend != 0)
            .and_then(|trend| references[at + 1].checked_add_signed(trend));
        answers.push(next.into_iter().collect());
    }
    answers
}

proptest! {
    #[test]
    fn successors_are_those_of_the_whole_past(references in references(), stability in 1usize..4) {
        let fast = names(&mut *named("stable-successor", &format!("stability = {stability}")), &references);
        for (at, names) in fast.iter().enumerate() {
            let past = &references[..=at];
            let naive: Vec<u64> = successor(past, references[at], stability).into_iter().collect();
            prop_assert_eq!(names, &naive, "at {}", at);
        }
        let last = names(&mut *named("last-successor", ""), &references);
        prop_assert_eq!(last, names(&mut *named("stable-successor", "stability = 1"), &references));
    }

    #[test]
    fn arcs_are_those_of_the_whole_past(references in references(), lookahead in 1usize..6, chance in 0.0f64..0.9) {
        let fast = names(&mut *named("probability-graph", &format!("lookahead = {lookahead}\nchance = {chance}")), &references);
        for (at, names) in fast.iter().enumerate() {
            let again = at > 0 && references[at - 1] == references[at];
            let naive = if again { vec![] } else { likely(&references[..=at], references[at], lookahead, chance) };
            prop_assert_eq!(names, &naive, "at {}", at);
        }
    }

    #[test]
    fn contexts_are_those_of_the_whole_past(references in references(), order in 1usize..6, threshold in 0.51f64..1.0) {
        let keys = format!("order = {order}\nthreshold = {threshold}\nnodes = 4096\nentries = 1000000");
        prop_assert_eq!(names(&mut *named("ppm", &keys), &references), ppm(&references, order, threshold));
    }

    #[test]
    fn trends_are_those_of_the_whole_past(references in references(), splits in 1usize..9, double in 0u32..3) {
        let history = splits << double;
        let keys = format!("history = {history}\nsplits = {splits}");
        prop_assert_eq!(names(&mut *named("leap", &keys), &references), leap(&references, history, splits));
    }
}
