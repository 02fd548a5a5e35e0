"""Read the definitions of a database from its catalogue, as the statements that create its objects again.

The queries need the search path to be empty, so that the server qualifies each name that it prints, and they
only read. Columns that older versions lack are read through `to_jsonb`, which returns NULL for them. A query
of statements returns the fields of `Step`; format() quotes each identifier and each value.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, TypeVar

import psycopg
from psycopg.rows import class_row

from uncork.engines.copying.objects import Column, ForeignKey, Schema, Step, Table
from uncork.model.database.copy import NotCopied

T = TypeVar("T")

SAFE_EXTENSIONS: Final = frozenset(
    [
        *("address_standardizer", "amcheck", "autoinc", "bloom", "btree_gin", "btree_gist", "citext"),
        *("cube", "dict_int", "dict_xsyn", "earthdistance", "fuzzystrmatch", "h3", "h3_postgis", "hll"),
        *("hstore", "hypopg", "insert_username", "intagg", "intarray", "ip4r", "isn", "lo", "ltree"),
        *("moddatetime", "numeral", "orafce", "pageinspect", "periods", "pg_bigm", "pg_buffercache"),
        *("pg_freespacemap", "pg_hashids", "pg_hint_plan", "pg_ivm", "pg_jsonschema", "pg_partman"),
        *("pg_prewarm", "pg_similarity", "pg_stat_statements", "pg_trgm", "pg_uuidv7", "pg_visibility"),
        *("pg_walinspect", "pgcrypto", "pgjwt", "pgroonga", "pgrouting", "pgrowlocks", "pgstattuple"),
        *("pgtap", "plperl", "plpgsql", "pltcl", "postgis", "postgis_raster", "postgis_sfcgal"),
        *("postgis_topology", "prefix", "refint", "roaringbitmap", "rum", "seg", "semver", "sslinfo"),
        *("tablefunc", "tcn", "tdigest", "temporal_tables", "topn", "tsm_system_rows"),
        *("tsm_system_time", "unaccent", "unit", "uuid-ossp", "vector", "xml2"),
    ]
)
"""Extensions that open no connections, start no jobs, and reach nothing outside the database."""

OWN: Final = "n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%'"
"""The condition for schemas of users."""


def _own(catalogue: str, oid: str) -> str:
    """Return the condition for an object of users that no extension created."""
    return (
        f"{OWN} AND NOT EXISTS (SELECT FROM pg_depend e WHERE e.classid = '{catalogue}'::regclass"
        f" AND e.objid = {oid} AND e.deptype = 'e')"
    )


def _collation(oid: str, default: str) -> str:
    """Return the query for a collation that is not the default of its type; NULL if it is."""
    return (
        "(SELECT format('%I.%I', cn.nspname, l.collname) FROM pg_collation l"
        f" JOIN pg_namespace cn ON cn.oid = l.collnamespace WHERE l.oid = {oid} AND {oid} <> {default})"
    )


def _options(entries: str, prefix: str = "") -> str:
    """Return the query for storage parameters from the catalogue's ``name=value``; NULL if there are none."""
    name, value = "split_part(o, '=', 1)", "substr(o, strpos(o, '=') + 1)"
    return (
        f"(SELECT string_agg(format('{prefix}%I = %L', {name}, {value}), ', ') FROM unnest({entries}) AS o)"
    )


def _attributes(relation: str, numbers: str, value: str) -> str:
    """Return the query for a value of each column of a key, in the key's order."""
    return (
        f"ARRAY(SELECT {value} FROM unnest({numbers}) WITH ORDINALITY AS u (number, place)"
        f" JOIN pg_attribute a ON a.attrelid = {relation} AND a.attnum = u.number ORDER BY place)"
    )


_LASTING: Final = f"{_own('pg_class', 'c.oid')} AND c.relpersistence <> 't'"
_TABLE: Final = f"{_LASTING} AND c.relkind IN ('r', 'p')"
"""The condition for a table `c`, in the namespace `n`, that is copied."""
_CLASSES: Final = "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
_SEQUENCE_OPTIONS: Final = (
    "format('START WITH %s INCREMENT BY %s MINVALUE %s MAXVALUE %s CACHE %s', s.seqstart, s.seqincrement,"
    " s.seqmin, s.seqmax, s.seqcache) || CASE WHEN s.seqcycle THEN ' CYCLE' ELSE '' END"
)

# ---- schemas, types, functions, sequences ----

_SCHEMAS: Final = f"""
SELECT 'schema' AS kind, n.nspname::text AS name, format('CREATE SCHEMA IF NOT EXISTS %I', n.nspname) AS text
  FROM pg_namespace n WHERE {_own("pg_namespace", "n.oid")} ORDER BY n.oid
"""
_EXTENSIONS: Final = f"""
SELECT 'extension' AS kind, extname::text AS name,
       format('CREATE EXTENSION IF NOT EXISTS %I', extname)
       || CASE WHEN n.nspname = 'pg_catalog' THEN '' ELSE format(' WITH SCHEMA %I', n.nspname) END AS text,
       CASE WHEN extname::text = ANY ('{{{",".join(sorted(SAFE_EXTENSIONS))}}}') THEN '' ELSE
         'it is not on uncork''s list of extensions that open no connections and start no jobs' END AS refused
  FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
 WHERE extname <> 'plpgsql' ORDER BY e.oid
"""
_COLLATIONS: Final = f"""
SELECT 'collation' AS kind, n.nspname || '.' || c.collname AS name,
       format('CREATE COLLATION %I.%I (%s)', n.nspname, c.collname, concat_ws(', ',
         'provider = ' || CASE c.collprovider WHEN 'c' THEN 'libc' WHEN 'i' THEN 'icu' WHEN 'b' THEN 'builtin'
                                              ELSE c.collprovider::text END,
         CASE WHEN c.collprovider = 'c'
              THEN format('lc_collate = %L, lc_ctype = %L', coalesce(c.collcollate, 'C'),
                          coalesce(c.collctype, 'C'))
              ELSE format('locale = %L', coalesce(to_jsonb(c) ->> 'colllocale',
                          to_jsonb(c) ->> 'colliculocale', c.collcollate, 'und')) END,
         CASE WHEN NOT c.collisdeterministic THEN 'deterministic = false' END,
         'rules = ' || quote_literal(nullif(to_jsonb(c) ->> 'collicurules', '')))) AS text
  FROM pg_collation c JOIN pg_namespace n ON n.oid = c.collnamespace
 WHERE {_own("pg_collation", "c.oid")} ORDER BY c.oid
"""
_TYPES: Final = f"""
SELECT CASE t.typtype WHEN 'd' THEN 'domain' ELSE 'type' END AS kind, n.nspname || '.' || t.typname AS name,
       CASE t.typtype
       WHEN 'e' THEN format('CREATE TYPE %I.%I AS ENUM (%s)', n.nspname, t.typname,
         (SELECT string_agg(quote_literal(enumlabel::text), ', ' ORDER BY enumsortorder)
            FROM pg_enum WHERE enumtypid = t.oid))
       WHEN 'c' THEN format('CREATE TYPE %I.%I AS (%s)', n.nspname, t.typname,
         (SELECT string_agg(format('%I %s', a.attname, format_type(a.atttypid, a.atttypmod))
                   || coalesce(' COLLATE ' || {_collation("a.attcollation", "at.typcollation")}, ''),
                   ', ' ORDER BY a.attnum)
            FROM pg_attribute a JOIN pg_type at ON at.oid = a.atttypid
           WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped))
       ELSE concat(format('CREATE DOMAIN %I.%I AS ', n.nspname, t.typname),
         format_type(t.typbasetype, t.typtypmod),
         ' COLLATE ' || {_collation("t.typcollation", "b.typcollation")},
         ' DEFAULT ' || pg_get_expr(t.typdefaultbin, 'pg_type'::regclass),
         CASE WHEN t.typnotnull THEN ' NOT NULL' END) END AS text
  FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
  LEFT JOIN pg_class c ON c.oid = t.typrelid
  LEFT JOIN pg_type b ON b.oid = t.typbasetype
 WHERE {_own("pg_type", "t.oid")}
   AND (t.typtype IN ('e', 'd') OR t.typtype = 'c' AND c.relkind = 'c') ORDER BY t.oid
"""
_RANGES: Final = f"""
SELECT 'type' AS kind, n.nspname || '.' || t.typname AS name,
       format('CREATE TYPE %I.%I AS RANGE (%s)', n.nspname, t.typname, concat_ws(', ',
         'subtype = ' || format_type(r.rngsubtype, NULL),
         'subtype_opclass = ' || (SELECT format('%I.%I', ps.nspname, p.opcname) FROM pg_opclass p
            JOIN pg_namespace ps ON ps.oid = p.opcnamespace WHERE p.oid = r.rngsubopc),
         'collation = ' || {_collation("r.rngcollation", "s.typcollation")},
         'subtype_diff = ' || nullif(r.rngsubdiff::oid, 0)::regproc::text,
         'multirange_type_name = ' || (SELECT format('%I.%I', mn.nspname, m.typname) FROM pg_type m
            JOIN pg_namespace mn ON mn.oid = m.typnamespace
           WHERE m.oid = (to_jsonb(r) ->> 'rngmultitypid')::oid))) AS text,
       CASE WHEN r.rngcanonical::oid = 0 THEN '' ELSE
         'it is a range with a canonical function, which uncork cannot create' END AS refused
  FROM pg_range r JOIN pg_type t ON t.oid = r.rngtypid JOIN pg_type s ON s.oid = r.rngsubtype
  JOIN pg_namespace n ON n.oid = t.typnamespace
 WHERE {_own("pg_type", "t.oid")} ORDER BY t.oid
"""
_ROUTINES: Final = f"""
SELECT 'function' AS kind, p.oid::regprocedure::text AS name, pg_get_functiondef(p.oid) AS text,
       CASE WHEN l.lanname IN ('c', 'internal')
            THEN format('it is written in %s, and needs the source''s files', l.lanname)
            ELSE '' END AS refused
  FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace JOIN pg_language l ON l.oid = p.prolang
 WHERE {_own("pg_proc", "p.oid")} AND p.prokind <> 'a'
   AND NOT EXISTS (SELECT FROM pg_depend i
                    WHERE i.classid = 'pg_proc'::regclass AND i.objid = p.oid AND i.deptype = 'i')
 ORDER BY p.oid
"""


def _domain_checks(condition: str) -> str:
    return f"""
SELECT 'constraint' AS kind, format('%s of %s.%s', k.conname, n.nspname, t.typname) AS name,
       format('ALTER DOMAIN %I.%I ADD CONSTRAINT %I %s', n.nspname, t.typname, k.conname,
              pg_get_constraintdef(k.oid)) AS text
  FROM pg_constraint k JOIN pg_type t ON t.oid = k.contypid JOIN pg_namespace n ON n.oid = t.typnamespace
 WHERE k.contype = 'c' AND {condition} AND {_own("pg_type", "t.oid")} ORDER BY k.oid
"""


_AGGREGATES: Final = f"""
SELECT 'aggregate' AS kind, n.nspname || '.' || p.proname AS name,
       format('CREATE AGGREGATE %I.%I(%s) (%s)', n.nspname, p.proname,
         coalesce(nullif(pg_get_function_identity_arguments(p.oid), ''), '*'), concat_ws(', ',
         'SFUNC = ' || a.aggtransfn::text,
         'STYPE = ' || format_type(a.aggtranstype, NULL),
         'SSPACE = ' || nullif(a.aggtransspace, 0)::text,
         'FINALFUNC = ' || nullif(a.aggfinalfn::oid, 0)::regproc::text,
         CASE WHEN a.aggfinalextra THEN 'FINALFUNC_EXTRA = true' END,
         'COMBINEFUNC = ' || nullif(a.aggcombinefn::oid, 0)::regproc::text,
         'INITCOND = ' || quote_literal(a.agginitval),
         'PARALLEL = ' || CASE p.proparallel WHEN 's' THEN 'safe' WHEN 'r' THEN 'restricted' END)) AS text
  FROM pg_aggregate a JOIN pg_proc p ON p.oid = a.aggfnoid JOIN pg_namespace n ON n.oid = p.pronamespace
 WHERE {_own("pg_proc", "p.oid")} AND a.aggkind = 'n' AND a.aggmtransfn = 0 AND a.aggserialfn = 0
   AND a.aggsortop = 0 ORDER BY p.oid
"""
_SEQUENCES: Final = f"""
SELECT 'sequence' AS kind, n.nspname || '.' || c.relname AS name,
       format('CREATE SEQUENCE %I.%I AS %s ', n.nspname, c.relname, format_type(s.seqtypid, NULL))
       || {_SEQUENCE_OPTIONS} AS text
  {_CLASSES} JOIN pg_sequence s ON s.seqrelid = c.oid
 WHERE {_LASTING} AND NOT EXISTS (
         SELECT FROM pg_depend d
          WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'i')
 ORDER BY c.oid
"""
_SEQUENCE_OWNERS: Final = f"""
SELECT 'owner of sequence' AS kind, n.nspname || '.' || s.relname AS name,
       format('ALTER SEQUENCE %I.%I OWNED BY %I.%I.%I', n.nspname, s.relname, n.nspname, c.relname,
              a.attname) AS text
  {_CLASSES} JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = c.oid
  JOIN pg_class s ON d.classid = 'pg_class'::regclass AND s.oid = d.objid AND s.relkind = 'S'
  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = d.refobjsubid
 WHERE d.deptype = 'a' AND {_TABLE} AND {_own("pg_class", "s.oid")} ORDER BY s.oid
"""
_SEQUENCE_VALUES: Final = f"""
SELECT 'value of sequence' AS kind, n.nspname || '.' || c.relname AS name,
       format('SELECT pg_catalog.setval(%L, %s, true)', format('%I.%I', n.nspname, c.relname), last) AS text
  {_CLASSES} CROSS JOIN LATERAL (
         SELECT CASE WHEN c.relkind = 'S' AND has_schema_privilege(n.oid, 'USAGE')
                          AND has_sequence_privilege(c.oid, 'SELECT, USAGE')
                     THEN pg_sequence_last_value(c.oid) END) AS value (last)
 WHERE {_LASTING} AND last IS NOT NULL ORDER BY c.oid
"""

# ---- tables and views ----

_IDENTITY: Final = f"""
CASE WHEN a.attidentity <> '' AND NOT c.relispartition THEN
  format(' GENERATED %s AS IDENTITY', CASE a.attidentity WHEN 'a' THEN 'ALWAYS' ELSE 'BY DEFAULT' END)
  || coalesce((SELECT format(' (SEQUENCE NAME %I.%I ', n.nspname, q.relname) || {_SEQUENCE_OPTIONS} || ')'
                 FROM pg_depend i JOIN pg_class q ON q.oid = i.objid JOIN pg_sequence s ON s.seqrelid = q.oid
                WHERE i.classid = 'pg_class'::regclass AND i.refclassid = 'pg_class'::regclass
                  AND i.refobjid = c.oid AND i.refobjsubid = a.attnum AND i.deptype = 'i'), '') END
"""
_COLUMN: Final = f"""
concat(format('%I %s', a.attname, format_type(a.atttypid, a.atttypmod)),
  ' COLLATE ' || {_collation("a.attcollation", "t.typcollation")},
  CASE WHEN a.attgenerated <> '' THEN format(' GENERATED ALWAYS AS (%s) %s', pg_get_expr(d.adbin, d.adrelid),
       CASE a.attgenerated WHEN 's' THEN 'STORED' ELSE 'VIRTUAL' END) END,
  CASE WHEN a.attnotnull AND coalesce(k.convalidated AND NOT k.connoinherit, true)
       THEN coalesce(' CONSTRAINT ' || quote_ident(k.conname), '') || ' NOT NULL' END, {_IDENTITY})
"""
_ATTRIBUTES: Final = """
       pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
       LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
       LEFT JOIN pg_constraint k ON k.conrelid = a.attrelid AND k.contype = 'n' AND k.conkey = ARRAY[a.attnum]
"""
_PRESENT: Final = "a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped"
_TABLES: Final = f"""
SELECT 'table' AS kind, n.nspname || '.' || c.relname AS name,
       concat(format('CREATE %sTABLE %I.%I (%s)', CASE c.relpersistence WHEN 'u' THEN 'UNLOGGED ' END,
                n.nspname, c.relname, (SELECT string_agg({_COLUMN}, ', ' ORDER BY a.attnum)
                                         FROM {_ATTRIBUTES} WHERE {_PRESENT})),
              CASE WHEN c.relkind = 'p' THEN ' PARTITION BY ' || pg_get_partkeydef(c.oid) END,
              ' WITH (' || nullif(concat_ws(', ', {_options("c.reloptions")},
                {_options("s.reloptions", "toast.")}), '') || ')') AS text
  {_CLASSES} LEFT JOIN pg_class s ON s.oid = c.reltoastrelid
 WHERE {_TABLE} ORDER BY c.oid
"""
_PARENTS: Final = f"""
SELECT CASE WHEN copied AND c.relispartition THEN 'partition' ELSE 'inheritance of table' END AS kind,
       n.nspname || '.' || c.relname AS name,
       CASE WHEN c.relispartition
            THEN format('ALTER TABLE ONLY %I.%I ATTACH PARTITION %I.%I %s', schema, parent, n.nspname,
                        c.relname, pg_get_expr(c.relpartbound, c.oid))
            ELSE format('ALTER TABLE ONLY %I.%I INHERIT %I.%I', n.nspname, c.relname, schema, parent)
            END AS text,
       CASE WHEN copied THEN '' ELSE 'its parent was not copied' END AS refused
  {_CLASSES} JOIN pg_inherits h ON h.inhrelid = c.oid
 CROSS JOIN LATERAL (SELECT n.nspname, c.relname, {_TABLE} {_CLASSES} WHERE c.oid = h.inhparent)
         AS above (schema, parent, copied)
 WHERE {_TABLE} ORDER BY c.oid, h.inhseqno
"""
_VIEWS: Final = f"""
SELECT CASE c.relkind WHEN 'm' THEN 'materialised view' ELSE 'view' END AS kind,
       n.nspname || '.' || c.relname AS name,
       concat('CREATE ', CASE c.relkind WHEN 'm' THEN 'MATERIALIZED ' END,
              format('VIEW %I.%I', n.nspname, c.relname), ' WITH (' || {_options("c.reloptions")} || ')',
              ' AS ', rtrim(pg_get_viewdef(c.oid), E'; \\n'),
              CASE c.relkind WHEN 'm' THEN ' WITH NO DATA' END) AS text
  {_CLASSES} WHERE {_LASTING} AND c.relkind IN ('v', 'm') ORDER BY c.oid
"""
# Some builds of PostgreSQL keep entries of their own among a column's options, such as pg_attver.
_PLANNED: Final = (
    "ARRAY(SELECT e FROM unnest(a.attoptions) AS e"
    " WHERE split_part(e, '=', 1) IN ('n_distinct', 'n_distinct_inherited'))"
)
_COLUMN_SETTINGS: Final = f"""
SELECT v.kind, format('%s.%s.%s', n.nspname, c.relname, a.attname) AS name,
       format('ALTER TABLE ONLY %I.%I ALTER COLUMN %I SET %s', n.nspname, c.relname, a.attname,
              change) AS text
  {_CLASSES} JOIN ({_ATTRIBUTES}) ON {_PRESENT} CROSS JOIN LATERAL (VALUES
    (1, 'default of column',
     CASE a.attgenerated WHEN '' THEN 'DEFAULT ' || pg_get_expr(d.adbin, d.adrelid) END),
    (2, 'storage of column', CASE WHEN a.attstorage <> t.typstorage THEN 'STORAGE ' ||
       CASE a.attstorage WHEN 'p' THEN 'PLAIN' WHEN 'e' THEN 'EXTERNAL' WHEN 'm' THEN 'MAIN'
                         WHEN 'x' THEN 'EXTENDED' END END),
    (3, 'compression of column',
     'COMPRESSION ' || CASE to_jsonb(a) ->> 'attcompression' WHEN 'p' THEN 'pglz' WHEN 'l' THEN 'lz4' END),
    (4, 'statistics target of column',
     'STATISTICS ' || nullif((to_jsonb(a) ->> 'attstattarget')::int, -1)::text),
    (5, 'options of column', '(' || {_options(_PLANNED)} || ')')) AS v (place, kind, change)
 WHERE {_LASTING} AND c.relkind IN ('r', 'p', 'v', 'm') AND change IS NOT NULL
 ORDER BY a.attrelid, a.attnum, v.place
"""

# ---- constraints, indexes, statistics, rules, triggers ----

# Parts of a partitioned table's primary key, unique and exclusion constraints come after the others.
_CONSTRAINTS: Final = f"""
SELECT 'constraint' AS kind, format('%s of %s.%s', k.conname, n.nspname, c.relname) AS name,
       format('ALTER TABLE %s%I.%I ADD CONSTRAINT %I %s', CASE WHEN indexed THEN 'ONLY ' END, n.nspname,
              c.relname, k.conname, pg_get_constraintdef(k.oid)) AS text
  {_CLASSES} JOIN pg_constraint k ON k.conrelid = c.oid
 CROSS JOIN LATERAL (SELECT k.contype IN ('p', 'u', 'x')) AS kinds (indexed)
 WHERE {_TABLE} AND (indexed OR k.coninhcount = 0 AND (
         k.contype = 'c' OR k.contype = 'n' AND (NOT k.convalidated OR k.connoinherit)))
 ORDER BY indexed AND k.conparentid <> 0, k.contype = 'n', k.contype = 'c', k.oid
"""


def _indexes(condition: str) -> str:
    """Return the query for indexes of tables `c`; those of constraints already exist."""
    options = _options("i.reloptions")
    return f"""
SELECT v.kind, n.nspname || '.' || i.relname AS name, v.text,
       CASE WHEN valid THEN '' ELSE 'it is not valid, so that no plan of the source uses it' END AS refused
  {_CLASSES} JOIN pg_index x ON x.indrelid = c.oid JOIN pg_class i ON i.oid = x.indexrelid
  LEFT JOIN pg_constraint k ON k.conindid = i.oid AND k.contype IN ('p', 'u', 'x')
 CROSS JOIN LATERAL (SELECT x.indisvalid OR i.relkind = 'I') AS state (valid)
 CROSS JOIN LATERAL (
    SELECT 1, 'index', pg_get_indexdef(i.oid) WHERE k.oid IS NULL OR NOT valid
     UNION ALL
    SELECT 2, 'options of index', format('ALTER INDEX %I.%I SET (%s)', n.nspname, i.relname, {options})
     WHERE k.oid IS NOT NULL AND {options} IS NOT NULL AND valid
     UNION ALL
    SELECT 3, 'options of index', format('REINDEX INDEX %I.%I', n.nspname, i.relname)
     WHERE k.oid IS NOT NULL AND {options} IS NOT NULL AND valid AND c.relkind = 'r'
     UNION ALL
    SELECT 3 + a.attnum, 'statistics target of index',
           format('ALTER INDEX %I.%I ALTER COLUMN %s SET STATISTICS %s', n.nspname, i.relname, a.attnum,
                  to_jsonb(a) ->> 'attstattarget')
      FROM pg_attribute a
     WHERE a.attrelid = i.oid AND (to_jsonb(a) ->> 'attstattarget')::int >= 0 AND valid
       ) AS v (place, kind, text)
 WHERE {_LASTING} AND {condition} ORDER BY i.oid, v.place
"""


_INDEX_PARTS: Final = f"""
SELECT 'part of index' AS kind, n.nspname || '.' || i.relname AS name,
       format('ALTER INDEX %I.%I ATTACH PARTITION %I.%I', ps.nspname, p.relname, n.nspname, i.relname) AS text
  {_CLASSES} JOIN pg_index x ON x.indrelid = c.oid JOIN pg_class i ON i.oid = x.indexrelid
  JOIN pg_inherits h ON h.inhrelid = i.oid
  JOIN pg_class p ON p.oid = h.inhparent JOIN pg_namespace ps ON ps.oid = p.relnamespace
 WHERE {_TABLE} AND (x.indisvalid OR i.relkind = 'I') ORDER BY i.oid
"""
_STATISTICS: Final = f"""
SELECT 'statistics' AS kind, n.nspname || '.' || s.stxname AS name, v.text
  FROM pg_statistic_ext s JOIN pg_namespace n ON n.oid = s.stxnamespace
 CROSS JOIN LATERAL (VALUES (1, pg_get_statisticsobjdef(s.oid)),
    (2, format('ALTER STATISTICS %I.%I SET STATISTICS ', n.nspname, s.stxname)
        || nullif((to_jsonb(s) ->> 'stxstattarget')::int, -1)::text)) AS v (place, text)
 WHERE {_own("pg_statistic_ext", "s.oid")} AND v.text IS NOT NULL ORDER BY s.oid, v.place
"""
_FOREIGN_KEY_STEPS: Final = f"""
SELECT 'foreign key' AS kind, format('%s of %s.%s', k.conname, n.nspname, c.relname) AS name,
       format('ALTER TABLE %I.%I ADD CONSTRAINT %I %s', n.nspname, c.relname, k.conname,
              pg_get_constraintdef(k.oid)) AS text,
       CASE WHEN (SELECT {_TABLE} {_CLASSES} WHERE c.oid = k.confrelid) THEN ''
            ELSE 'the table that it references was not copied' END AS refused
  {_CLASSES} JOIN pg_constraint k ON k.conrelid = c.oid
 WHERE {_TABLE} AND k.contype = 'f' AND k.conparentid = 0 ORDER BY k.oid
"""
_FILLED_VIEWS: Final = f"""
SELECT 'rows of materialised view' AS kind, n.nspname || '.' || c.relname AS name,
       format('REFRESH MATERIALIZED VIEW %I.%I', n.nspname, c.relname) AS text
  {_CLASSES} WHERE {_LASTING} AND c.relkind = 'm' AND c.relispopulated ORDER BY c.oid
"""


def _switched(kind: str, catalogue: str, prefix: str, enabled: str, condition: str) -> str:
    """Return the query for rules or triggers, which also disables them as the source does."""
    name = f"s.{prefix}name"
    return f"""
SELECT '{kind}' AS kind, format('%s of %s.%s', {name}, n.nspname, c.relname) AS name, v.text
  {_CLASSES} JOIN {catalogue} s ON c.oid = s.{condition}
 CROSS JOIN LATERAL (VALUES (1, pg_get_{kind}def(s.oid)),
    (2, format('ALTER TABLE %I.%I ', n.nspname, c.relname) || CASE s.{enabled} WHEN 'D' THEN 'DISABLE'
          WHEN 'R' THEN 'ENABLE REPLICA' WHEN 'A' THEN 'ENABLE ALWAYS' END
        || format(' {kind.upper()} %I', {name}))) AS v (place, text)
 WHERE {_LASTING} AND c.relkind IN ('r', 'p', 'v') AND v.text IS NOT NULL ORDER BY s.oid, v.place
"""


_BEFORE_ROWS: Final = (
    *(_SCHEMAS, _EXTENSIONS, _COLLATIONS, _TYPES, _RANGES, _ROUTINES, _domain_checks("k.convalidated")),
    *(_AGGREGATES, _SEQUENCES, _TABLES, _PARENTS, _SEQUENCE_OWNERS, _VIEWS, _COLUMN_SETTINGS),
)
_AFTER_ROWS: Final = (
    *(_domain_checks("NOT k.convalidated"), _CONSTRAINTS, _indexes("c.relkind IN ('r', 'p')"), _INDEX_PARTS),
    *(_SEQUENCE_VALUES, _STATISTICS, _FOREIGN_KEY_STEPS),
)
_FILLING: Final = (
    *(_FILLED_VIEWS, _indexes("c.relkind = 'm' AND valid")),
    _switched("rule", "pg_rewrite", "rule", "ev_enabled", "ev_class AND s.rulename <> '_RETURN'"),
    _switched(
        "trigger", "pg_trigger", "tg", "tgenabled", "tgrelid AND NOT s.tgisinternal AND s.tgparentid = 0"
    ),
)

# ---- what the transfer of rows depends on ----

_TABLE_FACTS: Final = f"""
SELECT c.oid::int8 AS oid, n.nspname::text AS schema, c.relname::text AS name, c.relkind::text AS kind,
       c.relispartition AS partition,
       ARRAY(SELECT inhparent::int8 FROM pg_inherits WHERE inhrelid = c.oid ORDER BY inhseqno) AS parents,
       (SELECT amname::text FROM pg_am WHERE oid = c.relam) AS method,
       pg_table_size(c.oid) AS bytes, c.reltuples::float8 AS rows,
       has_schema_privilege(n.oid, 'USAGE') AND (has_table_privilege(c.oid, 'SELECT') OR NOT EXISTS (
         SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
            AND NOT has_column_privilege(c.oid, a.attnum, 'SELECT'))) AS readable,
       c.relrowsecurity AS row_security,
       (SELECT spcname::text FROM pg_tablespace WHERE oid = c.reltablespace) AS tablespace
  {_CLASSES} WHERE {_TABLE} ORDER BY c.oid
"""
_COLUMN_FACTS: Final = f"""
SELECT c.oid::int8 AS table, a.attname::text AS name, a.attgenerated <> '' AS generated,
       a.attnotnull AND coalesce(k.convalidated, true) AS not_null,
       t.typtype = 'e' OR b.oid < 16384 AND b.typtype IN ('b', 'r', 'm') AND b.typsend <> 0
         AND b.typreceive <> 0 AND b.typname !~ '^_?(reg|aclitem|pg_)' AS binary
  {_CLASSES} JOIN ({_ATTRIBUTES}) ON {_PRESENT}
  JOIN pg_type b ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END
 WHERE {_TABLE} ORDER BY a.attrelid, a.attnum
"""
_FOREIGN_KEYS: Final = f"""
SELECT c.oid::int8 AS table, k.confrelid::int8 AS references, pg_get_constraintdef(k.oid) AS definition,
       k.convalidated AS valid, k.conparentid <> 0 AS derived,
       {_attributes("k.conrelid", "k.conkey", "a.attname::text")} AS columns,
       {_attributes("k.confrelid", "k.confkey", "a.attname::text")} AS referenced,
       {_attributes("k.confrelid", "k.confkey", "format_type(a.atttypid, a.atttypmod)")} AS types,
       coalesce(to_jsonb(k) ->> 'conperiod', 'false') = 'false' AS plain
  {_CLASSES} JOIN pg_constraint k ON k.conrelid = c.oid
 WHERE {_TABLE} AND k.contype = 'f' ORDER BY k.oid
"""


def read_schema(connection: psycopg.Connection[Any]) -> Schema:
    """Return the definitions of a database. The session's search path must be empty.

    Raises:
        psycopg.Error: if the connection fails, or if a lock or a query takes longer than the session allows.
    """

    def rows(kind: type[T], *queries: str) -> tuple[T, ...]:
        with connection.cursor(row_factory=class_row(kind)) as cursor:
            return tuple(row for query in queries for row in cursor.execute(query.encode()).fetchall())

    return Schema(
        tables=rows(Table, _TABLE_FACTS),
        columns=rows(Column, _COLUMN_FACTS),
        foreign_keys=rows(ForeignKey, _FOREIGN_KEYS),
        before_rows=rows(Step, *_BEFORE_ROWS),
        after_rows=rows(Step, *_AFTER_ROWS),
        filling=rows(Step, *_FILLING),
        version=connection.info.server_version // 10000,
    )


# ---- what a copy lacks on purpose ----


_ISOLATED: Final = "a copy must not reach other systems"
_UNKNOWN: Final = "uncork cannot create it from the catalogue"
_FAILS: Final = "statements that use it fail on the copy"
_NO_MEMBER: Final = (
    "NOT EXISTS (SELECT FROM pg_depend e WHERE e.classid = '{0}'::regclass AND e.objid = {1}.oid"
    " AND e.deptype IN ('e', 'i'))"
)


def _named(catalogue: str, prefix: str, rest: str = "") -> str:
    """Return the query for the qualified names of a catalogue's own objects."""
    return (
        f"SELECT n.nspname || '.' || o.{prefix}name FROM {catalogue} o"
        f" JOIN pg_namespace n ON n.oid = o.{prefix}namespace"
        f" WHERE {OWN} AND {_NO_MEMBER.format(catalogue, 'o')} {rest} ORDER BY 1"
    )


_KINDS: Final = (
    (
        "foreign server",
        "SELECT srvname FROM pg_foreign_server ORDER BY 1",
        _ISOLATED,
        "its tables are missing too",
    ),
    ("foreign table", _named("pg_class", "rel", "AND o.relkind = 'f'"), _ISOLATED, _FAILS),
    (
        "subscription",
        "SELECT subname FROM pg_subscription WHERE subdbid ="
        " (SELECT oid FROM pg_database WHERE datname = current_database()) ORDER BY 1",
        _ISOLATED,
        "the copy does not receive changes, so it has less load of writes",
    ),
    (
        "publication",
        "SELECT pubname FROM pg_publication ORDER BY 1",
        "nothing subscribes to a copy",
        "writes on the copy do not pay for logical decoding",
    ),
    (
        "event trigger",
        "SELECT evtname FROM pg_event_trigger o WHERE "
        + _NO_MEMBER.format("pg_event_trigger", "o")
        + " ORDER BY 1",
        "it would act on the changes of schema that are tried on the copy",
        "changes of schema do not pay for it",
    ),
    ("type", _named("pg_type", "typ", "AND o.typtype = 'b' AND o.typelem = 0"), _UNKNOWN, _FAILS),
    ("operator", _named("pg_operator", "opr"), _UNKNOWN, _FAILS),
    ("operator class", _named("pg_opclass", "opc"), _UNKNOWN, "indexes that use it are missing"),
    ("text search configuration", _named("pg_ts_config", "cfg"), _UNKNOWN, _FAILS),
    ("text search dictionary", _named("pg_ts_dict", "dict"), _UNKNOWN, _FAILS),
    (
        "cast",
        "SELECT format_type(o.castsource, NULL) || ' to ' || format_type(o.casttarget, NULL) FROM pg_cast o"
        " WHERE o.oid >= 16384 AND " + _NO_MEMBER.format("pg_cast", "o") + " ORDER BY 1",
        _UNKNOWN,
        _FAILS,
    ),
    (
        "aggregate",
        "SELECT p.oid::regprocedure::text FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace"
        f" JOIN pg_aggregate a ON a.aggfnoid = p.oid WHERE {OWN} AND {_NO_MEMBER.format('pg_proc', 'p')}"
        " AND (a.aggkind <> 'n' OR a.aggmtransfn <> 0 OR a.aggserialfn <> 0 OR a.aggsortop <> 0) ORDER BY 1",
        _UNKNOWN,
        _FAILS,
    ),
    (
        "large objects",
        "SELECT count(*) || ' in all' FROM pg_largeobject_metadata HAVING count(*) > 0",
        "uncork copies tables",
        "statements that read them fail on the copy",
    ),
)
"""The kind, a query for names, why it is not copied, and what that means."""

_ALWAYS: Final = (
    NotCopied(
        "roles and privileges",
        "a copy has one role, which is a superuser",
        "no statement fails for a missing right, and policies have no effect",
    ),
    NotCopied(
        "dead rows and free space",
        "rows are written anew, one after the other",
        "effects of bloat, of vacuum and of HOT updates cannot be measured on this copy",
    ),
)


def read_lost(connection: psycopg.Connection[Any], schema: Schema) -> tuple[NotCopied, ...]:
    """Return what the source has and a copy never gets, one entry for each object.

    Raises psycopg.Error if the connection fails.
    """
    found = [
        NotCopied(f"{kind} {name}", why, lost)
        for kind, query, why, lost in _KINDS
        for (name,) in connection.execute(query.encode()).fetchall()
    ]
    if any(step.what == "extension pg_cron" for step in schema.before_rows):
        lost = "the copy has no load of scheduled jobs"
        found.append(NotCopied("jobs of pg_cron", "they would run on the copy", lost))
    for table in schema.tables:
        if table.row_security:
            lost = "statements to which its policies add a condition are not measured"
            why = "the copy's role is a superuser, to whom policies do not apply"
            found.append(NotCopied(f"row security of table {table.shown}", why, lost))
        if table.tablespace:
            lost = "the tablespace's own costs of pages, if any, have no effect on plans"
            found.append(NotCopied(f"tablespace of table {table.shown}", "the copy has one tablespace", lost))
        if table.method not in (None, "heap"):
            lost = "its size and its plans differ"
            what = f"access method {table.method} of table {table.shown}"
            found.append(NotCopied(what, "the copy uses heap", lost))
    return (*found, *_ALWAYS)


def without(schema: Schema, names: Collection[str]) -> set[int]:
    """Return the tables, by oid, that requested names do not need: those neither named nor referenced.

    A name is ``table`` or ``schema.table``. Partitions belong to their table, and referenced tables
    are needed too.
    """
    wanted = {table.oid for table in schema.tables if table.name in names or table.shown in names}
    links = [(key.table, key.references) for key in schema.foreign_keys]
    links += [(parent, table.oid) for table in schema.tables for parent in table.parents]
    links += [(table.oid, parent) for table in schema.tables for parent in table.parents if table.partition]
    while more := {to for start, to in links if start in wanted} - wanted:
        wanted |= more
    return {table.oid for table in schema.tables} - wanted
