-- {'fillfactor': 80}
CREATE TABLE "pgbench_history" (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22))
CREATE TABLE "pgbench_tellers" (tid int NOT NULL, bid int, tbalance int, filler char(84)) WITH (fillfactor=80)
CREATE TABLE "pgbench_accounts" (aid int NOT NULL, bid int, abalance int, filler char(84)) WITH (fillfactor=80)
CREATE TABLE "pgbench_branches" (bid int NOT NULL, bbalance int, filler char(88)) WITH (fillfactor=80)
-- {'scale': 19999}
CREATE TABLE "pgbench_history" (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22))
CREATE TABLE "pgbench_tellers" (tid int NOT NULL, bid int, tbalance int, filler char(84)) WITH (fillfactor=100)
CREATE TABLE "pgbench_accounts" (aid int NOT NULL, bid int, abalance int, filler char(84)) WITH (fillfactor=100)
CREATE TABLE "pgbench_branches" (bid int NOT NULL, bbalance int, filler char(88)) WITH (fillfactor=100)
-- {'scale': 20000}
CREATE TABLE "pgbench_history" (tid int, bid int, aid bigint, delta int, mtime timestamp, filler char(22))
CREATE TABLE "pgbench_tellers" (tid int NOT NULL, bid int, tbalance int, filler char(84)) WITH (fillfactor=100)
CREATE TABLE "pgbench_accounts" (aid bigint NOT NULL, bid int, abalance int, filler char(84)) WITH (fillfactor=100)
CREATE TABLE "pgbench_branches" (bid int NOT NULL, bbalance int, filler char(88)) WITH (fillfactor=100)
-- {'tablespace': 'a "b'}
CREATE TABLE "pgbench_history" (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22)) TABLESPACE "a ""b"
CREATE TABLE "pgbench_tellers" (tid int NOT NULL, bid int, tbalance int, filler char(84)) WITH (fillfactor=100) TABLESPACE "a ""b"
CREATE TABLE "pgbench_accounts" (aid int NOT NULL, bid int, abalance int, filler char(84)) WITH (fillfactor=100) TABLESPACE "a ""b"
CREATE TABLE "pgbench_branches" (bid int NOT NULL, bbalance int, filler char(88)) WITH (fillfactor=100) TABLESPACE "a ""b"
-- {'unlogged': True}
CREATE UNLOGGED TABLE "pgbench_history" (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22))
CREATE UNLOGGED TABLE "pgbench_tellers" (tid int NOT NULL, bid int, tbalance int, filler char(84)) WITH (fillfactor=100)
CREATE UNLOGGED TABLE "pgbench_accounts" (aid int NOT NULL, bid int, abalance int, filler char(84)) WITH (fillfactor=100)
CREATE UNLOGGED TABLE "pgbench_branches" (bid int NOT NULL, bbalance int, filler char(88)) WITH (fillfactor=100)
-- {'partitions': 3}
CREATE TABLE "pgbench_history" (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22))
CREATE TABLE "pgbench_tellers" (tid int NOT NULL, bid int, tbalance int, filler char(84)) WITH (fillfactor=100)
CREATE TABLE "pgbench_accounts" (aid int NOT NULL, bid int, abalance int, filler char(84)) PARTITION BY range (aid)
CREATE TABLE "pgbench_branches" (bid int NOT NULL, bbalance int, filler char(88)) WITH (fillfactor=100)
CREATE TABLE "pgbench_accounts_1" PARTITION OF pgbench_accounts FOR VALUES FROM (MINVALUE) TO (33335) WITH (fillfactor=100)
CREATE TABLE "pgbench_accounts_2" PARTITION OF pgbench_accounts FOR VALUES FROM (33335) TO (66669) WITH (fillfactor=100)
CREATE TABLE "pgbench_accounts_3" PARTITION OF pgbench_accounts FOR VALUES FROM (66669) TO (MAXVALUE) WITH (fillfactor=100)
-- {'partitions': 2, 'partition_method': 'hash', 'unlogged': True}
CREATE TABLE "pgbench_history" (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22))
CREATE TABLE "pgbench_tellers" (tid int NOT NULL, bid int, tbalance int, filler char(84)) WITH (fillfactor=100)
CREATE TABLE "pgbench_accounts" (aid int NOT NULL, bid int, abalance int, filler char(84)) PARTITION BY hash (aid)
CREATE TABLE "pgbench_branches" (bid int NOT NULL, bbalance int, filler char(88)) WITH (fillfactor=100)
CREATE UNLOGGED TABLE "pgbench_accounts_1" PARTITION OF pgbench_accounts FOR VALUES WITH (MODULUS 2, REMAINDER 0) WITH (fillfactor=100)
CREATE UNLOGGED TABLE "pgbench_accounts_2" PARTITION OF pgbench_accounts FOR VALUES WITH (MODULUS 2, REMAINDER 1) WITH (fillfactor=100)
