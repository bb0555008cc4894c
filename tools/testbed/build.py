# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""The programs of the test bed, built from their Go modules into a cache outside the checkout.

Each folder of `go/` is a small Go module with committed `go.mod` and `go.sum`; nothing else decides what is built. A
build lands in `<cache>/<name>-<version>/<key>/`, where the key is a hash of the module's files and of the build's
arguments: a changed dependency gives a new folder, and an old checkout still finds its own. The folder appears by one
rename, complete, and a lock file makes the second of two processes wait for the first.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from testbed.process import dies_with_parent

MODULES = Path(__file__).parent / "go"
LAYOUT = "1"  # part of the key: raise it when the content of a cache folder changes


class BuildError(RuntimeError):
    """A program could not be built; the message carries the last lines of the compiler."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What one folder of `go/` gives: one or several binaries of one version."""

    name: str  # the first part of the cache folder's name
    version: str
    module: str  # folder below go/
    packages: tuple[str, ...]
    stamp: str = ""  # linker flags that tell the binary its version
    extra: str = ""  # Go module whose `kustomize/stage` files are copied beside the binary


def _kubernetes(version: str) -> Program:
    major, minor, _ = version.split(".")
    variable = "k8s.io/component-base/version.git"
    stamps = {"Version": f"v{version}", "Major": major, "Minor": minor}
    return Program(
        name="kubernetes",
        version=version,
        module=f"kubernetes-{major}.{minor}",
        packages=tuple(
            f"k8s.io/kubernetes/cmd/{command}"
            for command in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
        ),
        stamp=" ".join(f"-X {variable}{key}={value}" for key, value in stamps.items()),
    )


ETCD = Program(name="etcd", version="3.6.16", module="etcd", packages=("go.etcd.io/etcd/server/v3",))
KUBERNETES = {"1.37": _kubernetes("1.37.2"), "1.34": _kubernetes("1.34.4")}
ADDON_OPERATOR = Program(
    name="addon-operator",
    version="1.24.4",
    module="addon-operator",
    packages=("github.com/flant/addon-operator/cmd/addon-operator",),
)
KWOK = Program(
    name="kwok", version="0.8.0", module="kwok", packages=("sigs.k8s.io/kwok/cmd/kwok",), extra="sigs.k8s.io/kwok"
)
ALL = (ETCD, KUBERNETES["1.37"], ADDON_OPERATOR, KWOK, KUBERNETES["1.34"])


def cache() -> Path:
    """The folder that holds every built program; `XDG_CACHE_HOME` moves it."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ai-inference-testbed"


def ensure(program: Program) -> Path:
    """The folder with the program's binaries, built now if the cache lacks it.

    A warm cache needs no Go. Raises BuildError when the build fails or Go is absent.
    """
    folder = cache() / f"{program.name}-{program.version}" / _key(program)
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _locked(folder.parent / f".{folder.name}.lock"):
        if not folder.is_dir():
            _build(program, folder)
    return folder


def binary(program: Program, name: str) -> Path:
    """One binary of the program, built now if the cache lacks it."""
    return ensure(program) / name


def _key(program: Program) -> str:
    """A hash of everything that decides the build's result, but the Go version."""
    root = MODULES / program.module
    digest = hashlib.sha256("\0".join([LAYOUT, *program.packages, program.stamp, program.extra]).encode())
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        digest.update(f"\0{path.relative_to(root)}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build(program: Program, folder: Path) -> None:
    if shutil.which("go") is None:
        raise BuildError(f"{program.name} {program.version} is not in {cache()} and there is no Go to build it")
    print(f"testbed: building {program.name} {program.version} (once; minutes)", file=sys.stderr, flush=True)
    started = time.monotonic()
    target = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(target, ignore_errors=True)  # of a build that was killed; we hold the lock
    target.mkdir()
    flags = ("-mod=readonly", "-trimpath", "-ldflags", f"-s -w {program.stamp}".strip())
    _go(program, "build", *flags, "-o", f"{target}/", *program.packages)
    if (target / "server").exists():  # etcd's main package is called so
        (target / "server").rename(target / "etcd")
    if program.extra:
        source = _go(program, "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", program.extra).strip()
        _copy_stages(Path(source) / "kustomize" / "stage", target / "stage")
    target.rename(folder)
    print(f"testbed: built {program.name} in {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)


def _go(program: Program, *arguments: str) -> str:
    environment = {**os.environ, "GOWORK": "off"}
    done = subprocess.run(
        ["nice", "go", *arguments],
        cwd=MODULES / program.module,
        env=environment,
        capture_output=True,
        text=True,
        preexec_fn=dies_with_parent(),
    )
    if done.returncode:
        raise BuildError(f"go {arguments[0]} of {program.name} failed:\n{done.stderr[-4000:]}")
    return done.stdout


def _copy_stages(source: Path, target: Path) -> None:
    """kwok's ready-made stages, so that a warm cache needs neither Go nor its module folder."""
    for path in source.rglob("*.yaml"):
        if path.name == "kustomization.yaml" or "testdata" in path.parts:
            continue
        copy = target / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
