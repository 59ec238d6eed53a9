#!/usr/bin/env bash
# Installs the distribution's Chromium, in which a test looks at the page. Quick when it is there. Where the distribution packages none
# (Ubuntu's is a snap), that test is left out, and says so.
set -euo pipefail
command -v chromium >/dev/null && command -v chromedriver >/dev/null && exit 0
candidate() { apt-cache policy chromium-driver 2>/dev/null | sed -n 's/^ *Candidate: *//p'; }
candidate=$(candidate)
# A machine that has just been set up may know of no packages at all.
if [[ -z $candidate && $EUID -eq 0 ]]; then
    apt-get update -qq
    candidate=$(candidate)
fi
if [[ -z $candidate ]] && grep -qx 'ID=debian' /etc/os-release; then
    echo "browser: no package chromium-driver is known here: run \`apt-get update\` as root" >&2
    exit 1
fi
if [[ -z $candidate || $candidate == '(none)' || $candidate == *snap* ]]; then
    echo "browser: this distribution packages no Chromium; the test of the page is left out" >&2
    exit 0
fi
[[ $EUID -eq 0 ]] || { echo "browser: chromium and chromium-driver are missing, and installing them needs root" >&2; exit 1; }
echo "browser: installing chromium" >&2
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium chromium-driver fonts-dejavu-core >/dev/null
