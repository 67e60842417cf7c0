#!/bin/sh
# The one RUN step of the Dockerfile: makes in /image what the image has beside its Python. A test runs it in a bare
# Debian root. The folder of the sources is this script's; what pip takes from the environment (its index) holds.
set -eu

source=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
environment=/opt/benchmark # where it is in the image, too: its programs know their place
image=/image

python3 -m venv "$environment"
"$environment/bin/pip" install --quiet --no-cache-dir --disable-pip-version-check "$source"
"$environment/bin/pip" uninstall --quiet --yes pip setuptools 2>/dev/null

# Tests and headers of the libraries: a quarter of the environment, which nothing here imports.
site=$("$environment/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
find "$site" -type d \( -name tests -o -path "$site/pyarrow/include" \) -prune -exec rm -rf {} +

# Whoever the container's user is writes into /runs: it need not be the one that the image names.
mkdir -p "$image/opt" "$image/runs"
chmod 1777 "$image/runs"
mv "$environment" "$image/opt/"
