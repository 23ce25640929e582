#!/bin/sh
# Check the types of the console's scripts (JSDoc) with TypeScript, pinned in tools/typescript/package-lock.json.
# Without npm, or without a package registry, the check is skipped with a message: the scripts need no build.
set -e
cd "$(dirname "$0")/.."
folder=.cache/typescript
if ! command -v npm > /dev/null; then
	echo "The types of the console's scripts were not checked: npm is not installed."
	exit 0
fi
mkdir -p "$folder"
if ! cmp -s tools/typescript/package-lock.json "$folder/package-lock.json" || [ ! -x "$folder/node_modules/.bin/tsc" ]; then
	cp tools/typescript/package.json tools/typescript/package-lock.json "$folder/"
	if ! npm ci --prefix "$folder" --silent --no-audit --no-fund --fetch-retries 1 --fetch-timeout 20000 > /dev/null 2>&1; then
		rm -f "$folder/package-lock.json"
		echo "The types of the console's scripts were not checked: TypeScript could not be installed."
		exit 0
	fi
fi
"$folder/node_modules/.bin/tsc" -p tools/typescript
