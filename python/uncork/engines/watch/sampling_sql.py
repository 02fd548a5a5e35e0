"""The queries that come before a sample: how large a table is, and what an expression calls."""

from __future__ import annotations

from typing import Final

from uncork.engines.watch.snapshot_sql import MARK

EXTENT: Final = f"""
SELECT {MARK}
       (SELECT coalesce(sum(pg_catalog.pg_relation_size(f.oid)), 0)
               / pg_catalog.current_setting('block_size')::int
          FROM pg_catalog.pg_class AS f
         WHERE f.oid = c.oid OR f.oid IN (SELECT p.relid 
                         FROM pg_catalog.pg_partition_tree(c.oid) AS p))::bigint,
       c.reltuples::float8
  FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
 WHERE n.nspname = %(schema)s::text AND c.relname = %(name)s::text AND c.relkind IN ('r', 'p', 'm')
"""
"""Blocks and rows of a table with its partitions; its rows are below 1 if nothing counted them."""

CATEGORY: Final = f"""
SELECT {MARK} CASE t.typcategory WHEN 'A' THEN 'array' WHEN 'R' THEN 'range' WHEN 'I' THEN 'network'
            ELSE pg_catalog.format_type(t.oid, NULL) END
  FROM pg_catalog.pg_type AS t WHERE t.oid = %(type)s::oid
"""

_GIVEN: Final = """
  pg_catalog.array_to_string(%(types)s::oid[], ','),
  pg_catalog.array_to_string(pg_catalog.array_replace(%(types)s::oid[], 1043::oid, 25::oid), ',')
"""
"""The types of the operands, also with text in place of varchar, because the server converts it so."""

_FUNCTION: Final = f"""
SELECT {MARK} coalesce(
         bool_and(p.provolatile = 'i' AND p.prokind = 'f')
           FILTER (WHERE pg_catalog.array_to_string(p.proargtypes::oid[], ',') IN ({_GIVEN})),
         bool_and(p.provolatile = 'i' AND p.prokind = 'f'))
  FROM pg_catalog.pg_proc AS p JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace
 WHERE p.proname = %(name)s::text
   AND CASE WHEN %(schema)s::text = '' THEN pg_catalog.pg_function_is_visible(p.oid)
            ELSE n.nspname = %(schema)s::text END
   AND (p.provariadic <> 0 OR coalesce(pg_catalog.array_length(%(types)s::oid[], 1), 0)
                              BETWEEN p.pronargs - p.pronargdefaults AND p.pronargs)
"""

_OPERATOR: Final = f"""
SELECT {MARK} coalesce(
         bool_and(p.provolatile = 'i')
           FILTER (WHERE pg_catalog.concat_ws(',', nullif(o.oprleft, 0), o.oprright) IN ({_GIVEN})),
         bool_and(p.provolatile = 'i'))
  FROM pg_catalog.pg_operator AS o JOIN pg_catalog.pg_proc AS p ON p.oid = o.oprcode
  JOIN pg_catalog.pg_namespace AS n ON n.oid = o.oprnamespace
 WHERE o.oprname = %(name)s::text
   AND CASE WHEN %(schema)s::text = '' THEN pg_catalog.pg_operator_is_visible(o.oid)
            ELSE n.nspname = %(schema)s::text END
   AND (o.oprleft = 0) = (pg_catalog.array_length(%(types)s::oid[], 1) = 1)
"""

_CAST: Final = f"""
SELECT {MARK} CASE WHEN s.oid = t.oid OR k.castmethod = 'b' THEN true
                   WHEN k.castmethod = 'f' THEN f.provolatile = 'i'
                   ELSE o.provolatile = 'i' AND i.provolatile = 'i' END
  FROM pg_catalog.pg_type AS s
  JOIN pg_catalog.pg_type AS t ON t.oid = (%(types)s::oid[])[2]
  JOIN pg_catalog.pg_proc AS o ON o.oid = s.typoutput
  JOIN pg_catalog.pg_proc AS i ON i.oid = t.typinput
  LEFT JOIN pg_catalog.pg_cast AS k ON k.castsource = s.oid AND k.casttarget = t.oid
  LEFT JOIN pg_catalog.pg_proc AS f ON f.oid = k.castfunc
 WHERE s.oid = (%(types)s::oid[])[1]
"""

IMMUTABLE: Final = {"function": _FUNCTION, "operator": _OPERATOR, "cast": _CAST}
"""Whether what an expression calls is immutable: the one with these types, or else all with its name."""
