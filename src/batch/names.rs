//! Interned names: queues, users and hosts appear in every job and every counter key.

use std::collections::HashMap;
use std::rc::Rc;

/// An interned name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sym(pub u32);

/// The table of names. Names are never removed: their number is bounded by users, queues and
/// hosts ever seen in one log.
#[derive(Debug, Default)]
pub struct Names {
    list: Vec<Rc<str>>,
    map: HashMap<Rc<str>, Sym>,
}

impl Names {
    pub fn sym(&mut self, name: &str) -> Sym {
        if let Some(&s) = self.map.get(name) {
            return s;
        }
        let s = Sym(self.list.len() as u32);
        let name: Rc<str> = name.into();
        self.list.push(name.clone());
        self.map.insert(name, s);
        s
    }
    pub fn find(&self, name: &str) -> Option<Sym> {
        self.map.get(name).copied()
    }
    pub fn text(&self, s: Sym) -> &Rc<str> {
        &self.list[s.0 as usize]
    }
}
