#!/usr/bin/env bash
# A throw-away PostgreSQL for tests, on a Unix socket in a folder of its own.
#
#   tools/postgres.sh start          make and start one; prints its folder, then its address
#   tools/postgres.sh restart DIR    stop it at once, as a crash would, and start it again
#   tools/postgres.sh down DIR       stop it at once
#   tools/postgres.sh up DIR         start it again
#   tools/postgres.sh stop DIR       stop it and remove its folder
#
# Needs PostgreSQL 13 or newer: on PATH, in POSTGRES_BIN, or where Debian puts it. Without: exit
# code 1 and a line why. PostgreSQL refuses to run as root; root starts it as `postgres` or `nobody`.
set -euo pipefail

bin=${POSTGRES_BIN:-}
if [ -z "$bin" ]; then
    for found in $(command -v pg_ctl || true) /usr/lib/postgresql/*/bin/pg_ctl /usr/pgsql-*/bin/pg_ctl; do
        [ -x "$found" ] && bin=$(dirname "$(readlink -f "$found")") # the last one: the newest
    done
fi
if [ ! -x "$bin/pg_ctl" ] || [ ! -x "$bin/initdb" ]; then
    echo "PostgreSQL is not installed (Debian: apt-get install --no-install-recommends postgresql)" >&2
    exit 1
fi

as_owner=()
if [ "$(id -u)" = 0 ]; then
    user=$(id -un postgres 2>/dev/null || echo nobody)
    as_owner=(setpriv "--reuid=$user" "--regid=$(id -g "$user")" --clear-groups --)
fi

up() {
    # -k: where its socket is. Nothing listens on the network.
    (cd "$1" && "${as_owner[@]}" "$bin/pg_ctl" --pgdata="$1/data" --log="$1/log" --timeout=60 -w \
        --options="-k $1 -c listen_addresses=" start >"$1/start" 2>&1 </dev/null) || {
        cat "$1/start" "$1/log" >&2
        exit 1
    }
}

down() {
    (cd / && "${as_owner[@]}" "$bin/pg_ctl" --pgdata="$1/data" --mode=immediate -w stop >/dev/null)
}

case "${1:-}" in
    start)
        # Short, since the path of a socket has at most 107 bytes.
        folder=$(mktemp -d /tmp/turngate-pg.XXXXXX)
        [ ${#as_owner[@]} = 0 ] || chown "$user" "$folder"
        (cd "$folder" && "${as_owner[@]}" "$bin/initdb" --pgdata="$folder/data" --username=turngate \
            --auth=trust --encoding=UTF8 --locale=C --no-sync >/dev/null)
        up "$folder"
        echo "$folder"
        echo "postgresql://turngate@/postgres?host=$folder"
        ;;
    restart) down "$2" && up "$2" ;;
    up) up "$2" ;;
    down) down "$2" ;;
    stop)
        down "$2"
        rm -rf "$2"
        ;;
    *)
        sed -n '2,11s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
esac
