//! Joins the messages about one wait for a lock: that it goes on, with who holds the lock, and that it ended.

use std::collections::HashMap;

use crate::form::form;
use crate::gather::activity::Incident;

/// How many waits are followed at once; more than any server has.
const OPEN: usize = 100_000;

/// Waits for locks whose end has not been logged, by the waiting process.
#[derive(Debug, Clone, Default)]
pub(super) struct LockWaits {
    open: HashMap<u32, Incident>,
}

impl LockWaits {
    /// Begin or continue a wait; pass on waits whose end was not logged.
    pub(super) fn waits(&mut self, wait: Incident, mut keep: impl FnMut(Incident)) {
        if self.open.len() > OPEN {
            self.open.drain().for_each(|(_, open)| keep(open));
        }
        let before = self.open.remove(&wait.pid);
        let wait = joined(before, wait, &mut keep);
        self.open.insert(wait.pid, wait);
    }

    /// End a wait, and pass it on.
    pub(super) fn ended(&mut self, wait: Incident, mut keep: impl FnMut(Incident)) {
        let before = self.open.remove(&wait.pid);
        let wait = joined(before, wait, &mut keep);
        keep(wait);
    }

    /// Return the waits whose end was not logged.
    pub(super) fn finish(self) -> impl Iterator<Item = Incident> {
        self.open.into_values()
    }
}

/// Complete a message about a wait from the previous one about the same wait: only the first one names the holders. If
/// the previous one belongs to another wait, pass that on.
fn joined(
    before: Option<Incident>,
    mut wait: Incident,
    keep: &mut impl FnMut(Incident),
) -> Incident {
    let Some(before) = before else {
        return wait;
    };
    // A later message about the same wait has a longer duration.
    if before.what != wait.what || before.amount > wait.amount {
        keep(before);
        return wait;
    }
    if wait.detail.is_empty() {
        wait.detail = before.detail;
    }
    if wait.statement.is_empty() {
        wait.statement = before.statement;
    }
    if wait.relation.is_empty() {
        wait.relation = before.relation;
    }
    wait.begun = before.begun;
    wait
}

form!(LockWaits { open });

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(pid: u32, what: &str, amount: u64, detail: &str) -> Incident {
        Incident {
            amount,
            place: (0, amount),
            pid,
            what: what.as_bytes().into(),
            detail: detail.as_bytes().into(),
            begun: (0, amount),
            ..Incident::default()
        }
    }

    #[test]
    fn a_wait_appears_once_with_its_holder() {
        let (mut waits, mut kept) = (LockWaits::default(), Vec::new());
        waits.waits(wait(7, "a", 1_000, "held by 8"), |one| kept.push(one));
        waits.waits(wait(9, "a", 1_001, "held by 7"), |one| kept.push(one));
        waits.waits(wait(7, "a", 2_000, "held by 8, 9"), |one| kept.push(one));
        waits.ended(wait(7, "a", 5_000, ""), |one| kept.push(one));
        assert_eq!(
            kept,
            [Incident {
                begun: (0, 1_000),
                ..wait(7, "a", 5_000, "held by 8, 9")
            }]
        );
        // The end of one wait was not logged: its statement was cancelled.
        waits.waits(wait(7, "a", 1_000, "held by 8"), |one| kept.push(one));
        waits.waits(wait(7, "b", 1_200, "held by 9"), |one| kept.push(one));
        waits.ended(wait(7, "b", 1_100, ""), |one| kept.push(one));
        let amounts: Vec<u64> = kept[1..].iter().map(|one| one.amount).collect();
        assert_eq!(amounts, [1_000, 1_200, 1_100]);
        let open: Vec<u32> = waits.finish().map(|one| one.pid).collect();
        assert_eq!(open, [9]);
    }
}
