//! Damaged profiles: each gives stacks or one error, in bounded memory.

use uncork_stacks::{Format, Limits, Measure, Tree, read, to_folded, to_pprof, to_speedscope};

const ROUNDS: u64 = 6_000;

const PERF: &str = "\
postgres 4242/4242 11649.875185:   10101010 cpu-clock: \n\
\tffffffff821ef696 do_syscall_64+0x46 ([kernel.kallsyms])\n\
\t           f786a __GI___fstatat64+0xa (/usr/lib/libc.so.6)\n\n\
my app: x 7/8 [001] 1.5: cycles:u: \n\t 10 f (inlined)\n\t 20 [unknown] ([vdso])\n\n";
const PYROSCOPE: &str = r#"{"flamebearer":{"names":["total","main","work"],
"levels":[[0,100,0,0],[0,90,10,1],[10,80,80,2]]},"metadata":{"format":"single","units":"samples","name":"x"}}"#;
const TOKENS: [&[u8]; 12] = [
    b"\0",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
    b"\n",
    b";",
    b" 9",
    b"{",
    b"[[",
    b"]",
    b"-",
    b"1e999",
    b"\"",
    b"\x12\x80",
];

/// Steele, Lea and Flood's `SplitMix64`.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut number = self.0;
        number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        number ^ number >> 31
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).unwrap_or(0)
    }
}

fn mangle(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(3) {
        let (at, length) = (random.below(bytes.len() + 1), random.below(40));
        let end = bytes.len().min(at + length);
        match random.below(6) {
            0 => drop(bytes.drain(at..end)),
            1 => bytes.truncate(at),
            2 => {
                let part = bytes[at..end].to_vec();
                let place = random.below(bytes.len() + 1);
                bytes.splice(place..place, part);
            }
            3 => {
                let token = TOKENS[random.below(TOKENS.len())];
                bytes.splice(at..at, token.iter().copied());
            }
            4 if at < bytes.len() => bytes[at] = random.next().to_le_bytes()[0],
            _ => {
                let part = TOKENS[random.below(TOKENS.len())].repeat(random.below(200));
                bytes.splice(at..at, part);
            }
        }
    }
}

fn good() -> Vec<Vec<u8>> {
    let measure = Measure {
        name: "cpu".to_owned(),
        unit: "nanoseconds".to_owned(),
    };
    let stacks = [
        ("main;work", 7),
        ("main;read;ksys_read_[k]", 2),
        ("main", 1),
    ];
    vec![
        PERF.as_bytes().to_vec(),
        PYROSCOPE.as_bytes().to_vec(),
        to_folded(stacks),
        to_pprof(&measure, stacks),
        to_speedscope("x", &measure, stacks),
    ]
}

#[test]
fn whatever_comes_in_ends_in_stacks_or_in_one_error() {
    let files = good();
    let limits = Limits {
        stacks: 1 << 20,
        ..Limits::default()
    };
    let mut understood = 0;
    for seed in 0..ROUNDS {
        let mut random = Random(seed);
        let mut bytes = files[random.below(files.len())].clone();
        mangle(&mut bytes, &mut random);
        let format = match random.below(2) {
            0 => None,
            _ => Some(Format::ALL[random.below(Format::ALL.len())]),
        };
        let Ok((_, stacks)) = read(&bytes, format, seed % 2 == 0, limits) else {
            continue;
        };
        understood += 1;
        assert!(stacks.text_bytes() <= limits.stacks, "seed {seed}");
        let rows = stacks.values().map(|(stack, value)| (stack, value, 0));
        let tree = Tree::new(rows.clone());
        let own = tree
            .frames()
            .iter()
            .fold(0_i64, |sum, one| sum.saturating_add(one.own[0]));
        assert_eq!(own, tree.total()[0], "seed {seed}");
        // Our own files are read back unchanged.
        let lines: Vec<(&str, i64)> = rows.map(|(stack, value, _)| (stack, value)).collect();
        let again = to_folded(lines.iter().copied());
        let (_, again) = read(&again, Some(Format::Folded), false, limits)
            .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let sum = again
            .values()
            .fold(0_i64, |sum, (_, value)| sum.saturating_add(value));
        assert_eq!(sum, tree.total()[0], "seed {seed}");
    }
    assert!(
        understood > ROUNDS / 20,
        "only {understood} of {ROUNDS} were understood"
    );
}
