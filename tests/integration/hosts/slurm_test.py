"""Runs under a real Slurm: a cluster of three nodes, which are network namespaces of this machine.

    slurm_test.py BUILD

The batch script is that of docs/hosts/slurm.md, with another program. Exit code 77, which CTest counts as skipped: this
machine has no Slurm, or no such networks. HOLDFAST_REQUIRE_HOSTS=1 makes that a failure.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(SOURCE / "bench/resilience"))
from host_networks import HostNetworks, why_not  # noqa: E402

BUILD = Path(sys.argv.pop(1)) if len(sys.argv) > 1 else SOURCE / "build" / "release"
PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch", "scontrol", "squeue", "sinfo", "scancel")
# Debian has the daemons where only root looks.
os.environ["PATH"] += ":/usr/sbin:/sbin"
LIMIT = 120  # seconds for whatever is waited for
NODES = 3

CONFIGURATION = """
ClusterName=test
SlurmctldHost={name}({head})
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
StateSaveLocation={folder}/ctl
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ReturnToService=2
SlurmdTimeout=10
SlurmctldTimeout=10
KillWait=30
InactiveLimit=0
JobRequeue=1
TreeWidth=16
SlurmdParameters=config_overrides
{nodes}
PartitionName=p Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def why_skipped():
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    return why_not() or (f"there is no {missing[0]}; scripts/setup --all installs Slurm" if missing else None)


def comes_true(condition, what):
    """Waits until `condition` returns something that is true, and returns that."""
    end = time.monotonic() + LIMIT
    while not (found := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"{what} did not come true in {LIMIT} s")
        time.sleep(0.05)
    return found


class Cluster:
    """Three nodes h1, h2, h3. The first has the controller."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.networks = HostNetworks(NODES)

    def __enter__(self):
        self.networks.__enter__()
        try:
            self.start()
        except BaseException:
            print(self.logs(), file=sys.stderr)
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.networks.__exit__()
        self.munge.kill()
        self.munge.wait()

    def start(self):
        # munged refuses folders that others may write to.
        self.folder.chmod(0o755)
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        self.munge = subprocess.Popen(
            ["munged", "--foreground", "--force", f"--key-file={key}", f"--socket={self.folder}/munge.socket",
             f"--pid-file={self.folder}/munged.pid", f"--log-file={self.folder}/munged.log",
             f"--seed-file={self.folder}/munged.seed"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        nodes = "\n".join(f"NodeName=h{node + 1} NodeAddr={self.networks.address(node)} CPUs=2 RealMemory=100"
                          for node in range(NODES))
        self.configuration = self.folder / "slurm.conf"
        self.configuration.write_text(CONFIGURATION.format(folder=self.folder, name=socket.gethostname().split(".")[0],
                                                             head=self.networks.address(0), nodes=nodes))
        (self.folder / "ctl").mkdir()
        self.names = self.folder / "hosts"
        self.names.write_text("127.0.0.1 localhost\n" + "".join(
            f"{self.networks.address(node)} h{node + 1}\n" for node in range(NODES)))
        self.environment = {**os.environ, "SLURM_CONF": str(self.configuration)}
        comes_true(lambda: (self.folder / "munge.socket").exists(), "the socket of munged")
        self.daemon(0, ["slurmctld", "-D"])
        for node in range(NODES):
            self.start_node(node)
        comes_true(lambda: self.states() == ["idle"] * NODES, "three idle nodes")

    def daemon(self, node, command):
        """Starts it where names of nodes are known, as on a cluster."""
        with_names = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', str(self.names)]
        self.networks.start(node, with_names + command, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def start_node(self, node):
        (self.folder / f"spool-h{node + 1}").mkdir(exist_ok=True)
        self.daemon(node, ["slurmd", "-D", "-N", f"h{node + 1}"])

    def command(self, *words):
        """What a command of Slurm prints, on the first node."""
        started = self.networks.start(0, words, env=self.environment, text=True, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT)
        output, _ = started.communicate(timeout=LIMIT)
        if started.returncode != 0:
            raise AssertionError(f"{' '.join(words)}: {output}")
        return output

    def states(self):
        try:
            return self.command("sinfo", "-h", "-N", "-o", "%T").split()
        except AssertionError:
            return []  # the controller does not answer yet

    def logs(self):
        return "\n".join(f"{log.name}:\n{log.read_text(errors='replace')[-4000:]}" for log in self.folder.glob("*.log"))


def batch_script(folder, digits, faults=()):
    """That of the page, with the program under test in the place of ./train."""
    page = (SOURCE / "docs" / "hosts" / "slurm.md").read_text()
    [script] = re.findall(r"```sh\n(#!/bin/bash\n.*?)```", page, re.S)
    options = " ".join(f"--inject {fault}" for fault in faults)
    own = {
        "export HOLDFAST_SECRET_FILE=$HOME/secret": f"export HOLDFAST_SECRET_FILE={folder}/secret",
        "--nodes=2": "--nodes=3",
        "holdfast run --replicas 4 --run-dir /shared/run -- ./train":
            f"{BUILD}/bin/holdfast run --replicas 1 --hang-after 300 {options} --run-dir {folder}/run -- {digits}",
    }
    for theirs, ours in own.items():
        assert theirs in script, theirs
        script = script.replace(theirs, ours)
    script = script.replace("--cpus-per-task=8", "--cpus-per-task=1")
    path = folder / "job.sh"
    path.write_text(script)
    return path


def digits_command(folder, epochs=3):
    return (f"{BUILD}/bin/digits --drawn 300 --holdout 25 --batch 32 --epochs {epochs} --shards 6 --seed 11 --save-every 0 "
            f"--report {folder}/report.json")


class Slurm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # Sockets have short paths.
        cls.cluster_folder = tempfile.TemporaryDirectory(prefix="slurm")
        cls.addClassCleanup(cls.cluster_folder.cleanup)
        cls.cluster = Cluster(cls.cluster_folder.name)
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.__exit__)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        secret = self.folder / "secret"
        secret.write_text("5" * 64)
        secret.chmod(0o400)

    def tearDown(self):
        result = self._outcome.result
        if all(test is not self for test, _ in result.failures + result.errors):
            return
        for name in ("out", "run/journal.jsonl"):
            if (self.folder / name).exists():
                print(f"{name}:\n{(self.folder / name).read_text(errors='replace')}")
        print(self.cluster.logs())

    def submit(self, faults=(), *options, epochs=3):
        script = batch_script(self.folder, digits_command(self.folder, epochs), faults)
        return self.cluster.command("sbatch", "--parsable", f"--output={self.folder}/out", "--open-mode=append", *options,
                                    str(script)).strip()

    def detail(self, job, name):
        found = re.search(rf"\b{name}=(\S+)", self.cluster.command("scontrol", "show", "job", job))
        return found.group(1) if found else ""

    def wait_for_state(self, job, *states):
        return comes_true(lambda: self.detail(job, "JobState") in states and self.detail(job, "JobState"),
                          f"the state {' or '.join(states)} of job {job}")

    def wait_for_fault(self):
        comes_true(lambda: (self.folder / "run" / "faults").exists(), "the fault")

    def events(self, name):
        lines = (self.folder / "run" / "journal.jsonl").read_text().splitlines()
        return [line for line in map(json.loads, lines) if line["event"] == name]

    def digest(self):
        return json.loads((self.folder / "report.json").read_text())["weights_digest"]

    def undisturbed_digest(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(digits_command(folder).split() + ["--replicas", "1", "--run-dir", f"{folder}/run"], check=True,
                           timeout=LIMIT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            return json.loads((Path(folder) / "report.json").read_text())["weights_digest"]

    def expect_the_bits_of_one_host(self):
        self.assertEqual(self.digest(), self.undisturbed_digest())

    def test_a_step_on_three_nodes_trains_to_the_bits_of_one_host(self):
        job = self.submit()

        self.assertEqual(self.wait_for_state(job, "COMPLETED", "FAILED"), "COMPLETED")

        self.expect_the_bits_of_one_host()
        self.assertEqual(self.events("watchdog_started")[0]["hosts"], 3)

    def test_a_job_that_is_asked_to_end_saves_and_is_queued_again(self):
        job = self.submit(["rank=0,step=3,fault=slow,factor=100,count=100000"])
        self.wait_for_fault()

        self.cluster.command("scancel", "--signal=TERM", job)

        # The script asks for it when the command has ended with 75.
        comes_true(lambda: self.detail(job, "Restarts") == "1", "the job is queued again")
        self.assertTrue(list((self.folder / "run").glob("savepoint-*.h5")))
        self.cluster.command("scancel", job)

    # The script's own --signal, with times as short as Slurm knows them.
    def test_a_job_whose_time_runs_out_saves_and_is_queued_again(self):
        job = self.submit(["rank=0,step=3,fault=slow,factor=100,count=100000"], "--time=1", "--signal=TERM@50", epochs=400)
        self.wait_for_fault()

        comes_true(lambda: self.detail(job, "Restarts") == "1", "the job is queued again")
        self.assertTrue(list((self.folder / "run").glob("savepoint-*.h5")))
        self.assertEqual(self.events("run_ended")[-1]["exit_code"], 75)
        self.cluster.command("scancel", job)

    def test_a_job_that_gives_a_node_up_goes_on_without_it(self):
        job = self.submit(["rank=2,step=10,fault=hang"])
        self.wait_for_fault()

        self.cluster.command("scontrol", "update", f"JobId={job}", "NumNodes=2")

        # srun ends with the code of the task that Slurm has killed there, so the state of the job says nothing.
        self.wait_for_state(job, "COMPLETED", "FAILED", "NODE_FAIL")
        self.assertEqual(self.events("run_ended")[-1]["exit_code"], 0)
        self.expect_the_bits_of_one_host()

    # The last one: the node is gone then.
    def test_z_a_node_that_dies_ends_neither_the_job_nor_the_run(self):
        job = self.submit(["rank=2,step=10,fault=hang"])
        self.wait_for_fault()

        self.cluster.networks.kill_all(2)

        self.assertEqual(self.wait_for_state(job, "COMPLETED", "FAILED", "NODE_FAIL"), "COMPLETED")
        self.expect_the_bits_of_one_host()
        self.assertEqual(len(self.events("host_lost")), 1)


if __name__ == "__main__":
    reason = why_skipped()
    if reason:
        print(f"slurm: SKIPPED: {reason}", file=sys.stderr)
        sys.exit(1 if os.environ.get("HOLDFAST_REQUIRE_HOSTS") == "1" else 77)
    unittest.main()
