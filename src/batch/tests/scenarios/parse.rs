//! Reads a file of scenarios (tests/policy/README).

use crate::batch::tests::cluster::{ClusterBuilder, cluster};
use std::collections::BTreeMap;

/// A scenario: the cluster, and what happens there.
pub struct Scenario {
    pub file: String,
    /// The line of its name.
    pub line: usize,
    pub name: String,
    /// The sentences that it stands on.
    pub manual: Vec<String>,
    pub site: ClusterBuilder,
    /// Files that a reconfiguration puts in the place of others: name of the step, file, text.
    pub later: BTreeMap<String, Vec<(String, String)>>,
    pub steps: Vec<Step>,
}

/// A line of the timeline.
pub struct Step {
    pub line: usize,
    /// Seconds since the timeline began.
    pub at: u64,
    pub text: String,
}

/// All scenarios of a file; `Err`: the place and the mistake.
pub fn scenarios_of(file: &str, text: &str) -> Result<Vec<Scenario>, String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut all: Vec<Scenario> = Vec::new();
    let mut next = 0;
    while let Some(line) = lines.get(next) {
        let place = next + 1;
        next += 1;
        let words = line.trim();
        if words.is_empty() || words.starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix("scenario ") {
            all.push(Scenario {
                file: file.to_owned(),
                line: place,
                name: name.trim().to_owned(),
                manual: Vec::new(),
                site: cluster(),
                later: BTreeMap::new(),
                steps: Vec::new(),
            });
            continue;
        }
        let mistake = |why: &str| format!("{file}:{place}: {why}: {line}");
        let scenario = all.last_mut().ok_or_else(|| mistake("no scenario has begun"))?;
        if let Some(name) = block_name(line) {
            let block = indented(&lines, &mut next);
            scenario.put_file(name, block).map_err(|why| mistake(&why))?;
        } else {
            scenario.take_line(place, line).map_err(|why| mistake(&why))?;
        }
    }
    Ok(all)
}

/// The name before the colon of a line that begins a file: `lsb.queues:`, `lsb.queues night:`.
fn block_name(line: &str) -> Option<&str> {
    let name = line.strip_suffix(':')?;
    (name.starts_with("ls") && name.contains('.')).then_some(name)
}

/// The indented lines that follow.
fn indented(lines: &[&str], next: &mut usize) -> String {
    let mut text = String::new();
    while let Some(line) = lines.get(*next) {
        if !line.is_empty() && !line.starts_with(' ') {
            break;
        }
        text.push_str(line.trim());
        text.push('\n');
        *next += 1;
    }
    text
}

impl Scenario {
    fn put_file(&mut self, name: &str, text: String) -> Result<(), String> {
        match name.split_once(' ') {
            Some((file, label)) => {
                let files = self.later.entry(label.to_owned()).or_default();
                files.push((file.to_owned(), text));
            }
            None => self.site = std::mem::take(&mut self.site).file(name, &text),
        }
        Ok(())
    }

    fn take_line(&mut self, place: usize, line: &str) -> Result<(), String> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = rest.trim();
        let site = std::mem::take(&mut self.site);
        self.site = match word {
            "manual" => {
                self.manual.push(rest.to_owned());
                site
            }
            "hosts" => {
                let (count, slots) = rest.split_once(" of ").ok_or("hosts COUNT of SLOTS")?;
                site.hosts(number(count)? as usize, number(slots)? as u32)
            }
            "host" => {
                let mut words = rest.splitn(3, ' ');
                let name = words.next().unwrap_or_default();
                let slots = number(words.next().unwrap_or_default())? as u32;
                let site = site.host(name, slots);
                match words.next() {
                    Some(resources) => site.host_resources(name, resources),
                    None => site,
                }
            }
            "topology" => {
                let (host, units) = rest.split_once(' ').ok_or("topology HOST UNITS")?;
                site.topology(host, units.trim())
            }
            "resource" => site.resource(rest),
            "map" => site.resource_map(rest),
            _ => {
                let at = seconds(word)?;
                self.steps.push(Step { line: place, at, text: rest.to_owned() });
                site
            }
        };
        Ok(())
    }
}

fn number(text: &str) -> Result<u64, String> {
    text.trim().parse().map_err(|_| format!("{text} is no number"))
}

/// `90`, `1:30` (minutes), `1:00:30` (hours), as seconds.
pub fn seconds(text: &str) -> Result<u64, String> {
    let part =
        |part: &str| number(part).map_err(|_| format!("{text} is neither a time nor a word"));
    text.split(':').try_fold(0, |all, more| Ok(all * 60 + part(more)?))
}

#[test]
fn times_are_seconds_minutes_or_hours() {
    assert_eq!(seconds("90"), Ok(90));
    assert_eq!(seconds("1:30"), Ok(90));
    assert_eq!(seconds("2:00:05"), Ok(7205));
    assert!(seconds("x").is_err());
}
