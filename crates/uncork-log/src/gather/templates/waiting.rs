//! Executions that wait until they are counted, by groups of neighbouring templates.
//!
//! What an execution changes in its template takes several cache lines. With tens of thousands of templates these are in
//! no cache, so that each execution would wait for memory. A group's executions are counted together instead, as soon
//! as there are several for each of its templates: then the templates are loaded once for all of them.

use crate::read::time::Micros;

/// Templates per group, as a power of two: together they fit into a processor's first or second cache.
const GROUP_BITS: u32 = 6;
/// Executions of a group that wait.
const MOST: usize = 512;

/// An execution that is not counted yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    pub(super) time: Micros,
    pub(super) micros: u64,
    pub(super) origin: u32,
    /// The number of its template.
    pub(super) template: u32,
}

/// Executions that wait, by the group of their template.
#[derive(Debug, Clone, Default)]
pub(super) struct Waiting {
    groups: Vec<Vec<Run>>,
}

impl Waiting {
    /// Let an execution wait; return the executions of its group if these are many.
    pub(super) fn add(&mut self, run: Run) -> Option<std::vec::Drain<'_, Run>> {
        let group = (run.template >> GROUP_BITS) as usize;
        if group >= self.groups.len() {
            self.groups.resize_with(group + 1, Vec::new);
        }
        let runs = &mut self.groups[group];
        runs.push(run);
        (runs.len() >= MOST).then(|| runs.drain(..))
    }

    /// Return all executions, group by group.
    pub(super) fn take(&mut self) -> impl Iterator<Item = Run> {
        std::mem::take(&mut self.groups).into_iter().flatten()
    }

    /// Whether no execution waits.
    pub(super) fn is_empty(&self) -> bool {
        self.groups.iter().all(Vec::is_empty)
    }
}
