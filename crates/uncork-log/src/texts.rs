//! Prepares the texts of a log for display: without passwords, and on request without personal
//! data.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::gather::errors::generalise;
use crate::gather::example::without_parameters;
use crate::hash::Hash;
use crate::template::Stripper;
use crate::template::roles::replace_roles;
use crate::template::secret::without_passwords;

/// Parts of a plan's line before values that contain literals.
const CONDITIONS: [&str; 9] = [
    "Cond",
    "Filter",
    "Key",
    "Output",
    "Call",
    "Query",
    "One-Time",
    "Order By",
    "Remote SQL",
];

/// Prepares texts for display.
#[derive(Debug, Clone, Copy, Default)]
pub struct Texts {
    /// The salt of pseudonyms, if data is not to be shown.
    salt: Option<u64>,
}

impl Texts {
    /// Show no literals, parameters and details, and show pseudonyms instead of users and hosts. The same salt gives
    /// the same pseudonyms; draw it at random.
    #[must_use]
    pub fn anonymous(salt: u64) -> Self {
        Self { salt: Some(salt) }
    }

    /// Prepare a statement. `lines` says whether the log is plain text, where further lines of a text begin with a
    /// tab.
    #[must_use]
    pub fn statement(self, sql: &[u8], lines: bool) -> String {
        match self.salt {
            None => shown(sql, lines),
            Some(_) => self.template(Stripper::default().strip(sql).text),
        }
    }

    /// Prepare a template, which has no literals.
    #[must_use]
    pub fn template(self, template: &[u8]) -> String {
        let template = text(template);
        match self.salt {
            None => template,
            Some(_) => replace_roles(&template, |name| self.name("user", name.as_bytes())),
        }
    }

    /// Prepare a plan, in text or JSON format: estimates and counts stay. Parameters of a text plan are shown
    /// separately.
    #[must_use]
    pub fn plan(self, plan: &[u8], lines: bool) -> String {
        let plan = shown(&without_parameters(plan), lines);
        if self.salt.is_none() {
            return plan;
        }
        let mut stripper = Stripper::default();
        let mut out = String::new();
        for line in details(&plan) {
            if CONDITIONS.iter().any(|word| line.contains(word)) || line.contains('\'') {
                let (name, rest) = line.split_once(": ").unwrap_or(("", &line));
                // A JSON string: its content is not quoted for SQL.
                let inner = rest
                    .strip_prefix('"')
                    .map(|rest| rest.trim_end_matches([',', '"']));
                let bare = text(stripper.strip(inner.unwrap_or(rest).as_bytes()).text);
                let between = if name.is_empty() { "" } else { ": " };
                let _ = writeln!(out, "{name}{between}{bare}");
            } else {
                let _ = writeln!(out, "{line}");
            }
        }
        out.truncate(out.trim_end().len());
        out
    }

    /// Prepare the message of an entry that is not a statement.
    #[must_use]
    pub fn message(self, message: &[u8], lines: bool) -> String {
        if self.salt.is_none() {
            return shown(message, lines);
        }
        let mut general = Vec::new();
        generalise(message, &mut general);
        text(&general)
    }

    /// Prepare texts that contain data: parameters, details, lines that could not be read.
    #[must_use]
    pub fn data(self, data: &[u8], lines: bool) -> String {
        match self.salt {
            None => shown(data, lines),
            Some(_) => String::new(),
        }
    }

    /// Prepare the name of a user or a host. `[local]` is nobody's name.
    #[must_use]
    pub fn name(self, kind: &str, name: &[u8]) -> String {
        match self.salt {
            Some(salt) if !name.is_empty() && !matches!(name, b"[local]" | b"(others)") => {
                let mut hash = Hash::new();
                hash.add(&salt.to_le_bytes(), 0);
                hash.add(name, 1);
                format!("{kind}-{:08x}", hash.get() >> 32)
            }
            _ => text(name),
        }
    }
}

/// Split a plan into lines, but keep a literal with line breaks together, and so the statement that precedes the
/// plan. JSON and YAML escape line breaks.
fn details(plan: &str) -> Vec<Cow<'_, str>> {
    let is_json = plan.trim_start().starts_with(['{', '[']);
    let is_xml = !is_json && plan.contains("<Query-Text>");
    let has_breaks = is_xml || (!is_json && plan.lines().any(is_node));
    let mut found: Vec<Cow<'_, str>> = Vec::new();
    let (mut is_query, mut is_open) = (false, false);
    for line in plan.lines() {
        is_query &= !is_node(line);
        match found.last_mut() {
            Some(last) if is_query || is_open => {
                let last = last.to_mut();
                last.push('\n');
                last.push_str(line);
            }
            _ => found.push(Cow::Borrowed(line)),
        }
        let precedes_plan = has_breaks
            && (is_query || line.contains("Query Text") || line.contains("<Query-Text>"));
        is_query = precedes_plan && !line.contains("</Query-Text>");
        let is_odd = line.matches('\'').count() % 2 == 1;
        is_open = has_breaks && !precedes_plan && is_open != is_odd;
    }
    found
}

/// Say whether a line is a node of a plan in text format, with its estimate.
fn is_node(line: &str) -> bool {
    line.contains("(cost=") && line.contains(" width=")
}

/// Convert bytes of a log to text; invalid UTF-8 is replaced.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn shown(bytes: &[u8], lines: bool) -> String {
    let shown = text(&without_passwords(bytes.trim_ascii_end()));
    if lines && shown.contains("\n\t") {
        return shown.replace("\n\t", "\n");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = "Query Text: SELECT *\n\tFROM people WHERE name = 'Ada'\n\
        \tIndex Scan using people_pkey on people  (cost=0.29..8.31 rows=1 width=40) (actual rows=1 loops=1)\n\
        \t  Index Cond: (id = 4711)\n\t  Filter: (name = 'Ada'::text)\n\t  Buffers: shared hit=3";

    const JSON: &str = "{\n  \"Query Text\": \"SELECT * FROM people WHERE name = 'Ada'\",\n  \
        \"Query Parameters\": \"$1 = 'Ada'\",\n  \"Plan\": {\n    \"Node Type\": \"Index Scan\",\n    \
        \"Index Cond\": \"(id = 4711)\",\n    \"Filter\": \"(name = 'Ada'::text)\"\n  }\n}";

    #[test]
    fn lines_of_a_text_lose_their_tab_and_passwords() {
        let texts = Texts::default();
        assert_eq!(
            texts.statement(b"ALTER ROLE a\n\tPASSWORD 'x'\n", true),
            "ALTER ROLE a\nPASSWORD '***'"
        );
        assert_eq!(texts.statement(b"SELECT\n\t1", false), "SELECT\n\t1");
        assert_eq!(
            texts.plan(PLAN.as_bytes(), true),
            PLAN.replace("\n\t", "\n")
        );
        assert_eq!(texts.name("user", b"ada"), "ada");
    }

    #[test]
    fn nothing_of_anybody_is_left() {
        let texts = Texts::anonymous(5);
        let told = [
            texts.statement(b"SELECT 1 FROM t WHERE name = 'Ada' AND id = 4711", true),
            texts.plan(PLAN.as_bytes(), true),
            texts.plan(PLAN.replace("\n\t", "\n").as_bytes(), false),
            texts.plan(JSON.as_bytes(), false),
            texts.message(b"invalid input syntax for type uuid: \"Ada\"", true),
            texts.data(b"Key (name)=(Ada) already exists.", true),
            texts.name("user", b"Ada"),
            texts.statement(b"GRANT SELECT ON t TO \"Ada\"", true),
        ];
        for text in &told {
            assert!(!text.contains("Ada") && !text.contains("4711"), "{text}");
        }
        assert!(
            told[1].contains("Index Scan using people_pkey on people  (cost=0.29..8.31 rows=1")
        );
        assert!(told[1].contains("Buffers: shared hit=3"));
        assert_eq!(texts.name("user", b"Ada"), told[6]);
        assert_eq!(told[7], format!("grant select on t to {}", told[6]));
        let broken = "Query Text: SELECT 'a\nAda\nb' /* Ada\nAda */\nSort  (cost=0.29..8.31 rows=1 width=40)\n  \
            Sort Key: n\n  Order By: (p <-> 4711)\n  Filter: (name = 'a\nAda\n  b''s'::text)\n  Buffers: shared hit=3";
        assert_eq!(
            texts.plan(broken.as_bytes(), false),
            "Query Text: select ?\nSort  (cost=0.29..8.31 rows=1 width=40)\n  Sort Key: n\n  \
             Order By: (p <-> ?)\n  Filter: (name = ?::text)\n  Buffers: shared hit=3"
        );
        // The beginning of a plan, as an example of a long one keeps it.
        let cut = "Query Text: SELECT 1\nSort  (cost=0.29..8.31 rows=1 width=40)\n  Filter: (name = 'Ada\nAda";
        assert!(!texts.plan(cut.as_bytes(), false).contains("Ada"));
        let yaml = "Query Text: \"SELECT 'Ada'\"\nPlan: \n  Total Cost: 8.31\n  Filter: \"(name = 'Ada'::text)\"";
        assert_eq!(
            texts.plan(yaml.as_bytes(), false),
            "Query Text: select ?\nPlan: \n  Total Cost: 8.31\n  Filter: (name = ?::text)"
        );
        let xml = "<explain>\n  <Query-Text>SELECT 'Ada\nAda'</Query-Text>\n  <Total-Cost>8.31</Total-Cost>\n</explain>";
        let shown = texts.plan(xml.as_bytes(), false);
        assert!(
            !shown.contains("Ada") && shown.contains("<Total-Cost>8.31"),
            "{shown}"
        );
        assert_ne!(Texts::anonymous(6).name("user", b"Ada"), told[6]);
        assert_eq!(texts.name("host", b"[local]"), "[local]");
    }
}
