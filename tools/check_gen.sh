#!/usr/bin/env bash
# Fails if gen/ is not what the protos generate now. Languages that this machine cannot generate are
# left out, by name; in CI that is an error.
set -euo pipefail
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
tools/generate.sh "$fresh"
stale=
for part in python go/turngate ts/turngate java/dev; do
    [ -d "$fresh/$part" ] || continue
    diff -rq -x __pycache__ "gen/$part" "$fresh/$part" >&2 || stale+=" gen/$part"
done
if [ -n "$stale" ]; then
    echo "stale:$stale; run 'make gen' and commit the result" >&2
    exit 1
fi
