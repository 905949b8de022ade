//! Job rows as they come from mbatchd: JSON arrays of arrays, read in place.
//!
//! A slice of an answer (`ClientMsg::Rows`) is walked row by row; strings borrow from its text
//! and one vector of cells serves every row, so that listing tens of thousands of jobs allocates
//! next to nothing. Invariant: a row has exactly the cells of the columns asked for.

use crate::model::bytes::b64_decode;
use crate::model::job_state::JobState;
use crate::proto::client::Col;
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// Room for every [`Col`] in the index of a [`Cols`].
const COL_SPACE: usize = 128;
/// Marks a column that was not asked for.
const ABSENT: u8 = u8::MAX;

/// The columns of a query, and where each lies in a row.
#[derive(Clone, Debug)]
pub struct Cols {
    list: Vec<Col>,
    at: [u8; COL_SPACE],
}

impl Cols {
    /// The columns of `wanted`, each once, in the order first named.
    pub fn new(wanted: &[Col]) -> Self {
        let mut cols = Cols { list: Vec::with_capacity(wanted.len()), at: [ABSENT; COL_SPACE] };
        for &c in wanted {
            if cols.at[c as usize] == ABSENT {
                cols.at[c as usize] = cols.list.len() as u8;
                cols.list.push(c);
            }
        }
        cols
    }

    pub fn list(&self) -> &[Col] {
        &self.list
    }

    fn index(&self, c: Col) -> Option<usize> {
        let i = self.at[c as usize];
        (i != ABSENT).then_some(i as usize)
    }
}

/// One value of a row.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Cell<'a> {
    #[default]
    Null,
    Bool(bool),
    Int(i64),
    Num(f64),
    Text(Cow<'a, str>),
    /// A byte string that is not UTF-8.
    Bytes(Vec<u8>),
    List(Vec<Cell<'a>>),
    Map(Vec<(Cow<'a, str>, Cell<'a>)>),
}

impl<'a> Cell<'a> {
    /// The text, with what is not UTF-8 replaced; empty where this is no text.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Cell::Text(t) => Cow::Borrowed(t),
            Cell::Bytes(b) => String::from_utf8_lossy(b),
            _ => Cow::Borrowed(""),
        }
    }

    /// The number as an integer, `None` where this is no number.
    pub fn int(&self) -> Option<i64> {
        match *self {
            Cell::Int(n) => Some(n),
            Cell::Num(n) => Some(n as i64),
            _ => None,
        }
    }

    pub fn num(&self) -> Option<f64> {
        match *self {
            Cell::Int(n) => Some(n as f64),
            Cell::Num(n) => Some(n),
            _ => None,
        }
    }

    pub fn list(&self) -> &[Cell<'a>] {
        match self {
            Cell::List(l) => l,
            _ => &[],
        }
    }

    /// The value of a key of an object.
    pub fn key(&self, name: &str) -> Option<&Cell<'a>> {
        match self {
            Cell::Map(m) => m.iter().find(|(k, _)| k == name).map(|(_, v)| v),
            _ => None,
        }
    }
}

/// One row. A column that was not asked for reads as null.
#[derive(Clone, Copy, Debug)]
pub struct JobRow<'r, 'a> {
    cols: &'r Cols,
    cells: &'r [Cell<'a>],
}

impl<'r, 'a> JobRow<'r, 'a> {
    pub fn new(cols: &'r Cols, cells: &'r [Cell<'a>]) -> Self {
        JobRow { cols, cells }
    }

    pub fn cell(&self, c: Col) -> &'r Cell<'a> {
        self.cols.index(c).and_then(|i| self.cells.get(i)).unwrap_or(&Cell::Null)
    }
    pub fn text(&self, c: Col) -> Cow<'r, str> {
        self.cell(c).text()
    }
    /// The state; `None`: one that this version does not know.
    pub fn state(&self) -> Option<JobState> {
        JobState::of_name(&self.text(Col::Stat))
    }
    /// The integer of a column, 0 where there is none.
    pub fn int(&self, c: Col) -> i64 {
        self.cell(c).int().unwrap_or(0)
    }
    pub fn num(&self, c: Col) -> f64 {
        self.cell(c).num().unwrap_or(0.0)
    }
    pub fn list(&self, c: Col) -> &'r [Cell<'a>] {
        self.cell(c).list()
    }
    pub fn truth(&self, c: Col) -> bool {
        matches!(self.cell(c), Cell::Bool(true))
    }
    /// (host, slots) pairs of [`Col::ExecHosts`] and its like.
    pub fn hosts(&self, c: Col) -> impl Iterator<Item = (Cow<'r, str>, i64)> + use<'r, 'a> {
        self.list(c).iter().filter_map(|pair| match pair.list() {
            [h, n] => Some((h.text(), n.int().unwrap_or(1))),
            _ => None,
        })
    }
}

/// Calls `each` for every row of a slice.
pub fn each_row<'a, F>(text: &'a str, cols: &Cols, each: F) -> Result<(), serde_json::Error>
where
    F: FnMut(JobRow<'_, 'a>),
{
    let mut json = serde_json::Deserializer::from_str(text);
    Rows { cols, each, cells: Vec::with_capacity(cols.list.len()) }.deserialize(&mut json)?;
    json.end()
}

struct Rows<'c, 'a, F> {
    cols: &'c Cols,
    each: F,
    cells: Vec<Cell<'a>>,
}

impl<'de, F> DeserializeSeed<'de> for Rows<'_, 'de, F>
where
    F: FnMut(JobRow<'_, 'de>),
{
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<(), D::Error> {
        d.deserialize_seq(self)
    }
}

impl<'de, F> Visitor<'de> for Rows<'_, 'de, F>
where
    F: FnMut(JobRow<'_, 'de>),
{
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an array of rows")
    }
    fn visit_seq<A: SeqAccess<'de>>(mut self, mut rows: A) -> Result<(), A::Error> {
        while rows.next_element_seed(OneRow(&mut self.cells))?.is_some() {
            if self.cells.len() != self.cols.list.len() {
                return Err(de::Error::invalid_length(self.cells.len(), &"a cell a column"));
            }
            (self.each)(JobRow { cols: self.cols, cells: &self.cells });
        }
        Ok(())
    }
}

struct OneRow<'c, 'a>(&'c mut Vec<Cell<'a>>);

impl<'de> DeserializeSeed<'de> for OneRow<'_, 'de> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<(), D::Error> {
        d.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for OneRow<'_, 'de> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a row")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut cells: A) -> Result<(), A::Error> {
        self.0.clear();
        while let Some(c) = cells.next_element()? {
            self.0.push(c);
        }
        Ok(())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Cell<'a> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(OneCell)
    }
}

struct OneCell;

impl<'de> Visitor<'de> for OneCell {
    type Value = Cell<'de>;
    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a value")
    }
    fn visit_unit<E>(self) -> Result<Cell<'de>, E> {
        Ok(Cell::Null)
    }
    fn visit_bool<E>(self, v: bool) -> Result<Cell<'de>, E> {
        Ok(Cell::Bool(v))
    }
    fn visit_i64<E>(self, v: i64) -> Result<Cell<'de>, E> {
        Ok(Cell::Int(v))
    }
    fn visit_u64<E>(self, v: u64) -> Result<Cell<'de>, E> {
        Ok(i64::try_from(v).map_or(Cell::Num(v as f64), Cell::Int))
    }
    fn visit_f64<E>(self, v: f64) -> Result<Cell<'de>, E> {
        Ok(Cell::Num(v))
    }
    fn visit_borrowed_str<E>(self, v: &'de str) -> Result<Cell<'de>, E> {
        Ok(Cell::Text(Cow::Borrowed(v)))
    }
    fn visit_str<E>(self, v: &str) -> Result<Cell<'de>, E> {
        Ok(Cell::Text(Cow::Owned(v.to_string())))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut a: A) -> Result<Cell<'de>, A::Error> {
        let mut list = Vec::new();
        while let Some(c) = a.next_element()? {
            list.push(c);
        }
        Ok(Cell::List(list))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut a: A) -> Result<Cell<'de>, A::Error> {
        let mut map: Vec<(Cow<'de, str>, Cell<'de>)> = Vec::new();
        while let Some((k, v)) = a.next_entry::<ObjectKey<'de>, Cell<'de>>()? {
            map.push((k.0, v));
        }
        match map.as_slice() {
            [(k, Cell::Text(t))] if k == "b64" => {
                b64_decode(t).map(Cell::Bytes).ok_or_else(|| de::Error::custom("bad base64"))
            }
            _ => Ok(Cell::Map(map)),
        }
    }
}

/// A key of an object: serde's own `Cow` would copy it.
#[derive(Serialize, Deserialize)]
struct ObjectKey<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_every_kind() {
        let cols = Cols::new(&[Col::Job, Col::Command, Col::ExecHosts, Col::Limits, Col::CpuUsed]);
        let text = r#"[[7,"a\n\u001b[1mé",[["h1",4],["h2",1]],{"run":60,"rss":null},1.5],
            [8,{"b64":"/w=="},[],{},0]]"#;
        let mut seen = Vec::new();
        each_row(text, &cols, |r| {
            let hosts: Vec<String> =
                r.hosts(Col::ExecHosts).map(|(h, n)| format!("{n}*{h}")).collect();
            let run = r.cell(Col::Limits).key("run").and_then(Cell::int);
            seen.push((r.int(Col::Job), r.text(Col::Command).into_owned(), hosts, run));
            assert_eq!(r.cell(Col::User), &Cell::Null);
        })
        .unwrap();
        assert_eq!(
            seen,
            [
                (7, "a\n\x1b[1mé".to_string(), vec!["4*h1".to_string(), "1*h2".into()], Some(60)),
                (8, "\u{fffd}".to_string(), vec![], None),
            ]
        );
    }

    #[test]
    fn a_repeated_column_is_asked_for_once() {
        let cols = Cols::new(&[Col::User, Col::Job, Col::User]);
        assert_eq!(cols.list(), [Col::User, Col::Job]);
    }

    #[test]
    fn malformed_table_of_jobs_is_an_error() {
        let cols = Cols::new(&[Col::Job]);
        for bad in ["{}", "[1]", "[[1,2]]", "[[]]", "[[1]]x", "[[1]", r#"[[{"b64":"!"}]]"#] {
            assert!(each_row(bad, &cols, |_| ()).is_err(), "{bad}");
        }
        assert!(each_row("[]", &cols, |_| panic!("no row")).is_ok());
    }

    #[test]
    fn every_column_has_room() {
        assert!((Col::Held as usize) < COL_SPACE);
    }
}
