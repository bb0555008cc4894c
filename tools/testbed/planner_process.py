# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""The planner as a process, run as the rendered Deployment says and with the rights of its ServiceAccount.

Command, arguments and environment are read from the Deployment in the cluster, and the token is one of the Deployment's
ServiceAccount: a right that the module forgot to render is missing here as well.
"""

import os
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from testbed.cluster import Cluster
from testbed.operator import REPOSITORY
from testbed.process import Process, ProcessError, free_port, until

NAMESPACE = "d8-ai-inference"
DEPLOYMENT = "resource-planner"


class PlannerProcess:
    """The planner of one cluster. Several with different `identity` stand for several replicas.

    Two things differ from the Deployment, because processes of one machine share what pods do not: a rendered
    `--listen` gets a free port, and paths below an emptyDir's mount point into a folder of this process. env and
    arguments are added last, so that a test can shorten a period. ready_url: what `wait_ready` asks, `/readyz` of the
    listening address by default.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        identity: str = "resource-planner-0",
        env: Mapping[str, str] | None = None,
        arguments: Sequence[str] = (),
        ready_url: str | None = None,
    ) -> None:
        self.cluster = cluster
        self.identity = identity
        self._env = dict(env or {})
        self._arguments = tuple(arguments)
        self._ready_url = ready_url
        self._process: Process | None = None
        self.url: str | None = None  # where it listens; None when nothing about listening is rendered

    def start(self) -> Self:
        """Read the Deployment and start. Raises ProcessError when it is not rendered."""
        deployment = self.cluster.get("deployment", DEPLOYMENT, "--namespace", NAMESPACE)
        if deployment is None:
            raise ProcessError(f"there is no Deployment {NAMESPACE}/{DEPLOYMENT}: is the module enabled?")
        pod = deployment["spec"]["template"]["spec"]
        account = pod.get("serviceAccountName", "default")
        folder = self.cluster.directory / f"planner-{self.identity}"
        folder.mkdir(exist_ok=True)
        kubeconfig = self.cluster.token_kubeconfig(
            folder / "kubeconfig", self.cluster.token(NAMESPACE, account), namespace=NAMESPACE
        )
        container = pod["containers"][0]
        # The program is this virtual environment's, wherever it lies: only what the Deployment says is moved.
        program, *arguments = _command(container)
        command = [program, *(_moved(part, _mounts(container, pod, folder)) for part in arguments)]
        if any(part.split("=")[0] == "--listen" for part in command) and self._ready_url is None:
            address = f"127.0.0.1:{free_port()}"
            command.append(f"--listen={address}")  # the last one counts
            self.url = f"http://{address}"
        self._process = Process(
            f"planner {self.identity}",
            [*command, *self._arguments],
            log=self.log,
            env={
                **_base_environment(folder),
                **self._rendered(container, pod),
                "KUBECONFIG": str(kubeconfig),
                **self._env,
            },
            cwd=folder,
        )
        self._process.start()
        return self

    def wait_ready(self, *, timeout: float = 120) -> Self:
        """Wait until it says it is ready; if it listens nowhere, until it runs and has logged a line."""
        until("the planner to be ready", self._is_ready, timeout=timeout, process=self._process)
        return self

    def stop(self) -> None:
        """End it as a pod's termination does."""
        if self._process is not None:
            self._process.stop()

    def kill9(self) -> None:
        """Kill it: it cannot give its lease back."""
        if self._process is not None:
            self._process.kill9()

    def restart(self) -> Self:
        """Stop and start, with the Deployment and a token of now."""
        self.stop()
        return self.start()

    def __enter__(self) -> Self:
        return self.start().wait_ready()

    def __exit__(self, *_: object) -> None:
        self.kill9()

    @property
    def process(self) -> Process:
        """The process, to signal it or to read its log. Raises ProcessError when it was never started."""
        if self._process is None:
            raise ProcessError("the planner was never started")
        return self._process

    @property
    def log(self) -> Path:
        return self.cluster.logs / f"planner-{self.identity}.log"

    def _rendered(self, container: Mapping[str, Any], pod: Mapping[str, Any]) -> dict[str, str]:
        """The container's environment; of `valueFrom` what a kubelet would know about the pod and ConfigMaps hold."""
        found = {}
        for variable in container.get("env", []):
            if "value" in variable:
                found[variable["name"]] = str(variable["value"])
                continue
            source = variable.get("valueFrom", {})
            if "fieldRef" in source:
                found[variable["name"]] = self._field(source["fieldRef"]["fieldPath"], pod)
            elif "configMapKeyRef" in source:
                reference = source["configMapKeyRef"]
                config = self.cluster.get("configmap", reference["name"], "--namespace", NAMESPACE)
                if config is not None and reference["key"] in config.get("data", {}):
                    found[variable["name"]] = config["data"][reference["key"]]
            else:
                raise ProcessError(f"variable {variable['name']}: the test bed cannot resolve {sorted(source)}")
        return found

    def _field(self, path: str, pod: Mapping[str, Any]) -> str:
        known: dict[str, str] = {
            "metadata.name": self.identity,
            "metadata.uid": f"uid-of-{self.identity}",
            "metadata.namespace": NAMESPACE,
            "spec.serviceAccountName": pod.get("serviceAccountName", "default"),
            "spec.nodeName": "testbed",
            "status.podIP": "127.0.0.1",
            "status.hostIP": "127.0.0.1",
        }
        if path not in known:
            raise ProcessError(f"the test bed does not know the pod's {path}")
        return known[path]

    def _is_ready(self) -> bool:
        url = self._ready_url or (f"{self.url}/readyz" if self.url else None)
        if url is None:
            return self.process.running and self.log.exists() and self.log.stat().st_size > 0
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False


def _command(container: Mapping[str, Any]) -> list[str]:
    """The container's command line. An image's interpreter and entry point are those of this virtual environment."""
    line = [*container.get("command", []), *container.get("args", [])]
    if not line:
        raise ProcessError(f"container {container['name']} has neither command nor args")
    program = Path(line[0]).name
    if program.startswith("python"):
        return [sys.executable, *line[1:]]
    if program == "planner":
        return [sys.executable, "-m", "planner", *line[1:]]
    return line


def _mounts(container: Mapping[str, Any], pod: Mapping[str, Any], folder: Path) -> dict[str, Path]:
    """Mount point → folder of this process, for the container's emptyDirs."""
    empty = {volume["name"] for volume in pod.get("volumes", []) if "emptyDir" in volume}
    found = {}
    for mount in container.get("volumeMounts", []):
        if mount["name"] in empty:
            found[mount["mountPath"].rstrip("/")] = folder / f"volume-{mount['name']}"
            found[mount["mountPath"].rstrip("/")].mkdir(exist_ok=True)
    return found


def _moved(argument: str, mounts: Mapping[str, Path]) -> str:
    """The argument with a path below a mount point moved: `/tmp/x` and `--flag=/tmp/x`."""
    flag, equals, value = argument.rpartition("=")
    for point, folder in mounts.items():
        if value == point or value.startswith(f"{point}/"):
            return f"{flag}{equals}{folder}{value.removeprefix(point)}"
    return argument


def _base_environment(folder: Path) -> dict[str, str]:
    """What an image would give: interpreter and package; nothing of the caller's environment."""
    return {
        "PATH": os.pathsep.join([str(Path(sys.prefix) / "bin"), os.defpath]),
        "PYTHONPATH": str(REPOSITORY / "images" / "resource-planner"),
        "PYTHONUNBUFFERED": "1",
        "HOME": str(folder),
        "LANG": "C.UTF-8",
    }
