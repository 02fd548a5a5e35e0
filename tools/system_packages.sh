#!/usr/bin/env bash
# Programs of the system that tests use: installs the missing ones on Debian as root, else names one command.
# Tests of what stays absent are skipped, each with one line.
set -euo pipefail
PATH="$PATH:/usr/sbin"

need=()
command -v cc >/dev/null || need+=(build-essential)
command -v make >/dev/null || need+=(make)
command -v git >/dev/null || need+=(git)
command -v chromium >/dev/null || need+=(chromium)
command -v openssl >/dev/null || need+=(openssl)
command -v perf >/dev/null || need+=(linux-perf)
command -v strace >/dev/null || need+=(strace)
command -v nginx >/dev/null || need+=(nginx-light)
command -v python3 >/dev/null || need+=(python3)
python3 -c 'import venv, ensurepip' 2>/dev/null || need+=(python3-venv)
command -v pgbouncer >/dev/null || need+=(pgbouncer)
command -v sshd >/dev/null || need+=(openssh-server)
[ -x /usr/lib/postgresql/15/bin/postgres ] || need+=(postgresql-15)
[ -e /usr/lib/postgresql/15/lib/pg_stat_kcache.so ] || need+=(postgresql-15-pg-stat-kcache)
command -v mariadb-install-db >/dev/null || need+=(mariadb-server-core mariadb-client-core)
[ "${#need[@]}" -gt 0 ] || exit 0

if ! command -v apt-get >/dev/null; then
  echo "not installed, so their tests are skipped: ${need[*]} (names of Debian's packages)"
elif [ "$(id -u)" -ne 0 ] && ! { [ -n "${CI:-}" ] && command -v sudo >/dev/null; }; then
  echo "not installed, so their tests are skipped: sudo apt-get install --no-install-recommends ${need[*]}"
else
  as_root=(); [ "$(id -u)" -eq 0 ] || as_root=(sudo)
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${need[@]}"
fi
