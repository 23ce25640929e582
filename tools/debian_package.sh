#!/bin/sh
# debian_package.sh PACKAGE PROGRAM...: install a Debian package that only tests use, unless one of its programs exists.
# Requires root and apt-get, as in the containers of continuous integration; SUDO=1 uses sudo. If the package cannot be
# installed, the reason is printed and the tests that require it are skipped. Services of the package are not started.
set -u
package=$1
shift
PATH=$PATH:/usr/sbin
for program in "$@"; do
    command -v "$program" > /dev/null && exit 0
done
skip() {
    echo "$package is not installed ($1): its tests are skipped" >&2
    exit 0
}
command -v apt-get > /dev/null || skip "this system has no apt-get"
root=
if [ "$(id -u)" != 0 ]; then
    [ -n "${SUDO:-}" ] || skip "only root can install it: apt-get install $package"
    root=sudo
fi
policy=${POLICY:-/usr/sbin/policy-rc.d}
if [ ! -e "$policy" ] && [ -z "$root" ]; then
    printf '#!/bin/sh\nexit 101\n' > "$policy" && chmod +x "$policy"
    trap 'rm -f "$policy"' EXIT
fi
install() {
    DEBIAN_FRONTEND=noninteractive $root apt-get install --yes --no-install-recommends "$package" > /dev/null
}
install 2> /dev/null || { $root apt-get update > /dev/null && install; } || skip "apt-get failed"
