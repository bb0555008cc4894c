# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Processes that cannot outlive the test run, free loopback ports, and waiting with a deadline."""

import contextlib
import ctypes
import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)
# Below the range from which the kernel takes the source ports of outgoing connections: a port tested as free here
# is not taken by somebody's client a moment later.
_PORTS = range(20000, 32000)


class ProcessError(RuntimeError):
    """A process ended or did not become ready; the message names its log and carries the log's last lines."""


def free_port() -> int:
    """A TCP port nobody listens on at 127.0.0.1."""
    for port in random.sample(_PORTS, 100):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise ProcessError("no free loopback port in 100 tries")


def until(
    what: str,
    attempt: Callable[[], T | None],
    *,
    timeout: float = 60,
    interval: float = 0.1,
    process: "Process | None" = None,
) -> T:
    """The first answer of `attempt` that is neither None nor False, asked every `interval` seconds.

    Raises ProcessError after `timeout` seconds, or at once when `process` has ended.
    """
    deadline = time.monotonic() + timeout
    while True:
        answer = attempt()
        if answer is not None and answer is not False:
            return answer
        if process is not None and not process.running:
            raise ProcessError(f"{process.name} ended while waiting for {what}\n{process.tail()}")
        if time.monotonic() > deadline:
            told = f"\n{process.tail()}" if process is not None else ""
            raise ProcessError(f"not seen within {timeout:.0f} s: {what}{told}")
        time.sleep(interval)


def dies_with_parent() -> Callable[[], None]:
    """For `preexec_fn`: the kernel kills the child when the thread that starts it ends, however it ends."""
    parent = os.getpid()

    def ask_kernel() -> None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # the parent died between fork and prctl
            os._exit(1)

    return ask_kernel


class Process:
    """A program in a process group of its own, its output in a log file, killed when this process dies.

    Start it from a thread that lives as long as the program shall: the kernel ties the program to that thread.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        *,
        log: Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        self.name = name
        self.log = log
        self._command = [str(part) for part in command]
        self._env = dict(env) if env is not None else None
        self._cwd = cwd
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The process id. Raises ProcessError if it was never started."""
        if self._process is None:
            raise ProcessError(f"{self.name} was never started")
        return self._process.pid

    def start(self) -> None:
        """Start it; the log is appended to, so that one file tells a restart's whole story."""
        if self.running:
            raise ProcessError(f"{self.name} runs already")
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self._env,
                cwd=self._cwd,
                start_new_session=True,
                preexec_fn=dies_with_parent(),
            )

    def stop(self, *, timeout: float = 15) -> None:
        """Ask it to end, kill it after `timeout` seconds. Nothing happens if it does not run."""
        self._end(signal.SIGTERM, timeout)

    def kill9(self) -> None:
        """Kill it and what it started, as a container dies: nothing gets a chance to tidy up."""
        self._end(signal.SIGKILL, 15)

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the process alone (SIGSTOP and SIGCONT make it hang and go on)."""
        os.kill(self.pid, number)

    def tail(self, lines: int = 25) -> str:
        """The log's last lines, headed by its path."""
        if not self.log.exists():
            return f"{self.log}: no log"
        text = self.log.read_text(errors="replace").splitlines()[-lines:]
        return "\n".join([f"--- {self.log}", *text])

    def _end(self, number: signal.Signals, timeout: float) -> None:
        process = self._process
        if process is None:
            return
        if process.poll() is None:
            _signal_group(process.pid, number)
            try:
                process.wait(timeout)
            except subprocess.TimeoutExpired:
                _signal_group(process.pid, signal.SIGKILL)
                process.wait(timeout)
        _signal_group(process.pid, signal.SIGKILL)  # what it started and left behind


def _signal_group(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)
