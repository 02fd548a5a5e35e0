use super::*;

fn text(sql: &str) -> String {
    let mut stripper = Stripper::default();
    String::from_utf8(stripper.strip(sql.as_bytes()).text.to_vec()).expect("is UTF-8")
}

fn elements(sql: &str) -> u32 {
    Stripper::default().strip(sql.as_bytes()).elements
}

#[test]
fn literals_of_every_kind_go() {
    for literal in [
        "1",
        "-1",
        "1.5",
        ".5",
        "1e10",
        "1.5e-3",
        "1E+3",
        "0x1F",
        "1_000",
        "'a'",
        "'it''s'",
        "''",
        "E'a\\'b'",
        "e'\\\\'",
        "B'01'",
        "x'ff'",
        "N'a'",
        "U&'\\0041'",
        "$1",
        "$$a 'b' c$$",
        "$tag$ $$ x $tag$",
    ] {
        let sql = format!("SELECT f FROM t WHERE a = {literal} AND b");
        assert_eq!(text(&sql), "select f from t where a = ? and b", "{literal}");
    }
}

#[test]
fn case_space_and_comments_make_no_difference() {
    let plain = "select a, b.c from t join u on (t.id = u.id) where x >= ? order by count(*) desc";
    for sql in [
        "SELECT a,b.c FROM t JOIN u ON(t.id=u.id) WHERE x>=5 ORDER BY count( * ) DESC",
        "select a ,\n\tb . c -- a comment\n from t join u on ( t.id = u.id ) /* and /* one */ more */ where x >= $1 order by Count(*) desc;",
        "/* app:web */ SELECT a, b.c FROM t JOIN u ON (t.id = u.id) WHERE x>=-7 ORDER BY count(*) DESC ;",
    ] {
        assert_eq!(text(sql), plain, "{sql}");
    }
}

#[test]
fn quoted_names_keep_their_case() {
    assert_eq!(
        text(r#"SELECT "A""b".x FROM "T" T2"#),
        r#"select "A""b".x from "T" t2"#
    );
}

#[test]
fn names_with_digits_are_no_numbers() {
    assert_eq!(
        text("SELECT t1.c2 FROM t1, a$1 WHERE c2=3"),
        "select t1.c2 from t1, a$1 where c2 = ?"
    );
}

#[test]
fn a_list_of_any_length_is_one_template_and_its_length_is_told() {
    let one = text("SELECT * FROM t WHERE id IN (1)");
    assert_eq!(one, "select * from t where id in (?)");
    for (sql, length) in [
        ("SELECT * FROM t WHERE id IN (1)", 1),
        ("SELECT * FROM t WHERE id IN (1,2,3)", 3),
        ("SELECT * FROM t WHERE id in ( $1 , 'b', 3 , 4 )", 4),
    ] {
        assert_eq!((text(sql), elements(sql)), (one.clone(), length), "{sql}");
    }
    let cast = text("SELECT 1 WHERE id IN ('a'::uuid)");
    assert_eq!(cast, "select ? where id in (?::uuid)");
    assert_eq!(text("SELECT 1 WHERE id IN ('a'::uuid, 'b'::uuid)"), cast);
    let array = "select ? where id = any(array[?]::int[])";
    assert_eq!(text("select 1 where id = ANY(ARRAY[1,2,3]::int[])"), array);
    assert_eq!(text("select 1 where id = any(array[1]::int[])"), array);
    assert_eq!(elements("SELECT 1 WHERE id = ANY('{1,2,3}')"), 3);
}

#[test]
fn rows_of_values_are_one_template_and_their_number_is_told() {
    let one = "insert into t(a, b) values (?, now(), ?) on conflict do nothing";
    for (sql, rows) in [
        (
            "INSERT INTO t (a, b) VALUES (1, now(), 'x') ON CONFLICT DO NOTHING",
            1,
        ),
        (
            "INSERT INTO t(a,b) VALUES (1,now(),'x'),(2,now(),'y'), (3, now(), 'z') ON CONFLICT DO NOTHING",
            3,
        ),
    ] {
        assert_eq!((text(sql).as_str(), elements(sql)), (one, rows), "{sql}");
    }
    assert_eq!(
        text("SELECT * FROM (VALUES (1,'a'),(2,'b')) AS v(i, t) WHERE i IN (1,2)"),
        "select * from (values (?, ?)) as v(i, t) where i in (?)"
    );
}

/// What may follow the rows of `VALUES`, and its form in a template.
const TAILS: [(&str, &str); 16] = [
    ("", ""),
    (" ON CONFLICT DO NOTHING", " on conflict do nothing"),
    (
        " ON CONFLICT ON CONSTRAINT pk DO UPDATE SET v = coalesce($2,$3)",
        " on conflict on constraint pk do update set v = coalesce(?, ?)",
    ),
    (
        " ON CONFLICT (a, b) DO UPDATE SET (v, w) = ($1, $2)",
        " on conflict(a, b) do update set(v, w) = (?, ?)",
    ),
    (
        " ON CONFLICT DO NOTHING RETURNING f($1,$2)",
        " on conflict do nothing returning f(?, ?)",
    ),
    (" RETURNING (1,2), (3,4)", " returning(?, ?), (?, ?)"),
    ("; SELECT audit($1,$2)", "; select audit(?, ?)"),
    (
        "; INSERT INTO u VALUES (1,2)",
        "; insert into u values (?, ?)",
    ),
    (
        " WHEN MATCHED AND f(1,2) THEN UPDATE SET a = (1)",
        " when matched and f(?, ?) then update set a = (?)",
    ),
    (" WHERE (1,2) = (a, b)", " where (?, ?) = (a, b)"),
    (" EXCEPT VALUES (1,2)", " except values (?, ?)"),
    (" UNION ALL SELECT (1,2)", " union all select (?, ?)"),
    (" ORDER BY (1,2), f(1,2)", " order by (?, ?), f(?, ?)"),
    (" AND x IN (1,2)", " and x in (?)"),
    ("::t (1,2)", "::t(?, ?)"),
    (" = (1,2)", " = (?, ?)"),
];

#[test]
fn what_follows_the_rows_of_values_stays() {
    let rows = |count: usize| vec!["($1, 'x')"; count].join(",");
    for (head, shown) in [
        ("INSERT INTO t VALUES ", "insert into t values "),
        (
            "MERGE INTO t USING s ON (a = b) WHEN NOT MATCHED THEN INSERT VALUES",
            "merge into t using s on (a = b) when not matched then insert values ",
        ),
        (
            "WITH n AS (SELECT 1) VALUES ",
            "with n as (select ?) values ",
        ),
    ] {
        let mut seen = std::collections::HashMap::new();
        for (tail, expected) in TAILS {
            let one = text(&format!("{head}{}{tail}", rows(1)));
            assert_eq!(one, format!("{shown}(?, ?){expected}"));
            assert_eq!(seen.insert(one.clone(), tail), None, "{tail}");
            for count in [2, 3, 100] {
                let sql = format!("{head}{}{tail}", rows(count));
                assert_eq!(text(&sql), one, "{sql}");
                assert_eq!(elements(&sql) as usize, count, "{sql}");
            }
        }
    }
}

#[test]
fn rows_of_values_are_one_wherever_they_stand() {
    for (sql, stripped) in [
        (
            "SELECT * FROM (VALUES (1,2),(3,4)) AS v(a,b), (VALUES (1),(2)) w WHERE (a,b) IN ((1,2),(3,4))",
            "select * from (values (?, ?)) as v(a, b), (values (?)) w where (a, b) in ((?, ?))",
        ),
        (
            "WITH v(a) AS (VALUES (1),(2)), w AS (VALUES (f(1,2)),(f(3,4))) SELECT f(1,2) FROM v, w",
            "with v(a) as (values (?)), w as (values (f(?, ?))) select f(?, ?) from v, w",
        ),
        (
            "INSERT INTO t VALUES ((1+2)*3, f((1),(2))), ((4+5)*6, f((7),(8))) RETURNING ((1+2)*3, f((1),(2)))",
            "insert into t values ((? + ?) * ?, f((?), (?))) returning((? + ?) * ?, f((?), (?)))",
        ),
        (
            "INSERT INTO t VALUES (1, ARRAY[1,2,3]), (2, ARRAY[4]) ON CONFLICT DO NOTHING",
            "insert into t values (?, array[?]) on conflict do nothing",
        ),
        (
            "INSERT INTO t VALUES (1, (SELECT x FROM u WHERE y IN (1,2))), (2, (SELECT x FROM u WHERE y IN (3)))",
            "insert into t values (?, (select x from u where y in (?)))",
        ),
        (
            "INSERT INTO t VALUES (1),(DEFAULT),(2) RETURNING (1)",
            "insert into t values (?), (default), (?) returning(?)",
        ),
        (
            "SELECT * FROM t JOIN (VALUES (1),(2)) v ON (1) = (2) JOIN u ON (1)",
            "select * from t join (values (?)) v on (?) = (?) join u on (?)",
        ),
        // A name, not the list.
        (
            "SELECT values, (1), (1) FROM t WHERE values (1) = f(1)",
            "select values, (?), (?) from t where values (?) = f(?)",
        ),
    ] {
        assert_eq!(text(sql), stripped, "{sql}");
    }
}

#[test]
fn elements_that_differ_stay() {
    assert_eq!(
        text("SELECT 1 WHERE a IN (b, 1, 2, c)"),
        "select ? where a in (b, ?, ?, c)"
    );
    assert_eq!(
        text("SELECT 1 WHERE a IN (SELECT x FROM u WHERE y IN (1, 2))"),
        "select ? where a in (select x from u where y in (?))"
    );
    assert_eq!(text("VALUES (1, b), (2, c)"), "values (?, b), (?, c)");
}

#[test]
fn what_is_cut_short_is_taken_as_far_as_it_goes() {
    for (sql, stripped) in [
        ("SELECT 'abc", "select ?"),
        ("SELECT $x$abc", "select ?"),
        ("SELECT 1 /* x", "select ?"),
        ("SELECT \"a", "select "),
        ("SELECT E'a\\", "select ?"),
        ("SELECT 1 WHERE a IN (1, 2, '3", "select ? where a in (?"),
    ] {
        let mut stripper = Stripper::default();
        let found = stripper.strip(sql.as_bytes());
        assert_eq!(String::from_utf8_lossy(found.text), stripped, "{sql}");
        assert!(!found.complete, "{sql}");
    }
}

#[test]
fn any_bytes_are_taken() {
    let mut seed = 1_u64;
    let alphabet = b"a1'\"$()[],.:;-*/ \n\\E\xff?xVALUES in(";
    let mut stripper = Stripper::default();
    for _ in 0..20_000 {
        let mut bytes = Vec::new();
        for _ in 0..24 {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            bytes.push(alphabet[(seed >> 33) as usize % alphabet.len()]);
        }
        stripper.strip(&bytes);
    }
}

#[test]
fn stripping_twice_is_stripping_once() {
    for sql in [
        "INSERT INTO t VALUES (1, -2, 'x'), (3, 4, 'y')",
        "SELECT a->>'b', c::int[] FROM t WHERE d @> '{\"a\": 1}' AND e BETWEEN 1 AND -2 LIMIT 10 OFFSET 5",
        "UPDATE t SET a = a + 1, b = b || 'x' WHERE c = ANY($1)",
    ] {
        let once = text(sql);
        assert_eq!(text(&once), once);
    }
}
