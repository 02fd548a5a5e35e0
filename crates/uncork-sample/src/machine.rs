//! Reads the machine: processors, pressure, disks, interfaces.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;

use crate::host::{Host, OpenFile};
use crate::parse::{
    Disk, Interface, MachineTicks, Pressure, parse_disks, parse_interfaces, parse_machine,
    parse_pressure,
};
use crate::series::{DeviceTick, Missing, Modes, Stalls, Tick};

/// The machine's last readings.
#[derive(Debug)]
pub(crate) struct Machine {
    tick_ns: u64,
    stat: Source,
    pressure: [Source; 3],
    disks: Source,
    interfaces: Source,
    /// Disks without their partitions; `None` if they cannot be distinguished.
    whole_disks: Option<BTreeSet<String>>,
    last: Readings,
}

/// An open file, or the reason why it could not be opened.
#[derive(Debug)]
struct Source {
    what: &'static str,
    file: io::Result<OpenFile>,
}

#[derive(Debug, Default)]
struct Readings {
    machine: Option<MachineTicks>,
    pressure: [Option<Pressure>; 3],
    disks: BTreeMap<String, Disk>,
    interfaces: BTreeMap<String, Interface>,
}

impl Machine {
    pub(crate) fn new(host: &Host, tick_ns: u64) -> Self {
        let source = |what, below| Source {
            what,
            file: host.keep(below),
        };
        let whole_disks = fs::read_dir(host.path("sys/block")).ok().map(|entries| {
            let names = entries.flatten().map(|entry| entry.file_name());
            names.filter_map(|name| name.into_string().ok()).collect()
        });
        Self {
            tick_ns,
            stat: source("processor time of the machine", "proc/stat"),
            pressure: [
                source("pressure on processors", "proc/pressure/cpu"),
                source("pressure on disks", "proc/pressure/io"),
                source("pressure on memory", "proc/pressure/memory"),
            ],
            disks: source("disks", "proc/diskstats"),
            interfaces: source("network interfaces", "proc/net/dev"),
            whole_disks,
            last: Readings::default(),
        }
    }

    /// Read everything, and fill in the differences to the last reading.
    pub(crate) fn read(
        &mut self,
        tick: u32,
        row: &mut Tick,
        devices: &mut Vec<DeviceTick>,
        buffer: &mut Vec<u8>,
    ) {
        let machine = self.stat.read(buffer).and_then(parse_machine);
        if let (Some(then), Some(now)) = (self.last.machine, machine) {
            row.modes = Some(modes(&then, &now, self.tick_ns));
            row.switches = between(then.switches, now.switches);
            row.forks = between(then.forks, now.forks);
        }
        if let Some(now) = machine {
            row.cpus = Some(now.cpus);
            row.running = now.running;
            row.blocked = now.blocked;
        }
        let mut pressure = [None; 3];
        for (found, source) in pressure.iter_mut().zip(&self.pressure) {
            *found = source.read(buffer).and_then(parse_pressure);
        }
        row.stalls = stalls(&self.last.pressure, &pressure);
        self.last.machine = machine;
        self.last.pressure = pressure;
        self.read_disks(tick, devices, buffer);
        self.read_interfaces(tick, devices, buffer);
    }

    /// Number of tasks begun since boot, at the last reading.
    pub(crate) fn forks(&self) -> Option<u64> {
        self.last.machine?.forks
    }

    pub(crate) fn lacks(&self) -> impl Iterator<Item = Missing> {
        let sources = [&self.stat, &self.disks, &self.interfaces];
        let lacks = sources.into_iter().chain(&self.pressure);
        lacks.filter_map(|source| {
            let reason = match &source.file {
                Err(error) => error.to_string(),
                // A file that exists may still be unreadable, such as pressure that is switched
                // off.
                Ok(file) => file.read(&mut Vec::new()).err()?.to_string(),
            };
            Some(Missing {
                what: source.what.to_owned(),
                reason,
            })
        })
    }

    fn read_disks(&mut self, tick: u32, devices: &mut Vec<DeviceTick>, buffer: &mut Vec<u8>) {
        let Some(text) = self.disks.read(buffer) else {
            return;
        };
        for (name, now) in parse_disks(text) {
            let wanted = self
                .whole_disks
                .as_ref()
                .is_none_or(|all| all.contains(name));
            if !wanted || now == Disk::default() {
                continue;
            }
            let Some(then) = self.last.disks.get_mut(name) else {
                self.last.disks.insert(name.to_owned(), now);
                continue;
            };
            if *then != now {
                devices.push(disk_row(tick, name, then, &now));
                *then = now;
            }
        }
    }

    fn read_interfaces(&mut self, tick: u32, devices: &mut Vec<DeviceTick>, buffer: &mut Vec<u8>) {
        let Some(text) = self.interfaces.read(buffer) else {
            return;
        };
        for (name, now) in parse_interfaces(text) {
            let Some(then) = self.last.interfaces.get_mut(name) else {
                self.last.interfaces.insert(name.to_owned(), now);
                continue;
            };
            if *then != now {
                devices.push(interface_row(tick, name, then, &now));
                *then = now;
            }
        }
    }
}

impl Source {
    fn read<'a>(&self, buffer: &'a mut Vec<u8>) -> Option<&'a str> {
        self.file.as_ref().ok()?.read(buffer).ok()
    }
}

fn between(then: Option<u64>, now: Option<u64>) -> Option<u64> {
    Some(now?.saturating_sub(then?))
}

/// Differences are never negative: idle and waiting times of processors that go offline and online
/// may decrease.
fn modes(then: &MachineTicks, now: &MachineTicks, tick_ns: u64) -> Modes {
    let passed = |get: fn(&MachineTicks) -> u64| get(now).saturating_sub(get(then)) * tick_ns;
    Modes {
        user_ns: passed(|ticks| ticks.user),
        nice_ns: passed(|ticks| ticks.nice),
        system_ns: passed(|ticks| ticks.system),
        idle_ns: passed(|ticks| ticks.idle),
        iowait_ns: passed(|ticks| ticks.iowait),
        irq_ns: passed(|ticks| ticks.irq),
        softirq_ns: passed(|ticks| ticks.softirq),
        steal_ns: passed(|ticks| ticks.steal),
        guest_ns: passed(|ticks| ticks.guest),
    }
}

fn stalls(then: &[Option<Pressure>; 3], now: &[Option<Pressure>; 3]) -> Stalls {
    let passed = |place: usize, get: fn(&Pressure) -> Option<u64>| {
        let (then, now) = (then[place].as_ref()?, now[place].as_ref()?);
        Some(between(get(then), get(now))? * 1_000)
    };
    let some = |pressure: &Pressure| Some(pressure.some_us);
    let full = |pressure: &Pressure| pressure.full_us;
    Stalls {
        cpu_some_ns: passed(0, some),
        io_some_ns: passed(1, some),
        io_full_ns: passed(1, full),
        memory_some_ns: passed(2, some),
        memory_full_ns: passed(2, full),
    }
}

fn disk_row(tick: u32, name: &str, then: &Disk, now: &Disk) -> DeviceTick {
    let passed = |get: fn(&Disk) -> u64| get(now).saturating_sub(get(then));
    DeviceTick {
        tick,
        network: false,
        name: name.to_owned(),
        reads: passed(|disk| disk.reads),
        read_bytes: passed(|disk| disk.read_bytes),
        read_ns: Some(passed(|disk| disk.read_ns)),
        writes: passed(|disk| disk.writes),
        written_bytes: passed(|disk| disk.written_bytes),
        write_ns: Some(passed(|disk| disk.write_ns)),
        busy_ns: Some(passed(|disk| disk.busy_ns)),
        flushes: between(then.flushes, now.flushes),
        lost: None,
    }
}

fn interface_row(tick: u32, name: &str, then: &Interface, now: &Interface) -> DeviceTick {
    let passed = |get: fn(&Interface) -> u64| get(now).saturating_sub(get(then));
    DeviceTick {
        tick,
        network: true,
        name: name.to_owned(),
        reads: passed(|interface| interface.received),
        read_bytes: passed(|interface| interface.received_bytes),
        writes: passed(|interface| interface.sent),
        written_bytes: passed(|interface| interface.sent_bytes),
        lost: Some(passed(|interface| interface.lost)),
        ..DeviceTick::default()
    }
}
