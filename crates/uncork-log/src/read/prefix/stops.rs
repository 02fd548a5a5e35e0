//! Where a `%q` may be in a prefix that does not show it.

use super::{Field, Item};

/// Mark where processes without a session may stop: behind fields that every process has, before fields of a session.
/// Before the time and the process ID, a severity would be ordinary text.
pub(super) fn marked(items: &[Item]) -> Vec<Item> {
    let mut marked: Vec<Item> = Vec::with_capacity(items.len() + 2);
    let mut is_entry = false;
    let mut before: Option<Field> = None;
    for (index, item) in items.iter().enumerate() {
        let next = items[index..].iter().find_map(|item| match item {
            Item::Field(field) => Some(*field),
            Item::Literal(_) | Item::Quit | Item::MayQuit => None,
        });
        if let (true, Some(before)) = (is_entry, before.take())
            && next.map_or_else(
                || has_word(item) && !names_session(before),
                |next| may_stop_between(before, next),
            )
        {
            marked.push(Item::MayQuit);
        }
        marked.push(item.clone());
        if let Item::Field(field) = item {
            is_entry = is_entry || matches!(field, Field::Time | Field::Pid);
            before = Some(*field);
        }
    }
    marked
}

/// Whether a `%q` may be between two fields. A label may be a field of any process, or a word of a session.
fn may_stop_between(before: Field, next: Field) -> bool {
    let is_unknown = |field: Field| matches!(field, Field::Label | Field::Text);
    !names_session(before) && (names_session(next) || is_unknown(next) && !is_unknown(before))
}

fn names_session(field: Field) -> bool {
    matches!(
        field,
        Field::User | Field::Database | Field::Application | Field::Host
    )
}

/// Whether a literal contains a word, which may be a name that all lines of sessions have in common.
fn has_word(item: &Item) -> bool {
    matches!(item, Item::Literal(text) if text.iter().any(u8::is_ascii_alphabetic))
}
