# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# Sourced by the commands here, in .ci and in tests/machine: where the checkout is, how to speak, how to get packages.

set -euo pipefail

# What Debian's packages bring comes before what an account has put in its PATH, and sbin is not in everybody's.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH
export LC_ALL=C.UTF-8

# A closed stdin would give its number to the next file that is opened.
{ : <&0; } 2>/dev/null || exec </dev/null

TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
NAME=${0##*/}

say() { printf '%s: %s\n' "$NAME" "$*"; }

fail() {
    printf '%s: %s\n' "$NAME" "$*" >&2
    exit 1
}

# packages_of GROUP…: the names on the list, one a line.
packages_of() {
    local group name _
    while read -r group name _; do
        [[ " $* " == *" $group "* ]] && printf '%s\n' "$name"
    done <"$TOP/tools/packages"
    return 0
}

# packages_missing GROUP…
packages_missing() {
    local wanted installed name
    mapfile -t wanted < <(packages_of "$@")
    installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "${wanted[@]}" 2>/dev/null) || true
    for name in "${wanted[@]}"; do
        [[ $'\n'"$installed"$'\n' == *$'\n'"$name installed"$'\n'* ]] || printf '%s\n' "$name"
    done
}

# need_packages GROUP…: says what is missing in one line and installs it, as root or with sudo. Quiet when all is there.
need_packages() {
    local missing known variable apt log updated=''

    command -v apt-get >/dev/null ||
        fail "this is no Debian; install what these packages hold and use meson directly: $(packages_of "$@" | tr '\n' ' ')"

    mapfile -t missing < <(packages_missing "$@")
    ((${#missing[@]})) || return 0
    say "missing ${#missing[@]} Debian packages, installing them: ${missing[*]}"

    local by_hand="apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
    apt=(env DEBIAN_FRONTEND=noninteractive)
    for variable in http_proxy https_proxy no_proxy; do # sudo drops them
        [[ -z ${!variable-} ]] || apt+=("$variable=${!variable}")
    done
    apt+=(apt-get -qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)
    if ((EUID)); then
        command -v sudo >/dev/null ||
            fail "installing needs root, and sudo is not here; run this as root, then $NAME again: $by_hand"
        apt=(sudo "${apt[@]}")
    fi

    log=$(mktemp)
    known=$(apt-cache policy "${missing[@]}" 2>/dev/null | grep -c 'Candidate: [^(]') || true
    if ((known < ${#missing[@]})); then
        updated=yes
        "${apt[@]}" update >"$log" 2>&1 || true # a mirror that is half there may do; installing decides
    fi
    if ! "${apt[@]}" install -y --no-install-recommends "${missing[@]}" </dev/null >>"$log" 2>&1; then
        # Lists that are old name versions that the mirror no longer has.
        if [[ $updated ]] || ! "${apt[@]}" update >>"$log" 2>&1 ||
            ! "${apt[@]}" install -y --no-install-recommends "${missing[@]}" </dev/null >>"$log" 2>&1; then
            tail -n 15 "$log" >&2
            rm -f "$log"
            fail "could not install them; run this as root, then $NAME again: $by_hand"
        fi
    fi
    rm -f "$log"
}
