#!/bin/sh
# Makes the *.golden files beside it: what PostgreSQL's own pgbench draws, computes and sends.
#
#   PGHOST=... PGPORT=... PGUSER=... PGDATABASE=... LOG=/path/of/server.json sh make.sh
#
# It wants pgbench 15 or later, and a server of its own that logs with
#   logging_collector=on log_destination=jsonlog log_directory=... log_filename=server.log log_statement=all
# to a file it may read. The tests read the files written here; nothing of this runs in a test.
set -eu
cd "$(dirname "$0")"
DEFINED='-D foo=-10.1 -D bla=false -D i=+3 -D n=null -D t=t -D f=of -D d=1.0 -D e=1e3 -D word=yes'
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bench() { pgbench -n "$@" >/dev/null 2> "$work/messages" || { tail "$work/messages" >&2; exit 1; }; }
query() { psql -X -q -A -t -v ON_ERROR_STOP=1 "$@"; }

grep -v -e '^#' -e '^$' expressions.txt > "$work/expressions"

# 1. Types and values, as debug() prints them, of one client.
awk '{ print "\\set v debug(" $0 ")" }' "$work/expressions" > "$work/types"
bench -t 1 -c 1 --random-seed=5432 $DEFINED -f "$work/types"
sed -n 's/^debug(script=0,command=[0-9]*): //p' "$work/messages" > types.golden

# 2. The text that stands in SQL, of four clients in three transactions, as a table:
#    client, transaction, number of the expression, text.
query -c 'SET client_min_messages = warning' -c 'DROP TABLE IF EXISTS golden' \
      -c 'CREATE TABLE golden (client int, transaction int, number int, text text)'
awk 'BEGIN { print "\\set transaction :transaction + 1" }
     { print "\\set v " $0
       print "INSERT INTO golden VALUES (:client_id, :transaction, " NR ", '"':v'"');" }' \
    "$work/expressions" > "$work/values"
bench -t 3 -c 4 -j 1 --random-seed=987654321 $DEFINED -D transaction=0 -f "$work/values"
query -c 'COPY (SELECT * FROM golden ORDER BY 1, 2, 3) TO STDOUT' > values.golden

# 3. Which script each of three clients chose, each in a thread of its own.
query -c 'TRUNCATE golden'
for number in 1 2 3; do
    printf '%s\n' '\set transaction :transaction + 1' \
        "INSERT INTO golden VALUES (:client_id, :transaction, $number, ':transaction');" > "$work/script$number"
done
bench -t 20 -c 3 -j 3 --random-seed=77 -D transaction=0 \
    -f "$work/script1@5" -f "$work/script2@1" -f "$work/script3@3"
query -c 'COPY (SELECT client, transaction, number FROM golden ORDER BY 1, 2) TO STDOUT' > choices.golden

# 4. Requests as they reach the server: text, and parameters if there are any.
logged() {
    PGAPPNAME=$1; export PGAPPNAME
    bench -t 1 -c 1 --random-seed=1 "$2" "$3" -f "$4"
    unset PGAPPNAME
    sleep 1
    query -c 'SET client_min_messages = warning' -c 'DROP TABLE IF EXISTS log' -c 'CREATE TABLE log (number serial, line jsonb)'
    query -c "\\copy log (line) FROM '$LOG' WITH (FORMAT csv, QUOTE e'\\x01', DELIMITER e'\\x02')"
    query -c "COPY (SELECT regexp_replace(line->>'message', '^(statement|execute [^:]*): ', ''), line->>'detail'
                    FROM log WHERE line->>'application_name' = '$1'
                    AND line->>'message' ~ '^(statement|execute [^:]*): ' ORDER BY number) TO STDOUT"
}
logged "simple $$" -M simple statements.sql > statements.golden
logged "extended $$" -M extended prepared.sql > prepared.golden
query -c 'DROP TABLE golden, log'
