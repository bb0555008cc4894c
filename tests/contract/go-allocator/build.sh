#!/bin/sh
# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

# Build the harness against each release of the real allocator: build.sh FOLDER [RELEASE…]
# The binaries are FOLDER/allocator-<release>; go.mod is the newest release, releases/<release>.mod the others.
set -eu
folder=$(mkdir -p "$1" && cd "$1" && pwd)
shift
cd "$(dirname "$0")"
for release in "${@:-}"; do
  case "$release" in
  "") set -- 1.34 1.35 1.36 1.37 ;;
  esac
done
for release in "$@"; do
  modfile=go.mod
  [ "$release" = 1.37 ] || modfile="releases/$release.mod"
  nice go build -modfile="$modfile" -o "$folder/allocator-$release" .
done
