//! Parameters as they were written, each with its place.

use crate::conf::diag::Pos;
use std::collections::BTreeMap;

/// A parameter as it was written, with its place.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RawParam {
    /// The value's text, trimmed.
    pub text: String,
    /// The position of the value's beginning.
    pub pos: Pos,
    /// The continuations of a value that spans several lines: byte offset in `text`, position.
    pub breaks: Vec<(usize, Pos)>,
}

impl RawParam {
    /// The position of a piece of `self.text`.
    pub fn pos_of(&self, piece: &str) -> Pos {
        let offset = (piece.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        self.pos_at(offset)
    }

    /// The position of the byte at `offset` of `self.text`.
    pub fn pos_at(&self, offset: usize) -> Pos {
        let found = self.breaks.partition_point(|(start, _)| *start <= offset);
        let (start, at) = match found.checked_sub(1).and_then(|i| self.breaks.get(i)) {
            Some((start, at)) => (*start, at),
            None => (0, &self.pos),
        };
        let within = self.text.get(start..offset).unwrap_or_default().chars().count();
        Pos { col: at.col.saturating_add(within as u32), ..at.clone() }
    }
}

/// Parameters by upper-case name.
pub type RawParams = BTreeMap<String, RawParam>;
