//! Seeds of independent random streams, all derived from the one seed of a scenario.
//!
//! Each consumer of random numbers (the think times of process 3, the latencies of disk 2) has its own stream, so that
//! its draws do not depend on how many others draw. A stream is named by its role and an index. Its seed is a hash of
//! (seed, role, index), never a sum: with `seed + index`, the runs of seeds 1 and 2 would share all streams but one,
//! and their means would differ far too little.
//!
//! The hash absorbs the seed, the role's length and bytes, and the index, each with the output function of splitmix64
//! (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014), which is a permutation of
//! the 64-bit numbers: two indexes of one role never share a stream.

/// The seed of the stream for `role` in the run with `seed`. `index` distinguishes streams of one role (a process, a
/// disk, a request); 0 if the role has one stream.
#[must_use]
pub fn stream_seed(seed: u64, role: &str, index: u64) -> u64 {
    let begun = mix(mix(seed) ^ role.len() as u64);
    let of_role = role.bytes().fold(begun, |state, byte| mix(state ^ u64::from(byte)));
    mix(of_role ^ index)
}

/// The distance of two states of splitmix64: 2^64 over the golden ratio, odd.
pub const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// One step of splitmix64: advances the state by [`GOLDEN`] and mixes it.
#[must_use]
pub const fn mix(state: u64) -> u64 {
    finalise(state.wrapping_add(GOLDEN))
}

/// The output of splitmix64 in a state: a permutation of the 64-bit numbers.
#[must_use]
pub const fn finalise(state: u64) -> u64 {
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn mixes_as_splitmix64_does() {
        // The first outputs of splitmix64 from states 0 and 1234567 (the authors' reference implementation).
        assert_eq!(mix(0), 0xe220_a839_7b1d_cdaf);
        assert_eq!(mix(1_234_567), 6_457_827_717_110_365_317);
    }

    #[test]
    fn no_two_streams_of_neighbouring_seeds_are_the_same() {
        let roles = ["", "a", "b", "ab", "think", "action", "disk"];
        let all: Vec<u64> = (0..50)
            .flat_map(|seed| {
                roles.iter().flat_map(move |role| (0..50).map(move |index| stream_seed(seed, role, index)))
            })
            .collect();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        // About half of the bits differ between neighbours.
        let flipped: u32 = all.windows(2).map(|pair| (pair[0] ^ pair[1]).count_ones()).sum();
        let mean = f64::from(flipped) / (all.len() - 1) as f64;
        assert!((mean - 32.0).abs() < 0.2, "{mean}");
    }
}
