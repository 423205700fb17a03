"""The training of bench/hosts under torchrun: one agent on each host, gloo, and a restart from a checkpoint."""

import os
import subprocess
import time

from recovery_runs import PATIENCE, Run

PORT = 29500


class TorchRun(Run):
    """torchrun on two hosts with a process each (bench/resilience/recovery_peer.py). Leaving the context kills it."""

    def __init__(self, arguments, networks, folder):
        self.networks = networks
        self.folder = folder
        self.generations = {}
        self.journal = []
        self.tails = {}
        self.journal_tail = None
        self.output = open(os.path.join(folder, "output.txt"), "wb")
        self.agents = [self.start(arguments, host) for host in (0, 1)]
        self.process = self.agents[0]

    def start(self, arguments, host):
        here = os.path.dirname(os.path.abspath(__file__))
        # By its name the machine would not be found to be host 0: names know nothing of these networks.
        rendezvous = ",".join(filter(None, [f"is_host={'true' if host == 0 else 'false'}", arguments.torch_rendezvous]))
        return self.networks.start(
            host,
            [arguments.torch, "-m", "torch.distributed.run", "--nnodes", "1:2", "--nproc-per-node", "1",
             "--max-restarts", "100", "--monitor-interval", "0.1", "--rdzv-backend", "c10d", "--rdzv-id", "hosts",
             "--rdzv-endpoint", f"{self.networks.address(0)}:{PORT}", "--local-addr", self.networks.address(host),
             "--rdzv-conf", rendezvous, os.path.join(here, "recovery_peer.py"), "--folder", self.folder],
            stdout=self.output, stderr=subprocess.STDOUT,
            env={**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "eth0"})

    def __exit__(self, *_):
        for host in self.networks.hosts:
            self.networks.kill_all(host)
        for agent in self.agents:
            agent.wait(PATIENCE)
        self.output.close()

    def look_into_journal(self):
        """It has none."""


def kill_host_of_torch(run, chance, settled_steps):
    """All of host 1. torchrun has no journal, so its pause is all that is measured."""
    def settled():
        newest = run.newest()
        return newest if newest and newest.size == 2 and newest.shortest() >= settled_steps else None

    def gone_on():
        later = [run.generations[n] for n in sorted(run.generations) if n > generation.number]
        return next((after for after in later if after.first_step()), None)

    generation = run.wait_until(settled, "torchrun with both hosts")
    durations = sorted(generation.durations())
    time.sleep(chance.uniform(0, 0.2))
    moment = run.networks.kill_all(1)
    after = run.wait_until(gone_on, "the next step under torchrun")
    step, committed = after.first_step()
    return {"step": durations[len(durations) // 2], "next": committed - moment,
            "again": max(0, generation.last_step() + 1 - step)}
