# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""One control plane on free loopback ports: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok.

kwok plays every node's kubelet: pods scheduled to a node become Running and Ready, no container runs.
"""

import json
import os
import shutil
import ssl
import subprocess
import tempfile
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import kubernetes
import yaml

from testbed import build, certs
from testbed.process import Process, ProcessError, free_port, until

SHARES_AND_PARTITIONS = {"DRAPartitionableDevices": True, "DRAConsumableCapacity": True}
"""What 1.34 and 1.35 need for partitions and shares; without it the API server drops those fields at write."""

_PREFIX = "ai-inference-testbed-"
_STAGES = ("node/fast", "node/heartbeat-with-lease", "pod/fast", "volume/fast")


class KubectlError(RuntimeError):
    """kubectl said no; the message is its standard error, which carries the API server's words."""


class Cluster:
    """A control plane. `start` it, or use it as a context manager; `stop` removes everything but kept logs.

    kubernetes: "1.37" or "1.34". feature_gates go to API server, controller manager and scheduler alike.
    durable: etcd syncs its files, as a test that kills etcd needs; slower. kwok: False leaves nodes without kubelet.
    stages: kwok stage files used instead of the ready-made ones (slow starts, failing pods, drains).
    """

    def __init__(
        self,
        *,
        kubernetes: str = "1.37",
        feature_gates: Mapping[str, bool] | None = None,
        runtime_config: Mapping[str, bool] | None = None,
        durable: bool = False,
        kwok: bool = True,
        stages: Sequence[Path] | None = None,
    ) -> None:
        if kubernetes not in build.KUBERNETES:
            raise ValueError(f"kubernetes {kubernetes}: the test bed has {', '.join(build.KUBERNETES)}")
        self.kubernetes = kubernetes
        self.feature_gates = dict(feature_gates or {})
        self._runtime_config = dict(runtime_config or {})
        self._durable = durable
        self._with_kwok = kwok
        self._stages = stages
        self._directory: Path | None = None
        self._kubectl: Path | None = None
        self._processes: list[Process] = []
        self._apiserver: Process | None = None
        self._port = 0
        self._tls: ssl.SSLContext | None = None

    # Life

    def start(self) -> Self:
        """Start everything and return when a pod could be scheduled. What was started is stopped if a part fails."""
        binaries = build.ensure(build.KUBERNETES[self.kubernetes])
        etcd = build.binary(build.ETCD, "etcd")
        kwok = build.ensure(build.KWOK) if self._with_kwok else None
        self._kubectl = binaries / "kubectl"
        remove_leftovers()
        self._directory = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
        self.logs.mkdir()
        try:
            self._start(binaries, etcd, kwok)
        except BaseException:
            kept = self.keep_logs(Path(tempfile.mkdtemp(prefix=f"{_PREFIX}logs-")))
            print(f"testbed: start failed, logs are in {kept}", flush=True)
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Stop every process, last started first, and remove the directory. Safe to call twice."""
        for process in reversed(self._processes):
            process.kill9()
        self._processes.clear()
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    # What users of a cluster need

    @property
    def directory(self) -> Path:
        """The folder of this cluster's files. Raises ProcessError when it is not started."""
        if self._directory is None:
            raise ProcessError("the cluster is not started")
        return self._directory

    @property
    def logs(self) -> Path:
        """The folder with one log file per program; others of the test bed write theirs here too."""
        return self.directory / "logs"

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig of a cluster administrator."""
        return self.directory / "admin.kubeconfig"

    @property
    def server(self) -> str:
        """The API server's address."""
        return f"https://127.0.0.1:{self._port}"

    @property
    def pids(self) -> dict[str, int]:
        """The process ids by program name."""
        return {process.name: process.pid for process in self._processes}

    def process(self, name: str) -> Process:
        """One of: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok; to kill, hang or restart it."""
        return next(process for process in self._processes if process.name == name)

    def ended(self) -> list[str]:
        """The programs that do not run any more, whoever ended them."""
        return [process.name for process in self._processes if not process.running]

    def kubectl(
        self, *arguments: str, input: str | Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None
    ) -> str:
        """Run kubectl as administrator and return its standard output. Raises KubectlError.

        input is the text for `-f -`: a manifest as text, as a dict, or several dicts.
        """
        done = self.kubectl_process(*arguments, input=input)
        if done.returncode:
            raise KubectlError(done.stderr.strip())
        return done.stdout

    def kubectl_process(
        self,
        *arguments: str,
        input: str | Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """The same without an exception: a refusal is in `returncode` and `stderr`."""
        if self._kubectl is None:
            raise ProcessError("the cluster is not started")
        return subprocess.run(
            [self._kubectl, "--kubeconfig", self.kubeconfig, *arguments],
            input=_manifest(input),
            stdin=subprocess.DEVNULL if input is None else None,
            capture_output=True,
            text=True,
            env={**os.environ, "HOME": str(self.directory)},
        )

    def get(self, *arguments: str) -> Any:
        """`kubectl get … -o json`, parsed; None when the object or the kind is not there."""
        done = self.kubectl_process("get", *arguments, "-o", "json")
        if done.returncode:
            if "(NotFound)" in done.stderr or "the server doesn't have a resource type" in done.stderr:
                return None
            raise KubectlError(done.stderr.strip())
        return json.loads(done.stdout)

    def apply(self, *objects: str | Mapping[str, Any]) -> str:
        """Server-side apply of manifests under the field manager `test`, conflicts forced."""
        text = "\n---\n".join(_manifest(thing) or "" for thing in objects)
        return self.kubectl(
            "apply", "--server-side", "--force-conflicts", "--field-manager=test", "-f", "-", input=text
        )

    def client(self) -> Any:
        """A `kubernetes.client.ApiClient` of an administrator; the caller closes it or lets it go."""
        return kubernetes.config.new_client_from_config(config_file=str(self.kubeconfig))  # type: ignore[no-untyped-call]

    def token(self, namespace: str, service_account: str, *, seconds: int = 86400) -> str:
        """A token of a ServiceAccount, through TokenRequest: it has the account's rights and no others."""
        return self.kubectl(
            "create", "token", service_account, "--namespace", namespace, f"--duration={seconds}s"
        ).strip()

    def token_kubeconfig(self, path: Path, token: str, *, namespace: str = "default") -> Path:
        """Write a kubeconfig that speaks with `token` to `path`, and return the path."""
        return self._write_kubeconfig(path, {"token": token}, namespace)

    def wait(self, what: str, *condition: str, timeout: float = 60) -> None:
        """`kubectl wait`: wait("pod/x", "--for=condition=Ready", "-n", "ns"). Raises KubectlError when time is up."""
        self.kubectl("wait", what, *condition, f"--timeout={timeout:.0f}s")

    def version(self) -> str:
        """What the API server calls itself, e.g. v1.37.2."""
        return str(json.loads(self.kubectl("get", "--raw", "/version"))["gitVersion"])

    # Faults

    def stop_apiserver(self) -> None:
        """Kill the API server; everybody else stays and sees refused connections."""
        if self._apiserver is not None:
            self._apiserver.kill9()

    def start_apiserver(self) -> None:
        """Start the API server at its old port and wait until it is ready."""
        if self._apiserver is None:
            raise ProcessError("the cluster is not started")
        self._apiserver.start()
        self._wait_ready()

    def restart_apiserver(self) -> None:
        """Kill the API server and start it again; watches break, old resource versions may have expired."""
        self.stop_apiserver()
        self.start_apiserver()

    def keep_logs(self, target: Path) -> Path:
        """Copy the logs into `target` and return it."""
        return Path(shutil.copytree(self.logs, target, dirs_exist_ok=True))

    # Insides

    def _start(self, binaries: Path, etcd: Path, kwok: Path | None) -> None:
        pki = self.directory / "pki"
        pki.mkdir(mode=0o700)
        authority = certs.Authority(pki, "ca")
        front_proxy = certs.Authority(pki, "front-proxy-ca")
        serving = authority.server("apiserver", ["127.0.0.1", "localhost", "10.96.0.1", "kubernetes.default.svc"])
        aggregator = front_proxy.client("front-proxy-client", user="front-proxy-client")
        account_key = certs.service_account_key(pki)
        self._port = free_port()
        for name, user, group in (
            ("admin", "admin", "system:masters"),
            ("controller-manager", "system:kube-controller-manager", ""),
            ("scheduler", "system:kube-scheduler", ""),
        ):
            pair = authority.client(name, user=user, group=group)
            files = {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}
            self._write_kubeconfig(self.directory / f"{name}.kubeconfig", files, "default")
        self._tls = ssl.create_default_context(cafile=str(authority.certificate))
        self._tls.load_cert_chain(pki / "admin.crt", pki / "admin.key")

        client, peer = free_port(), free_port()
        self._run(
            "etcd", etcd, f"--data-dir={self.directory / 'etcd'}",
            f"--listen-client-urls=http://127.0.0.1:{client}", f"--advertise-client-urls=http://127.0.0.1:{client}",
            f"--listen-peer-urls=http://127.0.0.1:{peer}", f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}",
            f"--initial-cluster=default=http://127.0.0.1:{peer}", "--log-level=warn",
            *([] if self._durable else ["--unsafe-no-fsync"]),
        )  # fmt: skip
        gates = [f"--feature-gates={_flag(self.feature_gates)}"] if self.feature_gates else []
        runtime = [f"--runtime-config={_flag(self._runtime_config)}"] if self._runtime_config else []
        self._apiserver = self._run(
            "kube-apiserver", binaries / "kube-apiserver", f"--etcd-servers=http://127.0.0.1:{client}",
            "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", f"--secure-port={self._port}",
            f"--cert-dir={self.directory / 'apiserver'}",
            f"--tls-cert-file={serving.certificate}", f"--tls-private-key-file={serving.key}",
            f"--client-ca-file={authority.certificate}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={account_key.certificate}",
            f"--service-account-signing-key-file={account_key.key}",
            "--service-cluster-ip-range=10.96.0.0/16", "--authorization-mode=Node,RBAC", "--allow-privileged=true",
            f"--requestheader-client-ca-file={front_proxy.certificate}",
            "--requestheader-allowed-names=front-proxy-client", "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--proxy-client-cert-file={aggregator.certificate}", f"--proxy-client-key-file={aggregator.key}",
            "--endpoint-reconciler-type=none", *gates, *runtime,
        )  # fmt: skip
        self._wait_ready()
        self._run(
            "kube-controller-manager", binaries / "kube-controller-manager",
            *self._component("controller-manager"), *gates,
            f"--service-account-private-key-file={account_key.key}", f"--root-ca-file={authority.certificate}",
            "--use-service-account-credentials=true", "--kube-api-qps=300", "--kube-api-burst=600",
        )  # fmt: skip
        self._run("kube-scheduler", binaries / "kube-scheduler", *self._component("scheduler"), *gates)
        if kwok is not None:
            stages = self._stages if self._stages is not None else _ready_made(kwok / "stage")
            self._run(
                "kwok", kwok / "kwok", f"--kubeconfig={self.kubeconfig}", "--manage-all-nodes=true",
                "--node-ip=127.0.0.1", "--node-lease-duration-seconds=40",
                f"--server-address=127.0.0.1:{free_port()}", *(f"--config={file}" for file in stages),
            )  # fmt: skip
        # Pods need their namespace's default ServiceAccount, which the controller manager makes.
        until(
            "the default ServiceAccount",
            lambda: self.get("serviceaccount", "default", "--namespace=default"),
            timeout=180,
            process=self.process("kube-controller-manager"),
        )
        for process in self._processes:
            if not process.running:
                raise ProcessError(f"{process.name} ended right after its start\n{process.tail()}")

    def _component(self, name: str) -> list[str]:
        file = self.directory / f"{name}.kubeconfig"
        return [
            f"--kubeconfig={file}", f"--authentication-kubeconfig={file}", f"--authorization-kubeconfig={file}",
            "--bind-address=127.0.0.1", f"--secure-port={free_port()}", "--leader-elect=false",
            f"--cert-dir={self.directory / name}",
        ]  # fmt: skip

    def _run(self, name: str, *command: str | Path) -> Process:
        process = Process(name, command, log=self.logs / f"{name}.log", cwd=self.directory)
        process.start()
        self._processes.append(process)
        return process

    def _wait_ready(self) -> None:
        until("the API server to be ready", self._is_ready, timeout=180, process=self._apiserver)

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.server}/readyz", timeout=5, context=self._tls) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def _write_kubeconfig(self, path: Path, user: Mapping[str, str], namespace: str) -> Path:
        authority = self.directory / "pki" / "ca.crt"
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {"name": "testbed", "cluster": {"server": self.server, "certificate-authority": str(authority)}}
            ],
            "users": [{"name": "user", "user": dict(user)}],
            "contexts": [
                {"name": "testbed", "context": {"cluster": "testbed", "user": "user", "namespace": namespace}}
            ],
            "current-context": "testbed",
        }
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(content))
        return path


def remove_leftovers() -> None:
    """Remove the directories of clusters whose process was killed before it could. Kept logs stay."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        owner = path.name.removeprefix(_PREFIX).split("-")[0]
        if owner.isdecimal() and not Path(f"/proc/{owner}").exists():
            shutil.rmtree(path, ignore_errors=True)


def _ready_made(stages: Path) -> list[Path]:
    """kwok's own stages: nodes ready with a lease, pods ready at once, volumes provisioned and bound at once."""
    return sorted(
        file for folder in _STAGES for file in (stages / folder).glob("*.yaml") if file.name != "storage-class.yaml"
    )


def _flag(switches: Mapping[str, bool]) -> str:
    return ",".join(f"{name}={str(value).lower()}" for name, value in sorted(switches.items()))


def _manifest(thing: str | Mapping[str, Any] | Sequence[Mapping[str, Any]] | None) -> str | None:
    if thing is None or isinstance(thing, str):
        return thing
    if isinstance(thing, Mapping):
        return json.dumps(thing)
    return "\n---\n".join(json.dumps(part) for part in thing)
