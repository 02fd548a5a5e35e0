-- The tables of both shops. "orders" has :rows rows, each with a customer, a shipment and two items.
SELECT setseed(0.5);
CREATE TABLE customer (id int PRIMARY KEY, name text NOT NULL);
CREATE TABLE orders (
  id int PRIMARY KEY, customer_id int NOT NULL REFERENCES customer, placed timestamptz NOT NULL,
  reference text NOT NULL
);
CREATE TABLE item (
  id int PRIMARY KEY, order_id int NOT NULL REFERENCES orders, product text NOT NULL, price int NOT NULL
);
CREATE TABLE shipment (id int PRIMARY KEY, order_id int NOT NULL REFERENCES orders, carrier text NOT NULL);
CREATE TABLE counter (id int PRIMARY KEY, hits bigint NOT NULL);
INSERT INTO customer SELECT n, 'Customer ' || n FROM generate_series(1, 20000) AS n;
INSERT INTO orders
SELECT n, 1 + n * 7 % 20000, timestamptz '2026-01-01' + n * interval '1 minute', md5(n::text)
FROM generate_series(1, :rows) AS n;
INSERT INTO item
SELECT n, 1 + n / 2 % :rows, 'Product ' || n % 1000, n % 900 FROM generate_series(1, 2 * :rows) AS n;
INSERT INTO shipment SELECT n, n, 'Carrier ' || n % 7 FROM generate_series(1, :rows) AS n;
INSERT INTO counter VALUES (1, 0);
CREATE INDEX ON orders (customer_id);
CREATE INDEX item_order ON item (order_id);
CREATE INDEX shipment_order ON shipment (order_id);
