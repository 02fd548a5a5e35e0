//! The plan of a block: slices of several arms in turn, in one call.

use serde::{Deserialize, Serialize};

use crate::{LoadPlan, PlanError, SamplerPlan, Stop};

/// What a block does. Each arm has a load plan of its own, whose connections stay open during the
/// block; its slice decides when it stops, instead of that plan.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockPlan {
    /// The arms; at least one, all by the same driver.
    pub arms: Vec<LoadPlan>,
    /// For each arm, what one slice does.
    pub slices: Vec<SlicePlan>,
    /// For each cycle, the arms in the order of their slices; an arm has at most one in a cycle.
    pub cycles: Vec<Vec<usize>>,
    /// After how many cycles the block may end: they balance the order of the arms.
    #[serde(default = "one")]
    pub cycles_together: usize,
    /// No cycle begins after this much time has passed, but at least `cycles_together` cycles are
    /// run.
    #[serde(default)]
    pub limit_ns: Option<u64>,
    /// What is sampled while slices run; `null` is nothing.
    #[serde(default)]
    pub sample: Option<SamplerPlan>,
}

fn one() -> usize {
    1
}

/// One arm's part of a cycle.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlicePlan {
    /// What is sent before the measured part, so that processor caches and clock frequency adapt to
    /// this arm again; in a closed loop only.
    #[serde(default)]
    pub settle: Option<Stop>,
    /// When the measured part ends.
    pub stop: Stop,
}

/// What one slice measured. `started = succeeded + failed`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct SliceRow {
    /// The arm's number.
    pub arm: usize,
    /// The cycle's number, from 0.
    pub cycle: usize,
    /// When the measured part began, since the block's first slice.
    pub begun_ns: u64,
    /// How long the measured part took.
    pub elapsed_ns: u64,
    /// Operations begun.
    pub started: u64,
    /// Operations of which every statement succeeded.
    pub succeeded: u64,
    /// The sum of their latencies.
    pub sum_ns: u64,
    /// How long the generator's threads and the arm's backends on this machine waited for a
    /// processor, added up; `None` if the kernel does not report it.
    pub waited_ns: Option<u64>,
}

impl BlockPlan {
    /// Parse a plan and check its consistency.
    ///
    /// # Errors
    ///
    /// [`PlanError`] names the field; unknown fields are refused.
    pub fn parse(json: &[u8]) -> Result<Self, PlanError> {
        let plan: Self = serde_json::from_slice(json)?;
        for arm in &plan.arms {
            arm.check()?;
        }
        match plan.problem() {
            Some(problem) => Err(PlanError::Invalid(problem.to_owned())),
            None => Ok(plan),
        }
    }

    fn problem(&self) -> Option<&'static str> {
        let first = self.arms.first().map(|arm| arm.driver);
        let never = |stop: Stop| stop.is_zero();
        let unlike = |cycle: &Vec<usize>| {
            cycle
                .iter()
                .enumerate()
                .any(|(place, arm)| *arm >= self.arms.len() || cycle[..place].contains(arm))
        };
        let open_loop = |arm: &LoadPlan| arm.arrivals.is_some();
        let settles = self.slices.iter().any(|slice| slice.settle.is_some());
        [
            (self.arms.is_empty(), "a block needs at least one arm"),
            (
                self.slices.len() != self.arms.len(),
                "a block needs as many slices as arms",
            ),
            (
                self.arms.iter().any(|arm| Some(arm.driver) != first),
                "all arms of a block need the same driver",
            ),
            (
                self.arms.iter().any(|arm| arm.connect_each),
                "a block keeps its connections: connect_each excludes it",
            ),
            (
                self.arms
                    .iter()
                    .any(|arm| arm.sample.is_some() || arm.interval_ns > 0 || arm.log.is_some()),
                "an arm of a block has no sample, no series and no log of its own",
            ),
            (
                self.arms.iter().any(|arm| !arm.part.is_whole()),
                "the arms of a block are whole loads",
            ),
            (
                self.arms
                    .iter()
                    .any(|arm| arm.pin_cpu != self.arms[0].pin_cpu),
                "all arms of a block need the same pin_cpu",
            ),
            (
                settles && self.arms.iter().any(open_loop),
                "slices of an open loop cannot settle",
            ),
            (
                self.slices
                    .iter()
                    .any(|slice| never(slice.stop) || slice.settle.is_some_and(never)),
                "slices must be positive",
            ),
            (
                self.cycles_together == 0 || self.cycles.is_empty(),
                "a block needs at least one cycle",
            ),
            (
                self.cycles.iter().any(unlike),
                "a cycle names arms that there are, each once",
            ),
        ]
        .into_iter()
        .find_map(|(wrong, problem)| wrong.then_some(problem))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARM: &str = r#"{"driver": "fake", "clients": 1, "threads": 1,
        "scripts": [{"name": "s", "weight": 1, "statements": [{"name": "a", "sql": ""}]}],
        "stop": {"operations": 1}, "deadline_ns": 1, "fake": {"latencies_ns": [1]}}"#;

    fn block(changes: &str) -> Result<BlockPlan, PlanError> {
        let text = format!(
            r#"{{"arms": [{ARM}, {ARM}], "slices": [{{"stop": {{"operations": 1}}}},
            {{"stop": {{"operations": 2}}, "settle": {{"duration_ns": 5}}}}], "cycles": [[0, 1]]}}"#
        );
        let (old, new) = changes.split_once(" -> ").unwrap_or(("", ""));
        BlockPlan::parse(
            text.replacen(old, new, usize::from(!old.is_empty()))
                .as_bytes(),
        )
    }

    #[test]
    fn a_block_is_read() {
        let plan = block("").expect("valid");
        assert_eq!(plan.cycles_together, 1);
        assert_eq!(plan.slices[1].settle, Some(Stop::DurationNs(5)));
    }

    #[test]
    fn contradictions_are_refused_by_name() {
        for (changes, word) in [
            ("[[0, 1]] -> [[0, 2]]", "each once"),
            ("[[0, 1]] -> [[1, 1]]", "each once"),
            ("[[0, 1]] -> []", "one cycle"),
            ("{\"operations\": 2} -> {\"operations\": 0}", "positive"),
            ("{\"duration_ns\": 5} -> {\"duration_ns\": 0}", "positive"),
            ("\"clients\": 1 -> \"clients\": 0", "clients"),
            (
                "\"clients\": 1 -> \"connect_each\": true, \"clients\": 1",
                "connect_each",
            ),
            (
                "\"clients\": 1 -> \"arrivals\": {\"kind\": \"constant\", \"rate\": 1}, \"clients\": 1",
                "open loop",
            ),
            ("\"cycles\" -> \"cycle\"", "unknown"),
        ] {
            let error = block(changes).expect_err(changes).to_string();
            assert!(error.contains(word), "{error}");
        }
    }
}
