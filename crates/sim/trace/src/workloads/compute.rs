//! Think times in their textual form: "0s", "1ms" (constant) or "exp:1ms" (exponential with that mean).

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use headstart_types::{from_text, stream_seed, Nanos};
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A distribution of think times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compute {
    /// Constant; zero for none.
    Constant(Nanos),
    /// Exponential with this mean.
    Exponential(Nanos),
}

impl Compute {
    /// The allowed forms, for error texts.
    pub const ALLOWED: &'static str =
        "a time such as \"0s\" or \"1ms\", or \"exp:1ms\" for exponential times with that mean, at most 1000h";

    pub const NONE: Self = Compute::Constant(Nanos::ZERO);

    /// A sampler for one process in the run with `seed`: each process has its own random stream.
    #[must_use]
    pub fn sampler(self, seed: u64, process: u64) -> ComputeSampler {
        ComputeSampler { compute: self, rng: ChaCha8Rng::seed_from_u64(stream_seed(seed, "think", process)) }
    }
}

impl fmt::Display for Compute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Compute::Constant(think) => write!(f, "{think}"),
            Compute::Exponential(mean) => write!(f, "exp:{mean}"),
        }
    }
}

impl Serialize for Compute {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Compute {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_text(deserializer, Self::ALLOWED)
    }
}

impl JsonSchema for Compute {
    fn schema_name() -> Cow<'static, str> {
        "Compute".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "x-allowed": Self::ALLOWED})
    }
}

impl FromStr for Compute {
    type Err = String;

    /// # Errors
    /// What is wrong with the text.
    fn from_str(text: &str) -> Result<Self, String> {
        // A sample is at most 37 times the mean (53 random bits), so nothing overflows.
        const MEAN_MAX: Nanos = Nanos(1_000 * 3_600_000_000_000);
        let (mean, exponential) = match text.strip_prefix("exp:") {
            Some(mean) => (mean, true),
            None => (text, false),
        };
        let mean: Nanos = mean.parse()?;
        if mean > MEAN_MAX {
            return Err(format!("\"{text}\" is too large"));
        }
        Ok(if exponential { Compute::Exponential(mean) } else { Compute::Constant(mean) })
    }
}

#[derive(Debug, Clone)]
pub struct ComputeSampler {
    compute: Compute,
    rng: ChaCha8Rng,
}

impl ComputeSampler {
    /// The next think time. An exponential one is minus the mean times the logarithm of a uniform number in (0, 1],
    /// rounded to the nanosecond.
    #[inline]
    pub fn next_think(&mut self) -> Nanos {
        match self.compute {
            Compute::Constant(think) => think,
            Compute::Exponential(mean) => {
                let uniform = ((self.rng.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64;
                Nanos::rounded(-libm::log(uniform) * mean.0 as f64)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_users_write() {
        assert_eq!("0s".parse(), Ok(Compute::Constant(Nanos(0))));
        assert_eq!("1ms".parse(), Ok(Compute::Constant(Nanos(1_000_000))));
        assert_eq!("exp:1ms".parse(), Ok(Compute::Exponential(Nanos(1_000_000))));
        for text in ["", "1", "exp:", "exp", "-1ms", "exp:-1ms", "norm:1ms", "1001h"] {
            assert!(text.parse::<Compute>().is_err(), "{text}");
        }
    }

    #[test]
    fn exponential_has_its_mean_and_its_shape() {
        let mut sampler = Compute::Exponential(Nanos(1_000_000)).sampler(7, 0);
        let draws: Vec<u64> = (0..200_000).map(|_| sampler.next_think().0).collect();
        let mean = draws.iter().sum::<u64>() as f64 / draws.len() as f64;
        assert!((mean / 1e6 - 1.0).abs() < 0.01, "{mean}");
        // Half of the exponential times are below ln 2 times the mean; a share of e^-3 is above three times the mean.
        let share = |bound: u64| draws.iter().filter(|draw| **draw < bound).count() as f64 / draws.len() as f64;
        assert!((share(693_147) - 0.5).abs() < 0.005);
        assert!((1.0 - share(3_000_000) - 0.0498).abs() < 0.002);
    }
}
