//! Parses Pyroscope's JSON: a flame graph level by level, with numbers for each bar.
//!
//! A bar has four numbers: its distance from the end of the bar before it, its width, its own part
//! of the width, and the index of its name. Its parent is the bar above it in the level before.

use serde::Deserialize;

use crate::error::ReadError;
use crate::profile::{Folder, Limits, Measure, Row, Stacks};

#[derive(Deserialize)]
pub(crate) struct File {
    flamebearer: Flamebearer,
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Flamebearer {
    names: Vec<String>,
    levels: Vec<Vec<i64>>,
}

#[derive(Deserialize, Default)]
struct Metadata {
    #[serde(default)]
    format: String,
    #[serde(default)]
    units: String,
    #[serde(default)]
    name: String,
}

/// Numbers per bar.
const BAR: usize = 4;

#[derive(Clone, Copy)]
struct Bar {
    start: i64,
    end: i64,
    own: i64,
    name: usize,
    /// Index in the level above; unused in the first level.
    parent: usize,
}

pub(crate) fn read(file: &File, limits: Limits) -> Result<Stacks, ReadError> {
    if file.metadata.format == "double" {
        return Err(ReadError::whole(
            "it is Pyroscope's comparison of two profiles; export each alone and use --against",
        ));
    }
    let units = file.metadata.units.as_str();
    let name = file.metadata.name.rsplit('.').next().unwrap_or_default();
    let name = name.split('{').next().unwrap_or_default();
    let measure = Measure::new(
        if name.is_empty() { "cpu" } else { name },
        if units.is_empty() { "samples" } else { units },
    );
    let mut stacks = Stacks::new(vec![measure], false, limits);
    let mut folder = Folder::new(limits);
    let mut levels: Vec<Vec<Bar>> = Vec::new();
    for (depth, numbers) in file
        .flamebearer
        .levels
        .iter()
        .take(limits.depth)
        .enumerate()
    {
        let bars = bars(depth, numbers, levels.last().map(Vec::as_slice))?;
        levels.push(bars);
        for place in 0..levels[depth].len() {
            let bar = levels[depth][place];
            if bar.own <= 0 {
                continue;
            }
            let stack = path(&levels, depth, place);
            folder.clear();
            for number in &stack {
                let Some(name) = file.flamebearer.names.get(*number) else {
                    return Err(ReadError::whole(format!(
                        "level {depth}: it refers to name {number}, and there are {}",
                        file.flamebearer.names.len()
                    )));
                };
                folder.push(name, false);
            }
            if stack.is_empty() {
                folder.push("[no stack]", false);
            }
            let stack = stacks.keep(folder.text())?;
            stacks.add(Row {
                measure: 0,
                pid: None,
                process: 0,
                route: 0,
                time_ns: None,
                stack,
                value: bar.own,
            });
        }
    }
    Ok(stacks)
}

/// Return the names from the root on, without the root, which stands for the total.
fn path(levels: &[Vec<Bar>], depth: usize, place: usize) -> Vec<usize> {
    let mut names = Vec::with_capacity(depth);
    let mut place = place;
    for level in levels[1..=depth].iter().rev() {
        names.push(level[place].name);
        place = level[place].parent;
    }
    names.reverse();
    names
}

fn bars(depth: usize, numbers: &[i64], above: Option<&[Bar]>) -> Result<Vec<Bar>, ReadError> {
    if !numbers.len().is_multiple_of(BAR) {
        return Err(ReadError::whole(format!(
            "level {depth} holds {} numbers; four make a bar",
            numbers.len()
        )));
    }
    let mut bars = Vec::with_capacity(numbers.len() / BAR);
    let (mut end, mut parent) = (0_i64, 0);
    for bar in numbers.chunks_exact(BAR) {
        let wrong = || {
            ReadError::whole(format!(
                "level {depth}: bar {} does not lie under one of the level above",
                bars.len()
            ))
        };
        let (Some(start), Ok(name)) = (end.checked_add(bar[0]), usize::try_from(bar[3])) else {
            return Err(wrong());
        };
        let Some(stop) = start.checked_add(bar[1]).filter(|stop| *stop >= start) else {
            return Err(wrong());
        };
        end = stop;
        if let Some(above) = above {
            while above
                .get(parent)
                .is_some_and(|one| one.end <= start && one.end < stop)
            {
                parent += 1;
            }
            if above
                .get(parent)
                .is_none_or(|one| start < one.start || stop > one.end)
            {
                return Err(wrong());
            }
        }
        bars.push(Bar {
            start,
            end,
            own: bar[2],
            name,
            parent,
        });
    }
    Ok(bars)
}
