#!/usr/bin/env bash
# Prints a folder with the generators of a language, to be put on PATH: tools/generators.sh go|ts|java
#
# Their versions are locked in tools/generators/. They are built or installed once, into
# ~/.cache/turngate. Exit code 3 and a line why: this machine lacks what the language needs.
#
# To renew a lock, in its folder: `go get -tool PACKAGE@VERSION && go mod tidy`; `npm install --save-exact
# --save-dev PACKAGE@VERSION`; new sums of protoc, with the version of protobuf-java in gen/java/pom.xml.
set -euo pipefail
locks=$PWD/tools/generators/$1
cache=${XDG_CACHE_HOME:-$HOME/.cache}/turngate/generators

lacking() { echo "$*" >&2; exit 3; }

# What is installed for one lock is never changed: another lock gets another folder.
folder_for() { echo "$cache/$1-$(cksum < "$2" | cut -d ' ' -f 1)"; }

# In two steps, so that one who is interrupted, or two at once, leave no half a folder.
begin() {
    echo "==> setting up the generator of gen/$1 (once)" >&2
    mkdir -p "$cache"
    fresh=$(mktemp -d "$cache/fresh.XXXXXX")
    trap 'rm -rf "$fresh"' EXIT
}
finish() { [ -d "$1" ] || mv "$fresh" "$1"; }

case $1 in
    go)
        command -v go > /dev/null || lacking 'needs Go'
        folder=$(folder_for go "$locks/go.sum")
        if [ ! -d "$folder" ]; then
            begin go
            (cd "$locks" && go build -o "$fresh/" tool >&2)
            finish "$folder"
        fi
        echo "$folder"
        ;;
    ts)
        command -v npm > /dev/null || lacking 'needs Node.js 20 or newer with npm'
        node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' ||
            lacking "needs Node.js 20 or newer, this is $(node --version)"
        folder=$(folder_for ts "$locks/package-lock.json")
        if [ ! -d "$folder" ]; then
            begin ts
            cp "$locks"/package*.json "$fresh"
            npm ci --prefix "$fresh" --silent --ignore-scripts --no-audit --no-fund >&2
            finish "$folder"
        fi
        echo "$folder/node_modules/.bin"
        ;;
    java)
        # The plugin for gRPC comes with the system: its build in the Maven repository is not to be had
        # everywhere. It does not tell its version, and another one may write other code.
        version=$(dpkg-query -W -f '${Version}' protobuf-compiler-grpc-java-plugin 2> /dev/null || true)
        [[ $version == 1.41.3* ]] ||
            lacking 'needs grpc_java_plugin 1.41.3 (Debian: apt-get install protobuf-compiler-grpc-java-plugin)'
        plugin=$(command -v grpc_java_plugin) || lacking 'needs grpc_java_plugin on PATH'
        command -v mvn > /dev/null || lacking 'needs Maven'
        case $(uname -sm) in
            'Linux x86_64') platform=linux-x86_64 ;;
            'Linux aarch64') platform=linux-aarch_64 ;;
            *) lacking "no protoc is locked for $(uname -sm)" ;;
        esac
        folder=$(folder_for java "$locks/protoc.sha256")
        if [ ! -d "$folder" ]; then
            begin java
            lock=$(grep -- "-$platform.exe" "$locks/protoc.sha256")
            version=${lock#*protoc-} version=${version%"-$platform.exe"}
            said=$(mvn --batch-mode --strict-checksums \
                org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy \
                -Dartifact="com.google.protobuf:protoc:$version:exe:$platform" \
                -DoutputDirectory="$fresh" 2>&1) || { echo "$said" >&2; exit 1; }
            (cd "$fresh" && sha256sum --quiet --check <<< "$lock" >&2)
            mv "$fresh/protoc-$version-$platform.exe" "$fresh/protoc"
            chmod +x "$fresh/protoc"
            ln -s "$plugin" "$fresh/protoc-gen-grpc-java"
            finish "$folder"
        fi
        echo "$folder"
        ;;
    *)
        echo "no generator for '$1': go, ts or java" >&2
        exit 2
        ;;
esac
