//! The scripts of a plan: what an operation sends, and where its client pauses.

use serde::Deserialize;

use crate::{RequestPlan, Statement};

/// How a client chooses the next script.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScriptOrder {
    /// At random, by weight.
    #[default]
    Weighted,
    /// In the plan's order, over and over.
    Sequential,
}

/// One kind of operation, and how often it is chosen.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptPlan {
    /// Its name in results.
    pub name: String,
    /// It is chosen with probability weight / sum of all weights; at least one weight is positive.
    pub weight: u32,
    /// The script in pgbench's language; exactly one of this, `statements` and `request` is given.
    #[serde(default)]
    pub text: Option<String>,
    /// The statements of one operation, in order.
    #[serde(default)]
    pub statements: Vec<Statement>,
    /// The request of one operation; only with `driver = "http"`.
    #[serde(default)]
    pub request: Option<RequestPlan>,
    /// Whether the statements of one operation are wrapped in `BEGIN` and `COMMIT`.
    #[serde(default)]
    pub transaction: bool,
    /// How long the client waits between the statements of one operation, in their order.
    #[serde(default)]
    pub pauses: Vec<Pause>,
}

/// A pause of the client between the statements of an operation; the latency of the operation includes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pause {
    /// The statement that it precedes, by number; the number of statements stands for the end.
    pub before: usize,
    /// How long it is, in nanoseconds.
    pub ns: u64,
}

impl ScriptPlan {
    pub(crate) fn has_pauses(&self) -> bool {
        !self.pauses.is_empty()
    }

    pub(crate) fn has_misplaced_pause(&self) -> bool {
        let late = |pause: &Pause| pause.before > self.statements.len();
        let ordered = self.pauses.is_sorted_by_key(|pause| pause.before);
        let nowhere = self.has_pauses() && self.statements.is_empty();
        nowhere || !ordered || self.pauses.iter().any(late)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(pauses: &str) -> ScriptPlan {
        let text = format!(
            r#"{{"name": "s", "weight": 1, "statements": [{{"name": "a", "sql": "SELECT 1"}}],
            "pauses": {pauses}}}"#
        );
        serde_json::from_str(&text).expect("valid")
    }

    #[test]
    fn pauses_follow_the_order_of_the_statements() {
        let ordered = script(r#"[{"before": 0, "ns": 5}, {"before": 1, "ns": 7}]"#);
        assert!(ordered.has_pauses() && !ordered.has_misplaced_pause());
        assert_eq!(ordered.pauses[1], Pause { before: 1, ns: 7 });
        assert!(!script("[]").has_pauses());
        for wrong in [
            r#"[{"before": 2, "ns": 1}]"#,
            r#"[{"before": 1, "ns": 1}, {"before": 0, "ns": 1}]"#,
        ] {
            assert!(script(wrong).has_misplaced_pause(), "{wrong}");
        }
    }
}
