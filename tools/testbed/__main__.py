# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""`python -m testbed up`: a control plane with devices and the module, until Ctrl-C."""

import argparse
import signal
import sys
import time
from contextlib import ExitStack

from testbed import build, devices
from testbed.cluster import SHARES_AND_PARTITIONS, Cluster
from testbed.operator import AddonOperator
from testbed.planner_process import PlannerProcess
from testbed.process import ProcessError


def main() -> int:
    """Exit code 0 after Ctrl-C or a finished build, 1 when a part did not start."""
    options = _options()
    try:
        if options.command == "build":
            for program in build.ALL:
                print(f"{program.name} {program.version}: {build.ensure(program)}")
            return 0
        return _up(options)
    except KeyboardInterrupt:
        return 0
    except (ProcessError, build.BuildError) as error:
        print(f"testbed: {error}", file=sys.stderr)
        return 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m testbed", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build", help="build every program into the cache")
    up = commands.add_parser("up", help="start everything, stay until Ctrl-C")
    up.add_argument("--kubernetes", choices=sorted(build.KUBERNETES), default="1.37")
    up.add_argument("--no-gates", action="store_true", help="1.34 only: without partitions and shares")
    up.add_argument(
        "--fixture", action="append", metavar="NN", help="devices of tests/fixtures/dra; repeatable; 05 by default"
    )
    up.add_argument("--no-operator", action="store_true", help="the control plane and devices alone")
    up.add_argument("--no-planner", action="store_true", help="the module without the planner's process")
    return parser.parse_args()


def _up(options: argparse.Namespace) -> int:
    for number in (signal.SIGTERM, signal.SIGINT):  # both end it as Ctrl-C does, also where the caller ignores SIGINT
        signal.signal(number, signal.default_int_handler)
    started = time.monotonic()
    gates = SHARES_AND_PARTITIONS if options.kubernetes == "1.34" and not options.no_gates else None
    with ExitStack() as stack:
        cluster = stack.enter_context(Cluster(kubernetes=options.kubernetes, feature_gates=gates))
        devices.storage(cluster)
        devices.load(cluster, *(options.fixture or ["05"]))
        told = [f"Kubernetes {cluster.version()}, {len(cluster.get('nodes')['items'])} nodes"]
        if not options.no_operator:
            operator = stack.enter_context(AddonOperator(cluster))
            told.append(f"addon-operator: module {operator.name} is enabled")
            if not options.no_planner:
                planner = PlannerProcess(cluster).start()
                stack.callback(planner.stop)
                planner.wait_ready()
                told.append(f"planner: process {planner.process.pid}, {planner.url}")
        print(f"up after {time.monotonic() - started:.0f} s")
        print("\n".join(f"  {line}" for line in told))
        print(f"  logs: {cluster.logs}")
        print(f"\n  export KUBECONFIG={cluster.kubeconfig}")
        print(f"  export PATH={build.ensure(build.KUBERNETES[options.kubernetes])}:$PATH")
        print("  kubectl get nodes,resourceslices,deviceclasses\n\nCtrl-C ends it and removes everything.", flush=True)
        while True:
            time.sleep(2)
            for name in cluster.ended():
                print(f"testbed: {name} ended by itself, see {cluster.logs / name}.log", file=sys.stderr)
                return 1


if __name__ == "__main__":
    sys.exit(main())
