//! The file `config` of the load balancer's server: who may do what, and how long objects stay
//! that nobody reports any more. See nlbserver(8).

use super::diag::{Diags, Pos, Severity};
use super::names::nearest;
use super::nlb_map::{NameMap, NameMaps};
use crate::lang::nlb::text::{decode, shown};
use crate::model::nlb::{NLB, NLB_JOB};
use std::sync::Arc;

/// Largest file, bytes.
pub const MAX_FILE: usize = 64 << 10;
/// Most terms of a list.
const MAX_TERMS: usize = 1_000;
/// Longest time until an object is dropped, seconds: a year.
const MAX_EXPIRE: u32 = 366 * 86_400;

/// One term of a list.
#[derive(Clone, Debug, PartialEq)]
pub enum Term {
    /// `*`
    Everybody,
    /// The users of the master list.
    Master,
    /// The collector of the object's host.
    Collector,
    /// A user, of that host alone where one is named.
    User(String, Option<String>),
}

/// A right to objects of a type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Right {
    Read,
    Update,
    Delete,
}

impl Right {
    const WORDS: [(&'static str, Right); 3] =
        [("read", Right::Read), ("update", Right::Update), ("delete", Right::Delete)];

    /// The word in the file.
    pub fn word(self) -> &'static str {
        Right::WORDS.iter().find(|(_, right)| *right == self).map_or("", |(word, _)| word)
    }
}

/// The rights of one object type.
#[derive(Clone, Debug)]
struct Acl {
    object_type: u16,
    line: u32,
    rights: Vec<(Right, Vec<Term>)>,
}

/// The settings of the file.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// The master list and its line; `None`: root and the administrators of the cluster.
    master: Option<(Vec<Term>, u32)>,
    acls: Vec<Acl>,
    /// Seconds after its last report that an object without stored attributes is dropped; 0: never.
    pub expire: u32,
}

impl Access {
    /// The master list with the number of its line; `None`: the default.
    pub fn master(&self) -> Option<(&[Term], u32)> {
        self.master.as_ref().map(|(terms, line)| (terms.as_slice(), *line))
    }

    /// The holders of a right, and the line that names them; 0: the default.
    pub fn terms(&self, object_type: u16, right: Right) -> (Vec<Term>, u32) {
        let acl = self.acls.iter().find(|a| a.object_type == object_type);
        let given = acl.and_then(|acl| {
            let (_, terms) = acl.rights.iter().find(|(r, _)| *r == right)?;
            Some((terms.clone(), acl.line))
        });
        let collected = matches!(object_type, NLB | NLB_JOB);
        given.unwrap_or_else(|| match right {
            Right::Read => (vec![Term::Everybody], 0),
            Right::Update if collected => (vec![Term::Master, Term::Collector], 0),
            Right::Update | Right::Delete => (vec![Term::Master], 0),
        })
    }
}

/// Reads the file with the object types of `maps`. With an error in it nothing is taken.
pub fn read_config(
    file: &Arc<str>,
    bytes: &[u8],
    maps: &NameMaps,
    diags: &mut Diags,
) -> Option<Access> {
    let mut found = Diags::new();
    let mut access = Access::default();
    if let Some(text) = decode(file, bytes, MAX_FILE, &mut found) {
        let mut expire = None;
        for (line, text) in (1..).zip(text.lines()) {
            let mut reader = Line { file, line, maps, diags: &mut found };
            reader.read(text, &mut access, &mut expire);
        }
    }
    let good = !found.has_errors();
    diags.join(found.into_list());
    good.then_some(access)
}

/// One line of the file.
struct Line<'a> {
    file: &'a Arc<str>,
    line: u32,
    maps: &'a NameMaps,
    diags: &'a mut Diags,
}

/// A word with its column, from 1.
type Word<'t> = (u32, &'t str);

/// The words of a text that begins at column `from`.
fn words(text: &str, from: u32) -> Vec<Word<'_>> {
    let mut all = Vec::new();
    let mut begin = None;
    for (n, (at, c)) in (from..).zip(text.char_indices()) {
        match (c.is_whitespace(), begin) {
            (false, None) => begin = Some((n, at)),
            (true, Some((col, start))) => {
                all.push((col, text.get(start..at).unwrap_or_default()));
                begin = None;
            }
            _ => {}
        }
    }
    let last = begin.and_then(|(col, start)| Some((col, text.get(start..)?)));
    all.extend(last);
    all
}

impl Line<'_> {
    fn error(&mut self, col: u32, words: impl Into<String>, near: Option<&str>) {
        let pos = Pos::new(self.file, self.line, col);
        self.diags.add_near(Severity::Error, &pos, words, near);
    }

    fn read(&mut self, text: &str, access: &mut Access, expire: &mut Option<u32>) {
        let text = text.split('#').next().unwrap_or_default();
        let Some(&(col, first)) = words(text, 1).first() else { return };
        let Some((head, rest)) = text.split_once(':') else {
            let near = nearest(first, ["master", "acl", "expire"]);
            let words = format!("<{}>: a line with a colon is wanted", shown(first));
            return self.error(col, words, near.filter(|near| *near != first));
        };
        let from = head.chars().count() as u32 + 2;
        let (head, rest) = (words(head, 1), words(rest, from));
        let Some((&(col, name), of)) = head.split_first() else {
            return self.error(col, "master, acl or expire is wanted before <:>", None);
        };
        match (name, of) {
            ("master", []) => self.master(col, &rest, access),
            ("expire", []) => {
                if let Some(line) = expire.replace(self.line) {
                    return self.error(col, format!("expire is in line {line} already"), None);
                }
                match rest.as_slice() {
                    [(_, n)] if n.parse::<u32>().is_ok_and(|n| n <= MAX_EXPIRE) => {
                        access.expire = n.parse().unwrap_or_default();
                    }
                    other => {
                        let at = other.first().map_or(from, |(col, _)| *col);
                        let words = format!("expire: seconds from 0 to {MAX_EXPIRE} are wanted");
                        self.error(at, words, None);
                    }
                }
            }
            ("acl", [(at, object_type)]) => self.acl((*at, object_type), &rest, access),
            ("acl", _) => self.error(col, "acl: one object type is wanted before <:>", None),
            ("master" | "expire", [(at, word), ..]) => {
                self.error(*at, format!("<:> is wanted before <{}>", shown(word)), None);
            }
            (other, _) => {
                let near = nearest(other, ["master", "acl", "expire"]);
                let words =
                    format!("<{}> is unknown: master, acl or expire is wanted", shown(other));
                self.error(col, words, near);
            }
        }
    }

    fn master(&mut self, col: u32, rest: &[Word<'_>], access: &mut Access) {
        if let Some((_, line)) = access.master {
            return self.error(col, format!("master is in line {line} already"), None);
        }
        let mut terms = Vec::new();
        for (col, word) in rest {
            match self.term(*col, word) {
                Some(Term::Master | Term::Collector) => {
                    let words = format!("<{}> stands in the lists of acl alone", shown(word));
                    self.error(*col, words, None);
                }
                term => terms.extend(term),
            }
        }
        if rest.is_empty() {
            self.error(col, "master: a user is wanted", None);
        }
        if terms.len() > MAX_TERMS {
            self.error(col, format!("more than {MAX_TERMS} users"), None);
        }
        access.master = Some((terms, self.line));
    }

    fn acl(&mut self, (at, name): Word<'_>, rest: &[Word<'_>], access: &mut Access) {
        let Some(map) = self.maps.named(name) else {
            let near = nearest(name, self.maps.list().iter().map(NameMap::name));
            let near = near.map(str::to_owned);
            let words = format!("<{}> is no object type", shown(name));
            return self.error(at, words, near.as_deref());
        };
        let object_type = map.number();
        if let Some(other) = access.acls.iter().find(|a| a.object_type == object_type) {
            let line = other.line;
            return self.error(
                at,
                format!("acl <{}> is in line {line} already", shown(name)),
                None,
            );
        }
        let mut rights: Vec<(Right, Vec<Term>)> = Vec::new();
        if rest.is_empty() {
            self.error(at, "acl: read=, update= or delete= is wanted", None);
        }
        for (col, word) in rest {
            let (name, list) = word.split_once('=').unwrap_or((word, ""));
            let known = Right::WORDS.iter().find(|(w, _)| *w == name).map(|(_, right)| *right);
            let Some(right) = known.filter(|_| word.contains('=')) else {
                let near = nearest(name, Right::WORDS.map(|(w, _)| w));
                let words = format!("<{}>: read=, update= or delete= is wanted", shown(word));
                self.error(*col, words, near.filter(|near| *near != name));
                continue;
            };
            if rights.iter().any(|(r, _)| *r == right) {
                self.error(*col, format!("{name}= stands here already"), None);
            }
            let mut terms = Vec::new();
            let mut from = *col + name.len() as u32 + 1;
            for term in list.split(',') {
                let collects = right == Right::Update && matches!(object_type, NLB | NLB_JOB);
                match self.term(from, term) {
                    Some(Term::Collector) if !collects => {
                        let words = "<collector> stands in update= of NLB and NLB_JOB alone";
                        self.error(from, words, None);
                    }
                    term => terms.extend(term),
                }
                from += term.chars().count() as u32 + 1;
            }
            if terms.len() > MAX_TERMS {
                self.error(*col, format!("more than {MAX_TERMS} terms"), None);
            }
            rights.push((right, terms));
        }
        access.acls.push(Acl { object_type, line: self.line, rights });
    }

    fn term(&mut self, col: u32, word: &str) -> Option<Term> {
        let (user, host) = match word.split_once('@') {
            Some((user, host)) => (user, Some(host)),
            None => (word, None),
        };
        let plain = |w: &str| {
            let sign = |c: char| matches!(c, '_' | '-' | '.' | '$' | '\\');
            !w.is_empty() && w.chars().all(|c| c.is_alphanumeric() || sign(c))
        };
        match word {
            "*" => Some(Term::Everybody),
            "master" => Some(Term::Master),
            "collector" => Some(Term::Collector),
            _ if plain(user) && host.is_none_or(plain) => {
                Some(Term::User(user.to_owned(), host.map(str::to_owned)))
            }
            _ => {
                let words = "user, user@host, *, master or collector is wanted";
                self.error(col, format!("<{}>: {words}", shown(word)), None);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8]) -> Result<Access, Vec<String>> {
        let mut diags = Diags::new();
        let maps = NameMaps::shipped();
        let access = read_config(&Arc::from("/d/config"), text, &maps, &mut diags);
        access.ok_or_else(|| diags.list().iter().map(ToString::to_string).collect())
    }

    fn user(name: &str) -> Term {
        Term::User(name.to_owned(), None)
    }

    #[test]
    fn a_file_sets_the_master_list_the_rights_of_types_and_the_time_to_expire() {
        let text = b"# who\nmaster: lsfadm  ann@hosta\n\nacl nlb: update=master,bob read=* # x\n\
          expire: 600\n";
        let access = read(text).unwrap();
        let ann = Term::User("ann".into(), Some("hosta".into()));
        assert_eq!(access.master(), Some((&[user("lsfadm"), ann][..], 2)));
        assert_eq!(access.terms(NLB, Right::Update), (vec![Term::Master, user("bob")], 4));
        assert_eq!(access.terms(NLB, Right::Read), (vec![Term::Everybody], 4));
        assert_eq!(access.terms(NLB, Right::Delete), (vec![Term::Master], 0));
        let both = vec![Term::Master, Term::Collector];
        assert_eq!(access.terms(NLB_JOB, Right::Update), (both, 0));
        assert_eq!(access.terms(500, Right::Update), (vec![Term::Master], 0));
        assert_eq!(access.expire, 600);
        let none = read(b"").unwrap();
        assert!(none.master().is_none() && none.expire == 0);
    }

    #[test]
    fn faults_have_their_places_and_nothing_is_taken() {
        let fault = |text: &str| read(text.as_bytes()).unwrap_err().join("|");
        for (text, line) in [
            (
                "mastr: a",
                "1:1: <mastr> is unknown: master, acl or expire is wanted; did you mean <master>?",
            ),
            ("\n  master a", "2:3: <master>: a line with a colon is wanted"),
            (": a", "1:1: master, acl or expire is wanted before <:>"),
            ("master a: b", "1:8: <:> is wanted before <a>"),
            ("master:", "1:1: master: a user is wanted"),
            ("master: a\nmaster: b", "2:1: master is in line 1 already"),
            ("master: a b@ c", "1:11: <b@>: user, user@host, *, master or collector is wanted"),
            ("master: collector", "1:9: <collector> stands in the lists of acl alone"),
            ("acl: read=*", "1:1: acl: one object type is wanted before <:>"),
            ("acl NLP: read=*", "1:5: <NLP> is no object type; did you mean <NLB>?"),
            ("acl NLB:", "1:5: acl: read=, update= or delete= is wanted"),
            (
                "acl NLB: reed=*",
                "1:10: <reed=*>: read=, update= or delete= is wanted; did you mean <read>?",
            ),
            ("acl NLB: read", "1:10: <read>: read=, update= or delete= is wanted"),
            ("acl NLB: read=* read=a", "1:17: read= stands here already"),
            ("acl NLB: update=a,,b", "1:19: <>: user, user@host, *, master or collector is wanted"),
            (
                "acl NLB: read=collector",
                "1:15: <collector> stands in update= of NLB and NLB_JOB alone",
            ),
            ("acl NLB: read=*\nacl nlb: read=a", "2:5: acl <nlb> is in line 1 already"),
            ("expire: x", "1:9: expire: seconds from 0 to 31622400 are wanted"),
            ("expire: -1", "1:9: expire: seconds from 0 to 31622400 are wanted"),
            ("expire: 1\nexpire: 2", "2:1: expire is in line 1 already"),
        ] {
            assert_eq!(fault(text), format!("/d/config:{line}"), "{text}");
        }
        assert_eq!(read(b"master: a\n\xff").unwrap_err().len(), 1);
        assert_eq!(read(&vec![b'#'; MAX_FILE + 1]).unwrap_err().len(), 1);
    }
}
