#!/usr/bin/env bash
# Installs the packages of `cargo xtask dist` where nothing else is, and compares what they write.
#
#   packaging/check.sh [FOLDER]        the packages; target/packages by default
#
# Needs root, for chroot. Environment:
#   ROOT      a system of debootstrap for the .deb; without it one is made:
#             debootstrap --variant=minbase bookworm DIR
#   PYTHONS   Pythons that the wheel is installed in (default: python3.10 … python3.13, those that run)
#   CAPTURES  captures to analyse (default: every fifth below 1 MB of the conformance captures, else the sample)
#
# The .deb is installed by dpkg, the static binary and the image's layer stand alone in a folder that is the root, and the
# wheel is installed by pip without an index. Each writes the logs of all captures: they must be the same bytes.
set -euo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
packages=$(cd "${1:-$top/target/packages}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
step() { printf '\n== %s\n' "$1"; }

step 'checksums'
(cd "$packages" && sha256sum --check SHA256SUMS)

step 'captures'
captures=$work/captures
mkdir "$captures"
if [ -n "${CAPTURES:-}" ]; then
    cp -r "$CAPTURES" "$captures"
elif [ -d "${GANNET_SHARED:-$top/../shared}/conformance/captures" ]; then
    find "${GANNET_SHARED:-$top/../shared}/conformance/captures" -type f -size -1024k | sort | awk 'NR % 5 == 1' |
        while read -r capture; do cp "$capture" "$captures/$(basename "$(dirname "$capture")")-$(basename "$capture")"; done
fi
cp "$top/examples/sample.pcap" "$captures"
echo "$(find "$captures" -type f | wc -l) captures"

# Prints the checksums of all logs that a command writes: analyse NAME COMMAND...
analyse() {
    local name=$1 logs=$2
    shift 2
    # Some captures are damaged on purpose: the exit code says so, and their logs count, too.
    "$@" analyze --quiet --each -t 1 --out "$logs" "${inside:-$captures}" 2>/dev/null || [ $? -lt 126 ]
    (cd "${outside:-$logs}" && find . -name '*.log' -type f -print0 | sort -z | xargs -0 sha256sum) >"$work/$name.sums"
    echo "$name: $(wc -l <"$work/$name.sums") logs"
    [ -s "$work/$name.sums" ]
}

# A root with a binary and the captures alone.
alone() {
    local name=$1 root=$2
    cp -r "$captures" "$root/captures"
    mkdir -p "$root/logs"
    inside=/captures outside=$root/logs analyse "$name" /logs chroot "$root" "$3"
}

step 'static binary, alone in a root'
mkdir "$work/static" "$work/static.root"
tar -xf "$packages"/gannet-*-linux.tar.xz -C "$work/static"
cp "$work"/static/*/gannet "$work/static.root/gannet"
file -L "$work/static.root/gannet" 2>/dev/null | cut -d: -f2- || true
if ldd "$work/static.root/gannet" >/dev/null 2>&1 && ! ldd "$work/static.root/gannet" | grep -q statically; then
    echo 'the binary needs libraries' >&2
    exit 1
fi
"$work/static.root/gannet" --version --verbose | tee "$work/version"
python3 - "$work/version" "$packages"/gannet-*.cdx.json <<'PY'
import json, pathlib, sys

lines = dict(line.split(": ", 1) for line in pathlib.Path(sys.argv[1]).read_text().splitlines() if ": " in line)
features = lines["features"].split(", ")
bom = json.loads(pathlib.Path(sys.argv[2]).read_text())
names = {component["name"] for component in bom["components"]}
for feature, library in {"lua": "luajit-src", "kafka": "rskafka", "sqlite": "libsqlite3-sys", "columns": "parquet"}.items():
    assert (feature in features) == (library in names), f"the command and its list of libraries differ in {feature}"
commit = bom["metadata"]["component"]["properties"][0]["value"]
assert lines["commit"] == commit, f"the command is of {lines['commit']}, the list of {commit}"
print(len(names), "libraries")
PY
alone static "$work/static.root" /gannet

step 'image, its layer as the root'
mkdir "$work/image" "$work/image.root"
tar -xf "$packages"/gannet-*.oci.tar -C "$work/image"
python3 - "$work/image" "$work/image.root" <<'PY'
import hashlib, json, pathlib, subprocess, sys

image, root = map(pathlib.Path, sys.argv[1:])
assert json.loads((image / "oci-layout").read_text()) == {"imageLayoutVersion": "1.0.0"}

def blob(descriptor):
    path = image / "blobs" / descriptor["digest"].replace(":", "/")
    data = path.read_bytes()
    assert len(data) == descriptor["size"]
    assert "sha256:" + hashlib.sha256(data).hexdigest() == descriptor["digest"]
    return path

manifest = json.loads(blob(json.loads((image / "index.json").read_text())["manifests"][0]).read_text())
config = json.loads(blob(manifest["config"]).read_text())
for layer in manifest["layers"]:
    subprocess.run(["tar", "-xzf", blob(layer), "-C", root], check=True)
print("entry point", config["config"]["Entrypoint"], "user", config["config"]["User"])
PY
alone image "$work/image.root" /usr/bin/gannet
# As a container runs it: the user of the image, in /data, which is not the user's.
cp "$top/examples/sample.pcap" "$work/image.root/data"
rows=$(chroot --userspec=65534:65534 "$work/image.root" /usr/bin/gannet analyze --json --logs conn --out - \
    /data/sample.pcap | wc -l)
echo "user 65534: $rows rows of conn.log"
[ "$rows" -gt 0 ]

step 'Debian package'
if command -v lintian >/dev/null; then
    lintian --allow-root --fail-on error "$packages"/gannet_*.deb && echo 'lintian: no errors'
else
    echo 'skipped: no lintian'
fi
root=${ROOT:-}
if [ -z "$root" ] && command -v debootstrap >/dev/null; then
    root=$work/debian
    debootstrap --variant=minbase bookworm "$root" >"$work/debootstrap.log" || root=
fi
if [ -n "$root" ]; then
    rm -rf "$root/logs" "$root/captures"
    cp "$packages"/gannet_*.deb "$root/gannet.deb"
    # A chroot has no /dev of its own; nothing here needs one.
    chroot "$root" dpkg -i /gannet.deb
    chroot "$root" gannet --version --verbose
    chroot "$root" sh -c 'dpkg --verify gannet && test -f /usr/lib/systemd/system/gannet@.service'
    # What the service runs is there.
    chroot "$root" sed -n 's/^Exec[A-Za-z]*=\([^ ]*\).*/\1/p' /usr/lib/systemd/system/gannet@.service |
        while read -r program; do
            chroot "$root" test -x "$program" || { echo "the service needs $program" >&2 && exit 1; }
        done
    alone deb "$root" gannet
    chroot "$root" dpkg --purge gannet
    if chroot "$root" sh -c 'find / -xdev -name "*gannet*" ! -path "/captures/*" ! -path "/proc/*" ! -name gannet.deb' | grep .; then
        echo 'the purge left files' >&2
        exit 1
    fi
    rm -rf "$root/logs" "$root/captures" "$root/gannet.deb"
else
    echo 'skipped: no debootstrap, and ROOT names no system'
fi

step 'wheel'
tried=0
for python in ${PYTHONS:-python3.10 python3.11 python3.12 python3.13}; do
    compgen -G "$packages/gannet_net-*.whl" >/dev/null || { echo 'skipped: no wheel' && break; }
    "$python" -c '' 2>/dev/null || continue
    venv=$work/venv-$python
    "$python" -m venv "$venv"
    "$venv/bin/pip" install --quiet --no-index --no-deps "$packages"/gannet_net-*.whl
    (cd "$work" && "$venv/bin/python" - "$captures/sample.pcap" <<'PY'
import sys, gannet
rows = sum(len(batch) for batch in gannet.read(sys.argv[1]))
assert rows > 0
print(f"Python {sys.version.split()[0]}: gannet {gannet.__version__}, {rows} rows of the sample")
PY
    )
    analyse "wheel-$python" "$work/logs-$python" "$venv/bin/gannet"
    tried=$((tried + 1))
    rm -rf "$venv"
done
echo "installed for $tried versions of Python"
if [ "$tried" = 0 ] && compgen -G "$packages/gannet_net-*.whl" >/dev/null; then
    echo 'no Python to install the wheel in: PYTHONS names some' >&2
    exit 1
fi

step 'the same bytes'
for sums in "$work"/*.sums; do
    cmp "$work/static.sums" "$sums"
done
echo "$(ls "$work"/*.sums | wc -l) installations wrote the same $(wc -l <"$work/static.sums") logs"
