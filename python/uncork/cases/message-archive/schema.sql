-- An archive of bus messages modelled on datanommer's: one row per message; users and packages in tables of their own,
-- linked to the messages that name them. All data is computed from the messages' numbers, so that every layout holds the
-- same: nine years up to 2021-10-01, more messages in the later ones. The variants' values hold the differences.

-- A uniform random number in [0, 1), determined by the message and the purpose.
CREATE FUNCTION uniform(n bigint, purpose bigint) RETURNS float8 IMMUTABLE LANGUAGE sql
RETURN (hashint8extended(n, purpose) & 16777215)::float8 / 16777216;

-- A rank from 1 to `most` with a frequency of 1 / rank: few ranks are frequent, most are rare.
CREATE FUNCTION skewed(n bigint, purpose bigint, most float8) RETURNS integer IMMUTABLE LANGUAGE sql
RETURN floor(exp(uniform(n, purpose) * ln(most + 1)))::integer;

CREATE FUNCTION sent(n bigint, messages bigint) RETURNS timestamptz IMMUTABLE LANGUAGE sql
RETURN to_timestamp(1349049600 + 283996800 * (n::float8 / messages) ^ 0.7);

CREATE FUNCTION message_id(n bigint) RETURNS text IMMUTABLE LANGUAGE sql
RETURN '2021-' || to_hex(hashint8extended(n, 6)) || to_hex(hashint8extended(n, 7));

CREATE FUNCTION user_of(n bigint) RETURNS integer IMMUTABLE LANGUAGE sql
RETURN CASE WHEN uniform(n, 2) < 0.8 THEN skewed(n, 3, 5000) END;

CREATE FUNCTION package_of(n bigint) RETURNS integer IMMUTABLE LANGUAGE sql
RETURN CASE WHEN uniform(n, 4) < 0.6 THEN skewed(n, 5, 20000) END;

CREATE FUNCTION user_name(id integer) RETURNS text IMMUTABLE LANGUAGE sql
RETURN CASE id WHEN 3 THEN 'pingou' ELSE 'user' || id END;

CREATE FUNCTION package_name(id integer) RETURNS text IMMUTABLE LANGUAGE sql
RETURN CASE id WHEN 3 THEN 'kernel' ELSE 'package' || id END;

CREATE TABLE topics (id integer PRIMARY KEY, topic text NOT NULL, category text NOT NULL);
INSERT INTO topics
SELECT id, 'org.fedoraproject.prod.' || CASE id WHEN 3 THEN 'copr.chroot.start' ELSE category || '.event.' || id END, category
  FROM generate_series(1, 300) AS id, LATERAL (
       SELECT (ARRAY['buildsys', 'bodhi', 'git', 'copr', 'pagure', 'koschei', 'wiki', 'fedbadges', 'planet', 'meetbot',
                     'anitya', 'github'])[id % 12 + 1] AS category) AS of_it;

CREATE TABLE users (id integer PRIMARY KEY, name text NOT NULL UNIQUE);
INSERT INTO users SELECT id, user_name(id) FROM generate_series(1, 5000) AS id;

CREATE TABLE packages (id integer PRIMARY KEY, name text NOT NULL UNIQUE);
INSERT INTO packages SELECT id, package_name(id) FROM generate_series(1, 20000) AS id;

-- `users` and `packages` hold names only if arrays replace the tables that link them.
CREATE TABLE messages (
    id bigint NOT NULL,
    msg_id text NOT NULL,
    "timestamp" timestamptz NOT NULL,
    topic text NOT NULL,
    category text NOT NULL,
    msg text NOT NULL,
    users text[],
    packages text[]
) :partition_by;

CREATE FUNCTION make_partition(number bigint, low anyelement, high anyelement) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE TABLE messages_%s PARTITION OF messages FOR VALUES FROM (%L) TO (%L)', number, low, high);
END $$;
:partitions;

INSERT INTO messages
SELECT n, message_id(n), sent(n, :rows), topic, category,
       '{"build": ' || n || ', "owner": "user' || n % 5000 || '", "status": ' || n % 5 || ', "version": "' || n % 40 || '.1"}',
       CASE WHEN :arrays AND user_of(n) IS NOT NULL THEN ARRAY[user_name(user_of(n))] END,
       CASE WHEN :arrays AND package_of(n) IS NOT NULL THEN ARRAY[package_name(package_of(n))] END
  FROM generate_series(1, :rows::bigint) AS n JOIN topics ON topics.id = skewed(n, 1, 300);

ALTER TABLE messages ADD PRIMARY KEY (:primary), ADD UNIQUE (:unique);
CREATE INDEX messages_topic ON messages (topic);
CREATE INDEX messages_category ON messages (category);

-- The bus delivers every ten-thousandth message a second time, five seconds later.
INSERT INTO messages (id, msg_id, "timestamp", topic, category, msg)
SELECT :rows::bigint + row_number() OVER (ORDER BY id), msg_id, "timestamp" + interval '5 seconds', topic, category, msg
  FROM messages WHERE id % 10000 = 0
ON CONFLICT DO NOTHING;

CREATE TABLE users_messages AS
SELECT user_of(n) AS user_id, n AS message :link_time
  FROM generate_series(1, :rows::bigint) AS n WHERE NOT :arrays AND user_of(n) IS NOT NULL;

CREATE TABLE packages_messages AS
SELECT package_of(n) AS package_id, n AS message :link_time
  FROM generate_series(1, :rows::bigint) AS n WHERE NOT :arrays AND package_of(n) IS NOT NULL;

ALTER TABLE users_messages ADD PRIMARY KEY (user_id, :link_key);
ALTER TABLE packages_messages ADD PRIMARY KEY (package_id, :link_key);
:indexes;
