"""Unpacks the packages of a bundle into one folder, and makes tools find them there. The system is not changed."""

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

from node import debian, manifest
from node.manifest import BundleError

TRIPLET = "x86_64-linux-gnu"
CACHE = "holdfast-prefix.cmake"
STAMP = "packages.sha256"


def check_machine(needs):
    """Raises BundleError when this machine is too old for the bundle's libraries."""
    machine = platform.machine()
    if machine not in ("x86_64", "AMD64"):
        raise BundleError(
            f"the bundle's packages are for x86-64, and this machine is {machine}; make them there with scripts/setup"
        )
    for name, have in (("GLIBC", glibc_version()), ("GLIBCXX", glibcxx_version())):
        need = needs["versions"].get(name)
        if need and have and as_numbers(have) < as_numbers(need):
            raise BundleError(
                f"the bundle's libraries need {name} {need}, and this machine has {have}; use a newer system, or "
                "install what scripts/setup names from its own packages and leave --bundle out"
            )


def as_numbers(version):
    return tuple(int(part) for part in version.split("."))


def glibc_version():
    return platform.libc_ver()[1] or None


def glibcxx_version():
    """The newest symbol version in the libstdc++ that g++ links with; None when it cannot be found out."""
    compiler = shutil.which("g++")
    if compiler is None:
        return None
    library = subprocess.run(
        [compiler, "-print-file-name=libstdc++.so.6"], capture_output=True, text=True, check=False
    ).stdout.strip()
    if not os.path.isfile(library):
        return None
    found = re.findall(rb"GLIBCXX_([0-9]+\.[0-9]+\.[0-9]+)\0", Path(library).read_bytes())
    return max((version.decode() for version in found), key=as_numbers, default=None)


def make(bundle, prefix):
    """Unpacks the bundle's packages into `prefix`, unless they are there from this bundle.

    Returns the file to start CMake with.
    """
    told = manifest.verify(bundle)
    check_machine(told["needs"])
    cache = prefix / CACHE
    stamp = prefix / STAMP
    packages = [file for file in told["files"] if file["name"].endswith(".deb")]
    # The path is part of the key, since files below the folder name it.
    mark = "".join(f"{file['sha256']}  {file['name']}\n" for file in packages) + f"{prefix}\n"
    if stamp.is_file() and stamp.read_text() == mark:
        return cache
    if prefix.exists() and not stamp.is_file() and any(prefix.iterdir()):
        raise BundleError(f"{prefix} is not empty, and no bundle was unpacked into it; name another folder")
    shutil.rmtree(prefix, ignore_errors=True)
    prefix.mkdir(parents=True)
    # Mark the folder as ours first. After an interruption it is then unpacked anew, and not taken for a user's folder.
    stamp.write_text("begun\n")
    # Packages of Debian 12 have some files in /lib, which is /usr/lib there.
    (prefix / "usr/lib").mkdir(parents=True)
    (prefix / "lib").symlink_to("usr/lib")
    for file in packages:
        debian.unpack(Path(bundle) / file["name"], prefix)
    rewrite_links(prefix)
    rewrite_package_files(prefix)
    write_pkg_config(prefix)
    cache.write_text(initial_cache(prefix))
    stamp.write_text(mark)
    return cache


def rewrite_links(prefix):
    """Redirects links to the system's files to those below `prefix`."""
    for path in prefix.rglob("*"):
        if path.is_symlink() and os.readlink(path).startswith("/"):
            target = f"{prefix}{os.readlink(path)}"
            path.unlink()
            path.symlink_to(target)


def rewrite_package_files(prefix):
    """Replaces the system's folders in pkg-config's files by those below `prefix`."""
    # A link that Debian's alternatives make when the package is installed.
    serial = prefix / f"usr/lib/{TRIPLET}/pkgconfig/hdf5-serial.pc"
    if serial.is_file():
        shutil.copyfile(serial, serial.with_name("hdf5.pc"))
    for path in prefix.rglob("*.pc"):
        text = re.sub(r"(=\s*|-[IL])/usr\b", rf"\g<1>{prefix}/usr", path.read_text())
        if path.parent.parent.name == TRIPLET:
            # This suffices if the linker searches /usr/lib/<triplet> by default.
            text = re.sub(r"^(libdir=.*/lib)$", rf"\g<1>/{TRIPLET}", text, flags=re.MULTILINE)
        path.write_text(text)


def write_pkg_config(prefix):
    """A command that runs the bundle's own pkg-config, for machines that have none."""
    command = prefix / "bin/pkg-config"
    command.parent.mkdir(exist_ok=True)
    command.write_text(f"""#!/bin/sh
# pkg-config for the packages below {prefix}.
export LD_LIBRARY_PATH="{prefix}/usr/lib/{TRIPLET}"
export PKG_CONFIG_LIBDIR="{prefix}/usr/lib/{TRIPLET}/pkgconfig:{prefix}/usr/lib/pkgconfig:{prefix}/usr/share/pkgconfig"
exec "{prefix}/usr/bin/pkgconf" "$@"
""")
    command.chmod(0o755)


def initial_cache(prefix):
    """CMake variables with which builds find libraries below `prefix`, and programs find them when they run."""
    libraries = f"{prefix}/usr/lib/{TRIPLET}"
    # DT_RPATH, which serves the libraries of libraries too: HDF5 needs libcurl, and a program's DT_RUNPATH is for what
    # it needs itself.
    flags = f"-Wl,--disable-new-dtags -Wl,-rpath-link,{libraries}"
    lines = [
        f'set(CMAKE_PREFIX_PATH "{prefix}/usr" CACHE PATH "")',
        # On systems other than Debian, CMake would not search lib/<this>.
        f'set(CMAKE_LIBRARY_ARCHITECTURE {TRIPLET} CACHE STRING "")',
        f'set(PKG_CONFIG_EXECUTABLE "{prefix}/bin/pkg-config" CACHE FILEPATH "")',
        f'set(CMAKE_BUILD_RPATH "{libraries}" CACHE PATH "")',
        # Configuration files of 2022 name CMake versions that CMake 4 no longer knows.
        'set(CMAKE_POLICY_VERSION_MINIMUM 3.5 CACHE STRING "")',
    ]
    lines += [f'set(CMAKE_{kind}_LINKER_FLAGS "{flags}" CACHE STRING "")' for kind in ("EXE", "SHARED", "MODULE")]
    return "\n".join(lines) + "\n"
