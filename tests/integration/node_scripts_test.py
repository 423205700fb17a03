"""The scripts for machines without internet: bundles, their unpacking, how steps end, what there is without a GPU."""

import io
import json
import lzma
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from node import cuda_libraries, debian, device, elf, machine, manifest, prefix, session, steps  # noqa: E402

Clock = steps.Clock


class InFolder(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = Path(holder.name)

    def file(self, name, content=b""):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path


class Manifest(InFolder):
    def test_names_every_file_with_size_and_hash_in_order(self):
        self.file("b", b"12345")
        self.file("a/c", b"")

        manifest.write(self.folder, {"sources": "x"})

        read = manifest.read(self.folder)
        self.assertEqual([file["name"] for file in read["files"]], ["a/c", "b"])
        self.assertEqual(read["files"][1]["bytes"], 5)
        self.assertEqual(read["files"][1]["sha256"], "5994471abb01112afcc18159f6cc74b4f511b99806da59b3caf5a9c173cacfc5")
        self.assertEqual(read["bytes"], 5)
        self.assertEqual(read["sources"], "x")

    def test_is_the_same_for_the_same_files(self):
        self.file("b", b"1")
        manifest.write(self.folder, {})
        first = (self.folder / manifest.NAME).read_bytes()
        os.utime(self.folder / "b", (1, 1))

        manifest.write(self.folder, {})

        self.assertEqual((self.folder / manifest.NAME).read_bytes(), first)

    def test_refuses_what_is_too_large_and_says_what_is_largest(self):
        self.file("small", b"1")
        self.file("large", b"1" * 100)

        with self.assertRaisesRegex(manifest.BundleError, r"the largest are large \("):
            manifest.write(self.folder, {}, limit=100)
        self.assertFalse((self.folder / manifest.NAME).exists())

    def test_allows_what_is_exactly_as_large_as_allowed(self):
        self.file("all", b"1" * 100)
        self.assertEqual(manifest.write(self.folder, {}, limit=100)["bytes"], 100)

    def test_a_changed_a_cut_and_a_missing_file_are_found(self):
        path = self.file("a", b"12")
        manifest.write(self.folder, {})
        manifest.verify(self.folder)
        path.write_bytes(b"13")
        with self.assertRaisesRegex(manifest.BundleError, "a is damaged"):
            manifest.verify(self.folder)
        path.write_bytes(b"1")
        with self.assertRaisesRegex(manifest.BundleError, "1 bytes and should have 2"):
            manifest.verify(self.folder)
        path.unlink()
        with self.assertRaisesRegex(manifest.BundleError, "a is missing"):
            manifest.verify(self.folder)

    def test_a_folder_without_one_is_no_bundle(self):
        with self.assertRaisesRegex(manifest.BundleError, "is not a bundle"):
            manifest.verify(self.folder)


class Packages(InFolder):
    def test_the_first_alternative_is_taken_without_version_and_architecture(self):
        self.assertEqual(debian.first_alternatives("a (>= 1), b:any | c, d | e (= 2)"), ["a", "b", "d"])
        self.assertEqual(debian.first_alternatives(""), [])

    def test_the_closure_follows_what_is_needed_but_not_what_is_left_out(self):
        known = {"a": "b (>= 1), libc6", "b": "c | d", "c": "a"}

        found = debian.closure(["a"], lambda names: {name: {"Package": name, "Depends": known[name]} for name in names})

        self.assertEqual(list(found), ["a", "b", "c"])

    def deb(self, files, links=()):
        """A package as ar and tar make it, without dpkg."""
        data = io.BytesIO()
        with tarfile.open(fileobj=data, mode="w") as tar:
            for name, content in files.items():
                member = tarfile.TarInfo(name)
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
            for name, target in links:
                member = tarfile.TarInfo(name)
                member.type, member.linkname = tarfile.SYMTYPE, target
                tar.addfile(member)
        members = {
            "debian-binary": b"2.0\n",
            "control.tar.xz": lzma.compress(b"\0" * 10240),
            "data.tar.xz": lzma.compress(data.getvalue()),
        }
        archive = b"!<arch>\n"
        for name, content in members.items():
            archive += (
                f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode()
                + content
                + b"\n" * (len(content) % 2)
            )
        return archive

    def test_are_unpacked_without_dpkg_too_and_without_their_documentation(self):
        package = self.file("p.deb", self.deb({"./usr/include/x.h": b"x", "./usr/share/doc/p/copyright": b"y"}))

        with mock.patch("shutil.which", return_value=None):
            debian.unpack(package, self.folder / "out")

        self.assertEqual((self.folder / "out/usr/include/x.h").read_bytes(), b"x")
        self.assertFalse((self.folder / "out/usr/share/doc").exists())

    def test_what_is_no_package_is_refused(self):
        with mock.patch("shutil.which", return_value=None), self.assertRaisesRegex(
            manifest.BundleError, "not a Debian package"
        ):
            debian.unpack(self.file("p.deb", b"hello"), self.folder / "out")

    def bundle(self):
        """A bundle of one package, as a machine gets it."""
        pc = b"prefix=/usr\nlibdir=${prefix}/lib\nCflags: -I/usr/include/z\n"
        self.file(
            "bundle/packages/p.deb",
            self.deb(
                {"./lib/x86_64-linux-gnu/libz.so.1": b"z", "./usr/lib/x86_64-linux-gnu/pkgconfig/z.pc": pc},
                links=[("./usr/lib/x86_64-linux-gnu/libz.so", "/lib/x86_64-linux-gnu/libz.so.1")],
            ),
        )
        manifest.write(self.folder / "bundle", {"needs": {"versions": {"GLIBC": "2.2"}}})
        return self.folder / "bundle"

    def test_what_they_name_of_the_system_is_named_below_the_prefix(self):
        made = self.folder / "prefix"

        cache = prefix.make(self.bundle(), made)

        self.assertEqual((made / "usr/lib/x86_64-linux-gnu/libz.so").read_bytes(), b"z")
        pc = (made / "usr/lib/x86_64-linux-gnu/pkgconfig/z.pc").read_text()
        self.assertEqual(
            pc, f"prefix={made}/usr\nlibdir=${{prefix}}/lib/x86_64-linux-gnu\nCflags: -I{made}/usr/include/z\n"
        )
        self.assertIn(f'set(CMAKE_PREFIX_PATH "{made}/usr"', cache.read_text())

    def test_what_is_unpacked_is_left_until_a_package_changes(self):
        bundle = self.bundle()
        made = self.folder / "prefix"
        prefix.make(bundle, made)
        (made / "mine").touch()

        self.file("bundle/holdfast.tar.gz", b"other sources")
        manifest.write(bundle, {"needs": {"versions": {}}})
        prefix.make(bundle, made)
        self.assertTrue((made / "mine").exists())

        self.file("bundle/packages/p.deb", self.deb({"./usr/include/x.h": b"x"}))
        manifest.write(bundle, {"needs": {"versions": {}}})
        prefix.make(bundle, made)
        self.assertFalse((made / "mine").exists())
        self.assertTrue((made / "usr/include/x.h").exists())

    def test_what_broke_off_half_way_is_unpacked_anew(self):
        bundle = self.bundle()
        made = self.folder / "prefix"
        with mock.patch.object(debian, "unpack", side_effect=manifest.BundleError("broke off")):
            self.assertRaises(manifest.BundleError, prefix.make, bundle, made)

        prefix.make(bundle, made)

        self.assertTrue((made / "usr/lib/x86_64-linux-gnu/libz.so.1").exists())

    def test_a_folder_of_somebody_else_is_not_overwritten(self):
        self.file("prefix/thesis.tex", b"x")

        with self.assertRaisesRegex(manifest.BundleError, "name another folder"):
            prefix.make(self.bundle(), self.folder / "prefix")
        self.assertTrue((self.folder / "prefix/thesis.tex").exists())

    def test_a_machine_that_is_too_old_is_told_so(self):
        with mock.patch.object(prefix, "glibc_version", return_value="2.31"), self.assertRaisesRegex(
            manifest.BundleError, r"need GLIBC 2\.34, and this machine has 2\.31"
        ):
            prefix.check_machine({"versions": {"GLIBC": "2.34"}})


class Elf(InFolder):
    def test_what_a_library_needs_and_nobody_brings_is_named(self):
        source = self.file("a.c", b"#include <zlib.h>\nconst char* a(void) { return zlibVersion(); }\n")
        library = self.folder / "lib/liba.so"
        library.parent.mkdir()
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source, "-lz"], check=True, timeout=60)
        found = elf.shared_libraries(self.folder)

        self.assertEqual(found, [library])
        self.assertIn("libz.so.1", elf.needs(found)[0])

        self.file("lib/libz.so.1")
        self.assertNotIn("libz.so.1", elf.needs(found)[0])

    def test_of_two_versions_the_newer_counts(self):
        self.assertGreater(elf.as_numbers("2.34"), elf.as_numbers("2.4"))


class CudaFromPip(InFolder):
    def site_packages(self):
        self.file("nvidia/cudnn/include/cudnn.h")
        self.file(
            "nvidia/cudnn/include/cudnn_version.h",
            b"#define CUDNN_MAJOR 9\n#define CUDNN_MINOR 19\n#define CUDNN_PATCHLEVEL 1\n",
        )
        self.file("nvidia/cudnn/lib/libcudnn.so.9")
        self.file("nvidia/nccl/include/nccl.h", b"#define NCCL_MAJOR 2\n#define NCCL_MINOR 28\n#define NCCL_PATCH 9\n")
        return self.folder

    def test_headers_and_libraries_are_found_together(self):
        found = cuda_libraries.find(cuda_libraries.PACKAGES[0], [self.folder / "nothing", self.site_packages()])

        self.assertEqual(found.version, "9.19.1")
        self.assertIn(
            f'set(HOLDFAST_CUDNN_LIBRARY "{self.folder}/nvidia/cudnn/lib/libcudnn.so.9"',
            cuda_libraries.initial_cache([found]),
        )

    def test_headers_without_a_library_are_not_enough(self):
        self.assertIsNone(cuda_libraries.find(cuda_libraries.PACKAGES[1], [self.site_packages()]))

    def test_a_package_of_torch_for_processors_is_not_enough(self):
        self.file("torch/lib/libtorch_cpu.so")
        self.assertIsNone(cuda_libraries.find_torch([self.folder]))

        for name in cuda_libraries.FILES_OF_TORCH:
            self.file(f"torch/{name}")
        version = self.folder / "torch/version.py"
        version.write_text("__version__ = '2.11.0+cu130'\n")
        self.assertEqual(cuda_libraries.find_torch([self.folder / "nothing", self.folder]), self.folder / "torch")
        # Its strings are those of before C++11.
        version.write_text("__version__ = '2.5.1'\n")
        self.assertIsNone(cuda_libraries.find_torch([self.folder]))

    def test_cupti_is_found_where_either_cuda_brings_it(self):
        for folder in ("cu13", "cuda_cupti"):
            with self.subTest(folder), tempfile.TemporaryDirectory(dir=self.folder) as site:
                place = Path(site) / "nvidia" / folder
                for name, text in (
                    ("include/cupti.h", ""),
                    ("include/cupti_version.h", "#define CUPTI_API_VERSION 130001\n"),
                    ("lib/libcupti.so.13", ""),
                ):
                    (place / name).parent.mkdir(parents=True, exist_ok=True)
                    (place / name).write_text(text)
                (cupti,) = [package for package in cuda_libraries.PACKAGES if package.name == "CUPTI"]

                found = cuda_libraries.find(cupti, [Path(site)])

                self.assertEqual(found.version, "130001")
                self.assertIn(
                    f'set(HOLDFAST_CUPTI_LIBRARY "{place}/lib/libcupti.so.13"', cuda_libraries.initial_cache([found])
                )

    def test_the_command_looks_at_the_packages_of_the_interpreter_it_is_given(self):
        python = self.file(
            "python", f'#!/bin/sh\nPYTHONPATH="{self.site_packages()}" exec {sys.executable} "$@"\n'.encode()
        )
        python.chmod(0o755)

        ended = subprocess.run(
            [ROOT / "scripts/cuda-from-pip", "--python", python, self.folder / "found.cmake"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

        self.assertIn("cuDNN 9.19.1", ended.stdout)
        self.assertIn("HOLDFAST_CUDNN_INCLUDE", (self.folder / "found.cmake").read_text())


class Steps(InFolder):
    def run_one(self, program, limit=30):
        with open(self.folder / "log", "wb", buffering=0) as log:
            return steps.run(["sh", "-c", program], limit, log)

    def test_a_program_ends_with_its_code_and_its_output_alone(self):
        self.file("log")
        code, told, _ = self.run_one("echo out; echo error >&2; exit 3")
        self.assertEqual((code, told), (3, "out\nerror\n"))

    def test_what_takes_too_long_is_cut_off_with_all_that_it_started(self):
        code, told, _ = self.run_one("echo begun; sleep 600 & echo $!; sleep 600", limit=0.5)

        self.assertIsNone(code)
        child = int(told.split()[1])
        self.assertFalse(Path(f"/proc/{child}").exists() and "sleep" in Path(f"/proc/{child}/cmdline").read_text())

    def test_a_script_that_is_told_to_end_ends_what_it_runs(self):
        program = (
            f"import sys; sys.path.insert(0, {str(ROOT / 'scripts')!r})\n"
            "from node import steps\n"
            "steps.end_with_what_runs()\n"
            "steps.run(['sh', '-c', 'echo $$; exec sleep 600'], 600, open(sys.argv[1], 'wb', buffering=0))\n"
        )
        script = subprocess.Popen([sys.executable, "-c", program, self.folder / "log"])
        until = time.monotonic() + 30
        while not (self.folder / "log").is_file() or not (self.folder / "log").read_text().endswith("\n"):
            self.assertLess(time.monotonic(), until)
            time.sleep(0.01)
        child = int((self.folder / "log").read_text())

        script.terminate()

        self.assertEqual(script.wait(30), 128 + signal.SIGTERM)
        self.assertFalse(Path(f"/proc/{child}").exists())

    def test_a_program_that_is_not_there_fails_and_the_others_run(self):
        with open(self.folder / "log", "wb", buffering=0) as log:
            code, told, _ = steps.run([str(self.folder / "none")], 5, log)
        self.assertEqual(code, 127)
        self.assertIn("No such file", told)

    def test_what_has_no_time_left_is_not_run_and_said_to_be(self):
        now = [0.0]
        clock = steps.Clock(10, now=lambda: now[0])
        now[0] = 9.5
        running = session.Session("gpu-test", None, clock, self.folder, "90")

        rows = session.run_listed(running, [session.Command("late", 5, ["true"])], None)

        self.assertEqual(rows[0].result, steps.NOT_RUN)
        self.assertEqual(steps.exit_code(rows), 1)

    def test_a_command_is_told_how_long_it_may_take(self):
        running = session.Session("gpu-bench", None, steps.Clock(600), self.folder, "90")
        command = session.Command("a", 7, ["sh", "-c", "exit $0", session.SECONDS_LEFT])

        with running.log("bench.log") as log, mock.patch.object(steps, "say"):
            (row,) = session.run_listed(running, [command], log)

        self.assertIn("code 7", row.detail)

    def test_the_clock_runs_while_the_gpus_are_looked_for_and_leaves_time_for_the_end(self):
        now = [0.0]
        arguments = session.parser("gpu-bench", "").parse_args(["--build", str(self.folder), "--minutes", "1"])

        def look():
            now[0] += 5
            return [{"name": "H", "architecture": "90"}], ""

        with mock.patch.object(device, "devices", look), mock.patch.object(
            device, "driver", return_value="580"
        ) as asked:
            clock = mock.patch.object(steps, "Clock", lambda seconds: Clock(seconds, now=lambda: now[0]))
            with clock, mock.patch.object(steps, "say"):
                begun = session.begin("gpu-bench", arguments)

        self.assertEqual(begun.clock.left(), 60 - session.END_SECONDS - 5)
        self.assertEqual(begun.device, "H")
        self.assertRegex(begun.machine, r"^Linux .*; 580$")
        asked.assert_called_once()

    def test_only_a_table_of_passed_rows_is_a_success(self):
        passed = steps.Row("a", steps.PASSED)
        self.assertEqual(steps.exit_code([passed]), 0)
        self.assertEqual(steps.exit_code([]), 1)
        for result in (steps.FAILED, steps.SKIPPED, steps.CUT_OFF, steps.NOT_RUN):
            self.assertEqual(steps.exit_code([passed, steps.Row("b", result)]), 1)


class Rows(unittest.TestCase):
    def test_a_failed_program_names_its_failed_tests(self):
        told = "[ RUN      ] A.B\n[  FAILED  ] A.B (3 ms)\n[==========] 2 tests from 1 suite ran.\n[  FAILED  ] A.B\n"
        row = session.row("x", 1, told, 1)
        self.assertEqual((row.result, row.detail), (steps.FAILED, "A.B"))

    def test_a_program_that_skipped_everything_has_not_passed(self):
        told = "[==========] 2 tests from 1 suite ran.\n[  PASSED  ] 0 tests.\n[  SKIPPED ] 2 tests, listed below:\n"
        self.assertEqual(session.row("x", 0, told, 1).result, steps.SKIPPED)

    def test_a_program_that_skipped_something_says_how_much(self):
        told = "[==========] 3 tests from 1 suite ran.\n[  PASSED  ] 2 tests.\n[  SKIPPED ] 1 test, listed below:\n"
        row = session.row("x", 0, told, 1)
        self.assertEqual((row.result, row.detail), (steps.PASSED, "1 of 3 tests were skipped"))

    def test_a_program_that_was_cut_off_leaves_its_last_words(self):
        row = session.row("x", None, "[ RUN      ] A.Hangs\n", 1)
        self.assertEqual((row.result, row.detail), (steps.CUT_OFF, "[ RUN      ] A.Hangs"))


class Machine(unittest.TestCase):
    def test_says_its_kernel_its_cores_and_its_memory(self):
        self.assertRegex(machine.described(), r"^Linux \S+, [1-9]\d* cores, \d+\.\d GiB of memory$")


class Tools(unittest.TestCase):
    def test_those_that_are_missing_are_named(self):
        with mock.patch("shutil.which", side_effect=lambda tool: None if tool == "ninja" else tool):
            self.assertEqual(session.missing_tools(), ["ninja"])


class Commands(InFolder):
    def test_places_are_filled_in_and_comments_left_out(self):
        path = self.file("commands.txt", b"# why\n\na b | 60 | {bin}/x --y 'z 1'\n")
        self.assertEqual(session.commands(path, {"bin": "/p"}), [session.Command("a b", 60, ["/p/x", "--y", "z 1"])])

    def test_a_line_that_is_none_is_named(self):
        with self.assertRaisesRegex(ValueError, "commands.txt:1 is not"):
            session.commands(self.file("commands.txt", b"a | soon | x\n"), {})

    def test_those_of_this_repository_can_be_read(self):
        places = {"bin": "b", "work": "w", "out": "o", "python": "p", "limits": "l"}
        self.assertTrue(session.commands(ROOT / "tests/gpu/commands.txt", places))
        self.assertTrue(session.commands(ROOT / "tests/gpu/torch_commands.txt", places))
        self.assertTrue(session.commands(ROOT / "bench/gpu/commands.txt", places))

    def test_benchmarks_fit_into_nine_minutes_beside_a_build(self):
        places = {"bin": "b", "work": "w", "out": "o", "python": "p", "limits": "l"}
        listed = session.commands(ROOT / "bench/gpu/commands.txt", places)
        # A build with what comes before it takes 100 s, and 15 pass until a driver and CMake have answered.
        self.assertLessEqual(sum(command.seconds for command in listed), 9 * 60 - session.END_SECONDS - 115)


class Device(InFolder):
    DRIVER = b"""
#include <string.h>
int cuInit(unsigned flags) { return flags; }
int cuDeviceGetCount(int* count) { *count = 2; return 0; }
int cuDeviceGet(int* device, int index) { *device = 10 + index; return 0; }
int cuDeviceGetName(char* name, int length, int device) {
  strncpy(name, device == 10 ? "first" : "second", length);
  return 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  *value = attribute == 75 ? 9 : attribute == 76 ? device - 10 : -1;
  return 0;
}
"""

    def test_the_driver_says_which_are_there(self):
        source = self.file("driver.c", self.DRIVER)
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", self.folder / "libcuda.so.1", source], check=True, timeout=60)

        with mock.patch.dict(os.environ, {"LD_LIBRARY_PATH": str(self.folder)}):
            found, reason = device.devices()

        self.assertEqual(found, [{"name": "first", "architecture": "90"}, {"name": "second", "architecture": "91"}])
        self.assertEqual(reason, "")

    def test_a_driver_that_crashes_is_a_reason_and_no_crash(self):
        source = self.file("driver.c", b"#include <stdlib.h>\nint cuInit(unsigned flags) { abort(); }\n")
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", self.folder / "libcuda.so.1", source], check=True, timeout=60)

        with mock.patch.dict(os.environ, {"LD_LIBRARY_PATH": str(self.folder)}):
            found, reason = device.devices()

        self.assertEqual(found, [])
        self.assertIn("ended with code -6", reason)


class Pretended(InFolder):
    """A driver that knows a device, and tools that do as if they built."""

    def setUp(self):
        super().setUp()
        source = self.file("driver.c", Device.DRIVER)
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", self.folder / "libcuda.so.1", source], check=True, timeout=60)
        self.program(
            "cmake", 'echo "$@" >>' + str(self.folder / "cmake.log") + "; echo '-- Holdfast: CUDA back end: yes'"
        )
        for tool in ("ctest", "ninja", "nvcc"):
            self.program(tool, "exit 0")

    def program(self, name, body):
        self.file(name, f"#!/bin/sh\n{body}\n".encode()).chmod(0o755)

    def script(self, name, *options):
        environment = {
            **os.environ,
            "LD_LIBRARY_PATH": str(self.folder),
            "PATH": f"{self.folder}:{os.environ['PATH']}",
            "OUT": str(self.folder / "out"),
        }
        command = [ROOT / "scripts" / name, "--build", self.folder / "build", *options]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, check=False)


class GpuBench(Pretended):
    """The whole of gpu-bench, with programs that measure nothing."""

    LIMITS = '{"device": "first", "copy_gb_s": 3000, "host_to_device_gb_s": 50, "device_to_host_gb_s": 50}'
    TRAINING = """
import json, sys
prefix = sys.argv[sys.argv.index("--turns") + 1]
with open(prefix + ".ask") as ask, open(prefix + ".told", "w") as told:
    for line in ask:
        number, warm, steps = map(int, line.split())
        print(json.dumps({"turn": number, "steps": steps, "seconds": steps * 0.1, "loss": 0}), file=told, flush=True)
"""

    def setUp(self):
        super().setUp()
        self.program("build/bin/gpu_limits", f"echo '{self.LIMITS}'")
        self.file("training.py", self.TRAINING.encode())
        self.program("build/bin/gpu_training", f'exec {sys.executable} {self.folder}/training.py "$@"')
        # Without packages: nobody to compare with.
        self.program("python", f'exec {sys.executable} -S "$@"')

    def gpu_bench(self, *options):
        return self.script("gpu-bench", "--python", self.folder / "python", *options)

    def test_what_it_leaves_are_few_files_and_a_table_below_the_machine(self):
        ended = self.gpu_bench("--only", "limits|LeNet")

        left = sorted(path.name for path in (self.folder / "out").iterdir())
        self.assertEqual(
            left,
            ["bench.log", "build.log", "figures.json", "gpu-bench.txt", "logs.tar.gz"],
            ended.stdout + ended.stderr,
        )
        self.assertEqual(list(json.loads((self.folder / "out/figures.json").read_text())), ["limits", "lenet5"])
        with tarfile.open(self.folder / "out/logs.tar.gz") as packed:
            self.assertIn("logs/lenet5-device.log", packed.getnames())
        table = (self.folder / "out/gpu-bench.txt").read_text()
        self.assertRegex(table, r"\ALinux ")
        self.assertRegex(table, r"limits of the GPU +passed")
        self.assertRegex(table, r"lenet5 tf32, data on the device: Holdfast 100\.000 ms a step; no peer was measured")

    def test_what_the_gpu_allows_is_known_to_later_starts(self):
        self.gpu_bench("--only", "limits")

        ended = self.gpu_bench("--only", "LeNet")

        self.assertIn("% of the copy bandwidth", ended.stdout)
        self.assertEqual(list(json.loads((self.folder / "out/figures.json").read_text())), ["lenet5"])

    def test_what_another_gpu_allows_is_not(self):
        self.file("build/limits-another.json", self.LIMITS.encode())

        ended = self.gpu_bench("--only", "LeNet")

        self.assertNotIn("% of the copy bandwidth", ended.stdout)


class WithGpu(Pretended):
    """The whole of gpu-test, with a driver that knows a device and with tools that do as if they built."""

    TESTS = ("gpu_good", "gpu_bad", "gpu_slow")

    def setUp(self):
        super().setUp()
        for name, ends in zip(self.TESTS, ("exit 0", "echo broken; exit 1", "echo begun; sleep 600")):
            self.program(name, ends)
        listed = [
            {"name": name, "command": [str(self.folder / name)], "properties": [{"name": "TIMEOUT", "value": limit}]}
            for name, limit in zip(self.TESTS, (60, 60, 1))
        ]
        self.program("ctest", f"echo '{json.dumps({'tests': listed})}'")
        self.program("compute-sanitizer", 'while [ "${1#-}" != "$1" ]; do shift 2; done; exec "$@"')

    def gpu_test(self, *options):
        return self.script("gpu-test", *options)

    def test_builds_for_the_devices_that_are_there(self):
        ended = self.gpu_test("--only", "gpu_good")

        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        self.assertIn("-DCMAKE_CUDA_ARCHITECTURES=90-real;91-real", (self.folder / "cmake.log").read_text())
        self.assertRegex(ended.stdout, r"gpu_good +passed")

    def test_each_program_has_its_row_and_the_worst_decides(self):
        ended = self.gpu_test("--only", "gpu_")

        self.assertEqual(ended.returncode, 1)
        self.assertRegex(ended.stdout, r"gpu_good +passed")
        self.assertRegex(ended.stdout, r"gpu_bad +FAILED .* code 1: broken")
        self.assertRegex(ended.stdout, r"gpu_slow +CUT OFF .* begun")
        self.assertIn("gpu_slow", (self.folder / "out/gpu-test.txt").read_text())
        self.assertIn("broken", (self.folder / "out/tests.log").read_text())

    def test_a_program_that_was_not_built_is_told(self):
        self.program("ctest", f"echo '{json.dumps({'tests': [{'name': 'gpu_unbuilt'}]})}'")

        ended = self.gpu_test("--only", "gpu_")

        self.assertEqual(ended.returncode, 1)
        self.assertRegex(ended.stdout, r"gpu_unbuilt +NOT RUN .* it was not built")

    def test_each_tool_of_the_sanitizer_gets_each_program(self):
        ended = self.gpu_test("--sanitize", "memcheck,racecheck", "--only", "good|bad")

        self.assertEqual(ended.returncode, 1)
        self.assertRegex(ended.stdout, r"gpu_good memcheck +passed")
        self.assertRegex(ended.stdout, r"gpu_good racecheck +passed")
        self.assertRegex(ended.stdout, r"gpu_bad racecheck +FAILED")

    def test_memory_that_does_not_suffice_is_no_finding_of_the_sanitizer(self):
        self.program("compute-sanitizer", 'echo "$@"')

        ended = self.gpu_test("--sanitize", "memcheck,racecheck", "--only", "good")

        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        log = (self.folder / "out/sanitize.log").read_text()
        self.assertRegex(log, r"(?m)^--tool memcheck .*--report-api-errors no")
        self.assertNotRegex(log, r"(?m)^--tool racecheck .*--report-api-errors")

    def test_the_sanitizer_looks_for_races_in_our_kernels_alone(self):
        self.program("compute-sanitizer", 'echo "$@"')

        self.gpu_test("--sanitize", "memcheck,racecheck", "--only", "good")

        log = (self.folder / "out/sanitize.log").read_text()
        self.assertRegex(log, r"(?m)^--tool racecheck .*--kernel-name kns=holdfast")
        self.assertNotRegex(log, r"(?m)^--tool memcheck .*--kernel-name")

    def test_ranks_that_are_forked_are_not_for_the_sanitizer(self):
        told = {"tests": [{"name": "gpu_nccl_ranks", "command": ["true"]}]}
        self.program("ctest", f"echo '{json.dumps(told)}'")

        ended = self.gpu_test("--sanitize", "memcheck")

        self.assertIn("there is nothing to run", ended.stderr)

    def test_programs_are_told_of_the_toolkits_cupti(self):
        library = self.file("cuda/extras/CUPTI/lib64/libcupti.so.13")
        nvcc = self.file("cuda/bin/nvcc", b"#!/bin/sh\n")
        nvcc.chmod(0o755)
        (self.folder / "nvcc").unlink()
        (self.folder / "nvcc").symlink_to(nvcc)
        self.program("gpu_good", f'test "$HOLDFAST_CUPTI" -ef {library}')

        ended = self.gpu_test("--only", "gpu_good")

        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)

    def test_what_cannot_be_built_shows_why_with_a_code_of_its_own(self):
        self.program("cmake", "echo 'Could NOT find HDF5'; exit 1")

        ended = self.gpu_test()

        self.assertEqual(ended.returncode, session.NOT_BUILT)
        self.assertIn("Could NOT find HDF5", ended.stdout)
        self.assertIn("configure failed with code 1", ended.stderr)

    def test_a_damaged_bundle_is_not_built_from(self):
        self.file("bundle/packages/p.deb", b"x")
        manifest.write(self.folder / "bundle", {"needs": {"versions": {}}})
        self.file("bundle/packages/p.deb", b"y")

        ended = self.gpu_test("--bundle", self.folder / "bundle")

        self.assertEqual(ended.returncode, session.NOT_BUILT)
        self.assertIn("p.deb is damaged", ended.stderr)

    def test_nothing_to_run_is_no_success(self):
        ended = self.gpu_test("--only", "no such test")

        self.assertEqual(ended.returncode, 1)
        self.assertIn("nothing to run", ended.stderr)


class WithoutGpu(InFolder):
    def test_the_test_command_says_so_with_a_code_of_its_own(self):
        # A driver that there is none of: the loader looks here first and finds an empty file.
        self.file("libcuda.so.1")
        ended = subprocess.run(
            [ROOT / "scripts/gpu-test", "--build", self.folder / "build"],
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, "LD_LIBRARY_PATH": str(self.folder), "OUT": ""},
            check=False,
        )

        self.assertEqual(ended.returncode, session.NO_GPU, ended.stderr)
        self.assertIn("no GPU here: there is no NVIDIA driver", ended.stderr)


if __name__ == "__main__":
    unittest.main()
