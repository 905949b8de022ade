//! The file that is shipped, as a file.

use super::rig::{binary, skipped};

/// Bytes of functions that src/sys/order.txt has the linker put together, at the least. A release
/// has 1.2 MB; names that no function bears any more leave them scattered.
const OFTEN_MIN: u64 = 512 << 10;

/// The name and size of each section of an ELF file of 64 bits, little-endian.
fn sections(file: &[u8]) -> Vec<(String, u64)> {
    let number = |at: usize, bytes: usize| {
        file[at..at + bytes].iter().rev().fold(0u64, |n, b| n << 8 | u64::from(*b))
    };
    let (table, each) = (number(0x28, 8) as usize, number(0x3a, 2) as usize);
    let (count, names) = (number(0x3c, 2) as usize, number(0x3e, 2) as usize);
    let field =
        |section: usize, at: usize, bytes: usize| number(table + section * each + at, bytes);
    let names = field(names, 0x18, 8) as usize;
    let name = |section: usize| {
        let from = &file[names + field(section, 0, 4) as usize..];
        let end = from.iter().position(|b| *b == 0).unwrap();
        String::from_utf8_lossy(&from[..end]).into_owned()
    };
    (0..count).map(|section| (name(section), field(section, 0x20, 8))).collect()
}

#[test]
fn functions_that_a_start_needs_lie_together_in_the_file() {
    let sections = sections(&std::fs::read(binary()).unwrap());
    if sections.iter().any(|(name, _)| name == ".interp") {
        return skipped("functions of a start: not the file of `make build`");
    }
    let often = sections.iter().find(|(name, _)| name == ".text.often");
    let Some((_, size)) = often else {
        assert!(!binary().to_string_lossy().contains("-musl/"), "Rust's linker takes no order");
        return skipped("functions of a start: not linked by Rust's linker");
    };
    assert!(*size >= OFTEN_MIN, "{size} bytes: `make order` finds the names anew");
}
