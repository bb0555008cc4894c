# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""The real addon-operator with the module in it, installed as a stock addon-operator installs modules.

A modules directory holds a copy of the module's files as `900-ai-inference/` and `values.yaml` (the module's
`modules-values.yaml`); the ConfigMap `addon-operator` in `d8-system` carries settings and the switch.
"""

import json
import os
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import yaml

from testbed import build
from testbed.cluster import Cluster
from testbed.process import Process, ProcessError, free_port, until

REPOSITORY = Path(__file__).parents[2]
NAMESPACE = "d8-system"
MODULE_FILES = (
    "module.yaml", "Chart.yaml", ".helmignore", ".namespace", "crds", "hooks", "openapi", "templates", "monitoring",
    "charts", "enabled",
)  # fmt: skip
_CONFIG_MAP = "addon-operator"


class AddonOperator:
    """addon-operator on a cluster, with one module.

    source: the folder with the module's files, the repository by default; those of MODULE_FILES that exist are
    copied. name: the module's name, from `module.yaml` or `Chart.yaml` by default. settings: the module's section of
    the ConfigMap. values: the modules directory's values file, `modules-values.yaml` of `source` by default.
    env: environment added for operator and hooks.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        source: Path = REPOSITORY,
        name: str | None = None,
        settings: Mapping[str, Any] | None = None,
        values: Mapping[str, Any] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.cluster = cluster
        self.source = source
        self.name = name or _module_name(source)
        self._settings = settings
        self._values = values
        self._env = dict(env or {})
        self._process: Process | None = None
        self._port = 0

    # Life

    def start(self) -> Self:
        """Install the module and start the operator. Returns at once: see `wait_ready`."""
        if not self.directory.exists():
            self._install()
        self._port = free_port()
        program = build.binary(build.ADDON_OPERATOR, "addon-operator")
        self._process = Process(
            "addon-operator",
            [
                program, "start", "--modules-dir", self._modules, "--global-hooks-dir", self.directory / "global-hooks",
                "--namespace", NAMESPACE, "--config-map", _CONFIG_MAP, "--tmp-dir", self.directory / "tmp",
                "--kube-config", self.cluster.kubeconfig, "--debug-unix-socket", self._socket,
                "--prometheus-listen-address", "127.0.0.1", "--prometheus-listen-port", str(self._port),
            ],
            log=self.cluster.logs / "addon-operator.log",
            env=self._environment(),
            cwd=self.directory,
        )  # fmt: skip
        self._socket.unlink(missing_ok=True)
        self._process.start()
        return self

    def wait_ready(self, *, timeout: float = 180) -> Self:
        """Wait until the first pass over all modules is done. Raises ProcessError with the log's end."""
        until("addon-operator's startup converge", self._is_ready, timeout=timeout, process=self._process)
        return self

    def stop(self) -> None:
        """End it as a pod's termination does; hooks still running are killed with it."""
        if self._process is not None:
            self._process.stop()

    def kill9(self) -> None:
        """Kill it and its hooks, as a container dies. `start` brings it back on the same files."""
        if self._process is not None:
            self._process.kill9()

    def remove(self) -> None:
        """Stop it and forget its files; the next `start` installs the module anew."""
        self.kill9()
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start().wait_ready()

    def __exit__(self, *_: object) -> None:
        self.remove()

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.running

    @property
    def pid(self) -> int:
        """Its process id. Raises ProcessError when it was never started."""
        if self._process is None:
            raise ProcessError("addon-operator was never started")
        return self._process.pid

    # The module's switch and settings

    def disable(self) -> None:
        """Switch the module off by adding the key; returns at once."""
        self._patch_config({self._switch: "false"})

    def enable(self) -> None:
        """Switch it on again by removing the key: addon-operator ignores a change of the key's value alone."""
        self._patch_config({self._switch: None})

    def configure(self, settings: Mapping[str, Any] | None) -> None:
        """Write the module's section of the ConfigMap; None removes it."""
        self._patch_config({self._key: None if settings is None else yaml.safe_dump(dict(settings))})

    def update_files(self) -> None:
        """Copy the module's files anew: hooks are read at their next run, templates at the next Helm run."""
        target = self.module_directory
        for path in (target / name for name in MODULE_FILES):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        self._copy_module()

    # What can be read from it

    @property
    def directory(self) -> Path:
        """Its files, below the cluster's."""
        return self.cluster.directory / "addon-operator"

    @property
    def module_directory(self) -> Path:
        """Where the copy of the module lies."""
        return self._modules / f"900-{self.name}"

    @property
    def log(self) -> Path:
        """addon-operator's log, JSON lines; hooks' output is in it."""
        return self.cluster.logs / "addon-operator.log"

    def values(self) -> dict[str, Any]:
        """The module's current values, internal ones included."""
        found = yaml.safe_load(self.debug("module", "values", self.name, "-o", "yaml"))
        return found if isinstance(found, dict) else {}

    def enabled_modules(self) -> list[str]:
        """The names of the enabled modules."""
        found = json.loads(self.debug("module", "list", "-o", "json"))
        return list(found["enabledModules"]) if isinstance(found, dict) else list(found)

    def metrics(self, path: str = "/metrics") -> str:
        """The text of /metrics; `/metrics/hooks` has what hooks wrote."""
        return self._http(path)[1]

    def debug(self, *arguments: str) -> str:
        """A debug sub-command: debug("queue", "list"), debug("module", "snapshots", "ai-inference")."""
        program = build.binary(build.ADDON_OPERATOR, "addon-operator")
        done = subprocess.run(
            [program, *arguments],
            capture_output=True,
            text=True,
            env={**self._environment(), "DEBUG_UNIX_SOCKET": str(self._socket)},  # not every sub-command has the flag
            cwd=self.directory,
        )
        if done.returncode:
            raise ProcessError(f"addon-operator {' '.join(arguments)}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def hook_log(self, *, level: str = "error") -> list[dict[str, Any]]:
        """The log's records of one level, oldest first."""
        return [record for record in self._records() if record.get("level") == level]

    # Insides

    @property
    def _modules(self) -> Path:
        return self.directory / "modules"

    @property
    def _socket(self) -> Path:
        return self.directory / "debug.socket"

    @property
    def _key(self) -> str:
        head, *rest = self.name.split("-")
        return head + "".join(part.capitalize() for part in rest)

    @property
    def _switch(self) -> str:
        return f"{self._key}Enabled"

    def _install(self) -> None:
        for folder in (self._modules, self.directory / "global-hooks", self.directory / "tmp", self.directory / "home"):
            folder.mkdir(parents=True)
        self._copy_module()
        stock = self.source / "modules-values.yaml"
        values = self._values
        if values is None:
            values = yaml.safe_load(stock.read_text()) if stock.exists() else {self._switch: True}
        (self._modules / "values.yaml").write_text(yaml.safe_dump(dict(values), allow_unicode=True))
        data = {} if self._settings is None else {self._key: yaml.safe_dump(dict(self._settings))}
        self.cluster.apply(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": _CONFIG_MAP, "namespace": NAMESPACE},
                "data": data,
            },
        )

    def _copy_module(self) -> None:
        self.module_directory.mkdir(parents=True, exist_ok=True)
        for name in MODULE_FILES:
            source, target = self.source / name, self.module_directory / name
            if source.is_dir():
                shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
            elif source.exists():
                shutil.copy2(source, target)

    def _patch_config(self, data: Mapping[str, str | None]) -> None:
        self.cluster.kubectl(
            "patch",
            "configmap",
            _CONFIG_MAP,
            "--namespace",
            NAMESPACE,
            "--type=merge",
            "-p",
            json.dumps({"data": data}),
        )

    def _environment(self) -> dict[str, str]:
        """Python hooks start by their shebang: the virtual environment of this process comes first on PATH."""
        scripts = str(Path(sys.prefix) / "bin")
        return {
            "PATH": os.pathsep.join([scripts, os.environ.get("PATH", os.defpath)]),
            "HOME": str(self.directory / "home"),
            "LANG": "C.UTF-8",
            "KUBECONFIG": str(self.cluster.kubeconfig),
            "TMPDIR": str(self.directory / "tmp"),
            "LOG_TYPE": "json",
            **self._env,
        }

    def _is_ready(self) -> bool:
        status, text = self._http("/readyz")
        return status == 200 and "Startup converge done." in text

    def _http(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(errors="replace")
        except OSError:
            return 0, ""

    def _records(self) -> list[dict[str, Any]]:
        records = []
        for line in self.log.read_text(errors="replace").splitlines():
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict):
                records.append(record)
        return records


def _module_name(source: Path) -> str:
    for name in ("module.yaml", "Chart.yaml"):
        if (source / name).exists():
            return str(yaml.safe_load((source / name).read_text())["name"])
    raise ValueError(f"{source} holds neither module.yaml nor Chart.yaml")
