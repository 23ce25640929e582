#!/bin/sh
# Install the packages for checks of the console, pinned in tools/node/package-lock.json, and print their folder: TypeScript for the
# types of its scripts (JSDoc), axe-core for accessibility. Without npm, or without a package registry, print the reason and exit with 1.
set -e
cd "$(dirname "$0")/.."
folder=.cache/node
if ! command -v npm > /dev/null; then
	echo "npm is not installed"
	exit 1
fi
mkdir -p "$folder"
if ! cmp -s tools/node/package-lock.json "$folder/installed.json"; then
	cp tools/node/package.json tools/node/package-lock.json "$folder/"
	if ! npm ci --prefix "$folder" --silent --no-audit --no-fund --fetch-retries 1 --fetch-timeout 20000 > /dev/null 2>&1; then
		echo "the packages of tools/node could not be installed"
		exit 1
	fi
	cp tools/node/package-lock.json "$folder/installed.json"
fi
echo "$PWD/$folder/node_modules"
