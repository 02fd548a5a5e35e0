//! Parses speedscope's JSON, see its `file-format-spec.ts`: profiles of samples, or of frames that open and close.

use serde::Deserialize;

use crate::error::ReadError;
use crate::profile::{Folder, Limits, Measure, Row, Stacks};

#[derive(Deserialize)]
pub(crate) struct File {
    shared: Shared,
    profiles: Vec<Profile>,
    #[serde(rename = "activeProfileIndex")]
    active: Option<usize>,
}

#[derive(Deserialize)]
struct Shared {
    frames: Vec<Frame>,
}

#[derive(Deserialize)]
struct Frame {
    name: String,
}

#[derive(Deserialize)]
struct Profile {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    unit: String,
    #[serde(default)]
    samples: Vec<Vec<usize>>,
    #[serde(default)]
    weights: Vec<f64>,
    #[serde(default)]
    events: Vec<Event>,
}

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: char,
    frame: usize,
    at: f64,
}

pub(crate) fn read(file: &File, limits: Limits) -> Result<Stacks, ReadError> {
    let mut measures: Vec<Measure> = Vec::new();
    let mut numbers = Vec::new();
    for profile in &file.profiles {
        // Threads of one kind are merged; each is a process of its own in the rows.
        let (unit, _) = unit(&profile.unit);
        let wanted = Measure::new(if unit == "bytes" { "bytes" } else { "time" }, unit);
        let place = measures.iter().position(|one| *one == wanted);
        numbers.push(place.unwrap_or(measures.len()));
        if place.is_none() {
            measures.push(wanted);
        }
    }
    let mut stacks = Stacks::new(measures, false, limits);
    stacks.default = file
        .active
        .and_then(|active| numbers.get(active).copied())
        .unwrap_or(0);
    for (place, (profile, measure)) in file.profiles.iter().zip(numbers).enumerate() {
        let process = if file.profiles.len() == 1 {
            0
        } else {
            stacks.keep(&crate::profile::clean(&profile.name, 200))?
        };
        let mut reading = Reading {
            frames: &file.shared.frames,
            profile: place,
            measure,
            process,
            scale: unit(&profile.unit).1,
            folder: Folder::new(limits),
        };
        match profile.kind.as_str() {
            "sampled" => reading.sampled(profile, &mut stacks)?,
            "evented" => reading.evented(profile, &mut stacks)?,
            other => {
                return Err(ReadError::whole(format!(
                    "profile {place} is of type \"{other}\", and sampled and evented are known"
                )));
            }
        }
    }
    Ok(stacks)
}

/// Return the unit of whole numbers, and the factor from the file's.
fn unit(word: &str) -> (&str, f64) {
    match word {
        "nanoseconds" => ("nanoseconds", 1.0),
        "microseconds" => ("nanoseconds", 1e3),
        "milliseconds" => ("nanoseconds", 1e6),
        "seconds" => ("nanoseconds", 1e9),
        "bytes" => ("bytes", 1.0),
        _ => ("samples", 1.0),
    }
}

struct Reading<'a> {
    frames: &'a [Frame],
    profile: usize,
    measure: usize,
    process: usize,
    scale: f64,
    folder: Folder,
}

impl Reading<'_> {
    fn sampled(&mut self, profile: &Profile, stacks: &mut Stacks) -> Result<(), ReadError> {
        if !profile.weights.is_empty() && profile.weights.len() != profile.samples.len() {
            return Err(ReadError::whole(format!(
                "profile {}: it has {} samples and {} weights",
                self.profile,
                profile.samples.len(),
                profile.weights.len()
            )));
        }
        for (place, sample) in profile.samples.iter().enumerate() {
            let weight = profile.weights.get(place).copied().unwrap_or(1.0);
            self.add(sample, weight, stacks)?;
        }
        Ok(())
    }

    fn evented(&mut self, profile: &Profile, stacks: &mut Stacks) -> Result<(), ReadError> {
        let mut open: Vec<usize> = Vec::new();
        let mut last = profile.events.first().map_or(0.0, |event| event.at);
        for (place, event) in profile.events.iter().enumerate() {
            if !open.is_empty() && event.at > last {
                self.add(&open, event.at - last, stacks)?;
            }
            last = event.at;
            match (event.kind, open.last()) {
                ('O', _) if open.len() < stacks.limits().depth => open.push(event.frame),
                ('O', _) => {
                    return Err(ReadError::whole(format!(
                        "profile {}: more than {} frames are open at event {place}",
                        self.profile,
                        stacks.limits().depth
                    )));
                }
                ('C', Some(frame)) if *frame == event.frame => drop(open.pop()),
                _ => {
                    return Err(ReadError::whole(format!(
                        "profile {}: event {place} closes frame {}, which is not the open one",
                        self.profile, event.frame
                    )));
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, sample: &[usize], weight: f64, stacks: &mut Stacks) -> Result<(), ReadError> {
        self.folder.clear();
        for number in sample {
            let Some(frame) = self.frames.get(*number) else {
                return Err(ReadError::whole(format!(
                    "profile {}: it refers to frame {number}, and there are {}",
                    self.profile,
                    self.frames.len()
                )));
            };
            self.folder.push(&frame.name, false);
        }
        if sample.is_empty() {
            self.folder.push("[no stack]", false);
        }
        let stack = stacks.keep(self.folder.text())?;
        stacks.add(Row {
            measure: self.measure,
            pid: None,
            process: self.process,
            route: 0,
            time_ns: None,
            stack,
            value: whole(weight * self.scale),
        });
        Ok(())
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a conversion of floats to integers saturates"
)]
fn whole(value: f64) -> i64 {
    (value.round() as i64).max(0)
}
