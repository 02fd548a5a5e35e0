//! Protocol buffers, as far as pprof needs them: read field by field in place, so that errors have
//! a position and nothing is copied.

use crate::error::ReadError;

/// One field: its number, its position, and its value.
pub(crate) struct Field<'a> {
    pub(crate) number: u64,
    pub(crate) offset: usize,
    pub(crate) value: Value<'a>,
}

pub(crate) enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Field<'a> {
    /// Return its number, or an error if it has another type.
    pub(crate) fn number(&self) -> Result<u64, ReadError> {
        match self.value {
            Value::Number(number) => Ok(number),
            Value::Bytes(_) => Err(self.wrong("bytes", "a number")),
        }
    }

    /// Return its bytes and where they begin.
    pub(crate) fn bytes(&self) -> Result<Reader<'a>, ReadError> {
        match self.value {
            Value::Bytes(bytes) => Ok(Reader::new(bytes, self.offset)),
            Value::Number(_) => Err(self.wrong("a number", "bytes")),
        }
    }

    /// Call a function for each number of a repeated field, packed or not.
    pub(crate) fn numbers(&self, mut each: impl FnMut(u64)) -> Result<(), ReadError> {
        match self.value {
            Value::Number(number) => each(number),
            Value::Bytes(bytes) => {
                let mut reader = Reader::new(bytes, self.offset);
                while !reader.rest.is_empty() {
                    each(reader.varint()?);
                }
            }
        }
        Ok(())
    }

    fn wrong(&self, found: &str, expected: &str) -> ReadError {
        ReadError::byte(
            self.offset,
            format!(
                "field {} holds {found}, not {expected}: this is not a pprof profile",
                self.number
            ),
        )
    }
}

/// Bytes that are read from the front, with their position in the file.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    pub(crate) rest: &'a [u8],
    offset: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8], offset: usize) -> Self {
        Self {
            rest: bytes,
            offset,
        }
    }

    /// Return the next field; `None` at the end.
    pub(crate) fn field(&mut self) -> Result<Option<Field<'a>>, ReadError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let start = self.offset;
        let key = self.varint()?;
        let (number, kind) = (key >> 3, key & 7);
        if number == 0 {
            return Err(ReadError::byte(
                start,
                "a field has the number 0: this is not a pprof profile",
            ));
        }
        let mut offset = self.offset;
        let value = match kind {
            0 => Value::Number(self.varint()?),
            1 => Value::Bytes(self.take(8)?),
            2 => {
                let length = self.varint()?;
                offset = self.offset;
                Value::Bytes(self.take(usize::try_from(length).unwrap_or(usize::MAX))?)
            }
            5 => Value::Bytes(self.take(4)?),
            _ => {
                return Err(ReadError::byte(
                    start,
                    format!("a field of the unknown kind {kind}: this is not a pprof profile"),
                ));
            }
        };
        Ok(Some(Field {
            number,
            offset,
            value,
        }))
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], ReadError> {
        let Some((taken, rest)) = self.rest.split_at_checked(length) else {
            return Err(ReadError::byte(
                self.offset,
                format!(
                    "a field of {length} bytes is cut off: {} are left",
                    self.rest.len()
                ),
            ));
        };
        self.rest = rest;
        self.offset += length;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<u64, ReadError> {
        let mut value = 0_u64;
        for (place, byte) in self.rest.iter().enumerate().take(10) {
            value |= u64::from(byte & 0x7f) << (7 * place);
            if byte & 0x80 == 0 {
                self.rest = &self.rest[place + 1..];
                self.offset += place + 1;
                return Ok(value);
            }
        }
        Err(ReadError::byte(
            self.offset,
            "a number is cut off, or too long",
        ))
    }
}

/// Writes fields.
#[derive(Default)]
pub(crate) struct Writer(pub(crate) Vec<u8>);

impl Writer {
    pub(crate) fn number(&mut self, field: u64, value: u64) {
        if value != 0 {
            self.varint(field << 3);
            self.varint(value);
        }
    }

    pub(crate) fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    pub(crate) fn message(&mut self, field: u64, write: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        write(&mut inner);
        self.bytes(field, &inner.0);
    }

    pub(crate) fn packed(&mut self, field: u64, values: impl IntoIterator<Item = u64>) {
        let mut inner = Self::default();
        values.into_iter().for_each(|value| inner.varint(value));
        self.bytes(field, &inner.0);
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.0.push(value.to_le_bytes()[0]);
    }
}
