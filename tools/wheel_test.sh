#!/usr/bin/env bash
# Installs the wheel of dist/ into an empty environment and runs the demo there, far from the
# checkout, with the answers from standard input. --no-index: what the wheel asks for must be in
# requirements/runtime.txt.
set -euo pipefail
wheel=$(ls "$PWD"/dist/*.whl)
empty=$(mktemp -d)
trap 'rm -rf "$empty"' EXIT

echo "==> $(basename "$wheel") in an empty environment"
.venv/bin/python -m venv "$empty/venv"
"$empty/venv/bin/python" -m pip install --quiet --require-hashes -r requirements/runtime.txt
"$empty/venv/bin/python" -m pip install --quiet --no-index "$wheel"
"$empty/venv/bin/python" -m pip check

cd "$empty"
unset PYTHONPATH
bounded='import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:], timeout=180).returncode)'
venv/bin/python -c "$bounded" venv/bin/turngate demo > demo.log 2>&1 || { cat demo.log; exit 1; }
echo "demo: ok, $(wc -l < demo.log | tr -d ' ') lines"
