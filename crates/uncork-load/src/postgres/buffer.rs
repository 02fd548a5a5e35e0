//! Received bytes that were not parsed yet.

/// First size of a connection's buffer: several of the server's own 8 KiB.
const BUFFER_BYTES: usize = 32 * 1024;

/// A window over the bytes that were received.
#[derive(Debug)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Default for Buffer {
    fn default() -> Self {
        Self {
            bytes: vec![0; BUFFER_BYTES],
            start: 0,
            end: 0,
        }
    }
}

impl Buffer {
    pub(crate) fn filled(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    pub(crate) fn consume(&mut self, length: usize) {
        self.start += length;
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        }
    }

    /// Return space to read into, with room for `need` bytes from the first unparsed one on.
    pub(crate) fn space(&mut self, need: usize) -> &mut [u8] {
        if self.end == self.bytes.len() || self.start + need > self.bytes.len() {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
            if need > self.bytes.len() {
                self.bytes.resize(need.next_power_of_two(), 0);
            }
        }
        &mut self.bytes[self.end..]
    }

    pub(crate) fn fill(&mut self, length: usize) {
        self.end += length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_makes_room_for_a_long_message() {
        let mut buffer = Buffer::default();
        let room = buffer.space(0).len();
        assert_eq!(room, BUFFER_BYTES);
        buffer.bytes[room - 2..].copy_from_slice(b"ab");
        buffer.fill(room);
        buffer.consume(room - 2);
        assert!(buffer.space(5).len() >= 3);
        assert_eq!(buffer.filled(), b"ab");
        assert!(buffer.space(3 * BUFFER_BYTES).len() >= 3 * BUFFER_BYTES - 2);
        assert_eq!(buffer.filled(), b"ab");
        buffer.consume(2);
        assert_eq!(buffer.filled(), [] as [u8; 0]);
    }
}
