//! Object data files of the load balancer: the values of attributes, read and written.
//! See nlbobjects(5).

use super::diag::Diags;
use super::names::nearest;
use super::nlb_map::{NameMap, NameMaps};
use super::nlb_reader::{Reader, Spelled, Told, of_word, quoted};
use crate::lang::nlb::text::{Place, decode, shown};
use crate::model::nlb::{AttrId, Kind, MAX_STRING, NLB, Value};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;
use std::sync::Arc;

/// Largest object data file, bytes.
pub const MAX_FILE: usize = 64 << 20;
/// Most objects of a type.
pub const MAX_OBJECTS: usize = 100_000;
/// Most attributes of an object.
pub const MAX_VALUES: usize = 4_096;
/// Longest name of an object, bytes.
pub const MAX_OBJECT_NAME: usize = 255;

/// Attributes of hosts that the server alone sets.
pub const SET_BY_SERVER: [AttrId; 3] =
    [AttrId::new(Kind::Float, 4), AttrId::new(Kind::Time, 4096), AttrId::new(Kind::Str, 4098)];

/// An object of a file.
#[derive(Clone, Debug)]
pub struct ObjectData {
    /// The number of its type.
    pub object_type: u16,
    /// The name, as the file spells it.
    pub name: String,
    /// The values.
    pub values: BTreeMap<AttrId, Value>,
    at: Place,
}

impl PartialEq for ObjectData {
    /// The place in a file does not count.
    fn eq(&self, other: &Self) -> bool {
        (self.object_type, &self.name, &self.values)
            == (other.object_type, &other.name, &other.values)
    }
}

/// Reads an object data file with the names of `maps`. With `only`, objects of that type alone may
/// stand in it. With an error in it there are no objects.
pub fn read_objects(
    file: &Arc<str>,
    bytes: &[u8],
    maps: &NameMaps,
    only: Option<u16>,
    diags: &mut Diags,
) -> Option<Vec<ObjectData>> {
    let mut found = Diags::new();
    let objects = decode(file, bytes, MAX_FILE, &mut found).map(|text| {
        let reader = Reader::new(text, file, &mut found);
        let mut objects = Objects {
            reader,
            maps,
            only,
            list: Vec::new(),
            places: HashMap::new(),
            counts: HashMap::new(),
            skipped: BTreeSet::new(),
        };
        // the fault is told of
        let _ = objects.read();
        objects.list
    });
    let good = !found.has_errors();
    diags.join(found.into_list());
    objects.filter(|_| good)
}

/// A file that is being read.
struct Objects<'a, 'd> {
    reader: Reader<'a, 'd>,
    maps: &'d NameMaps,
    only: Option<u16>,
    list: Vec<ObjectData>,
    /// The position of each object by type and name in lower case.
    places: HashMap<(u16, String), usize>,
    /// Objects of each type.
    counts: HashMap<u16, usize>,
    /// Attributes that were passed over: each is told of once.
    skipped: BTreeSet<(u16, AttrId)>,
}

impl Objects<'_, '_> {
    fn read(&mut self) -> Result<(), Told> {
        while !self.reader.at_end() {
            let word = self.reader.name("object")?;
            if !word.text.eq_ignore_ascii_case("object") {
                let words = format!("<{}> is unknown: object is wanted", shown(word.text));
                return Err(self.reader.error(word.at, words));
            }
            self.object()?;
        }
        Ok(())
    }

    fn object(&mut self) -> Result<(), Told> {
        let maps = self.maps;
        let word = self.reader.name("an object type")?;
        let map = maps.named(word.text);
        if map.is_none() {
            let near = nearest(word.text, maps.list().iter().map(NameMap::name));
            let words = format!("<{}> is no object type", shown(word.text));
            self.reader.error_near(word.at, words, near);
        }
        let others = self.only.zip(map).filter(|(only, map)| *only != map.number());
        if let Some((only, map)) = others {
            let wanted = maps.numbered(only).map_or("", NameMap::name);
            let words =
                format!("an object of type {}: only those of {wanted} are wanted", map.name());
            self.reader.error(word.at, words);
        }
        self.reader.sign("(")?;
        let name = self.object_name()?;
        self.reader.sign(")")?;
        self.reader.sign("{")?;
        let mut object = ObjectData {
            object_type: map.map_or(0, NameMap::number),
            name: name.text,
            values: BTreeMap::new(),
            at: name.at,
        };
        while !self.reader.eat("}") {
            self.value(map, &mut object)?;
        }
        self.add(object)
    }

    fn object_name(&mut self) -> Result<Spelled<String>, Told> {
        let name = match self.reader.string() {
            Some(string) => string?,
            None => {
                let word = self.reader.run(of_object_name);
                Spelled { text: word.text.to_owned(), at: word.at }
            }
        };
        if name.text.is_empty() {
            return Err(self.reader.wanted("the name of an object"));
        }
        if name.text.len() > MAX_OBJECT_NAME {
            let words = format!("<{}> is longer than {MAX_OBJECT_NAME} bytes", shown(&name.text));
            self.reader.error(name.at, words);
        }
        Ok(name)
    }

    /// Adds an object, or its values to those of the same object further up.
    fn add(&mut self, object: ObjectData) -> Result<(), Told> {
        let key = (object.object_type, object.name.to_ascii_lowercase());
        if let Some(before) = self.places.get(&key).and_then(|at| self.list.get_mut(*at)) {
            let line = before.at.line;
            before.values.extend(object.values);
            let words = format!("object <{}> is in line {line} already", object.name);
            self.reader.warning(object.at, format!("{words}: later values win"));
            return Ok(());
        }
        let count = self.counts.entry(object.object_type).or_default();
        *count += 1;
        if *count > MAX_OBJECTS {
            let words = format!("more than {MAX_OBJECTS} objects of one type");
            return Err(self.reader.error(object.at, words));
        }
        self.places.insert(key, self.list.len());
        self.list.push(object);
        Ok(())
    }

    /// `attribute = value ;`
    fn value(&mut self, map: Option<&NameMap>, object: &mut ObjectData) -> Result<(), Told> {
        let word = self.reader.name("an attribute or <}>")?;
        let id = self.attribute(&word, map)?;
        self.reader.sign("=")?;
        let quoted = match self.reader.string() {
            Some(string) => Some(string?),
            None => None,
        };
        let is_string = quoted.is_some();
        let given = match quoted {
            Some(string) => string,
            None => {
                let raw = self.reader.run(of_value);
                Spelled { text: raw.text.to_owned(), at: raw.at }
            }
        };
        if given.text.is_empty() && !is_string {
            return Err(self.reader.wanted("a value"));
        }
        self.reader.sign(";")?;
        let Some(id) = id else { return Ok(()) };
        if id.kind == Kind::Time || (object.object_type == NLB && SET_BY_SERVER.contains(&id)) {
            if self.skipped.insert((object.object_type, id)) {
                let words = format!("{} is set by the server: skipped", word.text);
                self.reader.warning(word.at, words);
            }
            return Ok(());
        }
        match value(id.kind, &given.text, is_string) {
            Ok(value) => {
                object.values.insert(id, value);
            }
            Err(words) => {
                self.reader.error(given.at, words);
            }
        }
        if object.values.len() > MAX_VALUES {
            let words = format!("more than {MAX_VALUES} attributes of <{}>", object.name);
            return Err(self.reader.error(word.at, words));
        }
        Ok(())
    }

    /// The identity of an attribute by its name, or by its kind and number. `None`: it has none,
    /// which is told of.
    fn attribute(
        &mut self,
        word: &Spelled<&str>,
        map: Option<&NameMap>,
    ) -> Result<Option<AttrId>, Told> {
        let kind = Kind::of_word(word.text);
        if let Some(kind) = kind.filter(|_| self.reader.follows("(")) {
            return self.reader.id(kind).map(Some);
        }
        if let Some(found) = map.and_then(|m| m.named(word.text)) {
            return Ok(Some(found.id));
        }
        if let Some(map) = map {
            let near = nearest(word.text, map.attributes().iter().map(|a| a.name.as_str()));
            let words = format!("no attribute <{}> in the map of {}", shown(word.text), map.name());
            self.reader.error_near(word.at, words, near);
        }
        Ok(None)
    }
}

/// Is the character one of an object's name without quotes?
fn of_object_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// Is the character one of a value without quotes, right or wrong?
fn of_value(c: char) -> bool {
    of_word(c) || matches!(c, '+' | '-' | '.')
}

/// The value of that kind which `text` is; the error says what is wrong with it.
fn value(kind: Kind, text: &str, quoted: bool) -> Result<Value, String> {
    let cut = shown(text);
    match kind {
        Kind::Str => {
            if text.len() > MAX_STRING {
                return Err(format!("longer than {MAX_STRING} bytes"));
            }
            if !quoted && !text.bytes().all(|b| b.is_ascii_alphanumeric()) {
                let words =
                    "a string with other characters than letters and digits stands in quotes";
                return Err(format!("<{cut}>: {words}"));
            }
            Ok(Value::Str(Arc::from(text)))
        }
        _ if quoted => Err(format!("\"{cut}\": a number stands without quotes")),
        Kind::Float => {
            let digits = text.trim_start_matches(['-', '+']);
            let fixed = text.len() - digits.len() <= 1
                && digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
            let value = text.parse::<f64>().ok().filter(|x| fixed && x.is_finite());
            let value = value.ok_or(format!("<{cut}>: a float is written in fixed point"))?;
            Ok(Value::Float(value))
        }
        Kind::Integer | Kind::Time => integer(text).map(Value::Integer),
    }
}

/// A whole number; a leading 0 makes it octal.
fn integer(text: &str) -> Result<i64, String> {
    let cut = shown(text);
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(format!("<{cut}> is no whole number"));
    }
    let octal = digits.len() > 1 && digits.starts_with('0');
    if octal && digits.bytes().any(|b| b > b'7') {
        return Err(format!("<{cut}> is no octal number"));
    }
    // with its sign, since the least number has no positive counterpart
    let radix = if octal { 8 } else { 10 };
    i64::from_str_radix(text, radix).map_err(|_| format!("<{cut}> is beyond 64 bits"))
}

/// A finite number as a value of that kind, whole numbers rounded to the nearest, half away from 0.
pub fn of_number(kind: Kind, x: f64) -> Value {
    match kind {
        Kind::Integer => Value::Integer(x.round() as i64),
        Kind::Time => Value::Time(x.round() as i64),
        _ => Value::Float(x),
    }
}

/// A value as an object data file has it.
pub fn value_text(value: &Value) -> String {
    match value {
        // the shortest digits that read back to the same number
        Value::Float(x) => match x.to_string() {
            text if text.contains('.') => text,
            text => format!("{text}.0"),
        },
        Value::Integer(n) | Value::Time(n) => n.to_string(),
        Value::Str(text) => quoted(text),
    }
}

/// The head of an object: its type and name.
fn head(map_name: &str, name: &str) -> String {
    let plain = !name.is_empty() && name.chars().all(of_object_name);
    let name = if plain { name.to_owned() } else { quoted(name) };
    format!("object {map_name} ({name})")
}

/// An object with the attributes that its map names, in the order of the map. Times have their date
/// in `zone` behind.
pub fn dump(
    map: &NameMap,
    name: &str,
    values: &BTreeMap<AttrId, Value>,
    zone: &TimeZone,
) -> String {
    let mut out = head(map.name(), name) + " {\n";
    for a in map.attributes() {
        let Some(value) = values.get(&a.id) else { continue };
        let _ = write!(out, "\t{} = {};", a.name, value_text(value));
        if let Value::Time(at) = value {
            let _ = write!(out, "  # {}", date(*at, zone));
        }
        out.push('\n');
    }
    out.push_str("}\n");
    out
}

/// An object with all its attributes by kind and number, the name behind where the map has one: no
/// change of the map changes what the text says.
pub fn store(map: &NameMap, name: &str, values: &BTreeMap<AttrId, Value>) -> String {
    let mut out = head(map.name(), name) + " {\n";
    for (id, value) in values {
        let _ = write!(out, "\t{id} = {};", value_text(value));
        if let Some(a) = map.of_id(*id) {
            let _ = write!(out, "  # {}", a.name);
        }
        out.push('\n');
    }
    out.push_str("}\n");
    out
}

/// A second of 1970 as the C library writes it, without the line end.
pub fn date(at: i64, zone: &TimeZone) -> String {
    match Timestamp::from_second(at) {
        Ok(at) => at.to_zoned(zone.clone()).strftime("%a %b %e %H:%M:%S %Y").to_string(),
        Err(_) => at.to_string(),
    }
}

/// The text of all maps, or of some, with the head that a name map file has: `now` and each
/// map's own last change are seconds since 1970.
pub fn dump_maps<'a>(
    maps: impl IntoIterator<Item = (&'a NameMap, i64)>,
    by: &str,
    now: i64,
    zone: &TimeZone,
) -> String {
    let mut out = String::new();
    for (map, changed) in maps {
        let _ = writeln!(out, "{}", "#".repeat(47));
        let _ = writeln!(out, "# creation date: {}", date(now, zone));
        let _ = writeln!(out, "# created by: {by}");
        let _ = writeln!(out, "# object timestamp: {}", date(changed, zone));
        let _ = writeln!(out, "{}", "#".repeat(8));
        out.push_str(&map.text());
    }
    out
}
