//! The name maps of the load balancer: the names, descriptions and identities of the attributes of
//! each object type. See name_map(5).
//!
//! Invariant of [`NameMaps`]: names and identities are unique within a type, names and numbers of
//! types are unique, and no name is one of both NLB and NLB_JOB.

use super::diag::{Diags, Pos};
use super::nlb_reader::{Reader, Spelled, Told, quoted};
use crate::lang::nlb::text::{Place, decode};
use crate::lang::nlb::{Known, Names, Owner, Policies};
use crate::model::nlb::{AttrId, Kind, MAX_NAME, NJS, NLB, NLB_JOB};
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

/// Largest name map file, bytes.
pub const MAX_FILE: usize = 1 << 20;
/// Most object types.
pub const MAX_TYPES: usize = 64;
/// Most attributes of a type.
pub const MAX_ATTRIBUTES: usize = 4_096;
/// Longest description, bytes.
pub const MAX_DESCRIPTION: usize = 1_024;
/// Numbers below this one are reserved.
pub const FIRST_OF_SITE: u32 = 8_192;

/// The map that the server begins with.
const DEFAULT: &str = include_str!("templates/name_map");

/// Words that a policy could not tell from an attribute.
const LANGUAGE: [&str; 6] = ["age", "exists", "policy", "constraint", "sort", "count"];

/// The types whose numbers are fixed.
const FIXED: [(&str, u16); 3] = [("NLB", NLB), ("NLB_JOB", NLB_JOB), ("NJS", NJS)];

/// One attribute of a map.
#[derive(Clone, Debug)]
pub struct MapAttribute {
    /// The name, as the map spells it.
    pub name: String,
    /// The description.
    pub description: String,
    /// The identity.
    pub id: AttrId,
    at: Place,
}

impl PartialEq for MapAttribute {
    /// The place in a file does not count.
    fn eq(&self, other: &Self) -> bool {
        (&self.name, &self.description, self.id) == (&other.name, &other.description, other.id)
    }
}

/// The attributes of one object type.
#[derive(Clone, Debug)]
pub struct NameMap {
    name: String,
    number: u16,
    attributes: Vec<MapAttribute>,
    at: Place,
    by_name: HashMap<String, usize>,
    by_id: HashMap<AttrId, usize>,
}

impl PartialEq for NameMap {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, self.number, &self.attributes)
            == (&other.name, other.number, &other.attributes)
    }
}

impl NameMap {
    /// The name of the type.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of the type, 1 to 65535.
    pub fn number(&self) -> u16 {
        self.number
    }

    /// The attributes in the order of the map.
    pub fn attributes(&self) -> &[MapAttribute] {
        &self.attributes
    }

    /// The attribute of that name, in any case of letters.
    pub fn named(&self, name: &str) -> Option<&MapAttribute> {
        self.attributes.get(*self.by_name.get(&name.to_ascii_lowercase())?)
    }

    /// The attribute of that identity.
    pub fn of_id(&self, id: AttrId) -> Option<&MapAttribute> {
        self.attributes.get(*self.by_id.get(&id)?)
    }

    /// The map as the text of a name_map file.
    pub fn text(&self) -> String {
        let mut out = format!("map {} = {} {{\n", self.name, self.number);
        for a in &self.attributes {
            let _ = writeln!(out, "\t{} {} {};", a.name, quoted(&a.description), a.id);
        }
        out.push_str("}\n");
        out
    }
}

/// All maps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NameMaps {
    maps: Vec<NameMap>,
}

impl NameMaps {
    /// The maps that a server begins with: those of hosts, request attributes and requests.
    pub fn shipped() -> NameMaps {
        let mut diags = Diags::new();
        let file = Arc::from("name_map");
        read_maps(&file, DEFAULT.as_bytes(), None, &mut diags).unwrap_or_default()
    }

    /// All maps in order.
    pub fn list(&self) -> &[NameMap] {
        &self.maps
    }

    /// The map of a type by its name, in any case of letters.
    pub fn named(&self, name: &str) -> Option<&NameMap> {
        self.maps.iter().find(|m| m.name.eq_ignore_ascii_case(name))
    }

    /// The map of a type by its number.
    pub fn numbered(&self, number: u16) -> Option<&NameMap> {
        self.maps.iter().find(|m| m.number == number)
    }

    /// These maps with each of a name_map file in the place of that of its type. The file is
    /// `file`, its text `bytes`; with an error in it there is nothing new.
    pub fn put(&self, file: &Arc<str>, bytes: &[u8], diags: &mut Diags) -> Option<NameMaps> {
        let mut found = Diags::new();
        let given = read_maps(file, bytes, Some(&NameMaps::shipped()), &mut found);
        let mut all = self.clone();
        for map in given.iter().flat_map(|g| &g.maps) {
            let at = Pos::new(file, map.at.line, map.at.col);
            let same = |m: &&NameMap| m.name.eq_ignore_ascii_case(&map.name);
            if let Some(other) = self.maps.iter().find(same).filter(|m| m.number != map.number) {
                let words = format!("type <{}> has the number {}", map.name, other.number);
                found.error(&at, words);
            }
            match all.maps.iter_mut().find(|m| m.number == map.number) {
                Some(old) => *old = map.clone(),
                None => all.maps.push(map.clone()),
            }
        }
        if all.maps.len() > MAX_TYPES {
            found.error(&Pos::whole(file), format!("more than {MAX_TYPES} object types"));
        }
        if let Some(given) = &given {
            check_shared(&all, given, file, &mut found);
        }
        let good = given.is_some() && !found.has_errors();
        diags.join(found.into_list());
        good.then_some(all)
    }

    /// Says of each attribute that a policy looks at and these maps no longer have, or have with
    /// another kind; `file` is the name map's, `policies_file` that of the policies.
    pub fn check_used(
        &self,
        policies: &Policies,
        policies_file: &str,
        file: &Arc<str>,
        diags: &mut Diags,
    ) {
        for policy in policies.list() {
            for used in policy.attributes() {
                let still = match self.attribute(&used.name) {
                    Some(Known::Of(owner, id)) => owner == used.owner && id.kind == used.id.kind,
                    _ => false,
                };
                if !still {
                    let Place { line, col } = used.at;
                    let place = format!("{policies_file}:{line}:{col}");
                    let by = format!("is used by policy <{}> ({place})", policy.name());
                    let words =
                        format!("attribute <{}> {by}; change the policies first", used.name);
                    diags.error(&Pos::whole(file), words);
                }
            }
        }
    }
}

impl Names for NameMaps {
    fn attribute(&self, name: &str) -> Option<Known<'_>> {
        let of = |number, owner| {
            let found = self.numbered(number)?.named(name)?;
            Some(Known::Of(owner, found.id))
        };
        let other = || {
            let found = self.maps.iter().find(|m| m.named(name).is_some())?;
            Some(Known::Other(found.name.as_str()))
        };
        of(NLB, Owner::Host).or_else(|| of(NLB_JOB, Owner::Request)).or_else(other)
    }

    fn all(&self) -> Vec<&str> {
        let maps = self.maps.iter().filter(|m| m.number == NLB || m.number == NLB_JOB);
        maps.flat_map(|m| &m.attributes).map(|a| a.name.as_str()).collect()
    }
}

/// A name that NLB and NLB_JOB both have, where the file that brings it has it.
fn check_shared(all: &NameMaps, given: &NameMaps, file: &Arc<str>, diags: &mut Diags) {
    let (Some(hosts), Some(requests)) = (all.numbered(NLB), all.numbered(NLB_JOB)) else { return };
    for a in &requests.attributes {
        let Some(other) = hosts.named(&a.name) else { continue };
        let at = match given.numbered(NLB_JOB) {
            Some(_) => a.at,
            None => other.at,
        };
        let words =
            format!("<{}> is an attribute of both {} and {}", a.name, hosts.name, requests.name);
        diags.error(&Pos::new(file, at.line, at.col), words);
    }
}

/// Reads a name_map file by itself. `shipped` holds the reserved attributes; the file that
/// defines them is read without.
fn read_maps(
    file: &Arc<str>,
    bytes: &[u8],
    shipped: Option<&NameMaps>,
    diags: &mut Diags,
) -> Option<NameMaps> {
    let text = decode(file, bytes, MAX_FILE, diags)?;
    let mut reader = Reader::new(text, file, diags);
    let mut maps: Vec<NameMap> = Vec::new();
    while !reader.at_end() {
        let map = match read_map(&mut reader, shipped) {
            Ok(map) => map,
            Err(Told) => break,
        };
        if let Some(other) = maps.iter().find(|m| m.name.eq_ignore_ascii_case(&map.name)) {
            let line = other.at.line;
            reader.error(map.at, format!("type <{}> is already defined in line {line}", map.name));
        } else if let Some(other) = maps.iter().find(|m| m.number == map.number) {
            let words = format!("number {} is that of type <{}>", map.number, other.name);
            reader.error(map.at, format!("{words}, in line {}", other.at.line));
        } else if maps.len() == MAX_TYPES {
            reader.error(map.at, format!("more than {MAX_TYPES} object types"));
            break;
        } else {
            maps.push(map);
        }
    }
    if maps.is_empty() && !diags.has_errors() {
        diags.error(&Pos::whole(file), "no map is defined");
    }
    (!diags.has_errors()).then_some(NameMaps { maps })
}

fn read_map(reader: &mut Reader<'_, '_>, shipped: Option<&NameMaps>) -> Result<NameMap, Told> {
    let word = reader.name("map")?;
    if !word.text.eq_ignore_ascii_case("map") {
        let words = format!("<{}> is unknown: map is wanted", word.text);
        return Err(reader.error(word.at, words));
    }
    let name = reader.name("the name of an object type")?;
    check_name(reader, &name);
    reader.sign("=")?;
    let at = reader.place();
    let number = reader.number("the number of the type", u32::from(u16::MAX))?;
    let number = u16::try_from(number).unwrap_or_default();
    if number == 0 {
        reader.error(at, "the number of a type is from 1");
    }
    check_fixed(reader, &name, number);
    reader.sign("{")?;
    let mut map = NameMap {
        name: name.text.to_owned(),
        number,
        attributes: Vec::new(),
        at: name.at,
        by_name: HashMap::new(),
        by_id: HashMap::new(),
    };
    let reserved = shipped.and_then(|s| s.numbered(number));
    while !reader.eat("}") {
        let attribute = read_attribute(reader)?;
        add_attribute(reader, &mut map, attribute, reserved)?;
    }
    if let Some(reserved) = reserved {
        let gone = reserved.attributes.iter().filter(|a| map.of_id(a.id).is_none()).count();
        if gone > 0 {
            let words = format!("{gone} reserved attributes of {} are left out", map.name);
            reader.warning(map.at, words);
        }
    }
    Ok(map)
}

fn check_name(reader: &mut Reader<'_, '_>, name: &Spelled<&str>) {
    if name.text.len() > MAX_NAME {
        reader.error(name.at, format!("<{}> is longer than {MAX_NAME} characters", name.text));
    }
}

/// The types of the load balancer have their numbers, and these no other name.
fn check_fixed(reader: &mut Reader<'_, '_>, name: &Spelled<&str>, number: u16) {
    let by_name = FIXED.iter().find(|(n, _)| n.eq_ignore_ascii_case(name.text));
    let by_number = FIXED.iter().find(|(_, n)| *n == number);
    match (by_name, by_number) {
        (Some((fixed, wanted)), _) if *wanted != number => {
            reader.error(name.at, format!("type <{fixed}> has the number {wanted}"));
        }
        (None, Some((fixed, _))) => {
            reader.error(name.at, format!("number {number} is that of type <{fixed}>"));
        }
        _ => {}
    }
}

fn read_attribute(reader: &mut Reader<'_, '_>) -> Result<MapAttribute, Told> {
    let name = reader.name("an attribute or <}>")?;
    check_name(reader, &name);
    let description = match reader.string() {
        Some(string) => string?,
        None => return Err(reader.wanted("a description in quotes")),
    };
    if description.text.len() > MAX_DESCRIPTION {
        reader.error(description.at, format!("longer than {MAX_DESCRIPTION} bytes"));
    }
    let word = reader.name("float, integer, string or time")?;
    let Some(kind) = Kind::of_word(word.text) else {
        let words = format!("<{}> is no kind: float, integer, string or time is wanted", word.text);
        let near = super::names::nearest(word.text, Kind::WORDS.map(|(w, _)| w));
        return Err(reader.error_near(word.at, words, near));
    };
    let id = reader.id(kind)?;
    reader.sign(";")?;
    if LANGUAGE.iter().any(|w| w.eq_ignore_ascii_case(name.text)) {
        reader.error(name.at, format!("<{}> is a word of the policy language", name.text));
    }
    Ok(MapAttribute { name: name.text.to_owned(), description: description.text, id, at: name.at })
}

fn add_attribute(
    reader: &mut Reader<'_, '_>,
    map: &mut NameMap,
    new: MapAttribute,
    reserved: Option<&NameMap>,
) -> Result<(), Told> {
    if map.attributes.len() == MAX_ATTRIBUTES {
        let words = format!("more than {MAX_ATTRIBUTES} attributes of {}", map.name);
        return Err(reader.error(new.at, words));
    }
    if let Some(other) = map.named(&new.name) {
        let line = other.at.line;
        reader.error(new.at, format!("<{}> is already defined in line {line}", new.name));
        return Ok(());
    }
    if let Some(other) = map.of_id(new.id) {
        let (id, name, line) = (new.id, &other.name, other.at.line);
        reader.error(new.at, format!("<{}>: {id} is <{name}> already, in line {line}", new.name));
        return Ok(());
    }
    let listed = reserved.is_none_or(|r| r.of_id(new.id).is_some());
    if new.id.number < FIRST_OF_SITE && !listed {
        let words =
            format!("<{}> {}: numbers below {FIRST_OF_SITE} are reserved", new.name, new.id);
        reader.warning(new.at, words);
    }
    let at = map.attributes.len();
    map.by_name.insert(new.name.to_ascii_lowercase(), at);
    map.by_id.insert(new.id, at);
    map.attributes.push(new);
    Ok(())
}
