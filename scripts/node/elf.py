"""What shared libraries need from the machine that loads them, from readelf."""

import re
import subprocess
from pathlib import Path

# The newest needed versions of these symbols determine how old a machine may be.
COUNTED = ("GLIBC", "GLIBCXX", "CXXABI", "GOMP")


def shared_libraries(folder):
    """Files below `folder` that are shared libraries, not links to them."""
    return sorted(
        path for path in Path(folder).rglob("*.so*") if path.is_file() and not path.is_symlink() and is_elf(path)
    )


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def needs(libraries):
    """The libraries that `libraries` need from elsewhere, and the newest versions of symbols that they need."""
    brought = {name.name for library in libraries for name in library.parent.iterdir()}
    wanted = set()
    versions = {}
    for library in libraries:
        told = subprocess.run(
            ["readelf", "--wide", "--dynamic", "--version-info", str(library)],
            capture_output=True,
            text=True,
            env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"},
            check=True,
        ).stdout
        wanted |= set(re.findall(r"\(NEEDED\).*\[(.+)\]", told))
        for name, version in re.findall(r"Name: ([A-Z]+)_([0-9.]+)\s+Flags", told):
            if name in COUNTED:
                versions[name] = max(versions.get(name, "0"), version, key=as_numbers)
    return sorted(wanted - brought), dict(sorted(versions.items()))


def as_numbers(version):
    return tuple(int(part) for part in version.split("."))
