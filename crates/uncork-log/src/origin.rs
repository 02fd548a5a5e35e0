//! Who sent statements: user, database, application and host, as one number.

use crate::hash::{Hash, HashedMap};
use crate::prefix::Head;

/// Who sent statements; empty where the log does not say.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin {
    /// The user's name.
    pub user: Box<[u8]>,
    /// The database's name.
    pub database: Box<[u8]>,
    /// The application's name.
    pub application: Box<[u8]>,
    /// A name, an address or `[local]`.
    pub host: Box<[u8]>,
}

impl From<&Head<'_>> for Origin {
    fn from(head: &Head<'_>) -> Self {
        Self {
            user: head.user.into(),
            database: head.database.into(),
            application: head.application.into(),
            host: head.host.into(),
        }
    }
}

/// All origins met so far, each with its number.
#[derive(Debug, Clone, Default)]
pub struct Origins {
    numbers: HashedMap<u32>,
    all: Vec<Origin>,
    identities: Vec<u64>,
    /// The last one asked for: sessions write many lines in a row.
    last: (u64, u32),
}

impl Origins {
    /// The number of a line's origin.
    pub(crate) fn number(&mut self, head: &Head<'_>) -> u32 {
        let mut hash = Hash::new();
        for part in [head.user, head.database, head.application, head.host] {
            hash.add(part, 0);
        }
        let hash = hash.get();
        if self.last.0 == hash && !self.all.is_empty() {
            return self.last.1;
        }
        let (all, identities) = (&mut self.all, &mut self.identities);
        let number = *self.numbers.entry(hash).or_insert_with(|| {
            all.push(Origin::from(head));
            identities.push(hash);
            u32::try_from(all.len() - 1).unwrap_or(u32::MAX)
        });
        self.last = (hash, number);
        number
    }

    /// The number of another collection's origin.
    pub(crate) fn adopt(&mut self, origin: &Origin) -> u32 {
        let head = Head {
            user: &origin.user,
            database: &origin.database,
            application: &origin.application,
            host: &origin.host,
            ..Head::new()
        };
        self.number(&head)
    }

    /// What stands for an origin in any collection.
    pub(crate) fn identity(&self, number: u32) -> u64 {
        self.identities[number as usize]
    }

    /// All of them, by number.
    #[must_use]
    pub fn all(&self) -> &[Origin] {
        &self.all
    }
}
