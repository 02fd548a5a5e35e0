//! Identities of templates by `PostgreSQL`'s grammar, for Python: calls `libpg_query`, which Python has found.

use std::error::Error as _;
use std::ffi::{CStr, CString, c_char, c_void};
use std::mem::ManuallyDrop;

use libloading::{Library, Symbol};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use uncork_log::numbered_names;
use uncork_stacks::in_parts;

/// From this number of templates on, parsing them takes longer than starting threads.
const MANY: usize = 1_000;
/// Longer statements are not parsed, because that would take longer than reading the log.
const LONGEST: usize = 100_000;

/// `PgQueryFingerprintResult` of `pg_query.h`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Fingerprint {
    number: u64,
    text: *mut c_char,
    stderr: *mut c_char,
    error: *mut c_void,
}

type FingerprintOf = unsafe extern "C" fn(*const c_char) -> Fingerprint;
type Free = unsafe extern "C" fn(Fingerprint);

/// `PostgreSQL`'s grammar, from a library.
#[pyclass(frozen)]
pub(crate) struct Grammar {
    fingerprint: FingerprintOf,
    free: Free,
    /// Never closed: the library keeps memory for each thread until the thread ends.
    _library: ManuallyDrop<Library>,
}

#[pymethods]
impl Grammar {
    /// Load `libpg_query` from a file, or by its name.
    #[new]
    #[expect(unsafe_code, reason = "code of a library is called")]
    fn new(path: &str) -> PyResult<Self> {
        let failed = |error: libloading::Error| {
            let cause = error
                .source()
                .map_or_else(|| error.to_string(), ToString::to_string);
            PyOSError::new_err(cause) // it names the file
        };
        // SAFETY: what runs when libpg_query is loaded needs nothing from us. The types are those of `pg_query.h`,
        // which no version of libpg_query since 13 has changed; the requirements pin the package that brings it.
        unsafe {
            let library = Library::new(path).map_err(failed)?;
            let fingerprint: Symbol<'_, FingerprintOf> =
                library.get(b"pg_query_fingerprint").map_err(failed)?;
            let free: Symbol<'_, Free> = library
                .get(b"pg_query_free_fingerprint_result")
                .map_err(failed)?;
            Ok(Self {
                fingerprint: *fingerprint,
                free: *free,
                _library: ManuallyDrop::new(library),
            })
        }
    }

    /// Return the identity of each template; takes pairs of a template's text and one of its statements.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "arguments from Python arrive by value"
    )]
    fn identities(
        &self,
        py: Python<'_>,
        templates: Vec<(PyBackedBytes, PyBackedBytes)>,
    ) -> Vec<Option<String>> {
        let all: Vec<(&[u8], &[u8])> = templates
            .iter()
            .map(|(template, statement)| (&**template, &**statement))
            .collect();
        let some = |part: &[(&[u8], &[u8])]| -> Vec<Option<String>> {
            part.iter()
                .map(|(template, statement)| self.identity(template, statement))
                .collect()
        };
        py.detach(|| in_parts(&all, MANY, some))
    }
}

impl Grammar {
    /// Return an identity that all statements of a template share; `None` if the grammar rejects the statement.
    fn identity(&self, template: &[u8], statement: &[u8]) -> Option<String> {
        if statement.len() > LONGEST || str::from_utf8(statement).is_err() {
            return None;
        }
        let mut identity = self.fingerprint(&CString::new(statement).ok()?)?;
        for name in numbered_names(template) {
            identity.push(' ');
            identity.push_str(&String::from_utf8_lossy(name));
        }
        Some(identity)
    }

    #[expect(unsafe_code, reason = "code of a library is called")]
    fn fingerprint(&self, statement: &CStr) -> Option<String> {
        // SAFETY: the statement ends with a zero byte and lives until the call returns. The result is freed once, after
        // its text has been copied; the text is null or ends with a zero byte.
        unsafe {
            let found = (self.fingerprint)(statement.as_ptr());
            let text = (found.error.is_null() && !found.text.is_null())
                .then(|| CStr::from_ptr(found.text).to_string_lossy().into_owned());
            (self.free)(found);
            text
        }
    }
}
