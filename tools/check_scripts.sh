#!/bin/sh
# Check the types of the console's scripts (JSDoc) with TypeScript. Skipped with a message where it cannot be installed: the scripts need
# no build.
set -e
cd "$(dirname "$0")/.."
if ! packages=$(tools/node_packages.sh); then
	echo "The types of the console's scripts were not checked: $packages."
	exit 0
fi
"$packages/.bin/tsc" -p tools/node
