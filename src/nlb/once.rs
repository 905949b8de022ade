//! One report as text: `ccollect -n`.

use super::average::Readings;
use super::custom::{CustomFiles, Meanings};
use super::measures::{Surroundings, add_means, values};
use super::store::Values;
use crate::conf::nlb_map::NameMaps;
use crate::conf::nlb_objects::dump;
use crate::model::nlb::{NLB, NLB_JOB};
use crate::proto::collect::{Counters, CustomContent};
use jiff::tz::TimeZone;

/// The host's object by two readings and the custom objects of these files, custom values first,
/// as object data with the names of `maps`; and the faults of the files. `own` knows the names of
/// the host.
pub fn object_text(
    host: &str,
    readings: [&Counters; 2],
    around: &Surroundings,
    files: Vec<CustomContent>,
    maps: &NameMaps,
    own: impl Fn(&str) -> bool,
) -> (String, Vec<String>) {
    let [before, now] = readings;
    let mut measured = values(before, now, around);
    add_means(&mut measured, &mut Readings::default(), now.at, 0);
    let paths: Vec<String> = files.iter().map(|(path, _)| path.clone()).collect();
    let (mut custom, mut meanings) = (CustomFiles::new(&paths), Meanings::default());
    custom.take(files);
    meanings.other_map();
    let faults = meanings.read(&mut custom, maps, own, true);
    let mut requests = Values::new();
    for object in meanings.data() {
        match object.object_type {
            NLB => measured.extend(object.values.clone()),
            _ => requests.extend(object.values.clone()),
        }
    }
    let text = |number, values: &Values| {
        let map = maps.numbered(number)?;
        Some(dump(map, host, values, &TimeZone::UTC))
    };
    let mut out = text(NLB, &measured).unwrap_or_default();
    if !requests.is_empty() {
        out.push_str(&text(NLB_JOB, &requests).unwrap_or_default());
    }
    (out, faults)
}
