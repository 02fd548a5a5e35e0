//! The stored form of all that was gathered, except the events, which are stored on their own.

use crate::form::{Form, FormError, Reader};
use crate::gather::Gathered;

impl Form for Gathered {
    fn write(&self, out: &mut Vec<u8>) {
        self.scale.write(out);
        self.coarse.write(out);
        self.origins.write(out);
        self.templates.write(out);
        self.errors.write(out);
        self.notices.write(out);
        self.activity.write(out);
        self.background.write(out);
        self.sessions.write(out);
        self.pool.write(out);
        self.executions.write(out);
        self.routes.write(out);
        self.hours.write(out);
        self.slowest.write(out);
        self.applications.write(out);
        self.steps.write(out);
        self.sieve.write(out);
        for number in [
            self.rare,
            self.entries,
            self.outside,
            self.untimed,
            self.own,
            self.heads,
            self.continuations,
            self.foreign,
            self.rejected,
        ] {
            number.write(out);
        }
        self.rejected_lines.len().write(out);
        for (file, offset, line) in &self.rejected_lines {
            (*file, *offset).write(out);
            line.write(out);
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, FormError> {
        let mut gathered = Self {
            scale: Form::read(from)?,
            coarse: Form::read(from)?,
            origins: Form::read(from)?,
            templates: Form::read(from)?,
            errors: Form::read(from)?,
            notices: Form::read(from)?,
            activity: Form::read(from)?,
            background: Form::read(from)?,
            sessions: Form::read(from)?,
            pool: Form::read(from)?,
            executions: Form::read(from)?,
            routes: Form::read(from)?,
            hours: Form::read(from)?,
            slowest: Form::read(from)?,
            applications: Form::read(from)?,
            steps: Form::read(from)?,
            sieve: Form::read(from)?,
            rare: Form::read(from)?,
            entries: Form::read(from)?,
            outside: Form::read(from)?,
            untimed: Form::read(from)?,
            own: Form::read(from)?,
            heads: Form::read(from)?,
            continuations: Form::read(from)?,
            foreign: Form::read(from)?,
            rejected: Form::read(from)?,
            ..Self::default()
        };
        for _ in 0..from.count()? {
            let (file, offset) = Form::read(from)?;
            let line = Form::read(from)?;
            gathered.rejected_lines.push((file, offset, line));
        }
        if gathered.is_consistent() {
            Ok(gathered)
        } else {
            Err(FormError::Damaged)
        }
    }
}

impl Gathered {
    /// Whether all numbers of templates, origins and applications are numbers of some.
    fn is_consistent(&self) -> bool {
        let (templates, origins) = (self.templates.all().len(), self.origins.all().len());
        let template = |number: u32| (number as usize) < templates;
        let origin = |number: u32| (number as usize) < origins;
        let mut errors = self.errors.all().chain(self.notices.all());
        let mut all = self.templates.all().iter();
        self.applications.len() <= self.origins.applications().len()
            && errors.all(|(_, facts)| facts.templates.keys().all(|number| template(*number)))
            && all.all(|one| one.origins().iter().all(|(number, _)| origin(*number)))
            && self.sessions.by.keys().all(|number| origin(*number))
            && self.routes.templates().all(template)
            && self
                .slowest
                .all()
                .iter()
                .all(|slow| template(slow.template) && origin(slow.origin))
    }

    /// Return how many servers there must be for the numbers of servers in this collection.
    #[must_use]
    pub fn servers(&self) -> usize {
        let activity = &self.activity;
        let numbers = (self.origins.all().iter().map(|one| one.server))
            .chain(self.origins.applications().iter().map(|one| one.server))
            .chain(self.errors.all().map(|(kind, _)| kind.server))
            .chain(self.notices.all().map(|(kind, _)| kind.server))
            .chain(activity.waits.by.keys().map(|key| key.0))
            .chain(activity.waiting.keys().map(|key| key.0))
            .chain(activity.files.by.keys().map(|key| key.0))
            .chain(activity.vacuums.by.keys().map(|key| key.0))
            .chain(activity.received.by.keys().map(|key| key.0))
            .chain(activity.cancelled.by.keys().map(|key| key.0))
            .chain(activity.checkpoints.keys().copied())
            .chain(self.background.vacuums.keys().map(|key| key.0))
            .chain(self.pool.connections.keys().map(|key| key.server))
            .chain(self.routes.senders().iter().map(|one| one.0.server));
        let series = [
            &self.executions,
            &activity.waits.series,
            &activity.files.series,
            &activity.vacuums.series,
            &activity.received.series,
            &activity.cancelled.series,
        ];
        let series = series
            .into_iter()
            .chain(self.pool.averages.iter().map(|one| &one.series))
            .map(|series| series.all().count())
            .chain([self.hours.all().count()]);
        numbers
            .map(|number| number as usize + 1)
            .chain(series)
            .max()
            .unwrap_or(0)
    }
}
