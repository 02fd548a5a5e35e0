//! The timeouts of opening connections and of requests.

use super::HttpEndpoint;
use crate::Recorder;
use crate::http::connection::{Connection, Context, seconds};
use crate::http::fault::{Fault, Kind};
use crate::http::slot::SlotState;

/// How often opening connections are checked for timeouts.
pub(super) const OPENING_CHECK_NS: u64 = 20_000_000;

impl HttpEndpoint {
    /// Give up connections that take too long to open.
    pub(super) fn check_opening(&mut self, now_ns: u64, recorder: &mut Recorder) {
        if now_ns < self.opening_check_ns {
            return;
        }
        let timeout_ns = self.state.plan.connect_timeout_ns;
        for connection in 0..self.connections.len() {
            let it = &self.connections[connection];
            if it.is_opening() && now_ns.saturating_sub(it.begun_ns) >= timeout_ns {
                let (place, seconds) = (self.state.place(), seconds(timeout_ns));
                let hint = if self.state.speaks_http3() {
                    "; does it speak HTTP/3, and does UDP get through? Leave out --h3 to use TCP"
                } else {
                    ""
                };
                let message =
                    format!("{place} did not accept the connection within {seconds} s{hint}");
                let fault = Fault::new(Kind::ConnectTimeout, message);
                self.not_opened(connection, &fault, recorder);
            }
        }
        let opening = self.connections.iter().any(Connection::is_opening);
        self.opening_check_ns = if opening {
            now_ns + OPENING_CHECK_NS
        } else {
            u64::MAX
        };
    }

    /// Fail requests that take too long.
    pub(super) fn expire(&mut self, now_ns: u64, recorder: &mut Recorder) {
        let Some(timeout_ns) = self.state.plan.request_timeout_ns else {
            return;
        };
        if self.expires_ns == u64::MAX {
            self.expires_ns = now_ns.saturating_add(timeout_ns);
        }
        if now_ns < self.expires_ns {
            return;
        }
        let before_ns = now_ns.saturating_sub(timeout_ns);
        for connection in 0..self.connections.len() {
            let mut context = context!(self, recorder);
            let ended = self.connections[connection].expire(before_ns, &mut context);
            if std::mem::take(&mut self.connections[connection].dirty) {
                self.mark_dirty(connection);
            }
            if let Some(ended) = ended {
                self.ended(connection, &ended, recorder);
            }
            if self.connections[connection].login_failed() {
                self.follow_login(connection, recorder);
            }
        }
        let under_way = self
            .connections
            .iter()
            .flat_map(|connection| &connection.slots);
        let under_way = under_way.filter(|slot| slot.state != SlotState::Free);
        let oldest_ns = under_way
            .map(|slot| slot.task.at_ns)
            .min()
            .unwrap_or(now_ns);
        // At most every millisecond.
        self.expires_ns = oldest_ns.saturating_add(timeout_ns).max(now_ns + 1_000_000);
    }
}
