"""Read the definitions of a database from its catalogue.

The queries need the search path to be empty, so that the server qualifies each name that it prints, and they
only read. Columns that older versions lack are read through `to_jsonb`, which returns NULL for them.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

import psycopg
from psycopg.rows import class_row

from uncork.engines.copying import objects

T = TypeVar("T")

OWN: Final = "n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%'"
"""The condition for schemas of users."""

_MEMBER: Final = (
    "EXISTS (SELECT FROM pg_depend e WHERE e.classid = '{0}'::regclass AND e.objid = {1} AND e.deptype = 'e')"
)
_COLLATION: Final = (
    "(SELECT format('%I.%I', cn.nspname, l.collname) FROM pg_collation l"
    " JOIN pg_namespace cn ON cn.oid = l.collnamespace"
    " WHERE l.oid = {0} AND {0} <> {1})"
)


def _own(catalogue: str, oid: str) -> str:
    """Return the condition for an object of users that no extension created."""
    return f"{OWN} AND NOT {_MEMBER.format(catalogue, oid)}"


_SCHEMAS: Final = f"""
SELECT n.nspname::text FROM pg_namespace n WHERE {_own("pg_namespace", "n.oid")} ORDER BY n.oid
"""
_EXTENSIONS: Final = """
SELECT extname::text AS name, n.nspname::text AS schema
  FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
 WHERE extname <> 'plpgsql' ORDER BY e.oid
"""
_COLLATIONS: Final = f"""
SELECT n.nspname::text AS schema, c.collname::text AS name, c.collprovider::text AS provider,
       c.collisdeterministic AS deterministic,
       coalesce(to_jsonb(c) ->> 'colllocale', to_jsonb(c) ->> 'colliculocale') AS locale,
       c.collcollate::text AS "collate", c.collctype::text AS ctype, to_jsonb(c) ->> 'collicurules' AS rules
  FROM pg_collation c JOIN pg_namespace n ON n.oid = c.collnamespace
 WHERE {_own("pg_collation", "c.oid")} ORDER BY c.oid
"""
_TYPES: Final = f"""
SELECT n.nspname::text AS schema, t.typname::text AS name, t.typtype::text AS kind,
       ARRAY(SELECT enumlabel::text FROM pg_enum WHERE enumtypid = t.oid ORDER BY enumsortorder) AS labels,
       ARRAY(SELECT ARRAY[a.attname::text, format_type(a.atttypid, a.atttypmod),
                          coalesce({_COLLATION.format("a.attcollation", "at.typcollation")}, '')]
               FROM pg_attribute a JOIN pg_type at ON at.oid = a.atttypid
              WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
              ORDER BY a.attnum) AS attributes,
       CASE WHEN t.typtype = 'd' THEN format_type(t.typbasetype, t.typtypmod) END AS base,
       {_COLLATION.format("t.typcollation", "b.typcollation")} AS collation,
       pg_get_expr(t.typdefaultbin, 'pg_type'::regclass) AS "default", t.typnotnull AS not_null
  FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
  LEFT JOIN pg_class c ON c.oid = t.typrelid
  LEFT JOIN pg_type b ON b.oid = t.typbasetype
 WHERE {_own("pg_type", "t.oid")}
   AND (t.typtype IN ('e', 'd') OR t.typtype = 'c' AND c.relkind = 'c') ORDER BY t.oid
"""
_CHECKS: Final = f"""
SELECT n.nspname::text AS schema, t.typname::text AS domain, k.conname::text AS name,
       pg_get_constraintdef(k.oid) AS definition, k.convalidated AS valid
  FROM pg_constraint k JOIN pg_type t ON t.oid = k.contypid JOIN pg_namespace n ON n.oid = t.typnamespace
 WHERE k.contype = 'c' AND {_own("pg_type", "t.oid")} ORDER BY k.oid
"""
_RANGES: Final = f"""
SELECT n.nspname::text AS schema, t.typname::text AS name, format_type(r.rngsubtype, NULL) AS subtype,
       (SELECT format('%I.%I', ps.nspname, p.opcname) FROM pg_opclass p
          JOIN pg_namespace ps ON ps.oid = p.opcnamespace WHERE p.oid = r.rngsubopc) AS operator_class,
       {_COLLATION.format("r.rngcollation", "s.typcollation")} AS collation,
       nullif(r.rngcanonical::oid, 0)::regproc::text AS canonical,
       nullif(r.rngsubdiff::oid, 0)::regproc::text AS difference,
       (SELECT format('%I.%I', mn.nspname, m.typname) FROM pg_type m
          JOIN pg_namespace mn ON mn.oid = m.typnamespace
         WHERE m.oid = (to_jsonb(r) ->> 'rngmultitypid')::oid) AS multirange
  FROM pg_range r JOIN pg_type t ON t.oid = r.rngtypid JOIN pg_type s ON s.oid = r.rngsubtype
  JOIN pg_namespace n ON n.oid = t.typnamespace
 WHERE {_own("pg_type", "t.oid")} ORDER BY t.oid
"""
_ROUTINES: Final = f"""
SELECT p.oid::regprocedure::text AS name, pg_get_functiondef(p.oid) AS definition, l.lanname::text AS language
  FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace JOIN pg_language l ON l.oid = p.prolang
 WHERE {_own("pg_proc", "p.oid")} AND p.prokind <> 'a'
   AND NOT EXISTS (SELECT FROM pg_depend i
                    WHERE i.classid = 'pg_proc'::regclass AND i.objid = p.oid AND i.deptype = 'i')
 ORDER BY p.oid
"""
_AGGREGATES: Final = f"""
SELECT n.nspname::text AS schema, p.proname::text AS name,
       pg_get_function_identity_arguments(p.oid) AS arguments,
       ARRAY(SELECT ARRAY[o.key, o.value] FROM (VALUES
             (1, 'SFUNC', a.aggtransfn::text),
             (2, 'STYPE', format_type(a.aggtranstype, NULL)),
             (3, 'SSPACE', nullif(a.aggtransspace, 0)::text),
             (4, 'FINALFUNC', nullif(a.aggfinalfn::oid, 0)::regproc::text),
             (5, 'FINALFUNC_EXTRA', CASE WHEN a.aggfinalextra THEN 'true' END),
             (6, 'COMBINEFUNC', nullif(a.aggcombinefn::oid, 0)::regproc::text),
             (7, 'INITCOND', quote_literal(a.agginitval)),
             (8, 'PARALLEL', CASE p.proparallel WHEN 's' THEN 'safe' WHEN 'r' THEN 'restricted' END)
             ) AS o (place, key, value) WHERE o.value IS NOT NULL ORDER BY o.place) AS options
  FROM pg_aggregate a JOIN pg_proc p ON p.oid = a.aggfnoid JOIN pg_namespace n ON n.oid = p.pronamespace
 WHERE {_own("pg_proc", "p.oid")} AND a.aggkind = 'n' AND a.aggmtransfn = 0 AND a.aggserialfn = 0
   AND a.aggsortop = 0 ORDER BY p.oid
"""
_SEQUENCES: Final = f"""
SELECT n.nspname::text AS schema, c.relname::text AS name, format_type(s.seqtypid, NULL) AS type,
       s.seqstart AS start, s.seqincrement AS increment, s.seqmin AS minimum, s.seqmax AS maximum,
       s.seqcache AS cache, s.seqcycle AS cycles,
       CASE WHEN has_schema_privilege(n.oid, 'USAGE') AND has_sequence_privilege(c.oid, 'SELECT, USAGE')
            THEN pg_sequence_last_value(c.oid) END AS last,
       d.refobjid::int8 AS table, a.attname::text AS column, coalesce(d.deptype = 'i', false) AS identity
  FROM pg_sequence s JOIN pg_class c ON c.oid = s.seqrelid JOIN pg_namespace n ON n.oid = c.relnamespace
  LEFT JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.refobjsubid > 0
            AND d.refclassid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')
  LEFT JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
 WHERE {_own("pg_class", "c.oid")} AND c.relpersistence <> 't' ORDER BY c.oid
"""
_TABLES: Final = f"""
SELECT c.oid::int8 AS oid, n.nspname::text AS schema, c.relname::text AS name, c.relkind::text AS kind,
       c.relpersistence = 'u' AS unlogged,
       coalesce(c.reloptions, '{{}}') || ARRAY(
         SELECT 'toast.' || o FROM pg_class t, unnest(t.reloptions) AS o WHERE t.oid = c.reltoastrelid
       ) AS options,
       CASE WHEN c.relkind = 'p' THEN pg_get_partkeydef(c.oid) END AS partition_key,
       pg_get_expr(c.relpartbound, c.oid) AS bound,
       ARRAY(SELECT inhparent::int8 FROM pg_inherits WHERE inhrelid = c.oid ORDER BY inhseqno) AS parents,
       (SELECT amname::text FROM pg_am WHERE oid = c.relam) AS method,
       pg_table_size(c.oid) AS bytes, c.reltuples::float8 AS rows,
       has_schema_privilege(n.oid, 'USAGE') AND (has_table_privilege(c.oid, 'SELECT') OR NOT EXISTS (
         SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
            AND NOT has_column_privilege(c.oid, a.attnum, 'SELECT'))) AS readable,
       c.relrowsecurity AS row_security,
       (SELECT spcname::text FROM pg_tablespace WHERE oid = c.reltablespace) AS tablespace
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE {_own("pg_class", "c.oid")} AND c.relkind IN ('r', 'p') AND c.relpersistence <> 't' ORDER BY c.oid
"""
_COLUMNS: Final = f"""
SELECT a.attrelid::int8 AS table, a.attname::text AS name, format_type(a.atttypid, a.atttypmod) AS type,
       {_COLLATION.format("a.attcollation", "t.typcollation")} AS collation,
       a.attnotnull AND coalesce(k.convalidated, true) AS not_null,
       k.conname::text AS not_null_name, coalesce(k.connoinherit, false) AS no_inherit,
       a.attidentity::text AS identity, a.attgenerated::text AS generated,
       pg_get_expr(d.adbin, d.adrelid) AS "default",
       CASE WHEN a.attstorage <> t.typstorage THEN a.attstorage::text END AS storage,
       CASE to_jsonb(a) ->> 'attcompression' WHEN 'p' THEN 'pglz' WHEN 'l' THEN 'lz4' END AS compression,
       nullif((to_jsonb(a) ->> 'attstattarget')::int, -1) AS target, a.attoptions AS options,
       t.typtype = 'e' OR b.oid < 16384 AND b.typtype IN ('b', 'r', 'm') AND b.typsend <> 0
         AND b.typreceive <> 0 AND b.typname !~ '^_?(reg|aclitem|pg_)' AS binary
  FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_type t ON t.oid = a.atttypid
  JOIN pg_type b ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END
  LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
  LEFT JOIN pg_constraint k ON k.conrelid = a.attrelid AND k.contype = 'n' AND k.conkey = ARRAY[a.attnum]
 WHERE {_own("pg_class", "c.oid")} AND c.relkind IN ('r', 'p', 'v', 'm') AND c.relpersistence <> 't'
   AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attrelid, a.attnum
"""
_VIEWS: Final = f"""
SELECT c.oid::int8 AS oid, n.nspname::text AS schema, c.relname::text AS name, c.relkind::text AS kind,
       pg_get_viewdef(c.oid) AS definition, coalesce(c.reloptions, '{{}}') AS options,
       c.relispopulated AS filled
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE {_own("pg_class", "c.oid")} AND c.relkind IN ('v', 'm') AND c.relpersistence <> 't' ORDER BY c.oid
"""
_CONSTRAINTS: Final = f"""
SELECT k.conrelid::int8 AS table, k.conname::text AS name, k.contype::text AS kind,
       pg_get_constraintdef(k.oid) AS definition, k.convalidated AS valid, k.coninhcount > 0 AS inherited,
       k.conparentid <> 0 AS derived, k.connoinherit AS no_inherit,
       ARRAY(SELECT a.attname::text FROM unnest(k.conkey) WITH ORDINALITY AS u (number, place)
               JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = u.number
              ORDER BY place) AS columns,
       k.confrelid::int8 AS references,
       ARRAY(SELECT a.attname::text FROM unnest(k.confkey) WITH ORDINALITY AS u (number, place)
               JOIN pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = u.number
              ORDER BY place) AS referenced,
       ARRAY(SELECT format_type(a.atttypid, a.atttypmod)
               FROM unnest(k.confkey) WITH ORDINALITY AS u (number, place)
               JOIN pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = u.number
              ORDER BY place) AS types,
       CASE WHEN k.contype IN ('p', 'u', 'x') THEN coalesce(i.reloptions, '{{}}') ELSE '{{}}' END
         AS index_options,
       coalesce(to_jsonb(k) ->> 'conperiod', 'false') = 'false' AS plain
  FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace
  LEFT JOIN pg_class i ON i.oid = k.conindid
 WHERE {_own("pg_class", "c.oid")} AND k.contype IN ('c', 'n', 'p', 'u', 'x', 'f') AND c.relkind IN ('r', 'p')
   AND c.relpersistence <> 't' ORDER BY k.oid
"""
_INDEXES: Final = f"""
SELECT n.nspname::text AS schema, c.relname::text AS name, i.indrelid::int8 AS table,
       CASE WHEN NOT EXISTS (SELECT FROM pg_constraint k
                              WHERE k.conindid = i.indexrelid AND k.contype IN ('p', 'u', 'x'))
            THEN pg_get_indexdef(i.indexrelid) END AS definition,
       ps.nspname::text AS parent_schema, p.relname::text AS parent,
       i.indisvalid OR c.relkind = 'I' AS valid,
       ARRAY(SELECT ARRAY[a.attnum::int, (to_jsonb(a) ->> 'attstattarget')::int] FROM pg_attribute a
              WHERE a.attrelid = i.indexrelid AND (to_jsonb(a) ->> 'attstattarget')::int >= 0
              ORDER BY a.attnum) AS targets
  FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_class t ON t.oid = i.indrelid
  LEFT JOIN pg_inherits h ON h.inhrelid = i.indexrelid
  LEFT JOIN pg_class p ON p.oid = h.inhparent LEFT JOIN pg_namespace ps ON ps.oid = p.relnamespace
 WHERE {_own("pg_class", "t.oid")} AND t.relkind IN ('r', 'p', 'm') AND t.relpersistence <> 't' ORDER BY c.oid
"""
_STATISTICS: Final = f"""
SELECT n.nspname::text AS schema, s.stxname::text AS name, pg_get_statisticsobjdef(s.oid) AS definition,
       nullif((to_jsonb(s) ->> 'stxstattarget')::int, -1) AS target
  FROM pg_statistic_ext s JOIN pg_namespace n ON n.oid = s.stxnamespace
 WHERE {_own("pg_statistic_ext", "s.oid")} ORDER BY s.oid
"""
_TRIGGERS: Final = f"""
SELECT n.nspname::text AS schema, c.relname::text AS table, t.tgname::text AS name,
       pg_get_triggerdef(t.oid) AS definition, t.tgenabled::text AS enabled
  FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE {_own("pg_class", "c.oid")} AND c.relkind IN ('r', 'p', 'v') AND NOT t.tgisinternal
   AND t.tgparentid = 0 ORDER BY t.oid
"""
_RULES: Final = f"""
SELECT n.nspname::text AS schema, c.relname::text AS table, r.rulename::text AS name,
       pg_get_ruledef(r.oid) AS definition, r.ev_enabled::text AS enabled
  FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE {_own("pg_class", "c.oid")} AND c.relkind IN ('r', 'p', 'v') AND r.rulename <> '_RETURN' ORDER BY r.oid
"""


def read_schema(connection: psycopg.Connection[Any]) -> objects.Schema:
    """Return the definitions of a database. The session's search path must be empty.

    Raises:
        psycopg.Error: if the connection fails, or if a lock or a query takes longer than the session allows.
    """

    def rows(kind: type[T], query: str) -> tuple[T, ...]:
        with connection.cursor(row_factory=class_row(kind)) as cursor:
            return tuple(cursor.execute(query.encode()).fetchall())

    schemas = connection.execute(_SCHEMAS.encode()).fetchall()
    return objects.Schema(
        schemas=tuple(str(name) for (name,) in schemas),
        extensions=rows(objects.Extension, _EXTENSIONS),
        collations=rows(objects.Collation, _COLLATIONS),
        types=rows(objects.UserType, _TYPES),
        checks=rows(objects.DomainCheck, _CHECKS),
        ranges=rows(objects.Range, _RANGES),
        routines=rows(objects.Routine, _ROUTINES),
        aggregates=rows(objects.Aggregate, _AGGREGATES),
        sequences=rows(objects.SequenceFacts, _SEQUENCES),
        tables=rows(objects.Table, _TABLES),
        columns=rows(objects.Column, _COLUMNS),
        views=rows(objects.View, _VIEWS),
        constraints=rows(objects.Constraint, _CONSTRAINTS),
        indexes=rows(objects.Index, _INDEXES),
        statistics=rows(objects.Statistics, _STATISTICS),
        triggers=rows(objects.Trigger, _TRIGGERS),
        rules=rows(objects.Rule, _RULES),
        version=connection.info.server_version // 10000,
    )
