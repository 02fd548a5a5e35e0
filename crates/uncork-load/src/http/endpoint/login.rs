//! Logins, which come before the worker learns that a connection is open.

use super::HttpEndpoint;
use crate::http::connection::{Context, LoginProgress, Stage};
use crate::{Endpoint, Event, Recorder};

impl HttpEndpoint {
    /// Continue the login of a connection, which the worker does not know to be open yet.
    pub(super) fn follow_login(&mut self, connection: usize, recorder: &mut Recorder) {
        if self.connections[connection].is_opening() {
            return;
        }
        let mut context = context!(self, recorder);
        match self.connections[connection].log_in(&mut context) {
            LoginProgress::Done => self.usable(connection, recorder),
            LoginProgress::Waits => {}
            LoginProgress::Begun if self.connections[connection].stage == Stage::Closed => {
                self.connect(connection, recorder);
            }
            LoginProgress::Begun => self.mark_dirty(connection),
            LoginProgress::Failed(fault) => self.not_opened(connection, &fault, recorder),
        }
    }

    /// A connection is open, and its client logged in.
    pub(super) fn usable(&mut self, connection: usize, recorder: &mut Recorder) {
        if self.connections[connection].place.is_none() {
            let place = self.by_place.len();
            self.connections[connection].place = Some(place);
            // Its number follows from the place it got, which may differ from the one it was
            // created for.
            self.connections[connection].client = self.share.client(place);
            self.by_place.push(connection);
        }
        if std::mem::take(&mut self.connections[connection].worker_waits) {
            let at_ns = self.now_ns();
            for slot in self.slots_of(connection) {
                self.happened.push_back(Event::Opened { slot, at_ns });
            }
        }
        let mut context = context!(self, recorder);
        self.connections[connection].send(&mut context);
        self.mark_dirty(connection);
    }
}
