//! The folded table that every format ends in.

use std::collections::HashMap;
use std::rc::Rc;

use ahash::RandomState;

use crate::error::ReadError;

/// What the name of a frame of the kernel ends with, as flame graphs have always marked it.
pub const KERNEL: &str = "_[k]";

/// How much a profile may hold; what comes in is somebody else's.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes after unpacking.
    pub unpacked: usize,
    /// Bytes of all different stacks together.
    pub stacks: usize,
    /// Frames of one stack; of a deeper one those nearest to the root are kept.
    pub depth: usize,
    /// Bytes of the name of one frame; a longer one is cut.
    pub name: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            unpacked: 1 << 30,
            stacks: 1 << 29,
            depth: 1_024,
            name: 4_096,
        }
    }
}

/// What was counted, and in what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measure {
    /// Such as `cpu` or `inuse_space`.
    pub name: String,
    /// Such as `samples`, `nanoseconds` or `bytes`.
    pub unit: String,
}

impl Measure {
    pub(crate) fn new(name: impl Into<String>, unit: impl Into<String>) -> Self {
        Self {
            name: clean(&name.into(), 200),
            unit: clean(&unit.into(), 40),
        }
    }
}

/// One stack and how often it was seen. `process` and `stack` are places in the texts of
/// [`Stacks`]; the first text is the empty one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Place in the measures.
    pub measure: usize,
    /// Process, if the format tells it.
    pub pid: Option<u32>,
    /// Name of the process, or of the thread.
    pub process: usize,
    /// When, if that was asked for and the format tells it.
    pub time_ns: Option<i64>,
    /// The stack.
    pub stack: usize,
    /// How much of the measure.
    pub value: i64,
}

/// A profile: one row for each different stack of each process and measure, unless times were
/// asked for: then one for each sample.
#[derive(Debug)]
pub struct Stacks {
    /// What was counted.
    pub measures: Vec<Measure>,
    /// The measure that the profile itself puts first.
    pub default: usize,
    /// Texts that rows refer to.
    pub texts: Vec<Rc<str>>,
    /// The rows, in the order in which stacks were first seen.
    pub rows: Vec<Row>,
    known: HashMap<Rc<str>, usize, RandomState>,
    places: HashMap<(usize, Option<u32>, usize, usize), usize, RandomState>,
    timed: bool,
    bytes: usize,
    limits: Limits,
}

impl Stacks {
    pub(crate) fn new(measures: Vec<Measure>, timed: bool, limits: Limits) -> Self {
        let empty: Rc<str> = Rc::from("");
        Self {
            measures,
            default: 0,
            texts: vec![Rc::clone(&empty)],
            rows: Vec::new(),
            known: [(empty, 0)].into_iter().collect(),
            places: HashMap::default(),
            timed,
            bytes: 0,
            limits,
        }
    }

    /// Returns the text at a place of a row.
    #[must_use]
    pub fn text(&self, place: usize) -> &str {
        &self.texts[place]
    }

    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    /// Keeps a text once and returns its place.
    pub(crate) fn keep(&mut self, text: &str) -> Result<usize, ReadError> {
        if let Some(place) = self.known.get(text) {
            return Ok(*place);
        }
        self.bytes += text.len();
        if self.bytes > self.limits.stacks {
            return Err(ReadError::whole(format!(
                "its stacks take more than {} MB when they are written out",
                self.limits.stacks >> 20
            )));
        }
        let kept: Rc<str> = Rc::from(text);
        self.texts.push(Rc::clone(&kept));
        self.known.insert(kept, self.texts.len() - 1);
        Ok(self.texts.len() - 1)
    }

    /// Counts a stack; nothing for a value of zero.
    pub(crate) fn add(&mut self, row: Row) {
        if row.value == 0 {
            return;
        }
        if self.timed && row.time_ns.is_some() {
            self.rows.push(row);
            return;
        }
        let key = (row.measure, row.pid, row.process, row.stack);
        if let Some(place) = self.places.get(&key) {
            let known = &mut self.rows[*place];
            known.value = known.value.saturating_add(row.value);
        } else {
            self.places.insert(key, self.rows.len());
            self.rows.push(Row {
                time_ns: None,
                ..row
            });
        }
    }
}

/// Puts the names of frames together, from the root on.
pub(crate) struct Folder {
    text: String,
    depth: usize,
    limits: Limits,
}

impl Folder {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            text: String::new(),
            depth: 0,
            limits,
        }
    }

    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.depth = 0;
    }

    pub(crate) fn push(&mut self, name: &str, kernel: bool) {
        self.depth += 1;
        if self.depth > self.limits.depth {
            return;
        }
        if !self.text.is_empty() {
            self.text.push(';');
        }
        push_clean(&mut self.text, name, self.limits.name);
        if kernel && !name.ends_with(KERNEL) {
            self.text.push_str(KERNEL);
        }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

/// Returns a name without what would tear a folded line apart, cut to a length in bytes.
pub(crate) fn clean(name: &str, most: usize) -> String {
    let mut text = String::new();
    push_clean(&mut text, name, most);
    text
}

fn push_clean(text: &mut String, name: &str, most: usize) {
    let name = name.trim();
    let mut end = name.len().min(most);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    let name = &name[..end];
    if name.is_empty() {
        text.push_str("[unknown]");
    } else if name.contains(|one: char| one == ';' || one.is_control()) {
        text.extend(name.chars().map(|one| match one {
            ';' => ',',
            one if one.is_control() => ' ',
            one => one,
        }));
    } else {
        text.push_str(name);
    }
}
