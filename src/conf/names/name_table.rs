//! The known names of a section of a file: a table of rows, and how a name is looked up in it.

use std::cmp::Ordering;

/// One known name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    /// The documented spelling.
    pub name: &'static str,
    /// Whether the cluster acts on it; otherwise it earns a notice.
    pub acted: bool,
    /// The meaning in one line; for readers of the tables alone, so that the shipped file does
    /// not carry it.
    #[cfg(test)]
    pub doc: &'static str,
}

/// The known names of a section of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameTable {
    /// The file, as the manual names it (`lsf.cluster` without the cluster's name).
    pub file: &'static str,
    /// The section; empty for lsf.conf.
    pub section: &'static str,
    /// The names, in alphabetical order, joined into one text: a table with the address of each of
    /// 784 texts would have to be relocated at the start of every command.
    pub(super) text: &'static str,
    /// The end of each name in `text`, with [`ACTED`].
    pub(super) ends: &'static [u16],
    #[cfg(test)]
    pub(super) rows: &'static [Name],
}

/// Behind the value of a parameter, in listings: nothing acts on it.
pub const NOT_ACTED_ON: &str = " (not acted on)";

/// Beside the end of a name: the cluster acts on it.
const ACTED: u16 = 1 << 15;

/// A table of rows that are there only while it is compiled.
macro_rules! table {
    ($file:expr, $section:expr, $rows:expr $(,)?) => {{
        const ROWS: &[Name] = $rows;
        const TEXT: [u8; bytes(ROWS)] = text(ROWS);
        const ENDS: [u16; ROWS.len()] = ends(ROWS);
        let (text, ends) = (names(&TEXT), &ENDS);
        NameTable {
            file: $file,
            section: $section,
            text,
            ends,
            #[cfg(test)]
            rows: ROWS,
        }
    }};
}

pub(super) use table;

pub(super) const fn bytes(rows: &[Name]) -> usize {
    let (mut sum, mut row) = (0, 0);
    while row < rows.len() {
        sum += rows[row].name.len();
        row += 1;
    }
    sum
}

pub(super) const fn text<const BYTES: usize>(rows: &[Name]) -> [u8; BYTES] {
    let (mut text, mut at, mut row) = ([0; BYTES], 0, 0);
    while row < rows.len() {
        let (name, mut from) = (rows[row].name.as_bytes(), 0);
        while from < name.len() {
            text[at] = name[from];
            (at, from) = (at + 1, from + 1);
        }
        row += 1;
    }
    text
}

pub(super) const fn ends<const ROWS: usize>(rows: &[Name]) -> [u16; ROWS] {
    let (mut ends, mut at, mut row) = ([0; ROWS], 0, 0);
    while row < ROWS {
        at += rows[row].name.len();
        assert!(at < ACTED as usize);
        ends[row] = at as u16 | if rows[row].acted { ACTED } else { 0 };
        row += 1;
    }
    ends
}

pub(super) const fn names(text: &[u8]) -> &str {
    match std::str::from_utf8(text) {
        Ok(text) => text,
        Err(_) => panic!("a name that is no text"),
    }
}

/// A name the cluster acts on.
pub(super) const fn on(name: &'static str, doc: &'static str) -> Name {
    row(name, true, doc)
}

/// A name that is read and not acted on.
pub(super) const fn off(name: &'static str, doc: &'static str) -> Name {
    row(name, false, doc)
}

#[cfg_attr(not(test), allow(unused_variables))]
const fn row(name: &'static str, acted: bool, doc: &'static str) -> Name {
    Name {
        name,
        acted,
        #[cfg(test)]
        doc,
    }
}

/// Beginnings of families of genuine LSF names that are not listed one by one.
const FAMILIES: &[(&str, &[&str])] = &[
    ("lsf.conf", &["EGO_", "LSF_LIC_", "LSF_LICENSE_", "LSB_RC_", "LSB_KUBE_", "LSB_RMS_"]),
    ("lsb.params", &["ATTR_", "ESTIMATOR_", "POWER_", "RC_", "SSCHED_"]),
];

impl NameTable {
    /// The row of a name, in any case.
    pub fn find(&self, name: &str) -> Option<Name> {
        // Commands read lsf.conf at every call: the spelling that is nearly always used is
        // looked up fast (the rows are in order), any other one by one.
        let (mut from, mut to) = (0, self.ends.len());
        while from < to {
            let middle = (from + to) / 2;
            let known = self.row(middle)?;
            match known.name.cmp(name) {
                Ordering::Equal => return Some(known),
                Ordering::Less => from = middle + 1,
                Ordering::Greater => to = middle,
            }
        }
        self.names().find(|n| n.name.eq_ignore_ascii_case(name))
    }

    /// The mark that a listing puts behind the value of a name that nothing acts on; else nothing.
    pub fn mark(&self, name: &str) -> &'static str {
        match self.find(name) {
            Some(known) if !known.acted => NOT_ACTED_ON,
            _ => "",
        }
    }

    /// The names of the table, in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = Name> {
        (0..self.ends.len()).filter_map(|row| self.row(row))
    }

    fn row(&self, row: usize) -> Option<Name> {
        let end = *self.ends.get(row)?;
        let from = row.checked_sub(1).map_or(0, |before| self.ends[before] & !ACTED);
        Some(Name {
            name: self.text.get(usize::from(from)..usize::from(end & !ACTED))?,
            acted: end & ACTED != 0,
            #[cfg(test)]
            doc: self.rows[row].doc,
        })
    }

    /// Whether a name belongs to a family of genuine names.
    pub(super) fn in_family(&self, name: &str) -> bool {
        FAMILIES
            .iter()
            .filter(|(file, _)| *file == self.file)
            .flat_map(|(_, starts)| starts.iter())
            .any(|start| name.get(..start.len()).is_some_and(|s| s.eq_ignore_ascii_case(start)))
    }
}
