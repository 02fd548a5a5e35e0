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

/// A map from hashes to small values, with open addressing. A look-up in a large one waits for memory once: a slot never
/// crosses a cache line, and the next slot is usually in the same one.
#[derive(Debug, Clone, Default)]
pub(crate) struct FlatMap<V> {
    /// Their number is a power of two, or 0.
    slots: Vec<Slot<V>>,
    used: usize,
}

/// A place of a [`FlatMap`]; the hash 0 marks an empty one.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(32))]
struct Slot<V> {
    hash: u64,
    value: V,
}

impl<V: Copy + Default> FlatMap<V> {
    /// The least number of slots.
    const LEAST: usize = 64;

    pub(crate) fn len(&self) -> usize {
        self.used
    }

    pub(crate) fn get(&self, hash: u64) -> Option<V> {
        if self.slots.is_empty() {
            return None;
        }
        let slot = &self.slots[self.place(hash)];
        (slot.hash != 0).then_some(slot.value)
    }

    /// Add a value, or replace the one of the same hash.
    pub(crate) fn insert(&mut self, hash: u64, value: V) {
        if self.used * 8 >= self.slots.len() * 7 {
            self.grow();
        }
        let place = self.place(hash);
        let slot = &mut self.slots[place];
        self.used += usize::from(slot.hash == 0);
        *slot = Slot {
            hash: stored(hash),
            value,
        };
    }

    pub(crate) fn clear(&mut self) {
        self.slots.clear();
        self.used = 0;
    }

    /// Return the place of a hash, or the empty place where it belongs. There are slots, and at least one is empty.
    fn place(&self, hash: u64) -> usize {
        let (hash, mask) = (stored(hash), self.slots.len() - 1);
        #[expect(clippy::cast_possible_truncation, reason = "masked anyway")]
        let mut place = hash as usize & mask;
        while self.slots[place].hash != hash && self.slots[place].hash != 0 {
            place = (place + 1) & mask;
        }
        place
    }

    fn grow(&mut self) {
        let slots = (self.slots.len() * 2).max(Self::LEAST);
        let before = std::mem::replace(&mut self.slots, vec![Slot::default(); slots]);
        for slot in before.into_iter().filter(|slot| slot.hash != 0) {
            let place = self.place(slot.hash);
            self.slots[place] = slot;
        }
    }
}

/// Return a hash as it is stored: never 0.
fn stored(hash: u64) -> u64 {
    hash.max(1)
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

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn a_flat_map_finds_what_a_map_finds() {
        let (mut flat, mut map) = (FlatMap::<(u32, u32)>::default(), HashMap::new());
        assert_eq!(flat.get(7), None);
        let mut draw = 5_u64;
        for number in 0..100_000_u32 {
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // Many hashes share their low bits, and some are equal.
            let hash = (draw >> 40) << (draw % 3 * 8);
            assert_eq!(flat.get(hash), map.get(&hash).copied(), "{hash}");
            flat.insert(hash, (number, number));
            map.insert(hash, (number, number));
            assert_eq!(flat.len(), map.len());
        }
        for (hash, value) in &map {
            assert_eq!(flat.get(*hash), Some(*value));
        }
        flat.clear();
        assert_eq!((flat.len(), flat.get(draw)), (0, None));
        flat.insert(0, (1, 2));
        assert_eq!(flat.get(0), Some((1, 2)));
    }
}
