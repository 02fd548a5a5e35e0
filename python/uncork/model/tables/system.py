"""The stored tables of the system sampler; `register` joins them to the others."""

from __future__ import annotations

from uncork.model.tables.table import StoredRow, column, table_of

_SAMPLING = "sampling, by number from 0; a load or profile has one"
_OWN_NS = "processor time of the sampler itself"
_TICK = "interval between two readings, by number from 0"
_PROCESS = "process, by number from 0 within its sampling"
_REQUESTS = "requests, or packets"


class SystemSamplingRow(StoredRow):
    """One sampling of machine and processes: of a trial, a load, or a watched server."""

    sampling: int = column(_SAMPLING)
    round: int | None = column("for a trial: see the table trials; for a load step of a sweep")
    block: int | None = column("for a trial; for a sweep the load step's number")
    cell: str | None = column("of a trial")
    workload: str | None = column("of a trial")
    variant: str | None = column("of a trial")
    again: bool | None = column("of a trial")
    begun_us: int | None = column("first reading, since 1970 in UTC", "µs")
    elapsed_ns: int | None = column("from the first reading to the last", "ns")
    period_ns: int | None = column("time asked for between two readings", "ns")
    missed: int | None = column("readings left out because the sampler was late")
    own_ns: int | None = column(_OWN_NS, "ns")
    bounds: str | None = column("limits of the watched processes (quota, processors), as JSON")
    lacks: str | None = column("what could not be read, and why, as JSON")


class SystemSampleRow(StoredRow):
    """The machine in one interval; null for what the kernel does not report."""

    sampling: int = column(_SAMPLING)
    tick: int = column(_TICK)
    end_ns: int | None = column("its end, from the first reading", "ns")
    length_ns: int | None = column("its length", "ns")
    late_ns: int | None = column("delay of the reading at its end", "ns")
    cpus: int | None = column("processors online")
    user_ns: int | None = column("processor time in programs, guests included, as all modes", "ns")
    nice_ns: int | None = column("in programs of low priority", "ns")
    system_ns: int | None = column("in the kernel", "ns")
    idle_ns: int | None = column("idle", "ns")
    iowait_ns: int | None = column("idle while something waited for a disk", "ns")
    irq_ns: int | None = column("serving interrupts", "ns")
    softirq_ns: int | None = column("serving what interrupts left to do", "ns")
    steal_ns: int | None = column("taken by the hypervisor for others", "ns")
    guest_ns: int | None = column("in virtual machines of this one; part of user and nice", "ns")
    running: int | None = column("tasks that ran or could at its end")
    blocked: int | None = column("tasks that waited for a device at its end")
    switches: int | None = column("switches from one task to another")
    forks: int | None = column("tasks begun")
    cpu_some_ns: int | None = column("time that any task waited for a processor", "ns")
    io_some_ns: int | None = column("time that any task waited for a disk", "ns")
    io_full_ns: int | None = column("time that all tasks with work waited for a disk", "ns")
    memory_some_ns: int | None = column("time that any task waited for memory", "ns")
    memory_full_ns: int | None = column("time that all tasks with work waited for memory", "ns")
    own_ns: int | None = column(_OWN_NS, "ns")


class SystemProcessRow(StoredRow):
    """One watched process."""

    sampling: int = column(_SAMPLING)
    process: int = column(_PROCESS)
    pid: int | None = column("process id; null for those together that ended unseen")
    role: str | None = column("server, generator, or the name it was given")
    kind: str | None = column("what it does, such as client backend or checkpointer")
    seen_ns: int | None = column("first seen, from the first reading; 0 if there at the start", "ns")
    ended_ns: int | None = column("missed; null if it was there to the end", "ns")


class SystemProcessSampleRow(StoredRow):
    """A process that ran in one interval. All but cpu_ns counts from when it was last read."""

    sampling: int = column(_SAMPLING)
    tick: int = column(_TICK)
    process: int = column(_PROCESS)
    cpu_ns: int | None = column("processor time, exact", "ns")
    user_ns: int | None = column("in user mode, to 10 ms", "ns")
    system_ns: int | None = column("in the kernel, to 10 ms", "ns")
    minor_faults: int | None = column("page faults that needed no disk")
    major_faults: int | None = column("page faults that did")
    rss_bytes: int | None = column("memory in use, what is shared counted whole", "B")
    pss_bytes: int | None = column("memory in use, what is shared divided among its users", "B")
    voluntary_switches: int | None = column("times it left the processor to wait")
    involuntary_switches: int | None = column("times it was taken off the processor")
    read_calls: int | None = column("system calls that read")
    write_calls: int | None = column("system calls that wrote")
    read_bytes: int | None = column("read from disks", "B")
    written_bytes: int | None = column("on their way to disks", "B")


class SystemDeviceRow(StoredRow):
    """A disk or network interface that was used in one interval; an interface reads what it receives."""

    sampling: int = column(_SAMPLING)
    tick: int = column(_TICK)
    network: bool | None = column("true for a network interface")
    device: str = column("device")
    reads: int | None = column(_REQUESTS)
    read_bytes: int | None = column("bytes of them", "B")
    read_ns: int | None = column("time of all reads together; of disks", "ns")
    writes: int | None = column(_REQUESTS)
    written_bytes: int | None = column("bytes of them", "B")
    write_ns: int | None = column("time of all writes together; of disks", "ns")
    busy_ns: int | None = column("time with anything under way; of disks", "ns")
    flushes: int | None = column("flushes; of disks, since Linux 5.5")
    lost: int | None = column("packets lost or damaged; of interfaces")


class SystemGroupRow(StoredRow):
    """A control group in one interval in which its processor quota was counted."""

    sampling: int = column(_SAMPLING)
    tick: int = column(_TICK)
    role: str = column("the roles of the processes in it")
    periods: int | None = column("periods of the quota")
    throttled_periods: int | None = column("periods in which it was used up")
    throttled_ns: int | None = column("time that processes were kept from running", "ns")
    burst_periods: int | None = column("periods in which saved time was used beyond it")
    burst_ns: int | None = column("how much of it was; null where the kernel does not tell", "ns")


SYSTEM_TABLES = (
    table_of("system_samplings", SystemSamplingRow, "sampling"),
    table_of("system_samples", SystemSampleRow, "sampling", "tick"),
    table_of("system_processes", SystemProcessRow, "sampling", "process"),
    table_of("system_process_samples", SystemProcessSampleRow, "sampling", "tick", "process"),
    table_of("system_devices", SystemDeviceRow, "sampling", "tick", "device"),
    table_of("system_groups", SystemGroupRow, "sampling", "tick", "role"),
)
