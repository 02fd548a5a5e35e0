//! `/proc/diskstats` and `/proc/net/dev`.

/// The kernel's sector size, independent of the disk's.
const SECTOR_BYTES: u64 = 512;
const NS_PER_MS: u64 = 1_000_000;

/// Counts of a block device since boot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Disk {
    pub(crate) reads: u64,
    pub(crate) read_bytes: u64,
    /// Total time of all reads.
    pub(crate) read_ns: u64,
    pub(crate) writes: u64,
    pub(crate) written_bytes: u64,
    /// Total time of all writes.
    pub(crate) write_ns: u64,
    /// Time with any request under way.
    pub(crate) busy_ns: u64,
    /// Flushes, reported since Linux 5.5.
    pub(crate) flushes: Option<u64>,
}

/// Iterate over each device's name and counts. Lines of the seven-field form of old partitions are
/// skipped.
pub(crate) fn parse_disks(text: &str) -> impl Iterator<Item = (&str, Disk)> {
    text.lines().filter_map(|line| {
        let mut fields = line.split_whitespace().skip(2);
        let name = fields.next()?;
        let mut numbers = [0_u64; 17];
        let mut count = 0;
        for (place, number) in numbers.iter_mut().zip(fields) {
            *place = number.parse().ok()?;
            count += 1;
        }
        (count >= 11).then_some((
            name,
            Disk {
                reads: numbers[0],
                read_bytes: numbers[2] * SECTOR_BYTES,
                read_ns: numbers[3] * NS_PER_MS,
                writes: numbers[4],
                written_bytes: numbers[6] * SECTOR_BYTES,
                write_ns: numbers[7] * NS_PER_MS,
                busy_ns: numbers[9] * NS_PER_MS,
                flushes: (count >= 16).then_some(numbers[15]),
            },
        ))
    })
}

/// Counts of a network interface since it came up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Interface {
    pub(crate) received_bytes: u64,
    pub(crate) received: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) sent: u64,
    /// Errors and drops in both directions.
    pub(crate) lost: u64,
}

/// Iterate over each interface's name and counts.
pub(crate) fn parse_interfaces(text: &str) -> impl Iterator<Item = (&str, Interface)> {
    text.lines().filter_map(|line| {
        // Old kernels write no space after the colon.
        let (name, fields) = line.split_once(':')?;
        let mut numbers = [0_u64; 16];
        let mut count = 0;
        for (place, number) in numbers.iter_mut().zip(fields.split_whitespace()) {
            *place = number.parse().ok()?;
            count += 1;
        }
        (count == 16).then_some((
            name.trim(),
            Interface {
                received_bytes: numbers[0],
                received: numbers[1],
                sent_bytes: numbers[8],
                sent: numbers[9],
                lost: numbers[2] + numbers[3] + numbers[10] + numbers[11],
            },
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_are_read_in_the_forms_of_old_and_new_kernels() {
        let text = " 259       0 nvme0n1 10 1 80 5 20 2 160 7 0 9 12 0 0 0 0 3 4\n\
                    8       0 sda 1 0 2 3 4 0 6 7 0 9 10\n\
                    8       1 sda1 1 2 3 4\n";
        let found: Vec<_> = parse_disks(text).collect();
        assert_eq!(found.len(), 2);
        let (name, disk) = found[0];
        assert_eq!(name, "nvme0n1");
        assert_eq!(
            (disk.reads, disk.read_bytes, disk.read_ns),
            (10, 40_960, 5_000_000)
        );
        assert_eq!(
            (disk.writes, disk.written_bytes, disk.write_ns),
            (20, 81_920, 7_000_000)
        );
        assert_eq!((disk.busy_ns, disk.flushes), (9_000_000, Some(3)));
        assert_eq!((found[1].0, found[1].1.flushes), ("sda", None));
    }

    #[test]
    fn interfaces_are_read_without_the_headings() {
        let text = "Inter-|   Receive                  |  Transmit\n \
                    face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets \
                    errs drop fifo colls carrier compressed\n    \
                    lo: 100 2 0 0 0 0 0 0 100 2 0 0 0 0 0 0\n  \
                    eth0:7 1 1 2 0 0 0 0 9 3 4 5 0 0 0 0\n";
        let found: Vec<_> = parse_interfaces(text).collect();
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].0, "lo");
        let expected = Interface {
            received_bytes: 7,
            received: 1,
            sent_bytes: 9,
            sent: 3,
            lost: 12,
        };
        assert_eq!(found[1], ("eth0", expected));
    }
}
