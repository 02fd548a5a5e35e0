//! What surrounds a stored form: a mark, its version, and a check sum.

use twox_hash::XxHash3_128;

use super::{Form as _, FormError, Reader};

/// The version of the form. Increase it with every change: only the version that wrote a form reads it.
pub const VERSION: u64 = 4;

/// How every stored form begins.
const MARK: &[u8] = b"uncork logs\n";
/// The length of the check sum, in bytes.
const SUM: usize = 16;

/// Seal a form: add the mark, the version and the check sum.
#[must_use]
pub fn seal(body: &[u8]) -> Vec<u8> {
    let mut sealed = MARK.to_vec();
    VERSION.write(&mut sealed);
    sealed.extend_from_slice(&XxHash3_128::oneshot(body).to_le_bytes());
    sealed.extend_from_slice(body);
    sealed
}

/// Return the form that was sealed.
///
/// # Errors
///
/// Why it is none that this version can read.
pub fn unseal(sealed: &[u8]) -> Result<&[u8], FormError> {
    let rest = sealed.strip_prefix(MARK).ok_or(FormError::Foreign)?;
    let mut reader = Reader::new(rest, 0);
    let version = u64::read(&mut reader)?;
    if version != VERSION {
        return Err(FormError::Version(version));
    }
    let sum = reader.take(SUM)?;
    let body = reader.rest;
    if XxHash3_128::oneshot(body).to_le_bytes() != *sum {
        return Err(FormError::Damaged);
    }
    Ok(body)
}
