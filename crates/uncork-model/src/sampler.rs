//! The sampler's plan: what to watch, and how often, as JSON from Python.

use serde::Deserialize;

/// What a sampler watches in addition to the machine.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SamplerPlan {
    /// Time between two readings in nanoseconds, at least a millisecond.
    pub period_ns: u64,
    /// The processes, distinguished by their role.
    #[serde(default)]
    pub watch: Vec<Watch>,
    /// Whether to read proportional memory (PSS). The kernel then walks the processes' pages, and a
    /// process that needs a page meanwhile may wait: fine for monitoring, wrong for timed runs.
    #[serde(default)]
    pub memory: bool,
}

/// A process to watch.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Watch {
    /// Its role, such as `server` or `generator`.
    pub role: String,
    /// Its process ID.
    pub pid: u32,
    /// Whether its children are watched too, including later ones.
    #[serde(default)]
    pub children: bool,
}

impl SamplerPlan {
    /// The shortest time between two readings.
    pub const LEAST_PERIOD_NS: u64 = 1_000_000;

    /// Parse a plan from JSON.
    ///
    /// # Errors
    ///
    /// [`crate::PlanError`] for an invalid plan, or one with readings too close together.
    pub fn parse(json: &[u8]) -> Result<Self, crate::PlanError> {
        let plan: Self = serde_json::from_slice(json)?;
        if plan.period_ns < Self::LEAST_PERIOD_NS {
            return Err(crate::PlanError::Invalid(format!(
                "readings every {} ns; at least {} ns must lie between them",
                plan.period_ns,
                Self::LEAST_PERIOD_NS
            )));
        }
        Ok(plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_names_its_processes_and_refuses_what_it_does_not_know() {
        let json = br#"{"period_ns": 100000000,
            "watch": [{"role": "server", "pid": 7, "children": true}]}"#;
        let plan = SamplerPlan::parse(json).expect("valid");
        assert!(plan.watch[0].children);
        assert!(SamplerPlan::parse(br#"{"period_ns": 100}"#).is_err());
        assert!(SamplerPlan::parse(br#"{"period_ns": 1000000, "hz": 3}"#).is_err());
    }
}
