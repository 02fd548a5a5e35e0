//! Hash functions and permutations of integers, identical to pgbench's bit for bit.

use crate::prng::Prng;

/// FNV-1a of the eight bytes of `value`, the lowest first.
pub(crate) fn fnv1a(value: i64, seed: i64) -> i64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x100_0000_01b3;
    value
        .to_le_bytes()
        .iter()
        .fold(BASIS ^ seed.cast_unsigned(), |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(PRIME)
        })
        .cast_signed()
}

/// Murmur2 (Austin Appleby's 64-bit form) of the eight bytes of `value`.
pub(crate) fn murmur2(value: i64, seed: i64) -> i64 {
    const FACTOR: u64 = 0xc6a4_a793_5bd1_e995;
    const ROTATION: u32 = 47;
    let mut word = value.cast_unsigned().wrapping_mul(FACTOR);
    word = (word ^ (word >> ROTATION)).wrapping_mul(FACTOR);
    let mut hash = seed.cast_unsigned() ^ FACTOR.wrapping_mul(8);
    hash = (hash ^ word).wrapping_mul(FACTOR);
    hash = (hash ^ (hash >> ROTATION)).wrapping_mul(FACTOR);
    (hash ^ (hash >> ROTATION)).cast_signed()
}

/// Return the position of `value` modulo `size` in a pseudorandom permutation of 0 to `size` - 1, chosen by `seed`;
/// `size` > 0. The rounds are pgbench's: each multiplies, mixes and rotates the lower and the upper part of the range,
/// up to a power of two, and then shifts the whole.
pub(crate) fn permute(value: i64, size: i64, seed: i64) -> i64 {
    const ROUNDS: usize = 6;
    if size < 2 {
        return 0;
    }
    let mut random = Prng::new(seed.cast_unsigned());
    let size = size.cast_unsigned();
    let width = size.ilog2();
    let mask = (1_u64 << width) - 1;
    let mut place = value.cast_unsigned() % size;
    for _ in 0..ROUNDS {
        place = mix(place, mask, width, &mut random);
        place = size - 1 - mix(size - 1 - place, mask, width, &mut random);
        place = (place + random.up_to(size - 1)) % size;
    }
    place.cast_signed()
}

/// Permute 0 to `mask`, a power of two minus one; greater values stay. Draws twice in any case.
fn mix(place: u64, mask: u64, width: u32, random: &mut Prng) -> u64 {
    let factor = (random.bits() & mask) | 1;
    let flipped = random.bits() & mask;
    if place > mask {
        return place;
    }
    let mixed = (place.wrapping_mul(factor) ^ flipped) & mask;
    ((mixed << 1) & mask) | (mixed >> (width - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    // The values of PostgreSQL's own tests of pgbench.
    #[test]
    fn hashes_are_those_of_pgbench() {
        assert_eq!(murmur2(10, 5432), -5_817_877_081_768_721_676);
        assert_eq!(fnv1a(10, 5432), -7_793_829_335_365_542_153);
    }

    #[test]
    fn a_permutation_is_that_of_pgbench() {
        let size = i64::MAX - 10;
        let expected = [
            520_382_784_483_822_430,
            1_143_715_004_660_802_862,
            447_293_596_416_496_998,
            916_527_772_266_572_956,
            2_763_809_008_686_028_849,
            8_648_551_549_198_294_572,
            4_542_876_852_200_565_125,
        ];
        for (below, place) in (1..).zip(expected) {
            assert_eq!(permute(size - below, size, 5432), place);
        }
    }

    #[test]
    fn a_permutation_hits_every_place_once() {
        for size in [1, 2, 3, 4, 5, 16, 97] {
            let mut places: Vec<i64> = (0..size).map(|value| permute(value, size, 3)).collect();
            places.sort_unstable();
            assert!(places.into_iter().eq(0..size));
        }
    }
}
