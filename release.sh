#!/usr/bin/env bash
# Make a release ready, all but the upload: build it, try the wheel where nothing else is, and say what is in it.
#   ./release.sh [FOLDER]   (dist unless said, which must not be there yet)
# Left there: the wheel and the source, requirements.txt (every dependency with its hashes), a bill of materials (CycloneDX), and
# SHA256SUMS of all of them.
set -euo pipefail
out=$(realpath --canonicalize-missing "${1:-dist}")
cd "$(dirname "$0")"

[ ! -e "$out" ] || { echo "$out already exists; remove it, or name another folder."; exit 2; }
command -v uv >/dev/null || { echo "uv is not installed: pip install uv"; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
step() { echo "== $1"; "${@:2}"; }

step "versions agree"       uv run --quiet --no-project --isolated python .ci/release.py agree
step "build"                uv build --quiet --out-dir "$out"
rm -f "$out/.gitignore"
step "pinned dependencies"  uv export --quiet --no-dev --no-emit-project --no-emit-index-url --no-header --no-annotate \
    --output-file "$out/requirements.txt"
step "a clean environment"  uv venv --quiet --no-project "$work/env"
uv pip install --quiet --python "$work/env" --require-hashes --requirement "$out/requirements.txt"
uv pip install --quiet --python "$work/env" --no-deps "$out"/*.whl
command=$(uv run --quiet --no-project --isolated python .ci/release.py first-command)
echo "== the README's first command: $command"
(cd "$work" && env -u PYTHONPATH PATH="$work/env/bin:$PATH" sh -c "$command" >said.txt 2>&1) || { cat "$work/said.txt"; exit 1; }
tail -n 1 "$work/said.txt"
step "bill of materials"    "$work/env/bin/python" -P .ci/release.py bill "$out"
step "hashes"               "$work/env/bin/python" -P .ci/release.py hashes "$out"
ls "$out"
echo "Before the upload: look for known weaknesses (CONTRIBUTING.md, A release), and tag."
