//! A logical line of a configuration file: its text, whose every character knows its file, line and
//! column.

use super::diag::Pos;
use super::types::RawParam;
use std::sync::Arc;

/// A logical line with the origin of each of its pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// The text of the line, without comment and line ends.
    pub text: String,
    /// Byte offset in `text` from which text stands at a position.
    origin: Vec<(usize, Pos)>,
}

impl Line {
    pub(super) fn push(&mut self, text: &str, at: Pos) {
        self.origin.push((self.text.len(), at));
        self.text.push_str(text);
    }

    /// The position of the byte at `offset`, which must lie on a character boundary.
    pub fn pos(&self, offset: usize) -> Pos {
        let found = self.origin.partition_point(|(start, _)| *start <= offset);
        let Some((start, at)) = found.checked_sub(1).and_then(|i| self.origin.get(i)) else {
            return Pos::default();
        };
        let within = self.text.get(*start..offset).unwrap_or_default().chars().count();
        Pos { file: Arc::clone(&at.file), line: at.line, col: at.col + within as u32 }
    }

    /// The position of a piece of this line's own text.
    pub fn pos_of(&self, piece: &str) -> Pos {
        let offset = (piece.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        self.pos(offset.min(self.text.len()))
    }

    /// A piece of this line's own text with its places.
    pub fn slice(&self, piece: &str) -> RawParam {
        let start = (piece.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        let end = start + piece.len();
        let breaks = self.origin.iter().filter(|(at, _)| *at > start && *at < end);
        RawParam {
            text: piece.to_owned(),
            pos: self.pos(start.min(self.text.len())),
            breaks: breaks.map(|(at, pos)| (at - start, pos.clone())).collect(),
        }
    }

    /// The position of its first character that is not blank.
    pub fn start(&self) -> Pos {
        self.pos(self.text.len() - self.text.trim_start().len())
    }
}
