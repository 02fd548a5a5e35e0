//! Writes folded stacks in the formats of other tools.

use std::collections::HashMap;

use serde_json::json;

use crate::profile::{KERNEL, Measure};
use crate::proto::Writer;

/// Return one folded stack and its value per line.
pub fn to_folded<'a>(stacks: impl IntoIterator<Item = (&'a str, i64)>) -> Vec<u8> {
    let mut text = Vec::new();
    for (stack, value) in stacks {
        text.extend_from_slice(stack.as_bytes());
        text.push(b' ');
        text.extend_from_slice(value.to_string().as_bytes());
        text.push(b'\n');
    }
    text
}

/// Return speedscope's JSON.
pub fn to_speedscope<'a>(
    name: &str,
    measure: &Measure,
    stacks: impl IntoIterator<Item = (&'a str, i64)>,
) -> Vec<u8> {
    let mut numbers = Numbers::default();
    let (mut samples, mut weights, mut total) = (Vec::new(), Vec::new(), 0_i64);
    for (stack, value) in stacks {
        samples.push(
            stack
                .split(';')
                .map(|frame| numbers.of(frame) - 1)
                .collect::<Vec<_>>(),
        );
        weights.push(value);
        total = total.saturating_add(value);
    }
    let frames: Vec<_> = numbers
        .names
        .iter()
        .map(|frame| match frame.strip_suffix(KERNEL) {
            Some(name) => json!({"name": name, "file": "[kernel]"}),
            None => json!({"name": frame}),
        })
        .collect();
    let unit = match measure.unit.as_str() {
        unit @ ("nanoseconds" | "bytes") => unit,
        _ => "none",
    };
    let file = json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": "uncork",
        "name": name,
        "activeProfileIndex": 0,
        "shared": {"frames": frames},
        "profiles": [{
            "type": "sampled",
            "name": measure.name,
            "unit": unit,
            "startValue": 0,
            "endValue": total,
            "samples": samples,
            "weights": weights,
        }],
    });
    file.to_string().into_bytes()
}

/// Return a pprof protocol buffer, uncompressed, which its tools accept.
pub fn to_pprof<'a>(
    measure: &Measure,
    stacks: impl IntoIterator<Item = (&'a str, i64)>,
) -> Vec<u8> {
    // Texts: the empty one first, as the format requires, then the measure's, then names of frames.
    let (mut numbers, mut file) = (Numbers::default(), Writer::default());
    file.message(1, |kind| {
        kind.number(1, 1);
        kind.number(2, 2);
    });
    for (stack, value) in stacks {
        let locations: Vec<u64> = stack
            .rsplit(';')
            .map(|frame| numbers.of(frame) as u64)
            .collect();
        file.message(2, |sample| {
            sample.packed(1, locations);
            sample.packed(2, [value.cast_unsigned()]);
        });
    }
    let kernel = numbers.names.iter().any(|frame| frame.ends_with(KERNEL));
    let last = numbers.names.len() as u64 + 3;
    if kernel {
        file.message(3, |mapping| {
            mapping.number(1, 1);
            mapping.number(5, last);
            mapping.number(7, 1);
        });
    }
    for (id, frame) in (1_u64..).zip(&numbers.names) {
        file.message(4, |location| {
            location.number(1, id);
            if frame.ends_with(KERNEL) {
                location.number(2, 1);
            }
            location.message(4, |line| line.number(1, id));
        });
        file.message(5, |function| {
            function.number(1, id);
            function.number(2, id + 2);
            function.number(3, id + 2);
        });
    }
    for text in ["", &measure.name, &measure.unit] {
        file.bytes(6, text.as_bytes());
    }
    for frame in &numbers.names {
        file.bytes(6, frame.strip_suffix(KERNEL).unwrap_or(frame).as_bytes());
    }
    if kernel {
        file.bytes(6, b"[kernel.kallsyms]");
    }
    file.number(14, 1);
    file.0
}

/// Numbers of names, from 1.
#[derive(Default)]
struct Numbers<'a> {
    names: Vec<&'a str>,
    known: HashMap<&'a str, usize>,
}

impl<'a> Numbers<'a> {
    fn of(&mut self, name: &'a str) -> usize {
        *self.known.entry(name).or_insert_with(|| {
            self.names.push(name);
            self.names.len()
        })
    }
}
