-- A script whose requests a server was asked to log, sent by the simple protocol; see make.sh.

\set one 1
\set Half 0.50
\set nothing NULL
\set yes 1 = 1

  -- indented
  SELECT :one::int, :Half::float8, ':one', ':nothing', ':yes' -- inside; not the end :one
    AS "a;b";SELECT 2; SELECT 'a;b''c', E'a\';b', $$a;b$$, $x$;$$;$x$ /* ; /* ; :one */ ; */;
/* before */ SELECT
  E'a'
  'b\';c';
SELECT '12:30'::time, (ARRAY[1,2,3])[1:2], 'a\:one', E'\\:one';
SELECT 3 AS three, 4 AS "four", '007' AS bond, NULL AS gone \gset p_
SELECT :p_three + :p_four AS sum, ':p_bond' AS a, :p_bond AS b, ':p_gone' AS c \gset q_
\set bond :p_bond + 1
SELECT :q_sum AS sum, :bond AS bond, ':undefined' AS undefined
  \; SELECT '$1:noone' AS text \; \aset
;
\if :yes and :one = 1
CREATE FUNCTION pg_temp.twice(a int) RETURNS int BEGIN ATOMIC
  SELECT CASE WHEN a > 0 THEN 1 END;
  SELECT a * 2;
END;
\elif 1 / 0
SELECT 'never';
\else
SELECT 'nor this';
\endif
\if :nothing
SELECT 'not this';
\if true
SELECT 'not this either';
\endif
\elif :one > 1
SELECT 'nor that';
\else
\if false
SELECT 'no';
\else
SELECT 'yes', pg_temp.twice(:q_sum), :one ::int;
\endif
\endif
DROP FUNCTION pg_temp.twice
\sleep 10 us
SELECT 'größe' \
;
SELECT :one, :{?one}, U&'d\0061t;', U&"x;" FROM (SELECT 1 AS "x;") AS t;
/* the end */
