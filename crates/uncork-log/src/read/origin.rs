//! Origins of statements: user, database, application and host, as one number.

use crate::hash::{Hash, HashedMap};
use crate::read::prefix::Head;

/// How many origins, and how many applications, are distinguished: some drivers put random names
/// into them.
const MOST: usize = 20_000;
const MOST_APPLICATIONS: usize = 500;
/// The name that stands for all others.
const OTHERS: &[u8] = b"(others)";

/// Who sent a statement; fields are empty if they are not logged.
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

/// All origins so far, each with its number.
#[derive(Debug, Clone, Default)]
pub struct Origins {
    numbers: HashedMap<u32>,
    all: Vec<Origin>,
    identities: Vec<u64>,
    applications: Vec<Box<[u8]>>,
    /// The number of each origin's application.
    of: Vec<u32>,
    /// The origin of the last call: sessions write many lines in a row.
    last: (u64, u32),
}

impl Origins {
    /// Return the number of a line's origin.
    pub(crate) fn number(&mut self, head: &Head<'_>) -> u32 {
        let parts = [head.user, head.database, head.application, head.host];
        let mut hash = Hash::new();
        for part in parts {
            hash.add(part, 0);
        }
        let hash = hash.get();
        if self.last.0 == hash && !self.all.is_empty() {
            return self.last.1;
        }
        let number = match self.numbers.get(&hash) {
            Some(number) => *number,
            None if self.all.len() >= MOST && parts != [OTHERS; 4] => self.adopt(&Origin {
                user: OTHERS.into(),
                database: OTHERS.into(),
                application: OTHERS.into(),
                host: OTHERS.into(),
            }),
            None => self.push(hash, Origin::from(head)),
        };
        self.last = (hash, number);
        number
    }

    fn push(&mut self, hash: u64, origin: Origin) -> u32 {
        let number = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        let application = self.application(&origin.application);
        self.of.push(application);
        self.all.push(origin);
        self.identities.push(hash);
        self.numbers.insert(hash, number);
        number
    }

    /// Return the number of an application by its name.
    pub(crate) fn application(&mut self, name: &[u8]) -> u32 {
        let place = self.applications.iter().position(|one| **one == *name);
        let place = match place {
            Some(place) => place,
            None if self.applications.len() >= MOST_APPLICATIONS && name != OTHERS => {
                return self.application(OTHERS);
            }
            None => {
                self.applications.push(name.into());
                self.applications.len() - 1
            }
        };
        u32::try_from(place).unwrap_or(u32::MAX)
    }

    /// Return the number of an origin's application.
    pub(crate) fn application_of(&self, number: u32) -> u32 {
        self.of[number as usize]
    }

    /// Return the names of applications, by number.
    #[must_use]
    pub fn applications(&self) -> &[Box<[u8]>] {
        &self.applications
    }

    /// Return the number of another collection's origin.
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

    /// Return an identity for an origin that is the same in any collection.
    pub(crate) fn identity(&self, number: u32) -> u64 {
        self.identities[number as usize]
    }

    /// Return all origins, by number.
    #[must_use]
    pub fn all(&self) -> &[Origin] {
        &self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_a_number_origins_are_told_together() {
        let mut origins = Origins::default();
        let mut number = 0;
        for turn in 0..MOST + 1_000 {
            let application = format!("worker {turn}");
            let head = Head {
                application: application.as_bytes(),
                ..Head::new()
            };
            number = origins.number(&head);
        }
        assert_eq!(origins.all().len(), MOST + 1);
        assert_eq!(&*origins.all()[number as usize].application, OTHERS);
        assert_eq!(origins.applications().len(), MOST_APPLICATIONS + 1);
        let application = origins.application_of(number);
        assert_eq!(&*origins.applications()[application as usize], OTHERS);
    }
}
