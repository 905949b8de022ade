//! The files with which a server begins.

use super::store::ObjectChange;
use crate::conf::diag::Diags;
use crate::conf::nlb_config::{Access, read_config};
use crate::conf::nlb_map::NameMaps;
use crate::conf::nlb_objects::{ObjectData, read_objects};
use crate::lang::nlb::{self, Policies};
use std::sync::Arc;

/// The files of NLB_SERVER_DIR as they were read; `None`: not there.
#[derive(Clone, Debug)]
pub struct StartFiles {
    pub config: Option<Vec<u8>>,
    pub name_map: Option<Vec<u8>>,
    pub objects: Option<Vec<u8>>,
    /// The policies file, or why it cannot be read.
    pub policies: Result<Vec<u8>, String>,
    pub last: Option<Vec<u8>>,
}

impl Default for StartFiles {
    /// An empty directory.
    fn default() -> Self {
        let policies = Err("No such file or directory".to_owned());
        StartFiles { config: None, name_map: None, objects: None, policies, last: None }
    }
}

/// The database with which a server begins.
#[derive(Clone, Debug)]
pub struct Started {
    pub(super) access: Access,
    pub(super) maps: NameMaps,
    pub(super) objects: Vec<ObjectChange>,
    pub(super) policies: Policies,
    pub(super) text: String,
    /// Lines for the log.
    pub notes: Vec<String>,
    /// There is no file `name_map` yet.
    pub new_map: bool,
    /// The policies file is good and not the one that was accepted last.
    pub new_policies: bool,
}

impl Started {
    /// The text of the policies.
    pub fn policies_text(&self) -> &str {
        &self.text
    }

    /// The text of the name maps.
    pub fn map_text(&self) -> String {
        self.maps.list().iter().map(|m| m.text()).collect()
    }
}

/// Reads the files of the directory `dir`. A fault in the name map or the objects is an error:
/// damage is named, never guessed over. With a bad policies file those last accepted run, else
/// the built-in ones.
///
/// # Errors
/// Every fault with its place.
pub fn start(dir: &str, files: &StartFiles) -> Result<Started, Vec<String>> {
    let name = |file: &str| -> Arc<str> { Arc::from(format!("{dir}/{file}")) };
    let mut diags = Diags::new();
    let maps = match &files.name_map {
        Some(bytes) => NameMaps::default().put(&name("name_map"), bytes, &mut diags),
        None => Some(NameMaps::shipped()),
    };
    let maps = maps.ok_or_else(|| refused(&diags, "name_map"))?;
    let mut diags = Diags::new();
    let access = match &files.config {
        Some(bytes) => read_config(&name("config"), bytes, &maps, &mut diags),
        None => Some(Access::default()),
    };
    let access = access.ok_or_else(|| refused(&diags, "config"))?;
    let mut diags = Diags::new();
    let objects = match &files.objects {
        Some(bytes) => read_objects(&name("objects"), bytes, &maps, None, &mut diags),
        None => Some(Vec::new()),
    };
    let objects = objects.ok_or_else(|| refused(&diags, "objects"))?;
    let mut notes = Vec::new();
    let mut read = |file: &str, bytes: &[u8]| {
        let mut diags = Diags::new();
        let policies = nlb::parse(&name(file), bytes, &maps, &mut diags);
        notes.extend(diags.list().iter().map(ToString::to_string));
        policies.map(|p| (p, String::from_utf8_lossy(bytes).into_owned()))
    };
    let mut found = match &files.policies {
        Ok(bytes) => read("policies", bytes),
        Err(why) => {
            let line = format!("{}: {why}", name("policies"));
            let last = files.last.as_ref().and_then(|bytes| read("policies.last", bytes));
            notes.push(line);
            last
        }
    };
    let own = found.as_ref().filter(|_| files.policies.is_ok());
    let new_policies = own.is_some_and(|(_, text)| files.last.as_deref() != Some(text.as_bytes()));
    if found.is_none() && files.policies.is_ok() {
        let mut diags = Diags::new();
        let file = name("policies.last");
        let last = files.last.as_ref();
        let last = last.and_then(|b| Some((nlb::parse(&file, b, &maps, &mut diags)?, b)));
        found = last.map(|(p, b)| (p, String::from_utf8_lossy(b).into_owned()));
        notes.push(match found {
            Some(_) => format!("{file}: the policies last accepted run"),
            None => "the built-in policies run".to_owned(),
        });
    }
    let built_in = || {
        let mut diags = Diags::new();
        let file = Arc::from("built-in policies");
        let policies = nlb::parse(&file, nlb::BUILT_IN.as_bytes(), &maps, &mut diags);
        policies.map(|p| (p, nlb::BUILT_IN.to_owned())).ok_or_else(|| refused(&diags, "name_map"))
    };
    let (policies, text) = found.map_or_else(built_in, Ok)?;
    let new_map = files.name_map.is_none();
    let objects = objects.into_iter().map(stored).collect();
    Ok(Started { access, maps, objects, policies, text, notes, new_map, new_policies })
}

fn stored(object: ObjectData) -> ObjectChange {
    ObjectChange { object_type: object.object_type, name: object.name, values: Some(object.values) }
}

fn refused(diags: &Diags, file: &str) -> Vec<String> {
    let mut lines: Vec<String> = diags.list().iter().map(ToString::to_string).collect();
    lines.push(match file {
        "config" => "put the file right, or take it away for the defaults".to_owned(),
        "name_map" => format!("put back {file}.prev, or take the file away for the default map"),
        _ => format!("put back {file}.prev, or take the file away"),
    });
    lines
}
