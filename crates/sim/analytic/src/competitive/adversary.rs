//! The worst-case stream of a schedule: section 4.2 of the paper, equations (9) to (13), as a program.
//!
//! A schedule that stays within alpha < 2 times the optimum must start with less than a switch's worth of data, (9),
//! and always fetch less than the room that (10) leaves. The room shrinks by C_switch R_tr - S_p^k with each prefetch k
//! and is used up by the time given by (13), so every schedule violates one of the two at some point. The stream ends
//! shortly after the start of the prefetch that does.
//!
//! Cost: a step per prefetch up to that one; 1 / x steps for a schedule that stays x below a switch's worth.

use headstart_types::KeyError;

use super::competitive_depth;

/// A stream that costs more than alpha times its optimum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Defeat {
    /// The prefetch that is too large, from 1: the first violates equation (9), any other equation (10).
    pub prefetch: u64,
    /// How far into that prefetch the stream extends. Epsilon.
    pub epsilon_bytes: f64,
    /// Length of the stream. `S_tot`.
    pub length_bytes: f64,
    /// What the schedule fetches of it.
    pub fetched_bytes: f64,
    /// `C_total`.
    pub total_ns: f64,
    /// `C_total^opt`.
    pub optimum_ns: f64,
}

impl Defeat {
    /// Exceeds alpha.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.total_ns / self.optimum_ns
    }
}

/// The stream on which `schedule` costs more than `alpha` times the optimum, with switches of `switch_ns` and a rate of
/// `bytes_per_second`. `schedule` returns for k = 1, 2, ... in order the size of the k-th prefetch of a stream, in
/// bytes; it is called only as far as needed.
///
/// Epsilon is half of what the proof allows, and at most half of the prefetch, so that the stream ends within it.
///
/// # Errors
/// If `alpha` is not between 0 and 2, or the schedule fetches nothing, or returns NaN, at some k.
pub fn defeat(
    mut schedule: impl FnMut(u64) -> f64,
    alpha: f64,
    switch_ns: f64,
    bytes_per_second: f64,
) -> Result<Defeat, KeyError> {
    if !(alpha > 0.0 && alpha < 2.0) {
        return Err(KeyError::new("alpha", format!("{alpha} is out of range"), "above 0, below 2"));
    }
    let switch_bytes = competitive_depth(switch_ns, bytes_per_second);
    let mut ask = |k: u64| match schedule(k) {
        size if size > 0.0 && size.is_finite() => Ok(size),
        size => Err(KeyError::new("schedule", format!("{size} bytes at prefetch {k}"), "more than 0 bytes each time")),
    };
    let mut size = ask(1)?;
    // Bytes fetched by the prefetches before the k-th, and the right-hand side of (9) or (10).
    let (mut k, mut before, mut room) = (1, 0.0, switch_bytes);
    while size < room {
        before += size;
        room = if k == 1 { size } else { room + size - switch_bytes };
        k += 1;
        size = ask(k)?;
    }
    // The proof of (9) allows (2 - alpha) C_switch R_tr / alpha, that of (10) T / alpha; T is written without
    // cancellation.
    let beyond = if k == 1 { 0.0 } else { size - room };
    let allowed = (beyond + (2.0 - alpha) * (before + switch_bytes)) / alpha;
    let epsilon_bytes = allowed.min(size) / 2.0;
    let ns = |bytes: f64| bytes * 1e9 / bytes_per_second;
    Ok(Defeat {
        prefetch: k,
        epsilon_bytes,
        length_bytes: before + epsilon_bytes,
        fetched_bytes: before + size,
        total_ns: k as f64 * switch_ns + ns(before + size),
        optimum_ns: switch_ns + ns(before + epsilon_bytes),
    })
}

/// No schedule stays within alpha beyond this prefetch: the k of equation (13), from the size of its first prefetch.
/// Infinite if that is at least a switch's worth of data; such a schedule has violated (9).
#[must_use]
pub fn latest_violation(first_bytes: f64, switch_ns: f64, bytes_per_second: f64) -> f64 {
    let switch_bytes = competitive_depth(switch_ns, bytes_per_second);
    if first_bytes >= switch_bytes {
        return f64::INFINITY;
    }
    ((2.0 * switch_bytes - first_bytes) / (switch_bytes - first_bytes)).ceil()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With switches worth 100 bytes, at a byte per nanosecond.
    fn against(schedule: impl FnMut(u64) -> f64, alpha: f64) -> Defeat {
        defeat(schedule, alpha, 100.0, 1e9).expect("a stream")
    }

    #[test]
    fn too_much_at_once_by_hand() {
        // (9): half of (2 - 1.5) / 1.5 x 100 bytes into a prefetch of 100: 200 ns against 116.7.
        let found = against(|_| 100.0, 1.5);
        assert_eq!((found.prefetch, found.fetched_bytes, found.total_ns), (1, 100.0, 200.0));
        assert!((found.epsilon_bytes - 50.0 / 3.0).abs() < 1e-12 && found.length_bytes == found.epsilon_bytes);
        assert!((found.ratio() - 200.0 / (100.0 + 50.0 / 3.0)).abs() < 1e-12);
    }

    #[test]
    fn too_little_each_time_by_hand() {
        // 80 each time. (10) leaves 80 for the second, which violates it: 80 is not less.
        let found = against(|_| 80.0, 1.5);
        assert_eq!((found.prefetch, found.fetched_bytes, found.total_ns), (2, 160.0, 360.0));
        // T = 80 + 0.5 x 100 - 0.5 x 80 = 90: a stream of 80 + 30 bytes, 210 ns at best.
        assert!((found.epsilon_bytes - 30.0).abs() < 1e-12, "{found:?}");
        assert!((found.ratio() - 360.0 / 210.0).abs() < 1e-12);
        // 80, 70, 60: room for 80, then 80 + 70 - 100 = 50. T = 60 + 1.5 x 100 - 0.5 x 150 = 135, so 45 of 60, but at
        // most half of them.
        let found = against(|k| 90.0 - 10.0 * k as f64, 1.5);
        assert_eq!((found.prefetch, found.epsilon_bytes, found.total_ns), (3, 30.0, 510.0));
        assert_eq!(found.optimum_ns, 280.0);
    }

    #[test]
    fn the_proofs_last_prefetch_by_hand() {
        // 90 first: by k = (200 - 90) / (100 - 90) = 11 there is no room.
        assert_eq!(latest_violation(90.0, 100.0, 1e9), 11.0);
        assert_eq!(latest_violation(100.0, 100.0, 1e9), f64::INFINITY);
    }

    #[test]
    fn mistakes_say_what_is_allowed() {
        for alpha in [0.0, 2.0, -1.0, f64::NAN] {
            let error = defeat(|_| 1.0, alpha, 100.0, 1e9).expect_err("out of range").to_string();
            assert_eq!(error, format!("alpha: {alpha} is out of range; allowed: above 0, below 2"));
        }
        // Within (9) and (10) at first.
        let error = defeat(|k| [99.0, 98.0, 0.0][k as usize - 1], 1.5, 100.0, 1e9).expect_err("nothing").to_string();
        assert_eq!(error, "schedule: 0 bytes at prefetch 3; allowed: more than 0 bytes each time");
        assert!(defeat(|_| f64::NAN, 1.5, 100.0, 1e9).is_err());
    }
}
