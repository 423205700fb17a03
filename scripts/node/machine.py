"""The facts of a machine on which speed and limits depend."""

import os
import re
from pathlib import Path


def cores():
    """The cores that this process may use; in a container they may be fewer than the machine's."""
    return len(os.sched_getaffinity(0))


def memory_gib():
    """The value from the kernel; None if it has none."""
    told = Path("/proc/meminfo")
    total = re.search(r"^MemTotal:\s+(\d+) kB", told.read_text(), re.MULTILINE) if told.is_file() else None
    return int(total.group(1)) / 2**20 if total else None


def described():
    """Kernel, cores and memory, in a line."""
    memory = memory_gib()
    return f"Linux {os.uname().release}, {cores()} cores, {f'{memory:.1f} GiB' if memory else 'unknown'} of memory"
