//! The theory's guarantees for any outcome, from any program (Kimbrel et al., OSDI 1996, theorems 1 and 2 and section
//! 2.3).

use super::{Instance, Outcome};

/// What the hinted policies achieve on one instance, in the settings of the theory.
#[derive(Clone, Copy, Debug)]
pub struct Hinted {
    pub aggressive: Outcome,
    pub reverse_aggressive: Outcome,
    pub forestall: Outcome,
    pub fixed_horizon: Outcome,
}

impl Hinted {
    /// Whether each is within its guarantee of `best`, the optimum's elapsed time.
    pub fn keep_their_bounds(&self, i: &Instance, best: u64) -> Result<(), String> {
        let (f, k, d) = (i.fetch, i.frames as u64, i.disks as u64);
        let (greedy, backward) = (self.aggressive.elapsed, self.reverse_aggressive.elapsed);
        let (late, horizon) = (self.forestall.elapsed, self.fixed_horizon.elapsed);
        at_most("aggressive <= d (1 + F/K) optimum", greedy * k, d * (k + f) * best)?;
        at_most("reverse aggressive <= (1 + F d/K) optimum", backward * k, (k + f * d) * best)?;
        if d == 1 {
            at_most("forestall <= (1 + F/K) optimum", late * k, (k + f) * best)?;
            at_most("fixed horizon <= 2 optimum", horizon, 2 * best)?;
        }
        if distinct(i) <= i.frames {
            for (name, elapsed) in [("aggressive", greedy), ("forestall", late), ("reverse aggressive", backward)] {
                at_most(&format!("all fits: {name} <= optimum"), elapsed, best)?;
            }
        }
        Ok(())
    }
}

/// Number of referenced blocks.
pub fn distinct(i: &Instance) -> usize {
    (0..i.disk_of.len()).filter(|block| i.refs.contains(block)).count()
}

/// An error that names the statement and both sides.
pub fn at_most(what: &str, left: u64, right: u64) -> Result<(), String> {
    (left <= right).then_some(()).ok_or_else(|| format!("{what}: {left} > {right}"))
}

/// An error that names what was compared and both sides.
pub fn same(what: &str, left: Outcome, right: Outcome) -> Result<(), String> {
    (left == right).then_some(()).ok_or_else(|| format!("{what}: {left:?} is not {right:?}"))
}
