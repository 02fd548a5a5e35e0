//! The relation that a lock wait is about.

/// What precedes the name of a relation in a wait's context.
const IN_RELATION: &[u8] = b" in relation \"";
/// What precedes a relation's OID in the name of a lock.
const RELATION: &[u8] = b"relation ";

/// Return the relation's name from the context of a wait (`while updating tuple (0,1) in relation "x"`), or else its
/// OID from the name of the lock (`AccessExclusiveLock on relation 16384 of database 5`). Empty if the log shows
/// neither.
pub(crate) fn relation(lock: &[u8], context: &[u8]) -> Vec<u8> {
    if let Some(at) = memchr::memmem::find(context, IN_RELATION) {
        let name = &context[at + IN_RELATION.len()..];
        let end = memchr::memchr(b'"', name).unwrap_or(name.len());
        return name[..end].to_vec();
    }
    let Some(at) = memchr::memmem::find(lock, RELATION) else {
        return Vec::new();
    };
    let oid = &lock[at + RELATION.len()..];
    let digits = oid.iter().take_while(|byte| byte.is_ascii_digit()).count();
    match digits {
        0 => Vec::new(),
        _ => [b"OID ", &oid[..digits]].concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_context_names_the_relation_and_the_lock_its_oid() {
        for (lock, context, expected) in [
            (
                "ShareLock on transaction 7",
                "while updating tuple (0,1) in relation \"order items\"",
                "order items",
            ),
            (
                "ShareLock on transaction 7",
                "while inserting index tuple (0,2) in relation \"t_pkey\"\n\tSQL statement \"x\"",
                "t_pkey",
            ),
            (
                "AccessExclusiveLock on relation 16384 of database 5",
                "",
                "OID 16384",
            ),
            (
                "ExclusiveLock on tuple (0,1) of relation 16384 of database 5",
                "while locking tuple (0,1) in relation \"t\"",
                "t",
            ),
            ("ShareLock on transaction 7", "", ""),
            ("ExclusiveLock on advisory lock [5,0,42,1]", "", ""),
        ] {
            let found = relation(lock.as_bytes(), context.as_bytes());
            assert_eq!(found, expected.as_bytes(), "{lock}");
        }
    }
}
