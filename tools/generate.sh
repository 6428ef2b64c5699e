#!/usr/bin/env bash
# Generates the Python code of the contract: tools/generate.sh OUT [PROTOS]
# Messages, gRPC stubs and the types of both. Needs the tool environment (`make gen` sets it up).
set -euo pipefail
out=$1 protos=${2:-protos}
bin=${VENV_GEN:-.venv-gen}/bin

files=$(cd "$protos" && find . -name '*.proto' | sed 's|^\./||' | LC_ALL=C sort)
[ -n "$files" ] || { echo "no .proto files in $protos" >&2; exit 1; }

rm -rf "$out" && mkdir -p "$out"
# shellcheck disable=SC2086  # one word a file
"$bin/python" -m grpc_tools.protoc -I "$protos" \
    --plugin=protoc-gen-mypy="$bin/protoc-gen-mypy" \
    --plugin=protoc-gen-mypy_grpc="$bin/protoc-gen-mypy_grpc" \
    --python_out="$out" --grpc_python_out="$out" \
    --mypy_out=quiet:"$out" --mypy_grpc_out=quiet:"$out" \
    $files

# The package is typed (PEP 561); no __init__.py, since `turngate` is a namespace package.
for package in "$out"/turngate/*/; do : > "${package}py.typed"; done
