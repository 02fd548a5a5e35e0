//! The tables of HPACK: the static table (RFC 7541, appendix A), and the dynamic table of one
//! connection.

use std::collections::VecDeque;

/// Bytes that a field takes in a table, in addition to its name and value.
const OVERHEAD: usize = 32;

/// The static table; the first entry has the index 1.
pub(super) const STATIC: [(&[u8], &[u8]); 61] = [
    (b":authority", b""),
    (b":method", b"GET"),
    (b":method", b"POST"),
    (b":path", b"/"),
    (b":path", b"/index.html"),
    (b":scheme", b"http"),
    (b":scheme", b"https"),
    (b":status", b"200"),
    (b":status", b"204"),
    (b":status", b"206"),
    (b":status", b"304"),
    (b":status", b"400"),
    (b":status", b"404"),
    (b":status", b"500"),
    (b"accept-charset", b""),
    (b"accept-encoding", b"gzip, deflate"),
    (b"accept-language", b""),
    (b"accept-ranges", b""),
    (b"accept", b""),
    (b"access-control-allow-origin", b""),
    (b"age", b""),
    (b"allow", b""),
    (b"authorization", b""),
    (b"cache-control", b""),
    (b"content-disposition", b""),
    (b"content-encoding", b""),
    (b"content-language", b""),
    (b"content-length", b""),
    (b"content-location", b""),
    (b"content-range", b""),
    (b"content-type", b""),
    (b"cookie", b""),
    (b"date", b""),
    (b"etag", b""),
    (b"expect", b""),
    (b"expires", b""),
    (b"from", b""),
    (b"host", b""),
    (b"if-match", b""),
    (b"if-modified-since", b""),
    (b"if-none-match", b""),
    (b"if-range", b""),
    (b"if-unmodified-since", b""),
    (b"last-modified", b""),
    (b"link", b""),
    (b"location", b""),
    (b"max-forwards", b""),
    (b"proxy-authenticate", b""),
    (b"proxy-authorization", b""),
    (b"range", b""),
    (b"referer", b""),
    (b"refresh", b""),
    (b"retry-after", b""),
    (b"server", b""),
    (b"set-cookie", b""),
    (b"strict-transport-security", b""),
    (b"transfer-encoding", b""),
    (b"user-agent", b""),
    (b"vary", b""),
    (b"via", b""),
    (b"www-authenticate", b""),
];

/// Name and value.
pub(super) type Field = (Box<[u8]>, Box<[u8]>);

/// The dynamic table, the newest field first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Table {
    fields: VecDeque<Field>,
    size: usize,
    /// Its capacity.
    capacity: usize,
}

/// Bytes that a field takes in a table.
pub(super) fn size_of(name: &[u8], value: &[u8]) -> usize {
    name.len() + value.len() + OVERHEAD
}

impl Table {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            fields: VecDeque::new(),
            size: 0,
            capacity,
        }
    }

    /// Whether an index refers to the dynamic table.
    pub(super) fn is_own(index: usize) -> bool {
        index > STATIC.len()
    }

    /// Return the field at an index, over both tables.
    pub(super) fn get(&self, index: usize) -> Option<(&[u8], &[u8])> {
        match index.checked_sub(1)? {
            known if known < STATIC.len() => Some(STATIC[known]),
            learnt => {
                let (name, value) = self.fields.get(learnt - STATIC.len())?;
                Some((name, value))
            }
        }
    }

    /// Add a field; the oldest fields are evicted to make room.
    pub(super) fn add(&mut self, name: &[u8], value: &[u8]) {
        let size = size_of(name, value);
        self.shrink(self.capacity.saturating_sub(size));
        // A field that is larger than the table empties it.
        if size <= self.capacity {
            self.size += size;
            self.fields.push_front((name.into(), value.into()));
        }
    }

    /// Change the capacity.
    pub(super) fn resize(&mut self, capacity: usize) {
        self.capacity = capacity;
        self.shrink(capacity);
    }

    fn shrink(&mut self, size: usize) {
        while self.size > size
            && let Some((name, value)) = self.fields.pop_back()
        {
            self.size -= size_of(&name, &value);
        }
    }

    #[cfg(test)]
    pub(super) fn size(&self) -> usize {
        self.size
    }
}
