# shellcheck shell=bash
# Sourced by ./up and ./check: installs what is missing, and only that.

say() { printf '%s\n' "$*"; }

# The packages of a section of dev/apt-packages that are not installed.
missing_packages() {
    local section=$1 name command
    awk -v want="[$section]" '/^\[/ { on = $0 == want; next } on && NF && !/^#/' dev/apt-packages |
        while read -r name command; do
            [ -n "$command" ] && command -v "$command" >/dev/null && continue
            dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null | grep -qx installed || say "$name"
        done
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    else
        sudo "$@"
    fi
}

# Debian starts a database server of its own when PostgreSQL is installed. Payonce brings up a private one, so
# that server is not made; the setting is put back afterwards.
apt_install() {
    local conf=/etc/postgresql-common/createcluster.conf quiet=
    as_root apt-get update -qq
    if [[ " $* " == *' postgresql-15 '* ]] && [ ! -e "$conf" ]; then
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql-common
        quiet=yes
        as_root cp -p "$conf" "$conf.before-payonce"
        say 'create_main_cluster = false' | as_root tee -a "$conf" >/dev/null
    fi
    local rc=0
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" || rc=$?
    [ -z "$quiet" ] || as_root mv "$conf.before-payonce" "$conf"
    return "$rc"
}

need_packages() {
    local missing
    missing=$(missing_packages "$1" | tr '\n' ' ')
    [ -n "$missing" ] || return 0
    if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
        say "These packages are missing, and installing them takes root: $missing"
        say "As root: apt-get install --no-install-recommends $missing"
        return 1
    fi
    say "Installing with apt: $missing"
    local log
    log=$(mktemp)
    # shellcheck disable=SC2086
    if ! apt_install $missing >"$log" 2>&1; then
        cat "$log"
        return 1
    fi
    rm -f "$log"
}

# npm ci in a folder, when its lock file is not the one that was installed.
need_npm() {
    local folder=$1 stamp=$1/node_modules/.installed lock
    lock=$(sha256sum <"$folder/package-lock.json")
    [ "$(cat "$stamp" 2>/dev/null)" = "$lock" ] && return 0
    say "Installing with npm: $folder"
    (cd "$folder" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error) || return 1
    say "$lock" >"$stamp"
}
