//! Origins of statements: server, user, database, application and host, as one number.

use crate::form::{Form, FormError, Reader, form};
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
    /// The server, by its number among the servers whose logs are read.
    pub server: u32,
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
            server: 0,
            user: head.user.into(),
            database: head.database.into(),
            application: head.application.into(),
            host: head.host.into(),
        }
    }
}

impl Origin {
    /// Return a head with its names.
    pub(crate) fn head(&self) -> Head<'_> {
        Head {
            user: &self.user,
            database: &self.database,
            application: &self.application,
            host: &self.host,
            ..Head::new()
        }
    }
}

/// The names in a head that make an origin.
fn names<'a>(head: &Head<'a>) -> [&'a [u8]; 4] {
    [head.user, head.database, head.application, head.host]
}

/// Return the identity of an origin: it is the same in any collection.
fn identity(server: u32, head: &Head<'_>) -> u64 {
    let mut hash = Hash::new();
    for part in names(head) {
        hash.add(part, 0);
    }
    if server != 0 {
        hash.add(&server.to_le_bytes(), 1);
    }
    hash.get()
}

/// An application of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Application {
    /// The server's number.
    pub server: u32,
    /// The application's name; empty if it is not logged.
    pub name: Box<[u8]>,
}

/// All origins so far, each with its number.
#[derive(Debug, Clone, Default)]
pub struct Origins {
    /// The server whose log is read.
    server: u32,
    numbers: HashedMap<u32>,
    all: Vec<Origin>,
    identities: Vec<u64>,
    applications: Vec<Application>,
    /// The number of each origin's application.
    of: Vec<u32>,
    /// The origin of the last call: sessions write many lines in a row.
    last: (u64, u32),
}

impl Origins {
    /// Set the server of the following lines.
    pub(crate) fn begin_server(&mut self, server: u32) {
        self.server = server;
    }

    /// Return the number of a line's origin.
    pub(crate) fn number(&mut self, head: &Head<'_>) -> u32 {
        self.number_at(self.server, head)
    }

    fn number_at(&mut self, server: u32, head: &Head<'_>) -> u32 {
        let hash = identity(server, head);
        if self.last.0 == hash && !self.all.is_empty() {
            return self.last.1;
        }
        let number = match self.numbers.get(&hash) {
            Some(number) => *number,
            None if self.all.len() >= MOST && names(head) != [OTHERS; 4] => self.adopt(&Origin {
                server,
                user: OTHERS.into(),
                database: OTHERS.into(),
                application: OTHERS.into(),
                host: OTHERS.into(),
            }),
            None => {
                let names = Origin::from(head);
                self.push(hash, Origin { server, ..names })
            }
        };
        self.last = (hash, number);
        number
    }

    fn push(&mut self, hash: u64, origin: Origin) -> u32 {
        let number = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        let application = self.application(origin.server, &origin.application);
        self.of.push(application);
        self.all.push(origin);
        self.identities.push(hash);
        self.numbers.insert(hash, number);
        number
    }

    /// Return the number of an application by its server and name.
    pub(crate) fn application(&mut self, server: u32, name: &[u8]) -> u32 {
        let mut all = self.applications.iter();
        let place = all.position(|one| one.server == server && *one.name == *name);
        let place = match place {
            Some(place) => place,
            None if self.applications.len() >= MOST_APPLICATIONS && name != OTHERS => {
                return self.application(server, OTHERS);
            }
            None => {
                let name = name.into();
                self.applications.push(Application { server, name });
                self.applications.len() - 1
            }
        };
        u32::try_from(place).unwrap_or(u32::MAX)
    }

    /// Return the number of an origin's application.
    pub(crate) fn application_of(&self, number: u32) -> u32 {
        self.of[number as usize]
    }

    /// Return all applications, by number.
    #[must_use]
    pub fn applications(&self) -> &[Application] {
        &self.applications
    }

    /// Return the number of another collection's origin.
    pub(crate) fn adopt(&mut self, origin: &Origin) -> u32 {
        self.number_at(origin.server, &origin.head())
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

form!(Origin {
    server,
    user,
    database,
    application,
    host
});
form!(Application { server, name });

impl Form for Origins {
    fn write(&self, out: &mut Vec<u8>) {
        self.all.write(out);
        self.applications.write(out);
        self.of.write(out);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, FormError> {
        let all: Vec<Origin> = Vec::read(from)?;
        let applications: Vec<Application> = Vec::read(from)?;
        let of: Vec<u32> = Vec::read(from)?;
        let known = |number: &u32| (*number as usize) < applications.len();
        if of.len() != all.len() || !of.iter().all(known) {
            return Err(FormError::Damaged);
        }
        let identities: Vec<u64> = all
            .iter()
            .map(|origin| identity(origin.server, &origin.head()))
            .collect();
        Ok(Self {
            server: 0,
            numbers: identities.iter().copied().zip(0..).collect(),
            all,
            identities,
            applications,
            of,
            last: (0, 0),
        })
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
        assert_eq!(&*origins.applications()[application as usize].name, OTHERS);
    }

    #[test]
    fn equal_names_on_two_servers_are_two_origins() {
        let head = Head {
            user: b"ada",
            ..Head::new()
        };
        let mut origins = Origins::default();
        let first = origins.number(&head);
        origins.begin_server(1);
        let second = origins.number(&head);
        assert_eq!((first, second), (0, 1));
        assert_ne!(origins.identity(first), origins.identity(second));
        let mut others = Origins::default();
        for origin in origins.all().iter().rev() {
            let number = others.adopt(origin);
            assert_eq!(&others.all()[number as usize], origin);
        }
        assert_eq!(others.applications().len(), 2);
    }
}
