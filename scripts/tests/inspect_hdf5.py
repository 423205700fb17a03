#!/usr/bin/env python3
"""Looks at each HDF5 file below some folders with `holdfast inspect`, and compares with what h5py finds in it.

    scripts/tests/inspect_hdf5.py [--build build/release] FOLDER...

Each dataset of numbers must be listed with its shape, or the output must name it as not read, with a reason. A file that
h5py opens must be opened, too. h5py has to be installed, and brings along such files, as PyTables does. The last line
counts. Exit code: 0 all as it must be, 1 not.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import h5py


def datasets_of(path):
    """The names and shapes of all datasets of numbers that hard links lead to; None where h5py does not open the file."""
    found = {}

    def note(name, item):
        try:
            if isinstance(item, h5py.Dataset) and item.dtype.kind in "iuf":
                found[name] = None if item.shape is None else list(item.shape)
        except (TypeError, ValueError):  # a type that NumPy does not have
            pass

    try:
        with h5py.File(path) as file:
            file.visititems(note)
    except OSError:
        return None
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("folders", nargs="+", type=Path)
    arguments = parser.parse_args()
    paths = sorted(p for folder in arguments.folders for p in folder.rglob("*") if h5py.is_hdf5(p) and p.is_file())
    arrays = passed_over = whole = wrong = 0
    for path in paths:
        run = subprocess.run([str(Path(arguments.build) / "bin/holdfast"), "inspect", "--json", str(path)],
                             capture_output=True, text=True, timeout=60)
        expected = datasets_of(path)
        if run.returncode != 0:
            wrong += expected is not None
            print(f"{path}: exit code {run.returncode}, {run.stderr.strip()}")
            continue
        output = json.loads(run.stdout)
        listed = {array["name"]: array["shape"] for array in output["arrays"]}
        reasons = output.get("not_read", [])
        arrays += len(listed)
        passed_over += len(reasons)
        whole += not reasons
        for name, shape in (expected or {}).items():
            # A group that is not read, as a second name of another one, hides what is in it.
            names = [name.rsplit("/", up)[0] for up in range(name.count("/") + 1)]
            if listed.get(name) == shape or any(f'"{each}"' in reason for each in names for reason in reasons):
                continue
            wrong += 1
            print(f"{path}: {name} {shape} is neither listed nor named as not read")
    print(f"{len(paths)} files, {whole} of them read whole; {arrays} arrays read, {passed_over} things named as not read, "
          f"{wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
