#!/usr/bin/env bash
# Prints the path of grpcurl. One of this version is built once, if Go is there, and kept outside
# of the checkout; else the one on PATH is taken. Without either: exit code 1 and a line why.
set -euo pipefail
version=v1.9.3
folder=${XDG_CACHE_HOME:-$HOME/.cache}/turngate/grpcurl-$version

if [ ! -x "$folder/grpcurl" ]; then
    if command -v go >/dev/null; then
        echo "==> building grpcurl $version (once)" >&2
        fresh=$(mktemp -d)
        trap 'rm -rf "$fresh"' EXIT
        GOBIN=$fresh go install "github.com/fullstorydev/grpcurl/cmd/grpcurl@$version" >&2
        mkdir -p "$folder"
        mv "$fresh/grpcurl" "$folder/grpcurl.$$" && mv "$folder/grpcurl.$$" "$folder/grpcurl"
    elif command -v grpcurl; then
        exit 0
    else
        echo "grpcurl is not installed and there is no Go to build it" >&2
        exit 1
    fi
fi
echo "$folder/grpcurl"
