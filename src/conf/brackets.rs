//! Values of the form `WORD[text] WORD[text] ...` of lsb.serviceclasses and lsb.resources.

use super::types::RawParam;

/// A word of such a value and the text in the brackets behind it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Bracketed {
    /// The word before the bracket; empty where there is none.
    pub word: RawParam,
    /// The text in the brackets; `None`: the word stands alone.
    pub inner: Option<RawParam>,
}

/// The text of a piece of a value, with its place.
pub(super) fn piece(value: &RawParam, text: &str) -> RawParam {
    let text = text.trim();
    RawParam { text: text.to_owned(), pos: value.pos_of(text), breaks: Vec::new() }
}

/// The parts of a value; parentheses round the whole are dropped. `Err`: the rest that cannot be
/// read, as a bracket is not closed or not opened.
pub(super) fn bracketed(value: &RawParam) -> Result<Vec<Bracketed>, RawParam> {
    let mut text = value.text.trim();
    if let Some(inner) = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')) {
        text = inner;
    }
    let (mut parts, mut rest) = (Vec::new(), text.trim_start());
    while !rest.is_empty() {
        let end = rest.find(|c: char| c.is_whitespace() || c == '[' || c == ']');
        let (word, behind) = rest.split_at(end.unwrap_or(rest.len()));
        let behind = behind.trim_start();
        let inner = match behind.strip_prefix('[') {
            Some(opened) => {
                let Some((inner, after)) = opened.split_once(']') else {
                    return Err(piece(value, rest));
                };
                rest = after.trim_start();
                Some(piece(value, inner))
            }
            None if behind.starts_with(']') => return Err(piece(value, behind)),
            None => {
                rest = behind;
                None
            }
        };
        parts.push(Bracketed { word: piece(value, word), inner });
    }
    Ok(parts)
}

/// The words of a piece, each with its place.
pub(super) fn words(of: &RawParam) -> impl Iterator<Item = RawParam> {
    of.text.split_whitespace().map(|word| piece(of, word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Result<Vec<(String, Option<String>)>, String> {
        let value = RawParam { text: text.to_owned(), ..RawParam::default() };
        let all = bracketed(&value).map_err(|rest| rest.text)?;
        Ok(all.into_iter().map(|part| (part.word.text, part.inner.map(|i| i.text))).collect())
    }

    #[test]
    fn bracketed_value_is_cut_into_words_and_inner_texts() {
        let of = |word: &str, inner: Option<&str>| (word.to_string(), inner.map(str::to_string));
        let loan = parts("QUEUES[all !night] RETAIN [10%] CLOSE_ON_DEMAND").unwrap();
        let want = [
            of("QUEUES", Some("all !night")),
            of("RETAIN", Some("10%")),
            of("CLOSE_ON_DEMAND", None),
        ];
        assert_eq!(loan, want);
        let shares = parts("([gold, 25%] [silver,3])").unwrap();
        assert_eq!(shares, [of("", Some("gold, 25%")), of("", Some("silver,3"))]);
        assert_eq!(parts("QUEUES[a").unwrap_err(), "QUEUES[a");
        assert_eq!(parts("a] b").unwrap_err(), "] b");
    }
}
