"""Debian packages: finds the packages that they need, downloads them as files, and unpacks them without installing."""

import io
import lzma
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

from node.manifest import BundleError, sha256

# Packages that a machine with a compiler has, and packages that others depend on but Holdfast does not use.
LEFT_OUT = re.compile(
    r"^(libc6|libc6-dev|libc-dev|libgcc-.*|gcc-.*|libstdc\+\+.*|libgomp1|debconf|perl.*|python3?.*"
    r"|libhdf5-(fortran|hl|cpp)-.*|hdf5-helpers|lib(jpeg|aec|ssl|curl4-openssl)-dev|googletest|catch2)$"
)


def first_alternatives(depends):
    """The names in a Depends field; the first of alternatives: "a (>= 1), b:any | c" gives a and b."""
    return [re.split(r"[ (:|]", part.strip(), maxsplit=1)[0] for part in depends.split(",") if part.strip()]


def closure(roots, describe, left_out=LEFT_OUT):
    """All packages that `roots` need, sorted by name, with their fields. `describe(names)` returns fields by name."""
    found = {}
    wanted = sorted(roots)
    while wanted:
        described = describe(wanted)
        found.update(described)
        needed = {
            name
            for of in described.values()
            for field in ("Pre-Depends", "Depends")
            for name in first_alternatives(of.get(field, ""))
        }
        wanted = sorted(name for name in needed if name not in found and not left_out.match(name))
    return dict(sorted(found.items()))


def described_by_apt(names):
    """The fields of the versions that apt would install, by name."""
    shown = subprocess.run(
        ["apt-cache", "show", "--no-all-versions", *names], capture_output=True, text=True, check=False
    )
    found = {
        described["Package"]: described for described in map(fields, shown.stdout.strip().split("\n\n")) if described
    }
    missing = [name for name in names if name not in found]
    if missing:
        raise BundleError(f"apt knows no package {', '.join(missing)}; run apt-get update first, on Debian 12")
    return found


def fields(paragraph):
    """The fields of a control paragraph; only the first line of fields with several lines."""
    return dict(line.split(": ", 1) for line in paragraph.splitlines() if re.match(r"[A-Za-z0-9-]+: ", line))


def fetch(packages, cache):
    """Downloads the files of `packages` (name to fields) into `cache`, unless they are there. Returns their paths."""
    cache.mkdir(parents=True, exist_ok=True)
    paths = {name: cache / Path(described["Filename"]).name for name, described in packages.items()}
    missing = [
        name for name, path in paths.items() if not path.is_file() or path.stat().st_size != int(packages[name]["Size"])
    ]
    if missing:
        pinned = [f"{name}={packages[name]['Version']}" for name in missing]
        fetched = subprocess.run(
            ["apt-get", "-o", "APT::Sandbox::User=root", "-qq", "download", *pinned],
            cwd=cache,
            capture_output=True,
            text=True,
            timeout=1200,
            check=False,
        )
        if fetched.returncode != 0:
            raise BundleError(f"apt-get could not download {', '.join(pinned)}: {fetched.stderr.strip()}")
        for name in missing:
            # apt adds a version's epoch to the file name, escaped; the name in the archive has no epoch.
            for path in cache.glob(f"{name}_*%3a*.deb"):
                path.rename(paths[name])
    for name, path in paths.items():
        if not path.is_file() or sha256(path) != packages[name]["SHA256"]:
            path.unlink(missing_ok=True)
            raise BundleError(f"{path.name} has another SHA-256 than apt's lists say; run apt-get update and try again")
    return list(paths.values())


# Documentation is not unpacked, since a node does not need it.
SKIPPED = ("./usr/share/doc/", "./usr/share/man/", "./usr/share/lintian/", "./usr/share/bug/", "./usr/share/doc-base/")


def unpack(package, folder):
    """Unpacks the files of a .deb below `folder`; its scripts do not run."""
    folder.mkdir(parents=True, exist_ok=True)
    if shutil.which("dpkg-deb"):
        opened = subprocess.run(
            ["dpkg-deb", "--fsys-tarfile", str(package)], capture_output=True, timeout=300, check=False
        )
        if opened.returncode != 0:
            raise BundleError(f"dpkg-deb cannot open {package}: {opened.stderr.decode(errors='replace').strip()}")
        archive = opened.stdout
    else:
        archive = data_of(package)
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        wanted = [member for member in tar.getmembers() if not member.name.startswith(SKIPPED)]
        # The archives are trusted, since their SHA-256 was compared. The filter still keeps files below the folder.
        tar.extractall(folder, wanted, **({"filter": "tar"} if hasattr(tarfile, "tar_filter") else {}))


def data_of(package):
    """The tar archive with a package's files, without dpkg-deb: a .deb is an ar archive that holds it."""
    members = ar_members(Path(package).read_bytes(), package)
    for name, content in members.items():
        if name == "data.tar":
            return content
        if name == "data.tar.xz":
            return lzma.decompress(content)
    raise BundleError(f"{package} holds {', '.join(members)}, and data.tar.xz is needed; install dpkg")


def ar_members(content, name):
    """The members of an ar archive, by name."""
    if content[:8] != b"!<arch>\n":
        raise BundleError(f"{name} is not a Debian package")
    members = {}
    at = 8
    while at + 60 <= len(content):
        header = content[at : at + 60]
        size = int(header[48:58])
        members[header[:16].decode().strip().rstrip("/")] = content[at + 60 : at + 60 + size]
        at += 60 + size + size % 2
    return members
