//! A fixed hash for maps keyed by addresses: the same on every machine, and much faster than the default.
//!
//! Two rounds of multiply and fold (the finaliser of Steele, Lea and Flood, "Fast splittable pseudorandom number
//! generators", OOPSLA 2014, shortened). Not safe against chosen keys: a hostile trace can make it slow, not wrong.

use std::hash::{BuildHasherDefault, Hasher};

/// A 64-bit hash of a name; collisions are unlikely even among a billion names.
pub(crate) fn of(name: &[u8]) -> u64 {
    let mut mix = Mix::default();
    mix.write(name);
    mix.finish()
}

pub(crate) type Build = BuildHasherDefault<Mix>;

#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Mix(u64);

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        let mixed = (self.0.rotate_left(23) ^ value).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        self.0 = mixed ^ (mixed >> 32);
    }

    fn finish(&self) -> u64 {
        let mixed = self.0.wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 29)
    }
}
