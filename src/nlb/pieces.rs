//! Answers in pieces (proto::nlb): the rest of each that was not sent yet.
//!
//! Invariant: objects are written down when their piece is sent, so that an answer about all
//! objects takes the time and the room of one piece, however many objects there are. An object is
//! whole; one that goes while an answer is read is not in the rest of that answer.

use super::store::{Object, Store};
use crate::conf::nlb_map::NameMaps;
use crate::conf::nlb_objects::dump;
use crate::proto::nlb::{NlbMsg, PIECE};
use jiff::tz::TimeZone;
use std::collections::VecDeque;
use std::sync::Arc;

/// The source of the text of objects.
pub(super) struct ObjectSource<'a> {
    pub(super) maps: &'a NameMaps,
    pub(super) store: &'a Store,
    pub(super) zone: &'a TimeZone,
}

/// Objects that are still to be written down.
pub(super) enum ObjectsLeft {
    /// These, by type and name.
    Named(VecDeque<(u16, Arc<str>)>),
    /// All of these types; of the first type those behind an object with this name.
    All { types: VecDeque<u16>, after: Option<Arc<str>> },
}

impl ObjectsLeft {
    fn next<'a>(&mut self, store: &'a Store) -> Option<(u16, &'a Object)> {
        loop {
            match self {
                ObjectsLeft::Named(names) => {
                    let (number, name) = names.pop_front()?;
                    if let Some(object) = store.find(number, &name) {
                        return Some((number, object));
                    }
                }
                ObjectsLeft::All { types, after } => {
                    let number = *types.front()?;
                    let Some(object) = store.next_of_type(number, after.as_deref()) else {
                        (_, *after) = (types.pop_front(), None);
                        continue;
                    };
                    *after = Some(object.name().into());
                    return Some((number, object));
                }
            }
        }
    }
}

/// An answer, or the rest of it.
#[derive(Default)]
pub(super) struct Pieces {
    ready: VecDeque<NlbMsg>,
    objects: Option<ObjectsLeft>,
}

impl Pieces {
    pub(super) fn new(ready: Vec<NlbMsg>) -> Pieces {
        Pieces { ready: ready.into(), objects: None }
    }

    /// The text of objects, behind these pieces.
    pub(super) fn with_objects(ready: Vec<NlbMsg>, objects: ObjectsLeft) -> Pieces {
        Pieces { ready: ready.into(), objects: Some(objects) }
    }

    /// Takes the next piece; none: the answer is complete.
    pub(super) fn take_next(&mut self, source: &ObjectSource<'_>) -> Option<NlbMsg> {
        if self.ready.is_empty()
            && let Some(objects) = self.objects.take()
        {
            self.write(objects, source);
        }
        self.ready.pop_front()
    }

    /// Writes about a piece of objects.
    fn write(&mut self, mut objects: ObjectsLeft, source: &ObjectSource<'_>) {
        let mut text = String::new();
        let mut complete = false;
        while text.len() < PIECE && !complete {
            match objects.next(source.store) {
                None => complete = true,
                Some((number, object)) => {
                    if let Some(map) = source.maps.numbered(number) {
                        text.push_str(&dump(map, object.name(), &object.values(map), source.zone));
                    }
                }
            }
        }
        self.ready.extend(texts(&text, !complete));
        self.objects = (!complete).then_some(objects);
    }
}

/// A text in pieces; `goes_on`: more of it follows.
pub(super) fn texts(text: &str, goes_on: bool) -> Vec<NlbMsg> {
    let mut pieces = Vec::new();
    let mut rest = text;
    loop {
        let mut end = rest.len().min(PIECE);
        while !rest.is_char_boundary(end) {
            end -= 1;
        }
        let (piece, behind) = rest.split_at(end);
        rest = behind;
        let more = goes_on || !rest.is_empty();
        pieces.push(NlbMsg::Text { text: piece.to_owned(), more });
        if rest.is_empty() {
            return pieces;
        }
    }
}
