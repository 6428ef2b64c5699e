#!/usr/bin/env bash
# Generates the code of the contract: tools/generate.sh OUT [PROTOS]
#
#   OUT/python           messages, gRPC stubs and the types of both
#   OUT/go/turngate      messages and gRPC stubs
#   OUT/ts/turngate      JavaScript modules with types, for Connect and gRPC
#   OUT/java/dev         messages and gRPC stubs
#
# Needs the tool environment (`make gen` sets it up). A language that this machine cannot generate is
# left out, by name; in CI that is an error.
set -euo pipefail
out=$1 protos=${2:-protos}
python=${VENV_GEN:-.venv-gen}/bin

files=$(cd "$protos" && find . -name '*.proto' | sed 's|^\./||' | LC_ALL=C sort)
[ -n "$files" ] || { echo "no .proto files in $protos" >&2; exit 1; }

# The parser is the same one for all but Java, whose generator is a part of its own protoc.
# shellcheck disable=SC2086  # one word a file
compile() { "$python/python" -m grpc_tools.protoc -I "$protos" "$@" $files; }

# Sets `bin`, or says that the language is left out.
have() {
    local code=0
    bin=$(tools/generators.sh "$1") || code=$?
    [ $code != 0 ] || return 0
    [ $code = 3 ] && [ -z "${CI:-}" ] || exit 1
    echo "==> left out: gen/$1" >&2
    return 1
}

rm -rf "$out/python" && mkdir -p "$out/python"
compile \
    --plugin=protoc-gen-mypy="$python/protoc-gen-mypy" \
    --plugin=protoc-gen-mypy_grpc="$python/protoc-gen-mypy_grpc" \
    --python_out="$out/python" --grpc_python_out="$out/python" \
    --mypy_out=quiet:"$out/python" --mypy_grpc_out=quiet:"$out/python"
# The package is typed (PEP 561); no __init__.py, since `turngate` is a namespace package.
for package in "$out"/python/turngate/*/; do : > "${package}py.typed"; done

if have go; then
    rm -rf "$out/go/turngate" && mkdir -p "$out/go"
    module=github.com/turngate/turngate/gen/go # gen/go/go.mod
    PATH=$bin:$PATH compile \
        --go_out="$out/go" --go_opt=module=$module --go-grpc_out="$out/go" --go-grpc_opt=module=$module
fi

if have ts; then
    rm -rf "$out/ts/turngate" && mkdir -p "$out/ts"
    # JavaScript with types beside it: to be imported as it is, from JavaScript and TypeScript.
    PATH=$bin:$PATH compile --es_out="$out/ts" --es_opt=target=js+dts,import_extension=js
fi

if have java; then
    rm -rf "$out/java/dev" && mkdir -p "$out/java"
    known=$("$python/python" -c 'import grpc_tools, sys; sys.stdout.write(grpc_tools.__path__[0])')/_proto
    # shellcheck disable=SC2086
    PATH=$bin:$PATH protoc -I "$protos" -I "$known" \
        --java_out="$out/java" --grpc-java_out="$out/java" $files
    # javax.annotation left Java with version 11; whoever compiles the stubs should not have to add it.
    for stubs in "$out"/java/dev/turngate/*/*Grpc.java; do
        sed '/^@javax\.annotation\.Generated($/,/)$/d' "$stubs" > "$out/java/stubs"
        mv "$out/java/stubs" "$stubs"
    done
fi
