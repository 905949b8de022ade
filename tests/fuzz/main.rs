//! The corpus of the fuzzer, replayed, with a few changes to each input. `make fuzz` goes on from
//! it; an input that it finds belongs here.

mod targets;

use std::path::Path;

/// Changed copies of each input.
const CHANGES: u64 = 200;

/// Numbers that are the same in every run.
struct Rng(u64);

impl Rng {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % n.max(1)
    }
}

fn change(input: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut out = input.to_vec();
    for _ in 0..=rng.below(4) {
        let at = rng.below(out.len() + 1);
        match rng.below(5) {
            0 if at < out.len() => out[at] = rng.below(256) as u8,
            1 if at < out.len() => out[at] ^= 1 << rng.below(8),
            2 => out.insert(at, b"\0\"\\\n()[]{}#=,:; -19aZ"[rng.below(20)]),
            3 => out.truncate(at),
            _ => {
                let piece = out[at.min(out.len())..].to_vec();
                let to = rng.below(out.len() + 1);
                out.splice(to..to, piece.into_iter().take(64));
            }
        }
    }
    out
}

#[test]
fn the_corpus_and_its_neighbours() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus");
    for (name, run) in targets::TARGETS {
        let mut inputs: Vec<_> =
            std::fs::read_dir(corpus.join(name)).unwrap().map(|e| e.unwrap().path()).collect();
        inputs.sort();
        assert!(!inputs.is_empty(), "{name}");
        let mut rng = Rng(1);
        for path in inputs {
            let input = std::fs::read(&path).unwrap();
            run(&input);
            for n in 0..CHANGES {
                let changed = change(&input, &mut rng);
                let shown = (path.display(), n, String::from_utf8_lossy(&changed).into_owned());
                let done = std::panic::catch_unwind(|| run(&changed));
                assert!(done.is_ok(), "{name}: {shown:?}");
            }
        }
    }
}
