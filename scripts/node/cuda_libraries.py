"""cuDNN, NCCL, cuBLASLt and CUPTI from pip packages: headers, and libraries with a version in their name."""

import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Package:
    """The files of a package in <site-packages>/nvidia, and the names of its CMake variables."""

    name: str
    folders: tuple  # below nvidia/, the first that has it
    header: str
    library: str  # up to the version
    version_header: str
    version_macros: tuple
    include_variable: str
    library_variable: str


PACKAGES = (
    Package(
        "cuDNN",
        ("cudnn",),
        "cudnn.h",
        "libcudnn.so",
        "cudnn_version.h",
        ("CUDNN_MAJOR", "CUDNN_MINOR", "CUDNN_PATCHLEVEL"),
        "HOLDFAST_CUDNN_INCLUDE",
        "HOLDFAST_CUDNN_LIBRARY",
    ),
    Package(
        "NCCL",
        ("nccl",),
        "nccl.h",
        "libnccl.so",
        "nccl.h",
        ("NCCL_MAJOR", "NCCL_MINOR", "NCCL_PATCH"),
        "HOLDFAST_NCCL_INCLUDE",
        "HOLDFAST_NCCL_LIBRARY",
    ),
    Package(
        "cuBLASLt",
        ("cu13", "cublas"),
        "cublasLt.h",
        "libcublasLt.so",
        "cublas_api.h",
        ("CUBLAS_VER_MAJOR", "CUBLAS_VER_MINOR", "CUBLAS_VER_PATCH"),
        "HOLDFAST_CUBLAS_INCLUDE",
        "HOLDFAST_CUBLASLT_LIBRARY",
    ),
    Package(
        "CUPTI",
        ("cu13", "cuda_cupti"),
        "cupti.h",
        "libcupti.so",
        "cupti_version.h",
        ("CUPTI_API_VERSION",),
        "HOLDFAST_CUPTI_INCLUDE",
        "HOLDFAST_CUPTI_LIBRARY",
    ),
)


@dataclass(frozen=True)
class Found:
    package: Package
    include: Path
    library: Path
    version: str


def search_path(python):
    """The folders in which `python` looks for packages."""
    told = subprocess.run(
        [python, "-c", "import json, sys; print(json.dumps(sys.path))"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return [Path(folder) for folder in json.loads(told.stdout) if folder]


def find(package, folders):
    """The package in the first of `folders` that has its header and its library; None when none has both."""
    for folder in folders:
        for name in package.folders:
            include = folder / "nvidia" / name / "include"
            libraries = sorted((folder / "nvidia" / name / "lib").glob(package.library + "*"))
            if (include / package.header).is_file() and libraries:
                # The name without a version first, as `sorted` has it: it is what a linker expects.
                return Found(package, include, libraries[0], version_of(package, include))
    return None


def version_of(package, include):
    """The version, such as "9.19.0"; "unknown" when the header does not define it."""
    header = include / package.version_header
    text = header.read_text(errors="replace") if header.is_file() else ""
    numbers = [re.search(rf"^\s*#\s*define\s+{macro}\s+(\d+)", text, re.MULTILINE) for macro in package.version_macros]
    return ".".join(number.group(1) for number in numbers) if all(numbers) else "unknown"


def find_all(python):
    folders = search_path(python)
    return [found for found in (find(package, folders) for package in PACKAGES) if found]


# What Holdfast::torch is built with for devices. A package for processors lacks some.
FILES_OF_TORCH = ("lib/libtorch_cuda.so", "lib/libc10_cuda.so", "lib/libtorch_cpu.so", "include/c10/cuda/CUDAStream.h")


def find_torch(folders):
    """The package torch in the first of `folders` that has one for CUDA; None when none has."""
    for folder in folders:
        if all((folder / "torch" / name).is_file() for name in FILES_OF_TORCH) and has_new_strings(folder / "torch"):
            return folder / "torch"
    return None


def has_new_strings(torch):
    """Whether its C++ parts have the std::string of C++11, as wheels have since PyTorch 2.6; others would not link."""
    text = (torch / "version.py").read_text() if (torch / "version.py").is_file() else ""
    found = re.search(r"__version__ = ['\"](\d+)\.(\d+)", text)
    return found is not None and (int(found.group(1)), int(found.group(2))) >= (2, 6)


def initial_cache(found):
    """The CMake variables for these packages."""
    lines = []
    for one in found:
        lines += [
            f'set({one.package.include_variable} "{one.include}" CACHE PATH "")',
            f'set({one.package.library_variable} "{one.library}" CACHE FILEPATH "")',
        ]
    return "".join(line + "\n" for line in lines)
