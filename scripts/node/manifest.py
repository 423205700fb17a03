"""The list of the files of a bundle: names, sizes and SHA-256, in an order that does not depend on when it was made."""

import hashlib
import json
from pathlib import Path

NAME = "MANIFEST.json"
LIMIT_BYTES = 60 * 2**20


class BundleError(Exception):
    """A sentence for the user of the script."""


def sha256(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def entries(folder):
    """One entry for each file below `folder`, sorted by name, without the manifest itself."""
    paths = sorted(path for path in Path(folder).rglob("*") if path.is_file() and path.name != NAME)
    return [
        {"name": str(path.relative_to(folder)), "bytes": path.stat().st_size, "sha256": sha256(path)} for path in paths
    ]


def check_size(files, limit=LIMIT_BYTES):
    """Raises BundleError with the names of the largest files when all files together exceed the limit."""
    total = sum(file["bytes"] for file in files)
    if total <= limit:
        return total
    largest = sorted(files, key=lambda file: (-file["bytes"], file["name"]))[:5]
    named = ", ".join(f"{file['name']} ({file['bytes'] / 2**20:.1f} MiB)" for file in largest)
    raise BundleError(
        f"the bundle has {total / 2**20:.1f} MiB, and {limit / 2**20:.0f} MiB are allowed; the largest are {named}"
    )


def write(folder, facts, limit=LIMIT_BYTES):
    """Writes the manifest of `folder`: `facts` and its files. Returns it."""
    files = entries(folder)
    made = {**facts, "bytes": check_size(files, limit), "files": files}
    (Path(folder) / NAME).write_text(json.dumps(made, indent=1, sort_keys=True) + "\n")
    return made


def read(folder):
    path = Path(folder) / NAME
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        raise BundleError(f"{folder} is not a bundle: it has no {NAME}; make one with scripts/offline-bundle") from None
    except ValueError as failure:
        raise BundleError(f"{path} is damaged ({failure}); copy the bundle again") from None


def verify(folder):
    """The manifest of `folder`, after comparing each file with it. Raises BundleError naming the first that differs."""
    manifest = read(folder)
    for file in manifest["files"]:
        path = Path(folder) / file["name"]
        if not path.is_file():
            raise BundleError(f"{path} is missing from the bundle; copy it again")
        if path.stat().st_size != file["bytes"]:
            raise BundleError(
                f"{path} has {path.stat().st_size} bytes and should have {file['bytes']}; copy the bundle again"
            )
        if sha256(path) != file["sha256"]:
            raise BundleError(f"{path} is damaged: its SHA-256 differs from the manifest's; copy the bundle again")
    return manifest
