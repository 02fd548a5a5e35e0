-- 500 tracked objects, and documents about them. A document is never changed: it gets another revision, and
-- only the last one counts. The same :documents are stored in three forms, each for another way to keep the last one.

CREATE TABLE object (
    id integer PRIMARY KEY,
    name text NOT NULL,
    site integer NOT NULL,
    since date NOT NULL
);
INSERT INTO object
SELECT n, 'object ' || n, n % 25, date '2015-01-01' + n
  FROM generate_series(1, 500) AS n;
CREATE INDEX object_site ON object (site);

-- As published: revisions are only ever added. Each document has five, some weeks apart, over a year and a half.
CREATE TABLE document (
    id integer,
    revision integer,
    object integer NOT NULL,
    changed_at timestamptz NOT NULL,
    state text NOT NULL,
    note text NOT NULL,
    PRIMARY KEY (id, revision)
);
INSERT INTO document
SELECT id,
       revision,
       1 + (id * 7919::bigint % 500)::integer,
       timestamptz '2020-01-01 00:00:00Z'
           + (id * 2654435761 % 4294967296) / 4294967296.0 * interval '365 days'
           + revision * interval '40 days'
           + ((id * 5 + revision) * 40503::bigint % 2592000) * interval '1 second',
       (ARRAY['draft', 'checked', 'valid'])[1 + (id + revision) % 3],
       repeat(md5(id || '/' || revision), 4)
  FROM generate_series(1, :documents) AS id, generate_series(1, 5) AS revision
 ORDER BY revision, id;
CREATE INDEX document_changed_at ON document (changed_at);
CREATE INDEX document_object ON document (object);

-- The published view, and two equivalent views of the same table.
CREATE VIEW last_distinct AS
SELECT DISTINCT ON (id) id, revision, object, changed_at, state, note
  FROM document
 ORDER BY id, revision DESC;

CREATE VIEW last_not_exists AS
SELECT id, revision, object, changed_at, state, note
  FROM document AS mine
 WHERE NOT EXISTS (
     SELECT FROM document AS later WHERE later.id = mine.id AND later.revision > mine.revision);

-- Walk the index from one document to the next, and select the last revision of each.
CREATE VIEW last_lateral AS
WITH RECURSIVE known (id) AS (
    (SELECT id FROM document ORDER BY id LIMIT 1)
    UNION ALL
    SELECT (SELECT document.id FROM document WHERE document.id > known.id ORDER BY document.id LIMIT 1)
      FROM known
     WHERE known.id IS NOT NULL)
SELECT newest.id, newest.revision, newest.object, newest.changed_at, newest.state, newest.note
  FROM known
 CROSS JOIN LATERAL (
     SELECT * FROM document WHERE document.id = known.id ORDER BY document.revision DESC LIMIT 1) AS newest;

-- The last revision is marked in its row: a trigger unmarks the previous one. The indexes contain only marked rows.
CREATE TABLE document_marked (LIKE document, is_last boolean NOT NULL DEFAULT true, PRIMARY KEY (id, revision));
INSERT INTO document_marked SELECT *, revision = 5 FROM document;
CREATE UNIQUE INDEX document_marked_id ON document_marked (id) WHERE is_last;
CREATE INDEX document_marked_changed_at ON document_marked (changed_at) WHERE is_last;
CREATE INDEX document_marked_object ON document_marked (object) WHERE is_last;

CREATE FUNCTION take_mark() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE document_marked SET is_last = false WHERE id = NEW.id AND is_last;
    RETURN NEW;
END $$;
CREATE TRIGGER take_mark BEFORE INSERT ON document_marked FOR EACH ROW EXECUTE FUNCTION take_mark();

CREATE VIEW last_marked AS
SELECT id, revision, object, changed_at, state, note FROM document_marked WHERE is_last;

-- The last revision is in a table of its own, beside the history; a trigger updates it.
CREATE TABLE document_history (LIKE document, PRIMARY KEY (id, revision));
INSERT INTO document_history SELECT * FROM document;
CREATE INDEX document_history_object ON document_history (object);
CREATE TABLE document_current (LIKE document, PRIMARY KEY (id));
INSERT INTO document_current SELECT * FROM document WHERE revision = 5;
CREATE INDEX document_current_changed_at ON document_current (changed_at);
CREATE INDEX document_current_object ON document_current (object);

CREATE FUNCTION keep_current() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO document_current VALUES (NEW.*)
    ON CONFLICT (id) DO UPDATE
       SET (revision, object, changed_at, state, note)
         = (excluded.revision, excluded.object, excluded.changed_at, excluded.state, excluded.note)
     WHERE excluded.revision > document_current.revision;
    RETURN NULL;
END $$;
CREATE TRIGGER keep_current AFTER INSERT ON document_history FOR EACH ROW EXECUTE FUNCTION keep_current();

CREATE VIEW last_current AS
SELECT id, revision, object, changed_at, state, note FROM document_current;
