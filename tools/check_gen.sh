#!/usr/bin/env bash
# Fails if gen/ is not what the protos generate now.
set -euo pipefail
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
tools/generate.sh "$fresh/python"
if ! diff -rq -x __pycache__ gen/python "$fresh/python" >&2; then
    echo "gen/ is stale: run 'make gen' and commit the result" >&2
    exit 1
fi
