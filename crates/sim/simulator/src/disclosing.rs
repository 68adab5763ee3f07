//! What a process discloses of its references: all, a part, or a part with errors.
//!
//! Which hints are disclosed, wrong and displaced is drawn from three streams of the hints' seed: with one seed, the
//! hints disclosed (or wrong) at one share are a subset of those at every greater share.

use std::ops::Range;

use headstart_policy::{Disclosure, Hints};
use headstart_scenario::HintsKeys;
use headstart_types::{stream_seed, Block, Chunk, KeyError};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The disclosed references. Only reads are disclosed: a block that will be overwritten entirely needs no fetch.
pub fn disclose(chunk: &Chunk, keys: Option<&HintsKeys>) -> Result<Hints, KeyError> {
    let mut blocks = chunk.blocks.clone();
    let stream = |seed, role| ChaCha8Rng::seed_from_u64(stream_seed(seed, role, 0));
    let reads = || (0..chunk.blocks.len()).map(|at| !chunk.is_write(at));
    let disclosure = match keys {
        Some(HintsKeys { window: Some(_), .. }) if !chunk.writes.is_empty() => {
            let problem = "no window where writes reach the devices";
            return Err(KeyError::new("policy.hints.window", problem, "fraction, or workload.writes = \"as-read\""));
        }
        Some(HintsKeys { window: Some(window), .. }) => Disclosure::Window(*window),
        Some(keys) if !keys.are_perfect() => {
            let mut rng = stream(keys.seed(), "hints");
            Disclosure::Subset(reads().map(|read| rng.random_bool(keys.share()) && read).collect())
        }
        _ if !chunk.writes.is_empty() => Disclosure::Subset(reads().collect()),
        _ => Disclosure::All,
    };
    if let Some(keys) = keys {
        let is_disclosed = |at: usize| match &disclosure {
            Disclosure::Subset(disclosed) => disclosed[at],
            Disclosure::All | Disclosure::Window(_) => true,
        };
        let (seed, (wrong, reordered)) = (keys.seed(), keys.errors());
        let distance = keys.distance.unwrap_or_default() as usize;
        reorder(&mut blocks, (reordered, distance), &mut stream(seed, "hints reordered"), is_disclosed);
        mislead(&mut blocks, &chunk.blocks, wrong, &mut stream(seed, "hints wrong"), is_disclosed);
    }
    Ok(Hints { blocks: blocks.into(), disclosure })
}

/// Exchanges a share r of the hints in pairs of up to a distance. Both hints of a pair are displaced, so r / 2 of all hints must be the
/// first of their pair, chosen among the 1 - r / 2 that are not the second of one.
fn reorder(
    blocks: &mut [Block],
    (share, distance): (f64, usize),
    rng: &mut ChaCha8Rng,
    is_disclosed: impl Fn(usize) -> bool,
) {
    if share == 0.0 {
        return;
    }
    let first_share = share / (2.0 - share);
    let mut moved = vec![false; blocks.len()];
    for at in 0..blocks.len() {
        if moved[at] || !is_disclosed(at) || !rng.random_bool(first_share) {
            continue;
        }
        let near: Range<usize> = at + 1..(at + 1).saturating_add(distance).min(blocks.len());
        let may = |other: &usize| !moved[*other] && is_disclosed(*other) && blocks[*other] != blocks[at];
        let others: Vec<usize> = near.filter(may).collect();
        if !others.is_empty() {
            let other = others[rng.random_range(0..others.len())];
            blocks.swap(at, other);
            (moved[at], moved[other]) = (true, true);
        }
    }
}

/// Makes a share of the hints name a block other than the one referenced; with only one block, none can be wrong.
fn mislead(
    blocks: &mut [Block],
    references: &[Block],
    share: f64,
    rng: &mut ChaCha8Rng,
    is_disclosed: impl Fn(usize) -> bool,
) {
    let others = references.iter().map(|block| block.0).max().unwrap_or(0);
    if share == 0.0 || others == 0 {
        return;
    }
    for (at, hinted) in blocks.iter_mut().enumerate() {
        // Drawn for each position, so that no draw depends on the number of earlier draws.
        let (is_wrong, other) = (rng.random::<f64>() < share, rng.random_range(0..others));
        if is_wrong && is_disclosed(at) {
            *hinted = Block(other + u32::from(other >= references[at].0));
        }
    }
}
