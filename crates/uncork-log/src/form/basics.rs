//! The stored form of numbers, texts, lists and tables.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{BuildHasher, Hash};

use super::{Form, FormError, Reader};

impl Form for u8 {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(*self);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, FormError> {
        Ok(from.take(1)?[0])
    }
}

impl Form for u64 {
    fn write(&self, out: &mut Vec<u8>) {
        let mut left = *self;
        while left >= 0x80 {
            out.push(low(left) | 0x80);
            left >>= 7;
        }
        out.push(low(left));
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, FormError> {
        let mut number = 0;
        for place in 0..10 {
            let byte = u8::read(from)?;
            number |= Self::from(byte & 0x7f) << (7 * place);
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(FormError::Damaged)
    }
}

/// Return the seven lowest bits.
fn low(number: u64) -> u8 {
    number.to_le_bytes()[0] & 0x7f
}

macro_rules! numbers {
    ($($name:ty),*) => {$(
        impl Form for $name {
            fn write(&self, out: &mut Vec<u8>) {
                u64::from(*self).write(out);
            }

            fn read(from: &mut Reader<'_>) -> Result<Self, FormError> {
                Self::try_from(u64::read(from)?).map_err(|_| FormError::Damaged)
            }
        }
    )*};
}

numbers!(u16, u32);

impl Form for usize {
    fn write(&self, out: &mut Vec<u8>) {
        (*self as u64).write(out);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, FormError> {
        Self::try_from(u64::read(from)?).map_err(|_| FormError::Damaged)
    }
}

impl Form for i64 {
    fn write(&self, out: &mut Vec<u8>) {
        ((*self << 1) ^ (*self >> 63)).cast_unsigned().write(out);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, FormError> {
        let number = u64::read(from)?;
        Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }
}

impl Form for f64 {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_le_bytes());
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, FormError> {
        let bytes = from.take(8)?.try_into();
        bytes
            .map(Self::from_le_bytes)
            .map_err(|_| FormError::Damaged)
    }
}

impl Form for bool {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, FormError> {
        match u8::read(from)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(FormError::Damaged),
        }
    }
}

impl Form for String {
    fn write(&self, out: &mut Vec<u8>) {
        self.len().write(out);
        out.extend_from_slice(self.as_bytes());
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, FormError> {
        let count = from.count()?;
        let bytes = from.take(count)?.to_vec();
        Self::from_utf8(bytes).map_err(|_| FormError::Damaged)
    }
}

impl<T: Form> Form for Vec<T> {
    fn write(&self, out: &mut Vec<u8>) {
        self.len().write(out);
        for one in self {
            one.write(out);
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, FormError> {
        let count = from.count()?;
        (0..count).map(|_| T::read(from)).collect()
    }
}

impl<T: Form> Form for Box<[T]> {
    fn write(&self, out: &mut Vec<u8>) {
        self.len().write(out);
        for one in self {
            one.write(out);
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, FormError> {
        Ok(Vec::read(from)?.into())
    }
}

impl<T: Form> Form for Box<T> {
    fn write(&self, out: &mut Vec<u8>) {
        T::write(self, out);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, FormError> {
        T::read(from).map(Self::new)
    }
}

impl<T: Form> Form for Option<T> {
    fn write(&self, out: &mut Vec<u8>) {
        self.is_some().write(out);
        if let Some(one) = self {
            one.write(out);
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, FormError> {
        bool::read(from)?.then(|| T::read(from)).transpose()
    }
}

impl<T: Form, const N: usize> Form for [T; N] {
    fn write(&self, out: &mut Vec<u8>) {
        for one in self {
            one.write(out);
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, FormError> {
        let all: Vec<T> = (0..N).map(|_| T::read(from)).collect::<Result<_, _>>()?;
        all.try_into().map_err(|_| FormError::Damaged)
    }
}

impl<K: Form + Ord + Hash, V: Form, S: BuildHasher + Default> Form for HashMap<K, V, S> {
    fn write(&self, out: &mut Vec<u8>) {
        let mut all: Vec<(&K, &V)> = self.iter().collect();
        all.sort_unstable_by_key(|one| one.0);
        all.len().write(out);
        for (key, value) in all {
            key.write(out);
            value.write(out);
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, FormError> {
        let count = from.count()?;
        (0..count)
            .map(|_| Ok((K::read(from)?, V::read(from)?)))
            .collect()
    }
}

impl<K: Form + Ord, V: Form> Form for BTreeMap<K, V> {
    fn write(&self, out: &mut Vec<u8>) {
        self.len().write(out);
        for (key, value) in self {
            key.write(out);
            value.write(out);
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, FormError> {
        let count = from.count()?;
        (0..count)
            .map(|_| Ok((K::read(from)?, V::read(from)?)))
            .collect()
    }
}

impl<K: Form + Ord + Hash, S: BuildHasher + Default> Form for HashSet<K, S> {
    fn write(&self, out: &mut Vec<u8>) {
        let mut all: Vec<&K> = self.iter().collect();
        all.sort_unstable();
        all.len().write(out);
        for key in all {
            key.write(out);
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, FormError> {
        let count = from.count()?;
        (0..count).map(|_| K::read(from)).collect()
    }
}
