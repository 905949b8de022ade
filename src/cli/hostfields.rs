//! The fields of lshosts -o and lsload -o over a host of LIM's. See lshosts(1) and lsload(1).

use super::columns::{Column, Fields, Format, Json, in_unit};
use super::load::{external_cell, host_cell, size, status_word, width};
use crate::proto::lim::{HostFacts, HostLoad, INDEX_NAMES, Queue};

/// Fields of lshosts: name, other name, width.
const STATIC: [(&str, &[&str], usize); 17] = [
    ("host_name", &["hname"], 11),
    ("type", &[], 7),
    ("model", &[], 8),
    ("cpuf", &[], 5),
    ("ncpus", &[], 5),
    ("maxmem", &[], 6),
    ("maxswp", &[], 6),
    ("server", &[], 6),
    ("resources", &["res"], 20),
    ("ndisks", &[], 6),
    ("maxtmp", &[], 6),
    ("rexpri", &[], 6),
    ("nprocs", &[], 6),
    ("ncores", &[], 6),
    ("nthreads", &[], 8),
    ("run_windows", &["runwin"], 15),
    ("status", &[], 8),
];

/// The fields of one of the two commands.
pub struct HostFields {
    /// lsload: name, status and indices, then these external ones.
    external: Option<Vec<String>>,
    how: Queue,
}

impl HostFields {
    pub fn of_lshosts() -> Self {
        HostFields { external: None, how: Queue::Raw }
    }

    pub fn of_lsload(external: Vec<String>, how: Queue) -> Self {
        HostFields { external: Some(external), how }
    }

    /// A format of every field.
    pub fn every(&self) -> String {
        let names: Vec<&str> = (0..self.count()).map(|field| self.name(field)).collect();
        names.join(" ")
    }

    /// All that a format of this text shows of these hosts; `json`: as JSON of this command.
    pub fn show(
        &self,
        text: &str,
        json: Option<&'static str>,
        hosts: &[HostLoad],
    ) -> Result<String, String> {
        let format = Format::parse(text, self).map_err(|e| e.to_string())?;
        let mut out = String::new();
        let Some(command) = json else {
            format.header(&mut out, self);
            for h in hosts {
                format.row(&mut out, self, |o, c| self.value(o, c, h));
            }
            return Ok(out);
        };
        let mut json = Json::new(command, "HOSTS");
        for h in hosts {
            format.record(&mut json, self, |o: &mut String, c: &Column| self.value(o, c, h));
        }
        Ok(json.finish())
    }

    fn value(&self, out: &mut String, c: &Column, h: &HostLoad) {
        let text = match &self.external {
            None => fact(c.field, c.unit, h),
            Some(_) if c.field == 0 => h.host.clone(),
            Some(_) if c.field == 1 => status_word(h.status).to_owned(),
            Some(_) if h.unavailable() => String::new(),
            Some(external) => match c.field - 2 {
                i if i < INDEX_NAMES.len() => host_cell(h, i, self.how),
                i => external
                    .get(i - INDEX_NAMES.len())
                    .map_or(String::new(), |n| external_cell(h, n)),
            },
        };
        out.push_str(&text);
    }
}

/// MB in the unit asked for, else as they are; `S` takes the unit that fits.
fn megabytes(mb: u64, unit: Option<char>) -> String {
    match unit {
        Some('S') => size(mb as f64),
        unit => {
            let mut text = String::new();
            in_unit(&mut text, mb.saturating_mul(1024), unit.unwrap_or('M'));
            text
        }
    }
}

fn fact(field: usize, unit: Option<char>, h: &HostLoad) -> String {
    let none = HostFacts::default();
    let f = h.facts.as_ref().unwrap_or(&none);
    let measured = f.max_mem > 0;
    let told = |text: String| if h.facts.is_some() { text } else { String::new() };
    let count = |n: u32| if measured { n.to_string() } else { String::new() };
    let mb = |mb: u64| if measured { megabytes(mb, unit) } else { String::new() };
    match field {
        0 => h.host.clone(),
        1 => f.host_type.clone(),
        2 => f.model.clone(),
        3 => told(format!("{:.1}", f.cpu_factor)),
        4 => count(f.ncpus),
        5 => mb(f.max_mem),
        6 => {
            if f.max_swp > 0 {
                mb(f.max_swp)
            } else {
                String::new()
            }
        }
        7 => if f.server { "Yes" } else { "No" }.to_owned(),
        8 => resources(f),
        9 => count(f.ndisks),
        10 => mb(f.max_tmp),
        11 => told(f.rexpri.to_string()),
        12 => count(f.nprocs),
        13 => count(f.ncores),
        14 => count(f.nthreads),
        15 => f.run_window.clone(),
        _ => status_word(h.status).to_owned(),
    }
}

/// Boolean resources by name, numeric ones with their value; exclusive ones after a `!`.
pub fn resources(f: &HostFacts) -> String {
    let word = |(name, value): &(String, Option<String>)| {
        let mark = if f.exclusive.contains(name) { "!" } else { "" };
        match value {
            None => Some(format!("{mark}{name}")),
            Some(v) if v.parse::<f64>().is_ok() => Some(format!("{mark}{name}={v}")),
            Some(_) => None,
        }
    };
    let words: Vec<String> = f.resources.iter().filter_map(word).collect();
    format!("({})", words.join(" "))
}

impl Fields for HostFields {
    fn count(&self) -> usize {
        self.external.as_ref().map_or(STATIC.len(), |e| 2 + INDEX_NAMES.len() + e.len())
    }
    fn name(&self, field: usize) -> &str {
        match (&self.external, field) {
            (None, _) => STATIC.get(field).map_or("", |f| f.0),
            (Some(_), 0) => "host_name",
            (Some(_), 1) => "status",
            (Some(external), i) => match INDEX_NAMES.get(i - 2) {
                Some(name) => name,
                None => external.get(i - 2 - INDEX_NAMES.len()).map_or("", String::as_str),
            },
        }
    }
    fn aliases(&self, field: usize) -> &[&str] {
        match (&self.external, field) {
            (None, _) => STATIC.get(field).map_or(&[], |f| f.1),
            (Some(_), 0) => &["hname"],
            _ => &[],
        }
    }
    fn width(&self, field: usize) -> usize {
        match (&self.external, field) {
            (None, _) => STATIC.get(field).map_or(1, |f| f.2),
            (Some(_), 0) => 15,
            (Some(_), 1) => 7,
            (Some(_), i) => width(i - 2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::lim::status;

    fn hosts() -> Vec<HostLoad> {
        let facts = HostFacts {
            host_type: "X86_64".into(),
            model: "PC".into(),
            cpu_factor: 2.0,
            ncpus: 4,
            max_mem: 24105,
            server: true,
            resources: vec![("cs".into(), None), ("n".into(), Some("4".into()))],
            ..HostFacts::default()
        };
        let a = HostLoad {
            host: "hosta".into(),
            facts: Some(facts),
            external: vec![("lic".into(), "7".into())],
            index: [0.5, 0.0, 0.0, 0.25, 0.0, 3.0, 1.0, 2.0, 500.0, 0.0, 2048.0],
            ..HostLoad::default()
        };
        let b = HostLoad { host: "hostb".into(), status: status::UNAVAIL, ..HostLoad::default() };
        vec![a, b]
    }

    #[test]
    fn lshosts_o_shows_fields_with_units_and_widths() {
        let shown = |text: &str| HostFields::of_lshosts().show(text, None, &hosts()).unwrap();
        let units = shown("maxmem::G maxmem:9:KB maxmem::T maxmem maxswp::S delimiter=,");
        assert_eq!(units.lines().nth(1), Some("23.55G,24683520K,0.03T ,24105M,-     "), "{units}");
        let text = shown("hname maxmem:8:S maxmem:9:M res delimiter='|'");
        assert_eq!(text.lines().nth(1), Some("hosta|23.5G   |24105M   |(cs n=4)"), "{text}");
        assert_eq!(text.lines().nth(2), Some("hostb|-       |-        |()"), "{text}");
    }

    #[test]
    fn lsload_o_shows_fields_and_json() {
        let fields = HostFields::of_lsload(vec!["lic".into()], Queue::Raw);
        let text = fields.show("HOST_NAME status mem lic delimiter=';'", None, &hosts()).unwrap();
        assert_eq!(text, "HOST_NAME;STATUS;MEM;LIC\nhosta;ok;2G;7\nhostb;unavail;-;-\n");
        let json = fields.show("hname ut", Some("lsload"), &hosts()).unwrap();
        assert!(json.contains("\"COMMAND\":\"lsload\"") && json.contains("\"HOSTS\":2"), "{json}");
        assert!(json.contains("\"UT\":\"25%\""), "{json}");
        assert!(fields.show("nosuch", None, &hosts()).is_err());
    }

    /// Every field by its widths and as JSON, of a host that is there and one that is not.
    #[test]
    fn every_field_of_both() {
        let name = format!("node-{}", "e".repeat(59));
        let mut hosts = hosts();
        hosts.push(HostLoad { host: name, ..hosts[0].clone() });
        let lshosts = |text: &str, json| HostFields::of_lshosts().show(text, json, &hosts).unwrap();
        let widths = include_str!("../../tests/cmd/expected/lshosts-o.txt");
        assert_eq!(lshosts("all:", None), widths);
        let plain = include_str!("../../tests/cmd/expected/lshosts-o-plain.txt");
        assert_eq!(lshosts("hname: type ncpus:-3 maxmem maxswp server res", None), plain);
        let json = include_str!("../../tests/cmd/expected/lshosts-json.txt");
        assert_eq!(lshosts("hname maxmem runwin", Some("lshosts")), json);
        let lsload = HostFields::of_lsload(vec!["lic".into()], Queue::Raw);
        let shown = |text: &str, json| lsload.show(text, json, &hosts[..2]).unwrap();
        let widths = include_str!("../../tests/cmd/expected/lsload-o.txt");
        assert_eq!(shown("all:", None), widths);
        let json = include_str!("../../tests/cmd/expected/lsload-json.txt");
        assert_eq!(shown("hname status r15s mem lic", Some("lsload")), json);
    }
}
