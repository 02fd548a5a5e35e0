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
