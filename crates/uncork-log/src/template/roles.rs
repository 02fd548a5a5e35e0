//! Finds the names of roles in templates, which are personal data: `grant select on t to ada`.

/// Words that stand for a role or for none, and are nobody's name.
const NOBODY: [&str; 9] = [
    "public",
    "current_user",
    "current_role",
    "session_user",
    "none",
    "default",
    "all",
    "group",
    "?",
];

/// Return a template with the name of each role replaced. Names in quotes are passed without them.
pub(crate) fn replace_roles(template: &str, name: impl Fn(&str) -> String) -> String {
    let tokens = tokens(template);
    let words: Vec<&str> = tokens.iter().map(|(_, word)| *word).collect();
    let mut out = String::with_capacity(template.len());
    let (mut copied, mut in_list) = (0, false);
    for (place, (begin, word)) in tokens.iter().enumerate() {
        if *word == "," {
            continue;
        }
        let listed = in_list && place > 0 && words[place - 1] == ",";
        let is_role = listed || precedes_role(&words[..place], &words[place..]);
        let is_name = word.starts_with('"') || word.starts_with(is_letter);
        in_list = is_role;
        if is_role && is_name && !NOBODY.contains(word) {
            out.push_str(&template[copied..*begin]);
            out.push_str(&name(&unquoted(word)));
            copied = begin + word.len();
        }
    }
    out.push_str(&template[copied..]);
    out
}

/// Whether a role follows these words of a statement; `rest` begins with it.
fn precedes_role(before: &[&str], rest: &[&str]) -> bool {
    let last = before.last().copied().unwrap_or_default();
    let is_kind = |word: &str| matches!(word, "role" | "user" | "group");
    if last == "group" && before.len() > 1 && matches!(before[before.len() - 2], "to" | "from") {
        return true;
    }
    match before {
        // `create user mapping for ada server s`
        ["create" | "alter" | "drop", "user", "mapping", ..] => last == "for",
        ["create" | "alter" | "drop", kind, ..] if is_kind(kind) => {
            let begins = matches!(before, [_, _] | [_, _, "if", .., "exists"]);
            begins && !matches!(rest.first(), Some(&("if" | "mapping")))
                || before.len() > 3
                    && !before.contains(&"set")
                    && (is_kind(last) || last == "admin")
                || before.ends_with(&["rename", "to"])
        }
        ["set", ..] => last == "authorization" || last == "role" && before.len() <= 3,
        ["grant" | "revoke", ..] => {
            let to_role = !before.contains(&"on") && !rest.contains(&"on");
            let begins = before.len() == 1 || before.ends_with(&["option", "for"]);
            matches!(last, "to" | "from")
                || before.ends_with(&["granted", "by"])
                || to_role && begins && !rest.iter().take(3).any(|word| *word == "option")
        }
        ["alter", "default", ..] => is_kind(last) || matches!(last, "to" | "from"),
        ["reassign" | "drop", "owned", ..] => matches!(last, "by" | "to"),
        ["create" | "alter", "policy", ..] => last == "to" && !before.ends_with(&["rename", "to"]),
        ["comment", "on", "role"] | ["security", "label", .., "on", "role"] => true,
        _ => before.ends_with(&["owner", "to"]) || before.ends_with(&["authorization"]),
    }
}

/// Return the words of a template with their places. Names in quotes, commas and `?` are words too.
fn tokens(template: &str) -> Vec<(usize, &str)> {
    let mut all = Vec::new();
    let mut at = 0;
    while let Some(first) = template[at..].chars().next() {
        let rest = &template[at..];
        let length = match first {
            '"' => quoted_length(rest),
            _ if is_letter(first) => rest
                .find(|next: char| !is_letter(next) && !next.is_ascii_digit() && next != '$')
                .unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        if first != ' ' {
            all.push((at, &rest[..length]));
        }
        at += length;
    }
    all
}

fn is_letter(character: char) -> bool {
    character.is_alphabetic() || character == '_' || !character.is_ascii()
}

/// Return the length of a name in quotes, with them.
fn quoted_length(text: &str) -> usize {
    let mut at = 1;
    while let Some(end) = text[at..].find('"') {
        at += end + 1;
        if !text[at..].starts_with('"') {
            return at;
        }
        at += 1;
    }
    text.len()
}

fn unquoted(name: &str) -> String {
    let inner = name
        .strip_prefix('"')
        .map(|rest| rest.strip_suffix('"').unwrap_or(rest).replace("\"\"", "\""));
    inner.unwrap_or_else(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_roles_are_replaced_and_no_others() {
        for (template, expected) in [
            (
                "create role ada login password ?",
                "create role <ada> login password ?",
            ),
            (
                "create user ada in role bob, \"Eve \"\"x\"\"\" role tom",
                "create user <ada> in role <bob>, <Eve \"x\"> role <tom>",
            ),
            (
                "create user mapping for ada server s",
                "create user mapping for <ada> server s",
            ),
            (
                "alter user ada set work_mem = ?",
                "alter user <ada> set work_mem = ?",
            ),
            (
                "alter role ada in database d set role to ?",
                "alter role <ada> in database d set role to ?",
            ),
            (
                "alter role ada rename to bob",
                "alter role <ada> rename to <bob>",
            ),
            (
                "drop role if exists ada, bob",
                "drop role if exists <ada>, <bob>",
            ),
            ("set role ada", "set role <ada>"),
            ("set role none", "set role none"),
            ("set local role \"Ada\"", "set local role <Ada>"),
            (
                "set session authorization ada",
                "set session authorization <ada>",
            ),
            (
                "grant select, update on t, u to ada, bob with grant option",
                "grant select, update on t, u to <ada>, <bob> with grant option",
            ),
            ("grant all on t to public", "grant all on t to public"),
            (
                "grant ada, bob to eve granted by tom",
                "grant <ada>, <bob> to <eve> granted by <tom>",
            ),
            (
                "revoke admin option for ada from bob",
                "revoke admin option for <ada> from <bob>",
            ),
            (
                "revoke select on t from group ada",
                "revoke select on t from group <ada>",
            ),
            ("alter table t owner to ada", "alter table t owner to <ada>"),
            (
                "reassign owned by ada, bob to eve",
                "reassign owned by <ada>, <bob> to <eve>",
            ),
            ("drop owned by ada", "drop owned by <ada>"),
            (
                "create schema s authorization ada",
                "create schema s authorization <ada>",
            ),
            (
                "alter default privileges for role ada in schema s grant select on tables to bob",
                "alter default privileges for role <ada> in schema s grant select on tables to <bob>",
            ),
            (
                "create policy p on t to ada, bob using (a = ?)",
                "create policy p on t to <ada>, <bob> using (a = ?)",
            ),
            ("comment on role ada is ?", "comment on role <ada> is ?"),
            (
                "select role, a from t, u where user = ada",
                "select role, a from t, u where user = ada",
            ),
            ("copy t to stdout", "copy t to stdout"),
            (
                "update t set role = ?, a = b",
                "update t set role = ?, a = b",
            ),
            ("", ""),
        ] {
            let found = replace_roles(template, |name| format!("<{name}>"));
            assert_eq!(found, expected);
        }
    }
}
