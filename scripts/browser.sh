#!/usr/bin/env bash
# Debian's Chromium, in which a test looks at the page, unpacked in .build/browser with all that it needs, and `chromedriver` beside the other
# tools, which runs it there. Nothing is installed on this machine, and it is the same on each distribution. Quick when it is there.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$root/.build/browser.work
say() { printf 'browser: %s\n' "$*" >&2; }
die() { say "error: $*"; exit 1; }

browser=$root/.build/browser
driver=$root/.build/tools/bin/chromedriver
[[ -x $driver && -d $browser ]] && exit 0

# shellcheck source=scripts/debian.sh
. "$root/scripts/debian.sh"
say "fetching chromium from $(mirror)"
take() { fetch trixie chromium chromium-driver fonts-dejavu-core >/dev/null; }
take || { renew_keyring && take; } || die "chromium cannot be had from $(mirror): see above, or name another in PHOS_DEBIAN_MIRROR"
# In place of a script, for which there is no shell.
ln -sf ../lib/chromium/chromium "$work/root/usr/bin/chromium"
printf '127.0.0.1 localhost\n::1 localhost\n' >"$work/root/etc/hosts"
rm -rf "$browser"
mv "$work/root" "$browser"
rm -rf "$work"
mkdir -p "$browser"/{proc,dev,tmp,sys} "$(dirname "$driver")"
cat >"$driver" <<EOF
#!/bin/sh
# Made by scripts/browser.sh: chromedriver as it is unpacked there, with this machine's /proc, /dev, /sys and /tmp. Needs root.
exec unshare --mount --propagation slave sh -euc '
    root=\$1
    shift
    for shared in proc dev sys tmp; do mount --rbind "/\$shared" "\$root/\$shared"; done
    exec chroot "\$root" /usr/bin/chromedriver "\$@"
' sh '$browser' "\$@"
EOF
chmod 755 "$driver"
say "chromium, $(du -sh "$browser" | cut -f1)"
