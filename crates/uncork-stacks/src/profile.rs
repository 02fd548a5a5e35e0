//! The folded table that all formats are read to.

use std::collections::HashMap;

use ahash::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use crate::error::ReadError;
use crate::folded::Folded;

/// The suffix of a kernel frame's name, as usual in flame graphs.
pub const KERNEL: &str = "_[k]";

/// Limits of a profile, because profiles come from untrusted sources.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes after decompression.
    pub unpacked: usize,
    /// Total bytes of all different stacks.
    pub stacks: usize,
    /// Frames of one stack; of a deeper one the frames nearest to the root are kept.
    pub depth: usize,
    /// Bytes of a frame's name; a longer one is cut.
    pub name: usize,
}

impl Limits {
    pub(crate) fn too_much(self) -> ReadError {
        ReadError::whole(format!(
            "its stacks take more than {} MB when they are written out",
            self.stacks >> 20
        ))
    }
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

/// What was measured, and its unit.
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

/// One stack and its value. `process`, `route` and `stack` are indexes into the texts of [`Stacks`]; the
/// first text is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Index of the measure.
    pub measure: usize,
    /// Process ID, if the format contains it.
    pub pid: Option<u32>,
    /// Name of the process, or of the thread.
    pub process: usize,
    /// The route of the application for which it ran, if the profile has labels.
    pub route: usize,
    /// Time, if requested and the format contains it.
    pub time_ns: Option<i64>,
    /// Index of the stack.
    pub stack: usize,
    /// Value of the measure.
    pub value: i64,
}

/// What rows that are added up have in common: measure, process ID, process, route and stack.
type Key = (usize, Option<u32>, usize, usize, usize);

/// A profile: one row for each different stack of each process and measure. Samples with requested
/// times each keep a row of their own, and so do lines that were folded already.
#[derive(Debug)]
pub struct Stacks {
    /// The measures.
    pub measures: Vec<Measure>,
    /// The index of the profile's default measure.
    pub default: usize,
    /// The rows, in the order in which stacks first appeared.
    pub rows: Vec<Row>,
    /// Instead of rows, stacks that were folded already: of the first measure, without process or
    /// time.
    pub folded: Vec<Folded>,
    /// All texts end to end, and where each ends.
    texts: String,
    ends: Vec<usize>,
    known: HashTable<usize>,
    hasher: RandomState,
    places: HashMap<Key, usize, RandomState>,
    timed: bool,
    limits: Limits,
}

impl Stacks {
    pub(crate) fn new(measures: Vec<Measure>, timed: bool, limits: Limits) -> Self {
        let mut stacks = Self {
            measures,
            default: 0,
            rows: Vec::new(),
            folded: Vec::new(),
            texts: String::new(),
            ends: Vec::new(),
            known: HashTable::new(),
            hasher: RandomState::new(),
            places: HashMap::default(),
            timed,
            limits,
        };
        // The first text is the empty one, for rows without a process.
        stacks.ends.push(0);
        let (hash, hasher) = (stacks.hasher.hash_one(""), stacks.hasher.clone());
        stacks.known.insert_unique(hash, 0, |_| hasher.hash_one(""));
        stacks
    }

    /// Return the text at an index.
    #[must_use]
    pub fn text(&self, place: usize) -> &str {
        text_at(&self.texts, &self.ends, place)
    }

    /// Return the stacks and their values, in order.
    pub fn values(&self) -> impl Iterator<Item = (&str, i64)> + Clone {
        let rows = self.rows.iter();
        rows.map(|row| (self.text(row.stack), row.value))
            .chain(self.folded.iter().flat_map(Folded::iter))
    }

    /// Return the total bytes of all texts.
    #[must_use]
    pub fn text_bytes(&self) -> usize {
        let folded = self.folded.iter().map(|block| block.texts.len());
        self.texts.len() + folded.sum::<usize>()
    }

    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    /// Store a text once and return its index.
    pub(crate) fn keep(&mut self, text: &str) -> Result<usize, ReadError> {
        let (texts, ends, hasher) = (&self.texts, &self.ends, &self.hasher);
        let found = self.known.entry(
            hasher.hash_one(text),
            |place| text_at(texts, ends, *place) == text,
            |place| hasher.hash_one(text_at(texts, ends, *place)),
        );
        let place = match found {
            Entry::Occupied(known) => return Ok(*known.get()),
            Entry::Vacant(free) => *free.insert(self.ends.len()).get(),
        };
        self.texts.push_str(text);
        self.ends.push(self.texts.len());
        if self.texts.len() > self.limits.stacks {
            return Err(self.limits.too_much());
        }
        Ok(place)
    }

    /// Count a stack, unless its value is zero.
    pub(crate) fn add(&mut self, row: Row) {
        if row.value == 0 {
            return;
        }
        if self.timed && row.time_ns.is_some() {
            self.rows.push(row);
            return;
        }
        let key = (row.measure, row.pid, row.process, row.route, row.stack);
        let place = *self.places.entry(key).or_insert(self.rows.len());
        if let Some(known) = self.rows.get_mut(place) {
            known.value = known.value.saturating_add(row.value);
        } else {
            self.rows.push(Row {
                time_ns: None,
                ..row
            });
        }
    }
}

fn text_at<'a>(texts: &'a str, ends: &[usize], place: usize) -> &'a str {
    let start = place.checked_sub(1).map_or(0, |before| ends[before]);
    &texts[start..ends[place]]
}

/// Joins the names of frames, from the root on.
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

/// Return a name without characters that are special in folded lines, cut to a length in bytes.
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
