//! The requests that a client sends before its first operation. They use the connection's first
//! slot, one after the other; the worker learns only then that the connection is open.

use super::{Connection, Context, Stage};
use crate::Task;
use crate::http::fault::Fault;
use crate::http::session::Login;

/// How far a client's login is.
#[derive(Debug)]
pub(crate) enum LoginProgress {
    /// There is none to carry out.
    Done,
    /// A step is under way.
    Waits,
    /// A step was begun: write it, and connect first if the connection is closed.
    Begun,
    /// It failed. The next attempt begins with the first step.
    Failed(Fault),
}

impl Connection {
    /// Whether the login is not complete.
    pub(crate) fn logs_in(&self) -> bool {
        let session = self.session.as_deref();
        session.is_some_and(|session| !matches!(session.login, Login::Done))
    }

    /// Whether the login failed, and nothing was done about it yet.
    pub(crate) fn login_failed(&self) -> bool {
        let session = self.session.as_deref();
        session.is_some_and(|session| matches!(session.login, Login::Failed(_)))
    }

    /// Begin the login's next step, if the last one has ended.
    pub(crate) fn log_in(&mut self, context: &mut Context<'_>) -> LoginProgress {
        let Some(session) = &mut self.session else {
            return LoginProgress::Done;
        };
        match std::mem::take(&mut session.login) {
            Login::Done => LoginProgress::Done,
            Login::Sent(step) => {
                session.login = Login::Sent(step);
                LoginProgress::Waits
            }
            Login::Failed(fault) => {
                session.login = Login::Next(0);
                LoginProgress::Failed(fault)
            }
            Login::Next(step) => {
                session.login = Login::Sent(step);
                let task = Task {
                    number: self.identity as u64,
                    script: context.state.program.first_login + step,
                    at_ns: context.state.now_ns(),
                    retry_until_ns: u64::MAX,
                };
                self.begin(0, task, context);
                LoginProgress::Begun
            }
        }
    }

    /// Give up the attempt to log in; return whether the connection was open.
    pub(crate) fn restart_login(&mut self) -> bool {
        if let Some(session) = &mut self.session
            && !matches!(session.login, Login::Done)
        {
            session.login = Login::Next(0);
        }
        self.forget();
        self.stage == Stage::Open
    }
}
