//! The stored form of templates.

use crate::form::{Form, FormError, Reader, form};
use crate::gather::templates::{Elements, Template, TemplateDetails, Templates, Wanted};
use crate::gather::times::Times;
use crate::template::control::Control;

form!(Elements {
    count,
    sum,
    min,
    max
});

impl Form for TemplateDetails {
    fn write(&self, out: &mut Vec<u8>) {
        self.text.write(out);
        self.identity.0.write(out);
        self.identity.1.write(out);
        self.plans.write(out);
        self.rows.write(out);
        self.plan.write(out);
        self.parses.write(out);
        self.binds.write(out);
        self.elements.write(out);
        self.cut.write(out);
        self.slowest.write(out);
        self.newest.write(out);
        self.by_duration.write(out);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, FormError> {
        Ok(Self {
            text: Form::read(from)?,
            identity: (u64::read(from)?, Control::read(from)?),
            plans: Form::read(from)?,
            rows: Form::read(from)?,
            plan: Form::read(from)?,
            parses: Form::read(from)?,
            binds: Form::read(from)?,
            elements: Form::read(from)?,
            cut: Form::read(from)?,
            slowest: Form::read(from)?,
            newest: Form::read(from)?,
            by_duration: Form::read(from)?,
            ..Self::default()
        })
    }
}

impl Form for Template {
    fn write(&self, out: &mut Vec<u8>) {
        self.executions.write(out);
        self.histogram.write(out);
        self.series.write(out);
        self.seen.write(out);
        self.more.write(out);
        let origins = self.origins();
        origins.len().write(out);
        for (origin, times) in origins {
            origin.write(out);
            times.write(out);
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, FormError> {
        let mut template = Self {
            executions: Form::read(from)?,
            histogram: Form::read(from)?,
            series: Form::read(from)?,
            seen: Form::read(from)?,
            more: Form::read(from)?,
            ..Self::default()
        };
        for _ in 0..from.count()? {
            let origin = u32::read(from)?;
            template.more.by_origin(origin).merge(&Times::read(from)?);
        }
        Ok(template)
    }
}

impl Form for Templates {
    fn write(&self, out: &mut Vec<u8>) {
        self.assert_settled();
        self.all.write(out);
        let mut ids: Vec<_> = self.query_ids.iter().collect();
        ids.sort_unstable();
        ids.len().write(out);
        for ((number, id), executions) in ids {
            number.write(out);
            id.write(out);
            executions.write(out);
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, FormError> {
        let all: Vec<Template> = Vec::read(from)?;
        let names = all.iter().map(|template| template.more.text.clone());
        let mut templates = Self {
            numbers: names.zip(0..).collect(),
            ..Self::default()
        };
        for _ in 0..from.count()? {
            let number = u32::read(from)?;
            if number as usize >= all.len() {
                return Err(FormError::Damaged);
            }
            let key = (number, i64::read(from)?);
            templates.query_ids.insert(key, u64::read(from)?);
        }
        templates.wanted = all.iter().map(Wanted::of).collect();
        templates.all = all;
        Ok(templates)
    }
}
