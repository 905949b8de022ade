//! How an option of an argh struct is typed on the command line.

/// Options of ours, which LSF does not have: they are written with two dashes. Where one of them is
/// written with one dash, as `bsub -nlb`, its long name ends with a dash.
const OURS: [&str; 12] = [
    "boot", "check", "destdir", "dir", "hosts", "key", "newPorts", "newkey", "nlb", "profile",
    "top", "watch",
];

/// Options of LSF that have dashes themselves.
const WITH_DASHES: [&str; 3] = ["no-shell", "no-wait", "use-login-shell"];

/// How an option is typed: `-u`, `-noheader`, `--watch`.
pub(super) fn typed(short: Option<char>, long: &str) -> String {
    as_typed(&classic_word(short, long), long)
}

pub(super) fn as_typed(word: &str, long: &str) -> String {
    match OURS.contains(&word) && !long.ends_with('-') {
        true => long.to_string(),
        false => format!("-{word}"),
    }
}

/// The classic word of an option: its letter, or its long name with dashes read as capitals.
pub(super) fn classic_word(short: Option<char>, long: &str) -> String {
    if let Some(letter) = short {
        return letter.to_string();
    }
    if WITH_DASHES.contains(&long.trim_start_matches('-')) {
        return long.trim_start_matches('-').to_string();
    }
    let mut word = String::with_capacity(long.len());
    let mut capital = false;
    for c in long.strip_prefix("--").unwrap_or(long).chars() {
        match c {
            '-' if capital => {
                word.push('_');
                capital = false;
            }
            '-' => capital = true,
            c if std::mem::take(&mut capital) => word.push(c.to_ascii_uppercase()),
            c => word.push(c),
        }
    }
    word
}
