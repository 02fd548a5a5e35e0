//! The streams that the server opens: control, the two of QPACK, and ones to ignore. Pure.

use super::frames::{
    CONTROL_STREAM, DATA, GOAWAY, HEADERS, OF_HTTP_2, PUSH_PROMISE, PUSH_STREAM, SETTINGS,
    read_number,
};
use super::garbage;
use crate::http::fault::Fault;

/// The longest frame of the control stream that is kept.
const LONGEST_FRAME: u64 = 16 * 1024;

/// A stream that the server opened.
#[derive(Debug, Default)]
pub(super) struct ServerStream {
    purpose: Purpose,
    /// A stream type or a frame that is incomplete.
    pending: Vec<u8>,
    /// Bytes of the current frame that are ignored.
    left: u64,
    /// Whether the server's settings were received.
    greeted: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Purpose {
    /// Its type was not received yet.
    #[default]
    Unknown,
    Control,
    /// QPACK without a dynamic table has nothing to tell, and other types are reserved.
    Ignored,
}

impl ServerStream {
    /// Parse received bytes; return the first stream that the server will not process, if it
    /// announced that it takes no more requests.
    pub(super) fn receive(&mut self, bytes: &[u8]) -> Result<Option<u64>, Fault> {
        let mut joined = std::mem::take(&mut self.pending);
        joined.extend_from_slice(bytes);
        let mut rest = &joined[..];
        let mut leaves = None;
        if self.purpose == Purpose::Unknown {
            let Some(purpose) = read_number(&mut rest) else {
                self.pending = joined;
                return Ok(None);
            };
            self.purpose = match purpose {
                CONTROL_STREAM => Purpose::Control,
                PUSH_STREAM => {
                    return Err(garbage(
                        "the server pushed a resource, although push is disabled",
                    ));
                }
                _ => Purpose::Ignored,
            };
        }
        if self.purpose == Purpose::Ignored {
            return Ok(None);
        }
        while !rest.is_empty() {
            if self.left > 0 {
                let length = usize::try_from(self.left)
                    .unwrap_or(usize::MAX)
                    .min(rest.len());
                self.left -= length as u64;
                rest = &rest[length..];
                continue;
            }
            let mut behind = rest;
            let (Some(kind), Some(length)) = (read_number(&mut behind), read_number(&mut behind))
            else {
                break;
            };
            self.check(kind)?;
            if !matches!(kind, GOAWAY | SETTINGS) {
                self.left = length;
                rest = behind;
                continue;
            }
            if length > LONGEST_FRAME {
                return Err(garbage("a frame of the control stream is too long"));
            }
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            let Some((mut content, behind)) = behind.split_at_checked(length) else {
                break;
            };
            self.greeted = true;
            if kind == GOAWAY {
                let number = read_number(&mut content);
                leaves = Some(number.ok_or_else(|| garbage("a GOAWAY frame is too short"))?);
            }
            rest = behind;
        }
        self.pending.extend_from_slice(rest);
        Ok(leaves)
    }

    /// Whether the connection cannot continue without it.
    pub(super) fn is_critical(&self) -> bool {
        self.purpose == Purpose::Control
    }

    fn check(&self, kind: u64) -> Result<(), Fault> {
        if kind == SETTINGS {
            return if self.greeted {
                Err(garbage("the server sent its settings twice"))
            } else {
                Ok(())
            };
        }
        if !self.greeted {
            return Err(garbage(
                "the server's control stream begins without settings",
            ));
        }
        if matches!(kind, DATA | HEADERS | PUSH_PROMISE) || OF_HTTP_2.contains(&kind) {
            return Err(garbage("a frame does not belong on the control stream"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parse bytes in pieces of this size; return what was announced last, if nothing is wrong.
    fn read(bytes: &[u8], piece: usize) -> Result<Option<u64>, Fault> {
        let mut stream = ServerStream::default();
        let mut leaves = None;
        for part in bytes.chunks(piece) {
            leaves = stream.receive(part)?.or(leaves);
        }
        Ok(leaves)
    }

    #[test]
    fn the_server_announces_that_it_leaves() {
        // Type, settings with one value, a reserved frame, GOAWAY with a number of two bytes.
        let bytes = b"\x00\x04\x02\x01\x00\x21\x03abc\x07\x02\x40\x58";
        for piece in [1, 2, 5, 100] {
            assert_eq!(read(bytes, piece), Ok(Some(0x58)));
            assert_eq!(read(&bytes[..9], piece), Ok(None));
        }
    }

    #[test]
    fn streams_of_qpack_and_unknown_ones_are_ignored() {
        for kind in [&b"\x02"[..], b"\x03", b"\x40\x54"] {
            assert_eq!(
                read(&[kind, b"\x00\x01\x02 anything"].concat(), 2),
                Ok(None)
            );
        }
    }

    #[test]
    fn what_is_wrong_is_refused() {
        for bytes in [
            &b"\x01\x00"[..],
            b"\x00\x07\x01\x00",
            b"\x00\x04\x00\x04\x00",
            b"\x00\x04\x00\x00\x01x",
            b"\x00\x04\x00\x06\x01x",
            b"\x00\x04\x00\x07\x00",
            b"\x00\x04\x80\x01\x00\x00",
        ] {
            assert!(read(bytes, 1).is_err(), "{bytes:?}");
        }
    }
}
