//! All that is known of a request, as attributes of NJS; and of a queue.

use lsf::cli::clock::Clock;
use lsf::cli::job_rows::JobRow;
use lsf::cli::njs::{Positions, values};
use lsf::cli::nqs::route;
use lsf::conf::nlb_map::NameMaps;
use lsf::conf::nlb_objects::value_text;
use lsf::model::nlb::{NJS, Value};
use lsf::proto::client::QueueInfo;

/// A request in lines `description: value`.
pub(super) fn request(row: &JobRow, host: &str, positions: &Positions) -> String {
    let maps = NameMaps::shipped();
    let (values, route) = (values(row, host, positions), route(row));
    let mut text = String::new();
    for attribute in maps.numbered(NJS).map(|map| map.attributes()).unwrap_or_default() {
        let Some(value) = values.get(&attribute.id) else { continue };
        let shown = match (value, &route) {
            // as nlbpolicy shows it
            (Value::Float(_), Some(route)) if attribute.name == "NJS_NLBVALUE" => {
                route.value.clone()
            }
            (Value::Integer(rank), Some(route)) if attribute.name == "NJS_RANK" => {
                format!("{rank} of {}", route.of)
            }
            (Value::Str(text), _) => text.to_string(),
            (Value::Time(at), _) => {
                let mut text = String::new();
                Clock::system().full(&mut text, *at);
                text
            }
            (value, _) => value_text(value),
        };
        text.push_str(&format!("{}: {shown}\n", attribute.description));
    }
    text.push('\n');
    text
}

/// A queue as it was defined.
pub(super) fn queue(queue: &QueueInfo) -> String {
    let mut text = String::new();
    for (name, value) in &queue.params {
        text.push_str(&format!("{name}: {value}\n"));
    }
    let state = |on: bool, yes: &str, no: &str| if on { yes.to_owned() } else { no.to_owned() };
    text.push_str(&format!("Status: {}\n", state(queue.open, "enabled", "disabled")));
    text.push_str(&format!("Started: {}\n\n", state(queue.active, "yes", "no")));
    text
}
