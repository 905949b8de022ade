//! Reads a YAML job file (bsub -yaml): one document, without aliases.

use super::contents::Value;
use saphyr_parser::{Event, Parser, ScalarStyle, Span, StrInput};
use std::borrow::Cow;

/// Deepest nesting: a category, an option, a list of values, and room for a mistake.
const MAX_DEPTH: usize = 8;

/// The value of the whole file.
pub fn read(text: &str) -> Result<Value, String> {
    let mut events = Events { parser: Parser::new_from_str(text) };
    loop {
        let (event, at) = events.next()?;
        match event {
            Event::StreamEnd => return Err("no document".into()),
            Event::StreamStart | Event::DocumentStart(_) | Event::Nothing => {}
            event => {
                let value = events.value(event, at, 0)?;
                return events.end().map(|()| value);
            }
        }
    }
}

struct Events<'a> {
    parser: Parser<'a, StrInput<'a>>,
}

impl<'a> Events<'a> {
    fn next(&mut self) -> Result<(Event<'a>, Span), String> {
        match self.parser.next_event() {
            Some(Ok(event)) => Ok(event),
            Some(Err(e)) => Err(at(e.info(), e.marker().line(), e.marker().col())),
            None => Err("the document is not closed".into()),
        }
    }

    /// Refuses a second document.
    fn end(&mut self) -> Result<(), String> {
        loop {
            match self.next()? {
                (Event::StreamEnd, _) => return Ok(()),
                (Event::DocumentStart(_), span) => {
                    return Err(wrong("a second document", &span));
                }
                _ => {}
            }
        }
    }

    fn value(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Value, String> {
        if depth > MAX_DEPTH {
            return Err(wrong("nested too deep", &span));
        }
        match event {
            Event::Scalar(text, style, ..) => Ok(scalar(text, style)),
            Event::SequenceStart(..) => {
                let mut all = Vec::new();
                loop {
                    match self.next()? {
                        (Event::SequenceEnd, _) => return Ok(Value::List(all)),
                        (event, span) => all.push(self.value(event, span, depth + 1)?),
                    }
                }
            }
            Event::MappingStart(..) => {
                let mut all = Vec::new();
                loop {
                    let key = match self.next()? {
                        (Event::MappingEnd, _) => return Ok(Value::Map(all)),
                        (Event::Scalar(text, ..), _) => text.into_owned(),
                        (_, span) => return Err(wrong("a key is not a text", &span)),
                    };
                    let (event, span) = self.next()?;
                    all.push((key, self.value(event, span, depth + 1)?));
                }
            }
            Event::Alias(_) => Err(wrong("aliases are not supported", &span)),
            _ => Err(wrong("a value is expected", &span)),
        }
    }
}

/// A text in quotes is a text; without quotes it may stand for no value.
fn scalar(text: Cow<str>, style: ScalarStyle) -> Value {
    match (style, &*text) {
        (ScalarStyle::Plain, "" | "~" | "null" | "Null" | "NULL") => Value::Flag,
        (ScalarStyle::Plain, "true" | "True" | "TRUE") => Value::Flag,
        (ScalarStyle::Plain, "false" | "False" | "FALSE") => Value::Off,
        _ => Value::Text(text.into_owned()),
    }
}

fn wrong(words: &str, span: &Span) -> String {
    at(words, span.start.line(), span.start.col())
}

/// Words in the form of JSON's; columns are counted from 0.
fn at(words: &str, line: usize, column: usize) -> String {
    format!("{words} at line {line} column {}", column + 1)
}
