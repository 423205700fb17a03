"""Network namespaces that stand for hosts, for bench/hosts.

They are joined by a bridge in a namespace of its own. A host is cut off there, so no link goes down and no connection is
reset. In one direction it is cut off by neighbours whose addresses nobody has.

The namespaces have no names: they last as long as this process has them open, or a process is in them. Programs on hosts
are killed when this process ends. So nothing is left, whatever ends it.
"""

import ctypes
import os
import shutil
import signal
import subprocess
import threading
import time

NOBODY = "02:00:00:00:00:fe"  # a link address
TO_DIE = 60  # seconds after SIGKILL
DIRECTIONS = ("both", "from", "to")

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000
PR_SET_PDEATHSIG = 1


def why_not():
    """Why this machine has no such networks; None if it has."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if shutil.which("ip") is None:
        return "there is no `ip`; scripts/setup installs it (iproute2)"
    try:
        os.close(new_namespace())
    except OSError as error:
        return f"this machine refuses network namespaces: {error.strerror}"
    return None


def checked(result):
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def new_namespace():
    """A descriptor of it. Only the thread that makes it is ever in it."""
    made = []

    def make():
        try:
            checked(LIBC.unshare(CLONE_NEWNET))
            made.append(os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC))
        except OSError as error:
            made.append(error)
    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    if isinstance(made[0], OSError):
        raise made[0]
    return made[0]


def enter(namespace):
    """For a new process, before its program begins."""
    checked(LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))
    checked(LIBC.setns(namespace, CLONE_NEWNET))


def ip(namespace, *arguments):
    result = subprocess.run(["ip", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                            preexec_fn=lambda: enter(namespace))
    if result.returncode != 0:
        raise RuntimeError(f"ip {' '.join(arguments)}: {result.stdout.strip()}")


def processes_in(namespace):
    """Those that run there, the oldest first. One that has ended is nowhere."""
    ours = os.fstat(namespace)
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            theirs = os.stat(f"/proc/{name}/ns/net")
        except OSError:
            continue
        if (theirs.st_dev, theirs.st_ino) == (ours.st_dev, ours.st_ino):
            found.append(int(name))
    return sorted(found)


class HostNetworks:
    def __init__(self, hosts):
        self.hosts = range(hosts)
        self.namespaces = []

    def __enter__(self):
        try:
            self.make()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def make(self):
        self.namespaces = [new_namespace() for _ in self.hosts]
        self.bridge = new_namespace()
        ip(self.bridge, "link", "add", "bridge", "type", "bridge")
        ip(self.bridge, "link", "set", "bridge", "up")
        for host, namespace in enumerate(self.namespaces):
            ip(self.bridge, "link", "add", f"port{host}", "type", "veth",
               "peer", "name", "eth0", "netns", f"/proc/{os.getpid()}/fd/{namespace}")
            ip(self.bridge, "link", "set", f"port{host}", "master", "bridge", "up")
            ip(namespace, "link", "set", "lo", "up")
            ip(namespace, "address", "add", f"{self.address(host)}/24", "dev", "eth0")
            ip(namespace, "link", "set", "eth0", "up")

    def close(self):
        for host in self.hosts[:len(self.namespaces)]:
            self.kill_all(host)

    def address(self, host):
        return f"10.77.0.{host + 1}"

    def start(self, host, command, **options):
        """A program on a host, as by subprocess.Popen."""
        return subprocess.Popen(command, preexec_fn=lambda: enter(self.namespaces[host]), **options)

    def kill_all(self, host):
        """SIGKILL to all processes of a host. Returns the moment before the first; none of them runs afterwards."""
        processes = processes_in(self.namespaces[host])
        moment = time.time()
        deadline = time.monotonic() + TO_DIE
        while processes:
            if time.monotonic() > deadline:
                raise RuntimeError(f"processes {' '.join(map(str, processes))} outlive SIGKILL")
            for process in processes:
                try:
                    os.kill(process, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            processes = processes_in(self.namespaces[host])
        return moment

    def others(self, host):
        return [other for other in self.hosts if other != host]

    def cut(self, host, direction):
        """Nothing gets from the host to others any more ("from"), from others to it ("to"), or both."""
        if direction == "both":
            ip(self.bridge, "link", "set", f"port{host}", "nomaster")
        for sender, receiver in self.lost(host, direction):
            ip(self.namespaces[sender], "neigh", "replace", self.address(receiver), "lladdr", NOBODY,
               "nud", "permanent", "dev", "eth0")

    def heal(self, host, direction):
        if direction == "both":
            ip(self.bridge, "link", "set", f"port{host}", "master", "bridge")
        for sender, receiver in self.lost(host, direction):
            ip(self.namespaces[sender], "neigh", "delete", self.address(receiver), "dev", "eth0")

    def cut_between(self, one, other):
        """Nothing gets from one of them to the other any more, while both reach all others."""
        for sender, receiver in ((one, other), (other, one)):
            ip(self.namespaces[sender], "neigh", "replace", self.address(receiver), "lladdr", NOBODY,
               "nud", "permanent", "dev", "eth0")

    def heal_between(self, one, other):
        for sender, receiver in ((one, other), (other, one)):
            ip(self.namespaces[sender], "neigh", "delete", self.address(receiver), "dev", "eth0")

    def lost(self, host, direction):
        if direction == "from":
            return [(host, other) for other in self.others(host)]
        return [(other, host) for other in self.others(host)] if direction == "to" else []
