//! Every check over its seeds and over many changes of them: a short run of what `scripts/fuzz` does
//! for as long as one wants. What the fuzzer finds becomes a seed.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test, which says what it tries")]

use std::{fs, path::PathBuf};

use nenrin_checks::{CHECKS, named};

/// Changed forms of each seed that are tried.
const CHANGED: u64 = 40;

fn seeds(name: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("seeds").join(name);
    let listed = fs::read_dir(&folder).unwrap_or_else(|_| panic!("{name} has no seeds"));
    let mut paths: Vec<PathBuf> = listed.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), fs::read(&path).unwrap())).collect()
}

/// Numbers that are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % (end.max(1) as u64)).unwrap()
    }
}

/// A few changes: flipped, removed, doubled and borrowed bytes.
fn change(seed: &[u8], other: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=numbers.below(4) {
        let at = numbers.below(bytes.len() + 1);
        let length = numbers.below(bytes.len() - at + 1).min(64);
        match numbers.below(5) {
            0 if at < bytes.len() => bytes[at] ^= 1 << numbers.below(8),
            1 => drop(bytes.drain(at..at + length)),
            2 => {
                let doubled = bytes[at..at + length].repeat(1 + numbers.below(20));
                bytes.splice(at..at, doubled);
            }
            3 => {
                let from = numbers.below(other.len() + 1);
                let to = (from + 1 + numbers.below(40)).min(other.len());
                bytes.splice(at..at, other[from..to].iter().copied());
            }
            _ => bytes.insert(at, b"<>&\"'\\/:;,%\0\xff\r\n*(){}"[numbers.below(20)]),
        }
    }
    bytes
}

fn try_all(name: &str) {
    let check = named(name).unwrap();
    let seeds = seeds(name);
    assert!(!seeds.is_empty(), "{name} has no seeds");
    check(b"");
    for (nth, (path, seed)) in seeds.iter().enumerate() {
        println!("{}", path.display());
        check(seed);
        for cut in 0..seed.len().min(100) {
            check(&seed[..cut]);
        }
        let mut numbers = Numbers(nth as u64 + 0x9e37_79b9);
        for _ in 0..CHANGED {
            let other = &seeds[numbers.below(seeds.len())].1;
            let changed = change(seed, other, &mut numbers);
            println!("{:?}", String::from_utf8_lossy(&changed));
            check(&changed);
        }
    }
}

macro_rules! tests {
    ($($name:ident),*) => {
        $(#[test]
        fn $name() {
            try_all(stringify!($name));
        })*

        #[test]
        fn every_check_is_tried() {
            let names: Vec<&str> = CHECKS.iter().map(|(name, _)| *name).collect();
            assert_eq!(names, [$(stringify!($name)),*]);
        }
    };
}

tests!(
    url,
    http_head,
    robots,
    decoding,
    charset,
    html,
    css,
    comparison,
    sitemap,
    feed,
    exchange,
    replay_html,
    replay_part,
    replay_path,
    cut,
    pack,
    restore,
    warc,
    cdxj_zip,
    pdf,
    typed
);
