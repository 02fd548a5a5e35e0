//! Recorded operations: which script and values each has, and which client sends it.

use serde::Deserialize;

use crate::{ArrivalPlan, DriverKind, LoadPlan};

/// Recorded operations. Operation `i` is the recorded one `i` modulo their number, and takes that row of the
/// parameter table.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedPlan {
    /// The script of each operation; at least one.
    pub scripts: Vec<usize>,
    /// The script variables that the columns of the parameter table give values, in order. NULL leaves a variable
    /// undefined.
    #[serde(default)]
    pub variables: Vec<String>,
    /// The client that sends each operation, in a replay; it needs a trace with as many arrivals. Empty lets any
    /// client send it.
    #[serde(default)]
    pub clients: Vec<usize>,
}

impl RecordedPlan {
    /// Whether each operation has its own client.
    #[must_use]
    pub fn is_replay(&self) -> bool {
        !self.clients.is_empty()
    }

    /// The recorded operation that an operation repeats.
    #[must_use]
    pub fn row(&self, operation: u64) -> usize {
        // The remainder is less than a count that came from a usize.
        usize::try_from(operation % self.scripts.len() as u64).unwrap_or(0)
    }

    /// The script of an operation.
    #[must_use]
    pub fn script(&self, operation: u64) -> usize {
        self.scripts[self.row(operation)]
    }

    fn has_all_clients(&self, clients: usize) -> bool {
        let mut seen = vec![false; clients];
        self.clients.iter().all(|&client| {
            let known = seen.get_mut(client);
            known.map(|known| *known = true).is_some()
        }) && seen.iter().all(|&known| known)
    }

    pub(crate) fn problem(&self, plan: &LoadPlan) -> Option<&'static str> {
        let checks = [
            (
                self.scripts.is_empty(),
                "recorded.scripts must have at least one operation",
            ),
            (
                self.scripts
                    .iter()
                    .any(|&script| script >= plan.scripts.len()),
                "recorded.scripts must name scripts of the plan",
            ),
            (
                plan.driver == DriverKind::Http,
                "recorded operations are SQL, not HTTP",
            ),
            (
                self.is_replay() && !self.has_all_clients(plan.clients),
                "recorded.clients must be below clients, and each must have an operation",
            ),
            (
                self.is_replay()
                    && !matches!(&plan.arrivals, Some(ArrivalPlan::Trace { offsets_ns })
                        if offsets_ns.len() == self.clients.len()
                            && offsets_ns.len() == self.scripts.len()),
                "recorded.clients needs a trace with one arrival for each operation",
            ),
            (
                self.is_replay()
                    && (plan.pipeline_depth > 1
                        || plan.connect_each
                        || plan.part.count > 1
                        || plan.most_clients() > plan.clients
                        || plan.warmup_operations > 0
                        || plan.warmup_ns > 0),
                "recorded.clients excludes pipeline_depth, connect_each, parts, max_clients and a warm-up",
            ),
        ];
        checks
            .into_iter()
            .find_map(|(wrong, problem)| wrong.then_some(problem))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(recorded: &str, changes: &str) -> String {
        let text = format!(
            r#"{{"driver": "fake", "threads": 1, "clients": 2, "deadline_ns": 1, {changes}
            "scripts": [{{"name": "s", "weight": 1, "text": "SELECT :a"}}], "stop": {{"operations": 3}},
            "fake": {{"latencies_ns": [1]}}, "recorded": {recorded}}}"#
        );
        match LoadPlan::parse(text.as_bytes()) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        }
    }

    const TRACE: &str = r#""arrivals": {"kind": "trace", "offsets_ns": [1, 2]},"#;

    #[test]
    fn operations_repeat_in_turn() {
        let plan = RecordedPlan {
            scripts: vec![3, 1],
            variables: Vec::new(),
            clients: Vec::new(),
        };
        assert_eq!([0, 1, 2, 5].map(|number| plan.script(number)), [3, 1, 3, 1]);
    }

    #[test]
    fn contradictions_are_refused_by_name() {
        let both = r#"{"scripts": [0, 0], "clients": [0, 1]}"#;
        assert_eq!(problem(r#"{"scripts": [0, 0]}"#, ""), "");
        assert_eq!(problem(both, TRACE), "");
        for (recorded, changes, word) in [
            (r#"{"scripts": []}"#, "", "at least one"),
            (r#"{"scripts": [1]}"#, "", "scripts of the plan"),
            (both, "", "needs a trace"),
            (r#"{"scripts": [0, 0], "clients": [0, 2]}"#, TRACE, "below"),
            (r#"{"scripts": [0, 0], "clients": [1, 1]}"#, TRACE, "each"),
            (
                r#"{"scripts": [0], "clients": [0, 1]}"#,
                TRACE,
                "one arrival",
            ),
            (
                both,
                &format!("{TRACE} \"connect_each\": true,"),
                "connect_each",
            ),
            (both, &format!("{TRACE} \"warmup_ns\": 5,"), "warm-up"),
        ] {
            let found = problem(recorded, changes);
            assert!(found.contains(word), "{found}");
        }
    }
}
