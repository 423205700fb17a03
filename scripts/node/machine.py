"""What a machine is, as far as speed and limits depend on it."""

import os
import re
from pathlib import Path


def cores():
    """Those that this process may use: a container's may be fewer than the machine's."""
    return len(os.sched_getaffinity(0))


def memory_gib():
    """As the kernel says; None where it does not."""
    told = Path("/proc/meminfo")
    total = re.search(r"^MemTotal:\s+(\d+) kB", told.read_text(), re.MULTILINE) if told.is_file() else None
    return int(total.group(1)) / 2**20 if total else None


def described():
    """Kernel, cores and memory, in a line."""
    memory = memory_gib()
    return f"Linux {os.uname().release}, {cores()} cores, {f'{memory:.1f} GiB' if memory else 'unknown'} of memory"
