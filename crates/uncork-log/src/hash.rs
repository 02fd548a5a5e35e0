//! A hash of short byte strings: folded multiplication, after Wang Yi's wyhash.

use std::hash::{BuildHasherDefault, Hasher};

/// A map whose keys are hashes already.
pub(crate) type HashedMap<V> =
    std::collections::HashMap<u64, V, BuildHasherDefault<IdentityHasher>>;

/// A hasher that returns the number itself.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A hasher of pairs of numbers.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PairHasher(u64);

impl Hasher for PairHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32(u32::from(*byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = (self.0.rotate_left(32) ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}

/// The state of a hash.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hash(u64);

impl Hash {
    pub(crate) fn new() -> Self {
        Self(0x2d35_8dcc_aa6c_78a5)
    }

    /// Add a byte string, and which of four things follows it.
    pub(crate) fn add(&mut self, run: &[u8], then: u64) {
        let mark = (run.len() as u64) << 2 | then;
        self.0 = self
            .0
            .wrapping_add(mark.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut rest = run;
        while let Some((chunk, after)) = rest.split_first_chunk::<16>() {
            let (first, second) = chunk.split_at(8);
            self.mix(word(first), word(second));
            rest = after;
        }
        let (first, second) = match rest.len() {
            8.. => (word(&rest[..8]), word(&rest[rest.len() - 8..])),
            4.. => (word(&rest[..4]), word(&rest[rest.len() - 4..])),
            0 => (0, 0),
            length => (
                u64::from(rest[0]) << 8 | u64::from(rest[length / 2]),
                u64::from(rest[length - 1]),
            ),
        };
        self.mix(first, second);
    }

    pub(crate) fn get(self) -> u64 {
        self.0
    }

    fn mix(&mut self, first: u64, second: u64) {
        let product = u128::from(self.0 ^ first) * u128::from(second ^ 0x8bb8_4b93_962e_acc9);
        #[expect(clippy::cast_possible_truncation, reason = "both halves are taken")]
        let folded = product as u64 ^ (product >> 64) as u64;
        self.0 = folded.rotate_left(23) ^ self.0.wrapping_mul(0x4b33_a62e_d433_d4a3);
    }
}

/// Up to eight bytes as a number.
fn word(bytes: &[u8]) -> u64 {
    match <[u8; 8]>::try_from(bytes) {
        Ok(eight) => u64::from_le_bytes(eight),
        Err(_) => <[u8; 4]>::try_from(bytes).map_or(0, |four| u64::from(u32::from_le_bytes(four))),
    }
}
