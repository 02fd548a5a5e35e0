//! What is wrong with a script is said with file, line and remedy. The cases follow the tests of
//! pgbench itself (`001_pgbench_with_server.pl`, `002_pgbench_no_server.pl`), as far as they are of the
//! language.

mod client;

use client::Client;
use uncork_script::{Script, Streams, Symbols};

/// What pgbench's own tests give with `-D`.
const DEFINED: [(&str, &str); 8] = [
    ("foo", "bla"),
    ("null", "null"),
    ("true", "true"),
    ("one", "1"),
    ("zero", "0.0"),
    ("badtrue", "trueXXX"),
    ("maxint", "9223372036854775807"),
    ("minint", "-9223372036854775808"),
];

/// What parsing and running the script says is wrong.
fn error(text: &str) -> String {
    let mut symbols = Symbols::new();
    let script = match Script::parse("s.sql", text, &mut symbols) {
        Ok(script) => script,
        Err(error) => return error.to_string(),
    };
    if let Err(error) = script.check_extended() {
        return error.to_string();
    }
    let mut client = Client::new(&symbols, &Streams::new(1, 1, None), 0, &DEFINED);
    client.run(&script, &symbols, &[]).expect_err(text)
}

/// Script, and message.
const CASES: &[(&str, &str)] = &[
    // Control flow.
    (
        "\\if 1",
        "s.sql:1: \\if without matching \\endif; end it with \\endif",
    ),
    (
        "SELECT 1;\n\\if 1\n\\if 2\n\\endif\n",
        "s.sql:2: \\if without matching \\endif; end it with \\endif",
    ),
    (
        "\n\\elif 1",
        "s.sql:2: \\elif without matching \\if; remove it, or put \\if before it",
    ),
    (
        "\\else",
        "s.sql:1: \\else without matching \\if; remove it, or put \\if before it",
    ),
    (
        "\\endif",
        "s.sql:1: \\endif without matching \\if; remove it, or put \\if before it",
    ),
    (
        "\\if 1\n\\else\n\\elif 0\n\\endif",
        "s.sql:3: \\elif after \\else; \\else is the last part of an \\if",
    ),
    (
        "\\if 1\n\\else\n\\else\n\\endif",
        "s.sql:3: \\else after \\else; \\else is the last part of an \\if",
    ),
    (
        "\\if\n\\endif\n",
        "s.sql:1: syntax error in command \"if\" at column 4; found the end of the line where a value was expected",
    ),
    (
        "\\if 0\n\\elif +\n\\endif\n",
        "s.sql:2: syntax error in command \"elif\" at column 8; found the end of the line where a value was expected",
    ),
    (
        "\\if 0\n\\else BAD\n\\endif\n",
        "s.sql:2: unexpected argument in command \"else\" at column 7; remove \"BAD\"",
    ),
    (
        "\\if 0\n\\endif BAD\n",
        "s.sql:2: unexpected argument in command \"endif\" at column 8; remove \"BAD\"",
    ),
    // Expressions, when they are parsed.
    (
        "\\set i 1 +",
        "s.sql:1: syntax error in command \"set\" at column 11; found the end of the line where a value was expected",
    ),
    (
        "\\set i 1 + \\\n  * 2",
        "s.sql:2: syntax error in command \"set\" at column 3; found \"*\" where a value was expected",
    ),
    (
        "\\set i 1 2",
        "s.sql:1: syntax error in command \"set\" at column 10; found \"2\" where an operator or the end of the line was expected",
    ),
    (
        "\\set i (1",
        "s.sql:1: syntax error in command \"set\" at column 10; found the end of the line where \")\" was expected",
    ),
    (
        "\\set b 1 < 2 < 3",
        "s.sql:1: syntax error in command \"set\" at column 14; found \"<\" where AND, OR or a parenthesis (comparisons do not chain) was expected",
    ),
    (
        "\\set b 1 is 3",
        "s.sql:1: syntax error in command \"set\" at column 13; found \"3\" where NULL, TRUE or FALSE was expected",
    ),
    (
        "\\set i CASE TRUE THEN 1 ELSE 0 END",
        "s.sql:1: syntax error in command \"set\" at column 13; found \"TRUE\" where WHEN was expected",
    ),
    (
        "\\set i case when 1 then 2",
        "s.sql:1: syntax error in command \"set\" at column 26; found the end of the line where WHEN, ELSE or END was expected",
    ),
    (
        "\\set i randon(1, 2)",
        "s.sql:1: unexpected function name (randon) at column 8; did you mean \"random\"?",
    ),
    (
        "\\set i 1\n\\set j i",
        "s.sql:2: unexpected function name (i) at column 8; a variable is written :i",
    ),
    (
        "\\set i noSuchFunction()",
        "s.sql:1: unexpected function name (noSuchFunction) at column 8; the functions are abs, debug, double, \
         exp, greatest, hash, hash_fnv1a, hash_murmur2, int, least, ln, mod, permute, pi, pow, power, random, \
         random_exponential, random_gaussian, random_zipfian, sqrt",
    ),
    (
        "\\set i ;",
        "s.sql:1: unexpected character \";\" at column 8; an expression has numbers, :variables, operators and functions",
    ),
    (
        "\\set d ln(1.0, 2.0))",
        "s.sql:1: unexpected number of arguments (ln) at column 19; 2 given, it takes 1",
    ),
    (
        "\\set i hash()",
        "s.sql:1: unexpected number of arguments (hash) at column 13; 0 given, it takes 1 or 2",
    ),
    (
        "\\set i hash(1,2,3)",
        "s.sql:1: unexpected number of arguments (hash) at column 18; 3 given, it takes 1 or 2",
    ),
    (
        "\\set i permute(1)",
        "s.sql:1: unexpected number of arguments (permute) at column 17; 1 given, it takes 2 or 3",
    ),
    (
        "\\set i permute(1, 2, 3, 4)",
        "s.sql:1: unexpected number of arguments (permute) at column 26; 4 given, it takes 2 or 3",
    ),
    (
        "\\set i pi(1)",
        "s.sql:1: unexpected number of arguments (pi) at column 12; 1 given, it takes none",
    ),
    (
        "\\set i greatest())",
        "s.sql:1: at least one argument expected (greatest) at column 17; name what to compare",
    ),
    (
        "\\set i least()",
        "s.sql:1: at least one argument expected (least) at column 14; name what to compare",
    ),
    (
        "\\set i least(0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16)",
        "s.sql:1: too many function arguments, maximum is 16 (least) at column 54; 17 given; nest one call in another",
    ),
    (
        "\\set i 100000000000000000000",
        "s.sql:1: bigint constant overflow (100000000000000000000) at column 8; the greatest integer is \
         9223372036854775807; with a point it is a double",
    ),
    (
        "\\set i 9223372036854775808",
        "s.sql:1: bigint constant overflow (9223372036854775808) at column 8; the greatest integer is \
         9223372036854775807; with a point it is a double",
    ),
    (
        "\\set d 1.0E309",
        "s.sql:1: double constant overflow (1.0E309) at column 8; a double lies between 1e-307 and 1e308",
    ),
    (
        "\\set d .1E310",
        "s.sql:1: double constant overflow (.1E310) at column 8; a double lies between 1e-307 and 1e308",
    ),
    (
        "\\set",
        "s.sql:1: missing argument in command \"set\" at column 5; write \\set name expression",
    ),
    (
        "\\set i",
        "s.sql:1: syntax error in command \"set\" at column 7; found the end of the line where a value was expected",
    ),
    (
        "\\set . 1",
        "s.sql:1: invalid variable name: \".\" at column 6; it has letters, digits and underscores, and begins with no digit",
    ),
    // Expressions, when they are evaluated.
    ("SELECT 1;\n\\set i 1/0", "s.sql:2: division by zero"),
    ("\\set i 1 % 0", "s.sql:1: division by zero"),
    (
        "\\set i :nosuchvariable",
        "s.sql:1: undefined variable \"nosuchvariable\"; set it before, or give it with -D nosuchvariable=value",
    ),
    (
        "\\set i random(5,3)",
        "s.sql:1: empty range given to random",
    ),
    (
        "\\set i random_zipfian(:one + 4,3,2)",
        "s.sql:1: empty range given to random",
    ),
    (
        "\\set i random(:minint, :maxint)",
        "s.sql:1: random range is too large",
    ),
    (
        "\\set i random(-1, 9223372036854775807)",
        "s.sql:1: random range is too large",
    ),
    (
        "\\set i random_gaussian(0, 10, 1.0)",
        "s.sql:1: gaussian parameter must be at least 2.000000 (not 1.000000)",
    ),
    (
        "\\set i random_exponential(0, 10, 0.0)",
        "s.sql:1: exponential parameter must be greater than zero (not 0.000000)",
    ),
    (
        "\\set i random_zipfian(0, 10, 1)",
        "s.sql:1: zipfian parameter must be in range [1.001, 1000] (not 1.000000)",
    ),
    (
        "\\set i random_zipfian(0, 10, 1000000)",
        "s.sql:1: zipfian parameter must be in range [1.001, 1000] (not 1000000.000000)",
    ),
    (
        "\\set i :foo + 1",
        "s.sql:1: malformed variable \"foo\" value: \"bla\"",
    ),
    (
        "\\set b :badtrue or true",
        "s.sql:1: malformed variable \"badtrue\" value: \"trueXXX\"",
    ),
    (
        "\\set b NOT 0.0",
        "s.sql:1: cannot coerce double to boolean",
    ),
    (
        "\\set b 1 and true",
        "s.sql:1: cannot coerce int to boolean",
    ),
    ("\\set i TRUE + 2", "s.sql:1: cannot coerce boolean to int"),
    (
        "\\set i true = true",
        "s.sql:1: cannot coerce boolean to int",
    ),
    (
        "\\set d ln(TRUE)",
        "s.sql:1: cannot coerce boolean to double",
    ),
    (
        "\\set b random(FALSE, TRUE)",
        "s.sql:1: cannot coerce boolean to int",
    ),
    (
        "\\set i int(1E32)",
        "s.sql:1: double to int overflow for 100000000000000005366162204393472.000000",
    ),
    (
        "\\set i (1<<62) + (1<<62)",
        "s.sql:1: bigint add out of range",
    ),
    (
        "\\set i 0 - (1<<62) - (1<<62) - (1<<62)",
        "s.sql:1: bigint sub out of range",
    ),
    ("\\set i 2 * (1<<62)", "s.sql:1: bigint mul out of range"),
    ("\\set i :minint / -1", "s.sql:1: bigint div out of range"),
    ("\\set i - :minint", "s.sql:1: bigint sub out of range"),
    (
        "\\set i permute(0, 0)",
        "s.sql:1: permute size parameter must be greater than zero",
    ),
    ("\\if 1 / 0\n\\endif", "s.sql:1: division by zero"),
    (
        "\\if false\n\\elif 1 / 0\n\\endif",
        "s.sql:2: division by zero",
    ),
    // Waiting.
    (
        "\\sleep :nosuchvariable",
        "s.sql:1: undefined variable \"nosuchvariable\"; set it before, or give it with -D nosuchvariable=value",
    ),
    (
        "\\sleep :foo",
        "s.sql:1: sleep: invalid sleep time \"bla\" for variable \"foo\"",
    ),
    (
        "\\sleep too many args",
        "s.sql:1: invalid sleep time, must be an integer (too) at column 8; use a smaller unit for a part: 1500 ms",
    ),
    (
        "\\sleep 1 s more",
        "s.sql:1: too many arguments in command \"sleep\" at column 12; it takes a number and a unit; remove \"more\"",
    ),
    (
        "\\sleep",
        "s.sql:1: missing argument in command \"sleep\" at column 7; write \\sleep number [us|ms|s], or \\sleep :variable [us|ms|s]",
    ),
    (
        "\\sleep 1 week",
        "s.sql:1: unrecognized time unit, must be us, ms or s (week) at column 10; write \\sleep number [us|ms|s]",
    ),
    (
        "\\sleep 1.5 s",
        "s.sql:1: invalid sleep time, must be an integer (1.5) at column 8; use a smaller unit for a part: 1500 ms",
    ),
    // Captures.
    (
        "\\gset",
        "s.sql:1: \\gset must follow an SQL command; put it behind the one whose row is wanted",
    ),
    (
        "\\set i +1\n\\gset",
        "s.sql:2: \\gset must follow an SQL command; put it behind the one whose row is wanted",
    ),
    (
        "SELECT 1 AS i \\gset\n\\aset",
        "s.sql:2: \\aset must follow an SQL command; put it behind the one whose row is wanted",
    ),
    (
        "\\if 1\nSELECT 1\n\\endif\n\\gset",
        "s.sql:4: \\gset must follow an SQL command; put it behind the one whose row is wanted",
    ),
    (
        "SELECT 1 \\gset a b",
        "s.sql:1: too many arguments in command \"gset\" at column 18; it takes one prefix; remove \"b\"",
    ),
    // Pipelines.
    (
        "\\startpipeline\nSELECT 1;\n\\startpipeline\n",
        "s.sql:3: \\startpipeline: already in pipeline mode; end the other with \\endpipeline",
    ),
    (
        "\\endpipeline",
        "s.sql:1: \\endpipeline: not in pipeline mode; put \\startpipeline before it",
    ),
    (
        "\\syncpipeline",
        "s.sql:1: \\syncpipeline: not in pipeline mode; put \\startpipeline before it",
    ),
    (
        "\\startpipeline\nselect 1 \\gset f\n\\endpipeline\n",
        "s.sql:2: \\gset is not allowed in pipeline mode; put the command outside of the pipeline",
    ),
    (
        "\\startpipeline\n\\if :one\nselect 1 \\aset f\n\\endif\n\\endpipeline\n",
        "s.sql:3: \\aset is not allowed in pipeline mode; put the command outside of the pipeline",
    ),
    (
        "SELECT 1;\n\\startpipeline\nSELECT 1;",
        "s.sql:2: end of script reached with pipeline open; put \\endpipeline behind its last command",
    ),
    (
        "\\endpipeline now",
        "s.sql:1: unexpected argument in command \"endpipeline\" at column 14; remove \"now\"",
    ),
    // Others.
    (
        "\\shell no-such-command",
        "s.sql:1: \\shell is not supported: it would run a program inside the measured time at column 2; \
         run it before, and hand its result over with -D name=value, or use \\set",
    ),
    (
        "\\setshell var echo 1",
        "s.sql:1: \\setshell is not supported: it would run a program inside the measured time at column 2; \
         run it before, and hand its result over with -D name=value, or use \\set",
    ),
    (
        "SELECT 1;\n  \\slep 1",
        "s.sql:2: invalid command \\slep at column 4; did you mean \\sleep?",
    ),
    (
        "\\nosuchcommand",
        "s.sql:1: invalid command \\nosuchcommand at column 2; the commands are \\set, \\sleep, \\if, \\elif, \
         \\else, \\endif, \\gset, \\aset, \\startpipeline, \\syncpipeline, \\endpipeline",
    ),
    (
        "",
        "s.sql:1: empty command list for script; give it at least one command",
    ),
    (
        "-- nothing\n \n",
        "s.sql:1: empty command list for script; give it at least one command",
    ),
    (
        "SELECT 1;\nSELECT 'a;\n",
        "s.sql:2: unterminated quoted string, up to the end of the script; close it with '",
    ),
];

#[test]
fn errors_say_where_what_and_what_to_do() {
    let found: Vec<_> = CASES.iter().map(|(text, _)| (*text, error(text))).collect();
    let wanted: Vec<_> = CASES
        .iter()
        .map(|&(text, message)| (text, message.to_owned()))
        .collect();
    let wrong: Vec<_> = found
        .iter()
        .zip(&wanted)
        .filter(|(found, wanted)| found != wanted)
        .collect();
    assert_eq!(wrong, []);
}

#[test]
fn the_extended_protocol_has_a_limit_of_parameters() {
    let list = vec![":i"; 256].join(", ");
    let text = format!("-- MAX_ARGS=256 for prepared\n\\set i 0\nSELECT LEAST({list})");
    assert_eq!(
        error(&text),
        "s.sql:3: statement has too many arguments (256, maximum is 255); use the simple protocol, or fewer variables"
    );
    let text = text.replacen(":i, ", "", 1);
    let script = Script::parse("s.sql", &text, &mut Symbols::new()).unwrap();
    assert_eq!(script.check_extended(), Ok(()));
}

#[test]
fn an_expression_may_be_deep_but_not_bottomless() {
    let nested =
        |depth: usize| format!("\\set i {}:one{}", "(1 + ".repeat(depth), ")".repeat(depth));
    let chained = |length: usize| format!("\\set i :one{}", " + :one".repeat(length));
    for text in [nested(60), chained(200)] {
        Script::parse("s.sql", &text, &mut Symbols::new()).unwrap();
    }
    for text in [
        nested(100_000),
        chained(100_000),
        format!("\\set i {}1", "-".repeat(100_000)),
    ] {
        let error = Script::parse("s.sql", &text, &mut Symbols::new()).unwrap_err();
        assert!(
            error.message().contains("expression nested more than"),
            "{error}"
        );
    }
}
