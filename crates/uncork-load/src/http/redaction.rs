//! What no message may contain: secrets of the user and of the server. Pure.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

use super::session::Session;

/// Shorter values are too frequent in other texts to be hidden.
const SHORTEST: usize = 4;

/// Words in names whose values are secret; `uncork.model.redaction` has the same ones.
const SECRET: &str = "(?i:password|passwd|secret|token|key|credential|authori[sz]ation|cookie)";

static NAME: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(SECRET).ok());
static FIELD: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let value = r#""(?:[^"\\]|\\.)*"?|[^\s,;&}\]<"]+"#;
    Regex::new(&format!(r#"([\w-]*{SECRET}[\w-]*"?\s*[:=]\s*)({value})"#)).ok()
});

/// Whether a name suggests that its value is secret.
pub(super) fn is_secret(name: &str) -> bool {
    NAME.as_ref().is_some_and(|regex| regex.is_match(name))
}

/// Hide the values of fields whose name suggests a secret, in JSON and similar texts.
pub(super) fn without_secret_fields(text: &str) -> String {
    let Some(regex) = FIELD.as_ref() else {
        return String::new();
    };
    let hidden = |groups: &regex::Captures<'_>| {
        let quote = if groups[2].starts_with('"') { "\"" } else { "" };
        format!("{}{quote}***{quote}", &groups[1])
    };
    regex.replace_all(text, hidden).into_owned()
}

/// Hide the values of the environment, and the values that a client got from the server.
pub(super) fn without_values(
    message: &str,
    environment: &BTreeMap<String, String>,
    session: Option<&Session>,
) -> String {
    let got = session.into_iter().flat_map(Session::secrets);
    let given = environment.values().map(String::as_bytes);
    let mut safe = message.to_owned();
    for value in given.chain(got) {
        if value.len() >= SHORTEST
            && let Ok(value) = str::from_utf8(value)
            && safe.contains(value)
        {
            safe = safe.replace(value, "***");
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_with_secret_names_are_hidden() {
        for (text, expected) in [
            (
                r#"{"Password": "a\"b", "n": 1}"#,
                r#"{"Password": "***", "n": 1}"#,
            ),
            (r#"{"csrf_token":12,"n":1}"#, r#"{"csrf_token":***,"n":1}"#),
            ("api-key=abc&n=1", "api-key=***&n=1"),
            (r#"{"secret": "cut off"#, r#"{"secret": "***""#),
            ("no such field", "no such field"),
        ] {
            assert_eq!(without_secret_fields(text), expected);
        }
        assert!(is_secret("/data/accessToken") && !is_secret("/data/id"));
    }

    #[test]
    fn values_of_the_environment_and_of_the_client_are_hidden() {
        let environment = BTreeMap::from([("A".to_owned(), "hunter22".to_owned())]);
        let mut session = Session::new(vec![None]);
        session.capture(0, b"t0ken");
        session.set_cookie(b"sid=12", 0);
        assert_eq!(
            without_values("hunter22 t0ken 12", &environment, Some(&session)),
            "*** *** 12"
        );
    }
}
