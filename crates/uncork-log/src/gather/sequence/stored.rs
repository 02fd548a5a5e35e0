//! The stored form of sessions, and of what their order has shown.

use super::{Found, Open, Repetitions, Run, Sequence, Session, Transactions};
use crate::form::{form, form_tuple};
use crate::gather::blocking::Party;
use crate::gather::errors::Kind;
use crate::gather::example::Place;

form!(Session {
    pid,
    seen,
    last,
    waits,
    statement,
    prepared,
    is_own,
    preparation,
    prepared_at,
    failed,
    run,
    stretch,
    transaction
});
form!(Run {
    template,
    executions,
    micros,
    pace,
    first,
    last,
    place
});
form!(Open {
    origin,
    statements,
    micros,
    begin,
    last,
    pauses,
    repeated,
    place
});
form!(Repetitions {
    rows,
    executions,
    longest,
    place,
    elapsed,
    micros,
    bursts
});
form!(Transactions {
    elapsed,
    statements,
    histogram,
    micros,
    pauses,
    repeated,
    place
});
form!(Sequence {
    sessions,
    open_waits,
    found
});
form!(Found {
    repetitions,
    loops,
    transactions,
    blocking,
    holders
});
form_tuple!(
    (Party<u64>, Party<u64>) { 0, 1 };
    (Box<Kind>, Place) { 0, 1 };
);
