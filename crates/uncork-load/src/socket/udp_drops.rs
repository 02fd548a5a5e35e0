//! Datagrams that this machine dropped because the buffer of their socket was full.
//!
//! Linux counts them for all sockets of a network namespace together: those of a server on the same
//! machine count, too.

use std::fs;

/// How many datagrams were dropped since the machine started; 0 if the system does not count them.
pub(crate) fn udp_drops() -> u64 {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    of_udp(&read("/proc/self/net/snmp")) + of_udp6(&read("/proc/self/net/snmp6"))
}

/// The count in `snmp`: a line of names, and a line of values.
fn of_udp(text: &str) -> u64 {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else {
        return 0;
    };
    let mut pairs = names.split(' ').zip(values.split(' '));
    let found = pairs.find(|(name, _)| *name == "RcvbufErrors");
    found.and_then(|(_, value)| value.parse().ok()).unwrap_or(0)
}

/// The count in `snmp6`: a name and a value a line.
fn of_udp6(text: &str) -> u64 {
    let mut lines = text.lines();
    let value = lines.find_map(|line| line.strip_prefix("Udp6RcvbufErrors"));
    value
        .and_then(|value| value.trim().parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_counted_for_both_families() {
        let snmp = "Tcp: MaxConn RcvbufErrors\nTcp: 1 9\n\
            Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors\n\
            Udp: 1001 2 37 990 35 0\nUdpLite: InDatagrams RcvbufErrors\nUdpLite: 0 8\n";
        assert_eq!(of_udp(snmp), 35);
        let snmp6 = "Udp6InErrors                   \t7\nUdp6RcvbufErrors               \t4\n";
        assert_eq!(of_udp6(snmp6), 4);
        for text in [
            "",
            "Udp: A B",
            "Udp: RcvbufErrors\nUdp: many",
            "Udp6RcvbufErrors x",
        ] {
            assert_eq!((of_udp(text), of_udp6(text)), (0, 0), "{text}");
        }
    }
}
