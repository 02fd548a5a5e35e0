//! Parses pprof's protocol buffer, see `proto/profile.proto` of google/pprof.

use std::collections::HashMap;

use crate::error::ReadError;
use crate::profile::{Folder, Limits, Measure, Row, Stacks, clean};
use crate::proto::{Field, Reader};

/// Labels that name a route, in the order of preference.
const ROUTES: [&str; 4] = ["http.route", "route", "endpoint", "handler"];
/// The longest name of a route, in bytes.
const LONGEST_ROUTE: usize = 120;
/// The most kinds of values that a profile may have.
const MOST_MEASURES: usize = 64;

#[derive(Default)]
struct Parts<'a> {
    measures: Vec<(u64, u64)>,
    samples: Vec<Reader<'a>>,
    locations: HashMap<u64, Location>,
    functions: HashMap<u64, u64>,
    mappings: HashMap<u64, u64>,
    strings: Vec<&'a [u8]>,
    default: u64,
}

#[derive(Default)]
struct Location {
    address: u64,
    mapping: u64,
    /// Functions from the leaf on: those before the last were inlined.
    functions: Vec<u64>,
}

/// Whether bytes begin with a field of pprof.
pub(crate) fn may_begin(start: &[u8]) -> bool {
    start
        .first()
        .is_some_and(|key| matches!(key >> 3, 1..=14) && matches!(key & 7, 0 | 2))
}

pub(crate) fn looks_like(start: &[u8]) -> bool {
    // sample_type, then samples: a message of two small numbers comes first.
    matches!(start, [0x0a, 2..=8, 0x08, ..])
}

pub(crate) fn read(bytes: &[u8], limits: Limits) -> Result<Stacks, ReadError> {
    let parts = parts(bytes)?;
    if parts.measures.is_empty() || parts.strings.is_empty() {
        return Err(ReadError::whole(
            "it is not a pprof profile: it names no kinds of samples",
        ));
    }
    let measures = parts
        .measures
        .iter()
        .map(|(name, unit)| Ok(Measure::new(parts.string(*name)?, parts.string(*unit)?)))
        .collect::<Result<Vec<_>, ReadError>>()?;
    let mut stacks = Stacks::new(measures, false, limits);
    // Go's own tools show the last kind, unless the profile names another.
    stacks.default = parts
        .measures
        .iter()
        .position(|(name, _)| *name == parts.default && parts.default != 0)
        .unwrap_or(parts.measures.len() - 1);
    let mut folder = Folder::new(limits);
    let (mut ids, mut values, mut labels) = (Vec::new(), Vec::new(), Vec::new());
    for sample in &parts.samples {
        ids.clear();
        values.clear();
        labels.clear();
        let mut reader = *sample;
        while let Some(field) = reader.field()? {
            match field.number {
                1 => field.numbers(|id| ids.push(id))?,
                2 => field.numbers(|value| values.push(value.cast_signed()))?,
                3 => labels.push(pair(&field, [1, 2])?),
                _ => {}
            }
        }
        folder.clear();
        for id in ids.iter().rev() {
            parts.push(*id, &mut folder)?;
        }
        if ids.is_empty() {
            folder.push("[no stack]", false);
        }
        let stack = stacks.keep(folder.text())?;
        let route = stacks.keep(&parts.route(&labels)?)?;
        for (measure, value) in values.iter().enumerate().take(parts.measures.len()) {
            stacks.add(Row {
                measure,
                pid: None,
                process: 0,
                route,
                time_ns: None,
                stack,
                value: (*value).max(0),
            });
        }
    }
    Ok(stacks)
}

fn parts(bytes: &[u8]) -> Result<Parts<'_>, ReadError> {
    let mut parts = Parts::default();
    let mut reader = Reader::new(bytes, 0);
    while let Some(field) = reader.field()? {
        match field.number {
            1 if parts.measures.len() == MOST_MEASURES => {
                return Err(ReadError::byte(
                    field.offset,
                    format!("it names more than {MOST_MEASURES} kinds of samples"),
                ));
            }
            1 => {
                let [name, unit] = pair(&field, [1, 2])?;
                parts.measures.push((name, unit));
            }
            2 => parts.samples.push(field.bytes()?),
            3 => {
                let [id, file] = pair(&field, [1, 5])?;
                parts.mappings.insert(id, file);
            }
            4 => {
                let (id, location) = location(&field)?;
                parts.locations.insert(id, location);
            }
            5 => {
                let [id, name] = pair(&field, [1, 2])?;
                parts.functions.insert(id, name);
            }
            6 => parts.strings.push(field.bytes()?.rest),
            14 => parts.default = field.number()?,
            _ => {}
        }
    }
    Ok(parts)
}

/// Parse two numbers of a message.
fn pair(field: &Field<'_>, wanted: [u64; 2]) -> Result<[u64; 2], ReadError> {
    let mut found = [0, 0];
    let mut reader = field.bytes()?;
    while let Some(field) = reader.field()? {
        for (place, number) in wanted.iter().enumerate() {
            if field.number == *number {
                found[place] = field.number()?;
            }
        }
    }
    Ok(found)
}

fn location(field: &Field<'_>) -> Result<(u64, Location), ReadError> {
    let mut id = 0;
    let mut found = Location::default();
    let mut reader = field.bytes()?;
    while let Some(field) = reader.field()? {
        match field.number {
            1 => id = field.number()?,
            2 => found.mapping = field.number()?,
            3 => found.address = field.number()?,
            4 => found.functions.push(pair(&field, [1, 2])?[0]),
            _ => {}
        }
    }
    Ok((id, found))
}

impl Parts<'_> {
    fn string(&self, place: u64) -> Result<std::borrow::Cow<'_, str>, ReadError> {
        usize::try_from(place)
            .ok()
            .and_then(|place| self.strings.get(place))
            .map(|bytes| String::from_utf8_lossy(bytes))
            .ok_or_else(|| {
                ReadError::whole(format!(
                    "it is broken: it refers to text {place}, and has {}",
                    self.strings.len()
                ))
            })
    }

    /// Return the route that labels name, else controller and action; empty if they name neither.
    fn route(&self, labels: &[[u64; 2]]) -> Result<String, ReadError> {
        let mut named = Vec::new();
        for [key, value] in labels {
            // Labels with numbers have no text.
            if *value != 0 {
                named.push((self.string(*key)?, self.string(*value)?));
            }
        }
        let value = |wanted: &str| {
            let found = named.iter().find(|(key, _)| key == wanted);
            found.map(|(_, value)| value.as_ref())
        };
        let route = ROUTES.into_iter().find_map(value);
        let parts = ["controller", "action"].into_iter().filter_map(value);
        let name = route.map_or_else(|| parts.collect::<Vec<_>>().join("#"), str::to_owned);
        Ok(if name.is_empty() {
            name
        } else {
            clean(&name, LONGEST_ROUTE)
        })
    }

    /// Add the frames of a location, inlined ones below the function that they are in.
    fn push(&self, id: u64, folder: &mut Folder) -> Result<(), ReadError> {
        let Some(location) = self.locations.get(&id) else {
            return Err(ReadError::whole(format!(
                "it is broken: a sample refers to location {id}, which is not there"
            )));
        };
        let file = match self.mappings.get(&location.mapping) {
            Some(file) => self.string(*file)?,
            None => std::borrow::Cow::Borrowed(""),
        };
        let kernel = file.starts_with("[kernel");
        for function in location.functions.iter().rev() {
            match self.functions.get(function) {
                Some(name) => folder.push(&self.string(*name)?, kernel),
                None => folder.push("[unknown]", kernel),
            }
        }
        if location.functions.is_empty() {
            let file = file.rsplit('/').next().unwrap_or_default();
            if file.is_empty() {
                folder.push(&format!("0x{:x}", location.address), kernel);
            } else {
                folder.push(&format!("[{}]", file.trim_matches(['[', ']'])), kernel);
            }
        }
        Ok(())
    }
}
