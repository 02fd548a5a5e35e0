"""Facts about this machine, which decide whether two runs are comparable."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def machine_facts() -> dict[str, str]:
    """Return facts about processor, memory, kernel, clock and virtualisation, without unreadable ones."""
    memory = memory_bytes()
    facts = {
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "processors": str(len(os.sched_getaffinity(0))),
        "processor": _line("/proc/cpuinfo", "model name", "Model").partition(":")[2].strip(),
        "memory": "" if memory is None else f"{memory / 1024**3:.1f} GiB",
        "clock source": _read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "frequency governor": _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "turbo disabled": _read("/sys/devices/system/cpu/intel_pstate/no_turbo"),
        "transparent huge pages": _read("/sys/kernel/mm/transparent_hugepage/enabled"),
        "virtualised": "yes" if "hypervisor" in _line("/proc/cpuinfo", "flags").split() else "no",
        "load average at start": " ".join(f"{value:.2f}" for value in os.getloadavg()),
        "python": platform.python_version(),
    }
    return {name: value for name, value in facts.items() if value}


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def _line(path: str, *beginnings: str) -> str:
    """Return the first line of a file that begins so; empty if there is none."""
    return next((line for line in _read(path).splitlines() if line.startswith(beginnings)), "")


def memory_bytes() -> int | None:
    """Return the size of this machine's memory; None if the kernel does not report it."""
    line = _line("/proc/meminfo", "MemTotal")
    return int(line.split()[1]) * 1024 if line else None


def stolen_ns() -> int:
    """Return the processor time that the hypervisor has stolen from this machine since boot."""
    fields = _read("/proc/stat").partition("\n")[0].split()
    return int(fields[8]) * (1_000_000_000 // os.sysconf("SC_CLK_TCK")) if len(fields) > 8 else 0


def throttled_ns() -> int | None:
    """Return how long this control group was throttled; None if the kernel does not report it."""
    line = _line("/sys/fs/cgroup/cpu.stat", "throttled_usec ")
    return int(line.split()[1]) * 1000 if line else None
