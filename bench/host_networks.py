"""Network namespaces that stand for hosts, for bench/hosts.

They are joined by a bridge in a namespace of its own. A host is cut off there, so no link goes down and no connection is
reset. In one direction it is cut off by neighbours whose addresses nobody has.
"""

import os
import random
import shutil
import subprocess
import time

NOBODY = "02:00:00:00:00:fe"  # a link address
TO_DIE = 60  # seconds after SIGKILL
DIRECTIONS = ("both", "from", "to")


def why_not():
    """Why this machine has no such networks; None if it has."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if shutil.which("ip") is None:
        return "there is no `ip`; scripts/setup installs it (iproute2)"
    return None


def ip(*arguments):
    result = subprocess.run(["ip", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if result.returncode != 0:
        raise RuntimeError(f"ip {' '.join(arguments)}: {result.stdout.strip()}")
    return result.stdout


class HostNetworks:
    def __init__(self, hosts):
        self.prefix = f"holdfast-{os.getpid()}-{random.randrange(1 << 32):08x}"
        self.hosts = range(hosts)
        self.bridge = f"{self.prefix}-bridge"
        self.made = []

    def __enter__(self):
        try:
            self.make()
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(self, *_):
        self.remove()

    def make(self):
        for name in (self.bridge, *map(self.name, self.hosts)):
            ip("netns", "add", name)
            self.made.append(name)
            ip("-n", name, "link", "set", "lo", "up")
        ip("-n", self.bridge, "link", "add", "bridge", "type", "bridge")
        ip("-n", self.bridge, "link", "set", "bridge", "up")
        for host in self.hosts:
            ip("-n", self.bridge, "link", "add", f"port{host}", "type", "veth",
               "peer", "name", "eth0", "netns", self.name(host))
            ip("-n", self.bridge, "link", "set", f"port{host}", "master", "bridge", "up")
            ip("-n", self.name(host), "address", "add", f"{self.address(host)}/24", "dev", "eth0")
            ip("-n", self.name(host), "link", "set", "eth0", "up")

    def remove(self):
        for name in self.made:
            self.kill_all_in(name)
            ip("netns", "delete", name)
        self.made = []

    def name(self, host):
        return f"{self.prefix}-{host}"

    def address(self, host):
        return f"10.77.0.{host + 1}"

    def command(self, host, *command):
        return ["ip", "netns", "exec", self.name(host), *command]

    def kill_all(self, host):
        """SIGKILL to all processes of a host. Returns the moment before the first; none of them runs afterwards."""
        return self.kill_all_in(self.name(host))

    @staticmethod
    def kill_all_in(name):
        processes = ip("netns", "pids", name).split()
        moment = time.time()
        deadline = time.monotonic() + TO_DIE
        while processes:
            if time.monotonic() > deadline:
                raise RuntimeError(f"processes {' '.join(processes)} outlive SIGKILL")
            for process in processes:
                try:
                    os.kill(int(process), 9)
                except ProcessLookupError:
                    pass
            processes = ip("netns", "pids", name).split()
        return moment

    def others(self, host):
        return [other for other in self.hosts if other != host]

    def cut(self, host, direction):
        """Nothing gets from the host to others any more ("from"), from others to it ("to"), or both."""
        if direction == "both":
            ip("-n", self.bridge, "link", "set", f"port{host}", "nomaster")
        for sender, receiver in self.lost(host, direction):
            ip("-n", self.name(sender), "neigh", "replace", self.address(receiver), "lladdr", NOBODY,
               "nud", "permanent", "dev", "eth0")

    def heal(self, host, direction):
        if direction == "both":
            ip("-n", self.bridge, "link", "set", f"port{host}", "master", "bridge")
        for sender, receiver in self.lost(host, direction):
            ip("-n", self.name(sender), "neigh", "delete", self.address(receiver), "dev", "eth0")

    def lost(self, host, direction):
        if direction == "from":
            return [(host, other) for other in self.others(host)]
        return [(other, host) for other in self.others(host)] if direction == "to" else []
