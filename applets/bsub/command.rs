//! The text of a job's command from the words typed.
//!
//! The first word is taken verbatim, since some tools pass a whole shell line as one word. A
//! later word that holds a blank or a quote, or is empty, is quoted again so that the job sees
//! the word the user typed; any other later word stays bare, so that `\;`, `\>` and `'$X'` act
//! in the job's shell.

/// The command text of `words`.
pub fn text<W: AsRef<[u8]>>(words: &[W]) -> Vec<u8> {
    let mut out = Vec::new();
    for (i, word) in words.iter().enumerate() {
        let word = word.as_ref();
        if i == 0 {
            out.extend_from_slice(word);
            continue;
        }
        out.push(b' ');
        let special = |b: &u8| b.is_ascii_whitespace() || matches!(b, b'\'' | b'"');
        if word.is_empty() || word.iter().any(special) {
            quote(word, &mut out);
        } else {
            out.extend_from_slice(word);
        }
    }
    out
}

/// Appends `word` in quotes: double ones where nothing in it is special between them.
fn quote(word: &[u8], out: &mut Vec<u8>) {
    if !word.iter().any(|b| matches!(b, b'"' | b'$' | b'`' | b'\\' | b'!')) {
        out.push(b'"');
        out.extend_from_slice(word);
        out.push(b'"');
        return;
    }
    out.push(b'\'');
    for &b in word {
        match b {
            b'\'' => out.extend_from_slice(b"'\\''"),
            b => out.push(b),
        }
    }
    out.push(b'\'');
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn shown(words: &[&str]) -> String {
        String::from_utf8(text(words)).unwrap()
    }

    #[test]
    fn the_first_word_is_verbatim_and_bare_words_stay_bare() {
        assert_eq!(shown(&["echo a; echo 'b c' > x"]), "echo a; echo 'b c' > x");
        assert_eq!(shown(&["sleep", "10"]), "sleep 10");
        assert_eq!(shown(&["a", ";", "b", ">", "$X", "*.c"]), "a ; b > $X *.c");
    }

    #[test]
    fn blanks_and_quotes_are_quoted() {
        assert_eq!(shown(&["echo", "a b", ""]), r#"echo "a b" """#);
        assert_eq!(shown(&["echo", "it's"]), r#"echo "it's""#);
        assert_eq!(shown(&["echo", "say \"x\""]), r#"echo 'say "x"'"#);
        assert_eq!(shown(&["echo", "a $b"]), "echo 'a $b'");
        assert_eq!(shown(&["echo", "'\""]), r#"echo ''\''"'"#);
    }

    #[test]
    fn a_shell_sees_the_words_again() {
        let hard = ["a b", "", "it's \"so\"", "x\ty", "a\nb", "'", "\"", "a $HOME `id` \\n !x"];
        let mut words = vec!["printf", "%s,"];
        words.extend(hard);
        let out = Command::new("/bin/sh").arg("-c").arg(shown(&words)).output().unwrap();
        assert_eq!(String::from_utf8(out.stdout).unwrap(), hard.join(",") + ",");
    }

    #[test]
    fn bytes_of_a_command_are_kept() {
        assert_eq!(text(&[&b"a\xff"[..], b"b \xfe"]), b"a\xff \"b \xfe\"");
    }
}
