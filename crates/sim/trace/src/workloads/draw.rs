//! Common draws of the generators: uniform numbers, and sizes spread evenly over files.

use headstart_types::seed::GOLDEN;
use rand_chacha::rand_core::RngCore;
use rand_chacha::ChaCha8Rng;

/// A uniform number below `bound`, which is at least 1; the bias is below `bound` / 2^64.
pub(crate) fn below(bound: u64, rng: &mut ChaCha8Rng) -> u64 {
    share(rng.next_u64(), bound)
}

/// A random event with this probability, 0 to 1.
pub(super) fn happens(probability: f64, rng: &mut ChaCha8Rng) -> bool {
    ((rng.next_u64() >> 11) as f64) < probability * (1u64 << 53) as f64
}

/// Element `index` of a sequence that fills 0..1 evenly at every length: the fractional part of multiples of the golden
/// ratio, in units of 2^-64. Sizes that are a function of it need no table, and their mean is almost exact.
pub(super) fn even(index: u64) -> u64 {
    index.wrapping_mul(GOLDEN)
}

/// `part` * 2^-64 of `whole`, rounded down.
pub(super) fn share(part: u64, whole: u64) -> u64 {
    ((u128::from(part) * u128::from(whole)) >> 64) as u64
}

/// A size for file `index`, evenly spread from 1 to twice `mean` minus 1.
pub(super) fn size_about(mean: u64, index: u64) -> u64 {
    1 + share(even(index), 2 * mean - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::rand_core::SeedableRng;

    #[test]
    fn sizes_are_spread_evenly_at_every_length() {
        for count in [10, 1_000, 100_000] {
            let sizes: Vec<u64> = (0..count).map(|index| size_about(1_000, index)).collect();
            let mean = sizes.iter().sum::<u64>() as f64 / count as f64;
            assert!((mean / 1_000.0 - 1.0).abs() < 0.2 / (count as f64 / 10.0).sqrt(), "{count}: {mean}");
            assert!(sizes.iter().all(|size| (1..2_000).contains(size)));
        }
        assert_eq!(size_about(1, 77), 1);
    }

    #[test]
    fn certain_things_happen_and_impossible_ones_do_not() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        assert!((0..1000).all(|_| happens(1.0, &mut rng) && !happens(0.0, &mut rng)));
        let third = (0..30_000).filter(|_| happens(0.3, &mut rng)).count();
        assert!((8_600..9_400).contains(&third), "{third}");
    }
}
