//! Changes: policies read again, name maps and objects put and deleted. One at a time; each acts,
//! and is answered, when its files are durable. A change with a fault changes nothing.

use super::changing::{Changing, What};
use super::server::NlbServer;
use super::store::{Object, ObjectChange};
use crate::conf::diag::{Diag, Diags, Pos};
use crate::conf::nlb_config::{Access, Right, read_config};
use crate::conf::nlb_map::NameMaps;
use crate::conf::nlb_objects::{MAX_OBJECTS, MAX_VALUES, ObjectData, date, read_objects};
use crate::lang::nlb::text::Cursor;
use crate::lang::nlb::{self, Policies};
use crate::model::Now;
use crate::model::nlb::{NJS, NLB};
use crate::model::reason::err;
use crate::proto::machine::ConnId;
use crate::proto::nlb::{
    MAX_TEXT, NlbEffect, NlbFile, NlbInput, NlbMsg, NlbObjects, NlbOutcome, NlbStored,
};
use crate::proto::{Effect, Refusal};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Most warnings of values that a collector reports as well.
const MAX_HIDDEN: usize = 100;

impl NlbServer {
    /// Begins a change of a caller who may make it; there is none under way.
    pub(super) fn begin(&mut self, conn: ConnId, msg: NlbMsg, out: &mut Vec<Effect>) {
        match msg {
            NlbMsg::Reload => {
                let n = self.next_order();
                self.changing =
                    Some(Changing { order: n, conn, lines: Vec::new(), what: What::Reading });
                Self::files(NlbEffect::ReadPolicies { n }, out);
            }
            NlbMsg::Conf => {
                let n = self.next_order();
                let what = What::ReadingConfig;
                self.changing = Some(Changing { order: n, conn, lines: Vec::new(), what });
                Self::files(NlbEffect::ReadConfig { n }, out);
            }
            NlbMsg::MapPut(file) => self.map_put(conn, &file, out),
            NlbMsg::Put(file) => self.put(conn, &file, out),
            NlbMsg::Delete(which) => self.delete(conn, &which, out),
            _ => {}
        }
    }

    fn outcome(&mut self, conn: ConnId, outcome: NlbOutcome, out: &mut Vec<Effect>) {
        self.send(conn, vec![NlbMsg::Outcome(outcome)], out);
    }

    fn faults(&mut self, conn: ConnId, lines: Vec<String>, words: &str, out: &mut Vec<Effect>) {
        let outcome = NlbOutcome { taken: false, lines, words: words.to_owned() };
        self.outcome(conn, outcome, out);
    }

    /// Has the files of a change written.
    fn write(
        &mut self,
        conn: ConnId,
        diags: Diags,
        what: What,
        file: (NlbStored, String),
        out: &mut Vec<Effect>,
    ) {
        let n = self.next_order();
        self.changing = Some(Changing { order: n, conn, lines: lines(diags.list()), what });
        Self::files(NlbEffect::Write { n, files: vec![file] }, out);
    }

    fn too_long(&mut self, conn: ConnId, file: &NlbFile, out: &mut Vec<Effect>) -> bool {
        let long = file.text.len() > MAX_TEXT;
        if long {
            let words = format!("larger than {} MB: put it in parts", MAX_TEXT >> 20);
            self.refuse(conn, Refusal::text(err::BAD_ARG, format!("{}: {words}", file.name)), out);
        }
        long
    }

    fn map_put(&mut self, conn: ConnId, file: &NlbFile, out: &mut Vec<Effect>) {
        if self.too_long(conn, file, out) {
            return;
        }
        let mut diags = Diags::new();
        match self.new_maps(file, &mut diags) {
            Some((maps, policies)) => {
                let text = maps.list().iter().map(|m| m.text()).collect();
                let what = What::Maps(Box::new(maps), policies);
                self.write(conn, diags, what, (NlbStored::NameMap, text), out);
            }
            None => self.faults(conn, lines(diags.list()), "name map not taken", out),
        }
    }

    /// The maps with those of a file, and the policies with the names of these.
    fn new_maps(&self, file: &NlbFile, diags: &mut Diags) -> Option<(NameMaps, Policies)> {
        let name: Arc<str> = Arc::from(file.name.as_str());
        let maps = self.maps.put(&name, file.text.as_bytes(), diags)?;
        maps.check_used(&self.policies, &self.path("policies"), &name, diags);
        if diags.has_errors() {
            return None;
        }
        let running = Arc::from(self.path("policies.last"));
        let text = self.policies_text.as_bytes();
        let mut found = Diags::new();
        match nlb::parse(&running, text, &maps, &mut found) {
            Some(policies) => Some((maps, policies)),
            None => {
                diags.join(found.into_list());
                None
            }
        }
    }

    fn object_data(&self, file: &NlbFile, diags: &mut Diags) -> Option<Vec<ObjectData>> {
        let name: Arc<str> = Arc::from(file.name.as_str());
        let only = match file.object_type.as_str() {
            "" => None,
            of => match self.maps.named(of) {
                Some(map) => Some(map.number()),
                None => {
                    let at = Pos::whole(&file.name);
                    diags.error(&at, format!("<{of}> is no object type"));
                    return None;
                }
            },
        };
        read_objects(&name, file.text.as_bytes(), &self.maps, only, diags)
    }

    fn put(&mut self, conn: ConnId, file: &NlbFile, out: &mut Vec<Effect>) {
        if self.too_long(conn, file, out) {
            return;
        }
        let mut diags = Diags::new();
        let Some(objects) = self.object_data(file, &mut diags) else {
            return self.faults(conn, lines(diags.list()), "objects not taken", out);
        };
        let types: BTreeSet<u16> = objects.iter().map(|o| o.object_type).collect();
        if !types.into_iter().all(|number| self.has(conn, number, Right::Update, out)) {
            return;
        }
        if objects.iter().any(|o| o.object_type == NJS) {
            let words =
                vec![format!("{}: requests are not stored here: cqsub makes one", file.name)];
            return self.faults(conn, words, "objects not taken", out);
        }
        let hidden = self.hidden(&objects);
        hidden.iter().for_each(|words| diags.warning(&Pos::whole(&file.name), words.as_str()));
        let changes: Vec<_> =
            objects.into_iter().map(|o| self.change_of(o, file.replace)).collect();
        if let Some(words) = self.too_many(&changes) {
            let lines = vec![format!("{}: {words}", file.name)];
            return self.faults(conn, lines, "objects not taken", out);
        }
        let text = self.store.text(&self.maps, &changes);
        self.write(conn, diags, What::Objects(changes), (NlbStored::Objects, text), out);
    }

    /// A line for each value that nobody will see, since a collector reports the attribute.
    fn hidden(&self, objects: &[ObjectData]) -> Vec<String> {
        let mut lines = Vec::new();
        for object in objects.iter().filter(|o| o.object_type == NLB) {
            let name = self.conf.hosts.canonical(&object.name).unwrap_or(&object.name);
            let Some(found) = self.store.find(NLB, name) else { continue };
            for id in object.values.keys().filter(|id| found.reported(**id)) {
                let map = self.maps.numbered(NLB).and_then(|m| m.of_id(*id));
                let attribute = map.map_or_else(|| id.to_string(), |a| a.name.clone());
                let by = "is reported by its collector, which goes before";
                lines.push(format!("{attribute} of <{}> {by}", found.name()));
            }
        }
        lines.truncate(MAX_HIDDEN);
        lines
    }

    /// The words for changes that would exceed a limit.
    fn too_many(&self, changes: &[ObjectChange]) -> Option<String> {
        let full = |c: &&ObjectChange| c.values.as_ref().is_some_and(|v| v.len() > MAX_VALUES);
        if let Some(change) = changes.iter().find(full) {
            return Some(format!("more than {MAX_VALUES} attributes of <{}>", change.name));
        }
        let mut counts: BTreeMap<u16, usize> = BTreeMap::new();
        for c in changes {
            if self.store.find(c.object_type, &c.name).is_none() {
                let count = self.store.count(c.object_type);
                *counts.entry(c.object_type).or_insert(count) += 1;
            }
        }
        let full = counts.values().any(|n| *n > MAX_OBJECTS);
        full.then(|| format!("more than {MAX_OBJECTS} objects of one type"))
    }

    /// The change that an object of a file makes.
    fn change_of(&self, object: ObjectData, replace: bool) -> ObjectChange {
        let name = match self.conf.hosts.canonical(&object.name) {
            Some(name) if object.object_type == NLB => name.to_owned(),
            _ => object.name,
        };
        let before = self.store.find(object.object_type, &name).filter(|_| !replace);
        let mut values = before.map(Object::stored).unwrap_or_default();
        values.extend(object.values);
        ObjectChange { object_type: object.object_type, name, values: Some(values) }
    }

    fn delete(&mut self, conn: ConnId, which: &NlbObjects, out: &mut Vec<Effect>) {
        let fault = match self.maps.named(&which.object_type) {
            None => Some(format!("<{}> is no object type", which.object_type)),
            Some(_) if which.names.is_empty() => Some("no object is named".to_owned()),
            Some(map) if map.number() == NJS => {
                Some("requests are not stored here: cqdel deletes one".to_owned())
            }
            Some(_) => None,
        };
        let object_type = self.maps.named(&which.object_type).map_or(0, |m| m.number());
        let canonical = |name: &String| {
            let host = self.conf.hosts.canonical(name).filter(|_| object_type == NLB);
            host.unwrap_or(name).to_owned()
        };
        let names: Vec<String> = which.names.iter().map(canonical).collect();
        let gone = names.iter().find(|n| self.store.find(object_type, n).is_none());
        let fault = fault.or_else(|| gone.map(|name| format!("no object <{name}>")));
        if let Some(words) = fault {
            return self.faults(conn, vec![words], "nothing was deleted", out);
        }
        let deleted = |name| ObjectChange { object_type, name, values: None };
        let changes: Vec<_> = names.into_iter().map(deleted).collect();
        let text = self.store.text(&self.maps, &changes);
        self.write(conn, Diags::new(), What::Objects(changes), (NlbStored::Objects, text), out);
    }

    /// Whether a file is good: policies, a name map or object data, which its first word tells.
    pub(super) fn check(&mut self, conn: ConnId, file: &NlbFile, out: &mut Vec<Effect>) {
        if self.too_long(conn, file, out) {
            return;
        }
        let mut diags = Diags::new();
        let mut text = Cursor::new(&file.text);
        text.blanks();
        let first = text.take_while(|c| c.is_ascii_alphanumeric());
        let words = match first {
            w if w.eq_ignore_ascii_case("map") => {
                let new = self.new_maps(file, &mut diags);
                let words = "name maps, those of the server included";
                new.map(|(maps, _)| format!("{} {words}", maps.list().len()))
            }
            w if w.eq_ignore_ascii_case("object") => {
                let objects = self.object_data(file, &mut diags);
                objects.map(|all| match all.len() {
                    1 => "1 object".to_owned(),
                    n => format!("{n} objects"),
                })
            }
            _ => {
                let name = Arc::from(file.name.as_str());
                let found = nlb::parse(&name, file.text.as_bytes(), &self.maps, &mut diags);
                found.map(|all| policies_words(&all))
            }
        };
        let (taken, words) = (words.is_some(), words.unwrap_or_default());
        self.outcome(conn, NlbOutcome { taken, lines: lines(diags.list()), words }, out);
    }

    /// The runner has done what it was ordered, or could not.
    pub(super) fn report(&mut self, now: Now, report: NlbInput, out: &mut Vec<Effect>) {
        let n = match &report {
            NlbInput::Written { n, .. }
            | NlbInput::Policies { n, .. }
            | NlbInput::Config { n, .. } => *n,
            NlbInput::Collector(_) => return,
        };
        let Some(changing) = self.changing.take_if(|c| c.order == n) else { return };
        match report {
            NlbInput::Policies { read, .. } => self.policies_read(changing, read, out),
            NlbInput::Config { read, .. } => self.config_read(now, changing, read, out),
            NlbInput::Written { failed: Some(why), .. } => {
                out.push(Effect::Say { level: log::Level::Error, text: why.clone() });
                let words = match changing.what {
                    What::Policies(..) | What::Reading | What::ReadingConfig => self.kept(),
                    What::Maps(..) => "name map not taken".to_owned(),
                    What::Objects(_) => "objects not taken".to_owned(),
                };
                self.faults(changing.conn, vec![why], &words, out);
            }
            NlbInput::Written { failed: None, .. } => self.written(now, changing, out),
            NlbInput::Collector(_) => {}
        }
    }

    /// The words for policies that are not taken.
    fn kept(&self) -> String {
        let read = date(self.policies_read, &self.conf.zone);
        format!("policies not taken; those read at {read} stay in force")
    }

    fn policies_read(
        &mut self,
        changing: Changing,
        read: Result<Vec<u8>, String>,
        out: &mut Vec<Effect>,
    ) {
        let path = self.path("policies");
        let mut diags = Diags::new();
        let found = match &read {
            Ok(bytes) => nlb::parse(&Arc::from(path.as_str()), bytes, &self.maps, &mut diags)
                .map(|p| (p, String::from_utf8_lossy(bytes).into_owned())),
            Err(why) => {
                diags.error(&Pos::whole(&path), why.as_str());
                None
            }
        };
        let Some((policies, text)) = found else {
            let words = self.kept();
            return self.faults(changing.conn, lines(diags.list()), &words, out);
        };
        let file = (NlbStored::PoliciesLast, text.clone());
        self.write(changing.conn, diags, What::Policies(policies, text), file, out);
    }

    /// The config file acts at once, or not at all.
    fn config_read(
        &mut self,
        now: Now,
        changing: Changing,
        read: Result<Option<Vec<u8>>, String>,
        out: &mut Vec<Effect>,
    ) {
        let (path, mut diags) = (self.path("config"), Diags::new());
        let access = match read {
            Ok(Some(bytes)) => {
                read_config(&Arc::from(path.as_str()), &bytes, &self.maps, &mut diags)
            }
            Ok(None) => Some(Access::default()),
            Err(why) => {
                diags.error(&Pos::whole(&path), why);
                None
            }
        };
        let Some(access) = access else {
            let read = date(self.access_read, &self.conf.zone);
            let words = format!("config not taken; that read at {read} stays in force");
            return self.faults(changing.conn, lines(diags.list()), &words, out);
        };
        self.expire_at = (access.expire > 0).then_some(now.mono_us);
        (self.access, self.access_read) = (access, now.secs());
        let lines = lines(diags.list());
        let outcome = NlbOutcome { taken: true, lines, words: String::new() };
        self.outcome(changing.conn, outcome, out);
    }

    /// The files of a change are durable: it acts from now on.
    fn written(&mut self, now: Now, changing: Changing, out: &mut Vec<Effect>) {
        match changing.what {
            What::Reading | What::ReadingConfig => {}
            What::Policies(policies, text) => {
                (self.policies, self.policies_text) = (policies, text);
                self.policies_read = now.secs();
                self.generation += 1;
                self.tell_watchers(out);
            }
            What::Maps(maps, policies) => {
                for map in maps.list() {
                    if self.maps.numbered(map.number()) != Some(map) {
                        self.map_changed.insert(map.number(), now.secs());
                    }
                }
                (self.maps, self.policies) = (*maps, policies);
                self.generation += 1;
                self.map_generation += 1;
                self.tell_watchers(out);
            }
            What::Objects(changes) => self.store.change(changes),
        }
        let outcome = NlbOutcome { taken: true, lines: changing.lines, words: String::new() };
        self.outcome(changing.conn, outcome, out);
    }
}

/// The summary of a good policies file.
fn policies_words(policies: &Policies) -> String {
    let count = policies.list().len();
    let noun = if count == 1 { "policy" } else { "policies" };
    let default = policies.default_policy().map_or("", |p| p.name());
    format!("{count} {noun}, the default is <{default}>")
}

fn lines(diags: &[Diag]) -> Vec<String> {
    diags.iter().map(ToString::to_string).collect()
}
