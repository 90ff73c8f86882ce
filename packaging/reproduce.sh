#!/usr/bin/env bash
# Builds the packages twice, from two clones of this commit in two folders, and compares the bytes. The first builds in
# its own folder target, the other in a folder elsewhere.
#
#   packaging/reproduce.sh [ARGUMENTS of cargo xtask dist]
#
# All packages; the wheel where maturin is. WHAT names some of them, and FIRST a folder of packages that exist: then only
# one clone is built. Where bytes differ, the packages and the binaries with their symbols are kept, and the sections of the
# binary that differ are named.
set -euo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/gannet-reproduce-XXXX")
trap 'rm -rf "$work"' EXIT

what=${WHAT:-static deb image sbom$(command -v maturin >/dev/null && echo ' wheel')}

build() {
    git clone --quiet "$top" "$work/$1"
    # shellcheck disable=SC2086 # words
    (cd "$work/$1" && CARGO_TARGET_DIR=$2 cargo xtask dist $what --out "$work/$1-packages" "${@:3}")
    # With symbols, as it was linked.
    find "$2" -path '*-linux-*/gannet' -type f -exec cp {} "$work/$1-packages/gannet.linked" ';'
    rm -rf "${work:?}/$1" "$2"
}

# Prints the sections of two binaries that differ.
sections() {
    readelf --wide --section-headers "$1" | sed -n 's/^ *\[ *[0-9]*\] \(\.[^ ]*\).*/\1/p' | while read -r section; do
        [ "$(contents "$1" "$section")" = "$(contents "$2" "$section")" ] || echo "  $section" >&2
    done
}
contents() { objcopy --dump-section "$2=/dev/stdout" "$1" "$work/copy" 2>/dev/null | sha256sum; }

first=${FIRST:-$work/one-packages}
[ -n "${FIRST:-}" ] || build one "$work/one/target" "$@"
build another "$work/built/elsewhere" "$@"
status=0
while read -r sum name; do
    if [ "$(sha256sum "$first/$name" | cut -d' ' -f1)" = "$sum" ]; then
        echo "the same bytes: $name"
    else
        echo "different bytes: $name" >&2
        status=1
    fi
done <"$work/another-packages/SHA256SUMS"
for binary in gannet gannet.linked; do
    if [ -f "$first/$binary" ] && ! cmp --silent "$first/$binary" "$work/another-packages/$binary"; then
        echo "sections of $binary that differ:" >&2
        sections "$first/$binary" "$work/another-packages/$binary"
    fi
done
if [ $status != 0 ]; then
    trap - EXIT
    echo "kept: $work" >&2
fi
exit $status
