"""The common parts of scripts/gpu-test and scripts/gpu-bench: options, GPUs, the build, and lists of commands."""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from node import cuda_libraries, device, machine, manifest, prefix, steps

ROOT = Path(__file__).resolve().parent.parent.parent
NO_GPU = 77
NOT_BUILT = 2
# Seconds at the end of the budget. A command that is cut off may take 17 s to end, and then the table is written.
END_SECONDS = 20


def parser(name, text):
    made = argparse.ArgumentParser(prog=name, description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument(
        "--bundle", type=Path, help="what scripts/offline-bundle made; without it the system's packages are used"
    )
    made.add_argument("--build", type=Path, default=ROOT / "build/gpu", help="folder to build in (default: build/gpu)")
    made.add_argument(
        "--python", default=sys.executable, help="the interpreter whose packages may hold cuDNN, NCCL and PyTorch"
    )
    made.add_argument("--minutes", type=float, default=9, help="for all of it, build and end too (default: 9)")
    made.add_argument("--only", default="", metavar="REGEX", help="only what has a name like this")
    made.add_argument(
        "--build-only", action="store_true", help="build and stop; needs no GPU where --architecture is given"
    )
    made.add_argument("--architecture", help="of the GPU, as CMake names it (default: that of the first GPU)")
    return made


@dataclass
class Session:
    name: str
    arguments: argparse.Namespace
    clock: steps.Clock
    out: Path
    architecture: str
    machine: str = ""  # in a line
    device: str = ""  # the first GPU's name

    @property
    def bin(self):
        return self.arguments.build / "bin"

    def log(self, name):
        """A new empty log with this name."""
        return open(self.out / name, "wb", buffering=0)


def begin(name, arguments):
    """Starts the clock and looks for GPUs. Ends the program if a GPU is needed and there is none."""
    clock = steps.Clock(arguments.minutes * 60 - END_SECONDS)
    steps.end_with_what_runs()
    arguments.build = arguments.build.absolute()
    out = Path(os.environ.get("OUT") or arguments.build / "logs").absolute()
    out.mkdir(parents=True, exist_ok=True)
    described = machine.described()
    steps.say(f"{name}: {described}")
    found, reason = device.devices()
    for index, one in enumerate(found):
        steps.say(f"{name}: cuda:{index} is {one['name']}, sm_{one['architecture']}")
    if not found and not (arguments.build_only and arguments.architecture):
        steps.fail(name, f"no GPU here: {reason}", NO_GPU)
    # Asked only once: each query starts the driver, which takes seconds if no other process uses it.
    driver = device.driver()
    if driver:
        steps.say(f"{name}: nvidia-smi says {driver}")
    architecture = arguments.architecture or ";".join(sorted({f"{one['architecture']}-real" for one in found}))
    first = found[0]["name"] if found else ""
    return Session(name, arguments, clock, out, architecture, "; ".join(filter(None, [described, driver])), first)


def extend_path(python):
    """Adds to the end of PATH: the interpreter's folder, for pip's CMake and Ninja, and CUDA's default folder."""
    folders_after = [str(Path(python).parent), str(Path(sys.executable).parent), "/usr/local/cuda/bin"]
    os.environ["PATH"] = os.pathsep.join([os.environ.get("PATH", os.defpath), *folders_after])


def missing_tools():
    return [tool for tool in ("cmake", "ctest", "ninja", "g++", "nvcc") if shutil.which(tool) is None]


def build(session, targets, benchmarks=False):
    """Configures and builds `targets`. Ends the program if that fails."""
    extend_path(session.arguments.python)
    if missing_tools():
        steps.fail(
            session.name,
            f"these are not in PATH: {', '.join(missing_tools())}; docs/gpu.md says what a machine must have",
            NOT_BUILT,
        )
    caches = []
    if session.arguments.bundle:
        steps.say(f"{session.name}: unpacking {session.arguments.bundle}")
        try:
            caches.append(prefix.make(session.arguments.bundle.absolute(), session.arguments.build / "prefix"))
        except manifest.BundleError as failure:
            steps.fail(session.name, str(failure), NOT_BUILT)
        take_test_data(session.arguments.bundle)
    caches.append(from_pip(session))
    with session.log("build.log") as log:
        configure = [
            "cmake",
            "-S",
            str(ROOT),
            "-B",
            str(session.arguments.build),
            "-G",
            "Ninja",
            *[word for cache in caches for word in ("-C", str(cache))],
            "-DCMAKE_BUILD_TYPE=Release",
            "-DHOLDFAST_CUDA=ON",
            f"-DCMAKE_CUDA_ARCHITECTURES={session.architecture}",
            "-DHOLDFAST_WARNINGS_AS_ERRORS=OFF",
            "-DHOLDFAST_BUILD_TESTS=ON",
            "-DHOLDFAST_BUILD_EXAMPLES=ON",
            f"-DHOLDFAST_BUILD_BENCHMARKS={'ON' if benchmarks else 'OFF'}",
        ]
        told = must(session, "configure", configure, 120, log)
        for line in re.findall(r".*Holdfast: .*", told):
            steps.say(f"{session.name}: {line.strip()}")
        folder, jobs = str(session.arguments.build), str(machine.cores())
        compile_all = ["cmake", "--build", folder, "--parallel", jobs, "--target", *targets]
        must(session, "build", compile_all, session.clock.left(), log)


def must(session, step, command, limit, log):
    """Runs a step of the build and returns its output. Ends the program if the step fails."""
    steps.say(f"{session.name}: {step}")
    code, told, seconds = steps.run(command, min(limit, session.clock.left()), log)
    if code != 0:
        steps.say(told[-6000:])
        how = (
            f"was cut off after {seconds:.0f} s; the same command goes on where it stopped"
            if code is None
            else f"failed with code {code}"
        )
        steps.fail(session.name, f"{step} {how}; the whole log: {log.name}", NOT_BUILT)
    steps.say(f"{session.name}: {step} took {seconds:.0f} s")
    return told


def from_pip(session):
    """A CMake cache file with the libraries of pip packages; empty if there are none."""
    cache = session.arguments.build / "cuda-from-pip.cmake"
    cache.parent.mkdir(parents=True, exist_ok=True)
    try:
        found = cuda_libraries.find_all(session.arguments.python)
        torch = cuda_libraries.find_torch(cuda_libraries.search_path(session.arguments.python))
    except (OSError, subprocess.SubprocessError):
        found, torch = [], None
    for one in found:
        steps.say(f"{session.name}: {one.package.name} {one.version} of pip at {one.library}")
    lines = cuda_libraries.initial_cache(found)
    if torch:
        steps.say(f"{session.name}: LibTorch of pip at {torch}")
        lines += f'set(HOLDFAST_TORCH "{torch}" CACHE PATH "")\n'
    cache.write_text(lines)
    return cache


def take_test_data(bundle):
    """Tests use the bundle's data, unless the user has set HOLDFAST_TEST_DATA."""
    data = bundle.absolute() / "data"
    if data.is_dir():
        os.environ.setdefault("HOLDFAST_TEST_DATA", str(data))


# In a command's words, replaced by the seconds that it may take.
SECONDS_LEFT = "{seconds}"


@dataclass
class Command:
    name: str
    seconds: float
    words: list


def commands(path, places):
    """The commands of a file with lines `NAME | SECONDS | COMMAND`, in which {bin} and the like are `places`, and
    {seconds} is what `run_listed` gives it."""
    if not path.is_file():
        return []
    listed = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        parts = [part.strip() for part in line.split("|", 2)]
        if len(parts) != 3 or not re.fullmatch(r"\d+", parts[1]):
            raise ValueError(f"{path}:{number} is not NAME | SECONDS | COMMAND")
        words = [word.format(**places, seconds=SECONDS_LEFT) for word in shlex.split(parts[2])]
        listed.append(Command(parts[0], float(parts[1]), words))
    return listed


def run_listed(session, listed, log, environment=None):
    """One row for each command, in order. A command without time left is not run, and its row says so."""
    rows = []
    for command in listed:
        if not command.words:
            rows.append(steps.Row(command.name, steps.NOT_RUN, 0, "it was not built"))
            continue
        limit = min(command.seconds, session.clock.left())
        if limit < 1:
            rows.append(steps.Row(command.name, steps.NOT_RUN, 0, "no time was left"))
            continue
        steps.say(f"{session.name}: {command.name}")
        words = [word.replace(SECONDS_LEFT, f"{limit:.0f}") for word in command.words]
        log.write(f"\n== {command.name}: {shlex.join(words)}\n".encode())
        code, told, seconds = steps.run(words, limit, log, environment, ROOT)
        rows.append(row(command.name, code, told, seconds))
        if rows[-1].result != steps.PASSED:
            # A reader of the screen may not be able to open the log.
            steps.say(f"{told[-2000:]}\n{session.name}: {command.name}: {rows[-1].result}")
    return rows


def row(name, code, told, seconds):
    """How a command ended, and why, in a few words."""
    if code is None:
        return steps.Row(name, steps.CUT_OFF, seconds, last_words(told))
    tests = re.search(r"\[==========\] (\d+) tests? from .* ran\.", told)
    skipped = re.search(r"\[  SKIPPED \] (\d+) tests?, listed below", told)
    if code != 0:
        failed = re.findall(r"^\[  FAILED  \] (\S+?),? \(\d+ ms\)", told, re.MULTILINE)
        return steps.Row(
            name, steps.FAILED, seconds, "; ".join(failed[:3]) if failed else f"code {code}: {last_words(told)}"
        )
    if tests and skipped:
        everything = tests.group(1) == skipped.group(1)
        detail = f"{skipped.group(1)} of {tests.group(1)} tests were skipped"
        return steps.Row(name, steps.SKIPPED if everything else steps.PASSED, seconds, detail)
    return steps.Row(name, steps.PASSED, seconds, f"{tests.group(1)} tests" if tests else "")


def last_words(told):
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    return lines[-1][:160] if lines else "it printed nothing"


def finish(session, rows, more=""):
    """Prints and saves the table, below a line with the machine's facts. Returns the exit code."""
    text = "\n\n".join(filter(None, [session.machine, steps.table(rows), more]))
    (session.out / f"{session.name}.txt").write_text(text + "\n")
    steps.say(f"\n{text}\n\n{session.name}: logs are in {session.out}")
    return steps.exit_code(rows)
