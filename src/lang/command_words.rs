//! The words of a command in a parameter, where no shell is to read it: blanks separate words, and
//! quotes and the backslash keep what a shell would keep. Nothing else has a meaning.

/// Longest command, bytes.
pub const MAX_COMMAND: usize = 4096;

/// The words, at least one.
///
/// # Errors
/// Why the text is no command.
pub fn command_words(text: &str) -> Result<Vec<String>, &'static str> {
    if text.len() > MAX_COMMAND {
        return Err("the command is too long");
    }
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut all = text.chars();
    while let Some(c) = all.next() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => {
                let next = all.next().ok_or("a backslash ends the command")?;
                word.get_or_insert_default().push(next);
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() {
        return Err("quotes are not paired");
    }
    words.extend(word);
    match words.first().is_some_and(|program| !program.is_empty()) {
        true => Ok(words),
        false => Err("a program is wanted"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_separated_by_blanks_and_kept_by_quotes() {
        let words = |text: &str| command_words(text).map(|w| w.join("|"));
        let scp = "scp -B  -o 'StrictHostKeyChecking no'";
        assert_eq!(words(scp).unwrap(), "scp|-B|-o|StrictHostKeyChecking no");
        assert_eq!(words("a \"b 'c'\" d\\ e ''").unwrap(), "a|b 'c'|d e|");
        assert_eq!(words("x $(y);z `w`").unwrap(), "x|$(y);z|`w`", "no shell reads it");
        for bad in ["", "  ", "a 'b", "a \"b", "a\\", "'' b", &"x".repeat(MAX_COMMAND + 1)] {
            assert!(words(bad).is_err(), "{bad}");
        }
    }
}
