#!/usr/bin/env bash
# Builds the packages twice, from two clones of this commit in two folders, and compares the bytes.
#
#   packaging/reproduce.sh [ARGUMENTS of cargo xtask dist]
#
# All packages; the wheel where maturin is. WHAT names some of them, and FIRST a folder of packages that exist: then only
# one clone is built.
set -euo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/gannet-reproduce-XXXX")
trap 'rm -rf "$work"' EXIT

what=${WHAT:-static deb image sbom$(command -v maturin >/dev/null && echo ' wheel')}

build() {
    git clone --quiet "$top" "$work/$1"
    # shellcheck disable=SC2086 # words
    (cd "$work/$1" && CARGO_TARGET_DIR=$work/$1/target cargo xtask dist $what \
        --out "$work/$1-packages" "${@:2}")
    rm -rf "${work:?}/$1"
}

first=${FIRST:-$work/one-packages}
[ -n "${FIRST:-}" ] || build one "$@"
build another "$@"
status=0
while read -r sum name; do
    if [ "$(sha256sum "$first/$name" | cut -d' ' -f1)" = "$sum" ]; then
        echo "the same bytes: $name"
    else
        echo "different bytes: $name" >&2
        status=1
    fi
done <"$work/another-packages/SHA256SUMS"
exit $status
