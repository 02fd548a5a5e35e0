//! The stored form of what was gathered, so that parts of a log can be gathered by other processes, or on other days.
//!
//! Numbers are stored in as few bytes as they need, and tables by key in ascending order: equal contents have equal
//! forms. A form is sealed with a version and a check sum. Whoever reads one must not trust it: nothing in this module
//! panics, and nothing takes more memory than the form has bytes, times a constant.

mod basics;
mod choices;
mod seal;

pub use seal::{VERSION, seal, unseal};

use crate::gather::example::Place;

/// Why bytes cannot be read as the stored form of logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FormError {
    /// Something else wrote them.
    #[error("it is not what uncork stores of logs")]
    Foreign,
    /// Another version of uncork wrote them.
    #[error(
        "another version of uncork stored it (form {0}, this one reads form {VERSION}): read the logs again"
    )]
    Version(u64),
    /// They were changed or cut.
    #[error("it is damaged: read the logs again")]
    Damaged,
}

/// A type that has a stored form.
pub trait Form: Sized {
    /// Append the stored form.
    fn write(&self, out: &mut Vec<u8>);

    /// Read what [`Form::write`] has appended.
    ///
    /// # Errors
    ///
    /// [`FormError::Damaged`] if it is not such a form.
    fn read(from: &mut Reader<'_>) -> Result<Self, FormError>;
}

/// Bytes that are read as a form.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    rest: &'a [u8],
    /// Added to the number of each file.
    files: u32,
}

impl<'a> Reader<'a> {
    /// Begin to read. `files` is added to the number of each file: so many other files come before.
    #[must_use]
    pub fn new(bytes: &'a [u8], files: u32) -> Self {
        Self { rest: bytes, files }
    }

    /// Return the next bytes.
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], FormError> {
        let (taken, rest) = self
            .rest
            .split_at_checked(count)
            .ok_or(FormError::Damaged)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Return the number of elements that follow, each of which has at least one byte.
    pub(crate) fn count(&mut self) -> Result<usize, FormError> {
        let count = usize::read(self)?;
        if count > self.rest.len() {
            return Err(FormError::Damaged);
        }
        Ok(count)
    }

    /// Return a file's number here from its number in the form.
    ///
    /// # Errors
    ///
    /// [`FormError::Damaged`] if there is no such number.
    pub fn file(&self, number: u32) -> Result<u32, FormError> {
        number.checked_add(self.files).ok_or(FormError::Damaged)
    }

    /// Whether everything has been read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }
}

impl Form for Place {
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
        self.1.write(out);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, FormError> {
        let number = u32::read(from)?;
        Ok((from.file(number)?, u64::read(from)?))
    }
}

/// Give a structure the form of its fields, one after the other; fields after the semicolon have their default.
macro_rules! form {
    ($name:ty { $($field:ident),* $(; $($default:ident),*)? }) => {
        impl crate::form::Form for $name {
            fn write(&self, out: &mut Vec<u8>) {
                $(crate::form::Form::write(&self.$field, out);)*
            }

            fn read(from: &mut crate::form::Reader<'_>) -> Result<Self, crate::form::FormError> {
                Ok(Self {
                    $($field: crate::form::Form::read(from)?,)*
                    $($($default: Default::default(),)*)?
                })
            }
        }
    };
}

/// Give pairs and triples the form of their parts. Each is named: the pair of a file and an offset in it has a form of
/// its own.
macro_rules! form_tuple {
    ($($name:ty { $($field:tt),* });* $(;)?) => {$(
        impl crate::form::Form for $name {
            fn write(&self, out: &mut Vec<u8>) {
                $(crate::form::Form::write(&self.$field, out);)*
            }

            fn read(from: &mut crate::form::Reader<'_>) -> Result<Self, crate::form::FormError> {
                Ok(($({
                    let _ = stringify!($field);
                    crate::form::Form::read(from)?
                }),*))
            }
        }
    )*};
}

/// Give a structure of one unnamed field the form of that field.
macro_rules! form_inner {
    ($name:ty) => {
        impl crate::form::Form for $name {
            fn write(&self, out: &mut Vec<u8>) {
                self.0.write(out);
            }

            fn read(from: &mut crate::form::Reader<'_>) -> Result<Self, crate::form::FormError> {
                crate::form::Form::read(from).map(Self)
            }
        }
    };
}

/// Give an enumeration without contents the form of a number.
macro_rules! form_choice {
    ($name:ty { $($choice:ident),* }) => {
        impl crate::form::Form for $name {
            fn write(&self, out: &mut Vec<u8>) {
                out.push(*self as u8);
            }

            fn read(from: &mut crate::form::Reader<'_>) -> Result<Self, crate::form::FormError> {
                let number = u8::read(from)?;
                [$(Self::$choice),*]
                    .into_iter()
                    .find(|one| *one as u8 == number)
                    .ok_or(crate::form::FormError::Damaged)
            }
        }
    };
}

pub(crate) use {form, form_choice, form_inner, form_tuple};

#[cfg(test)]
mod tests;
