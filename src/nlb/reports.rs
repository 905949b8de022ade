//! The reports of collectors. A collector speaks for its own host alone, whatever its report says:
//! which host that is, the connection tells.

use super::server::NlbServer;
use super::store::{Collected, Report, Values};
use crate::conf::nlb_objects::{MAX_VALUES, SET_BY_SERVER};
use crate::model::Now;
use crate::model::nlb::{AttrId, Kind, MAX_STRING, NLB, NLB_JOB, Value};
use crate::model::reason::err;
use crate::model::time::US;
use crate::proto::machine::ConnId;
use crate::proto::nlb::{MAX_INTERVAL, NlbMsg, NlbReport, ReportedValue, ReportedValues};
use crate::proto::{Daemon, Effect, Peer, Refusal};
use std::collections::BTreeMap;

/// Most objects of custom data in one report.
const MAX_CUSTOM: usize = 1_024;

impl NlbServer {
    /// Takes a report. One with a fault changes nothing.
    pub(super) fn reported(
        &mut self,
        now: Now,
        conn: ConnId,
        report: NlbReport,
        out: &mut Vec<Effect>,
    ) -> bool {
        let host = match self.peers.get(&conn) {
            Some(Peer::Daemon { daemon: Daemon::Ccollect, host }) if self.collectors_may(NLB) => {
                host.clone()
            }
            _ => {
                self.not_a_collector(conn, out);
                return false;
            }
        };
        let (said, custom) = match self.read_report(&host, report, out) {
            Ok(read) => read,
            Err(words) => {
                let text = format!("the report of ccollect on <{host}> is not taken: {words}");
                out.push(Effect::Say { level: log::Level::Warn, text });
                self.refuse(conn, Refusal::text(err::BAD_ARG, words), out);
                return false;
            }
        };
        let at = Report { at: now.mono_us, wall: now.secs(), from: host.clone() };
        let interval = said.interval;
        self.store.collected(NLB, &host, said, at.clone());
        let custom = if self.collectors_may(NLB_JOB) { custom } else { Values::new() };
        let requests = Collected { custom, interval, ..Collected::default() };
        if !requests.custom.is_empty() || self.store.find(NLB_JOB, &host).is_some() {
            self.store.collected(NLB_JOB, &host, requests, at);
        }
        self.send(conn, vec![NlbMsg::Reported { map: self.map_generation }], out);
        true
    }

    fn not_a_collector(&self, conn: ConnId, out: &mut Vec<Effect>) {
        let who = self.peers.get(&conn).map(ToString::to_string).unwrap_or_default();
        let text = format!("{who} may not report: collectors do");
        out.push(Effect::Say { level: log::Level::Warn, text: text.clone() });
        self.refuse(conn, Refusal::text(err::PERMISSION, text), out);
    }

    /// The values of a report about its host, and the custom ones of type NLB_JOB.
    fn read_report(
        &self,
        host: &str,
        report: NlbReport,
        out: &mut Vec<Effect>,
    ) -> Result<(Collected, Values), String> {
        let interval = report.interval.clamp(1, MAX_INTERVAL);
        let mut said = Collected {
            values: values(report.collector)?,
            interval: u64::from(interval) * US,
            ..Collected::default()
        };
        if report.custom.len() > MAX_CUSTOM {
            return Err(format!("more than {MAX_CUSTOM} objects of custom data"));
        }
        let (mut requests, mut strangers) = (Values::new(), BTreeMap::new());
        for object in report.custom {
            let values = values(object.values)?;
            let own = self.conf.hosts.canonical(&object.name) == Some(host);
            match object.object_type {
                NLB if own => said.custom.extend(values),
                NLB_JOB if own => requests.extend(values),
                NLB | NLB_JOB => _ = strangers.entry(object.name).or_insert(()),
                other => {
                    return Err(format!("an object of type {other}: NLB or NLB_JOB is wanted"));
                }
            }
        }
        if said.custom.len() > MAX_VALUES || requests.len() > MAX_VALUES {
            return Err(format!("more than {MAX_VALUES} attributes of an object"));
        }
        if let Some((name, ())) = strangers.first_key_value() {
            let more = strangers.len() - 1;
            let text = format!("ccollect of <{host}> reports <{name}>, and {more} more: dropped");
            out.push(Effect::Say { level: log::Level::Warn, text });
        }
        for id in SET_BY_SERVER {
            said.values.remove(&id);
            said.custom.remove(&id);
        }
        Ok((said, requests))
    }
}

/// The values of one object.
fn values(given: ReportedValues) -> Result<Values, String> {
    if given.len() > MAX_VALUES {
        return Err(format!("more than {MAX_VALUES} attributes of an object"));
    }
    let mut values = Values::new();
    for (number, value) in given {
        let (kind, value) = match value {
            ReportedValue::Float(x) if x.is_finite() => (Kind::Float, Value::Float(x)),
            ReportedValue::Float(_) => return Err(format!("float({number}) is not finite")),
            ReportedValue::Integer(n) => (Kind::Integer, Value::Integer(n)),
            ReportedValue::Text(text) => {
                if text.len() > MAX_STRING || text.chars().any(char::is_control) {
                    let words = format!("longer than {MAX_STRING} bytes, or not of one line");
                    return Err(format!("string({number}) is {words}"));
                }
                (Kind::Str, Value::Str(text.into()))
            }
        };
        values.insert(AttrId::new(kind, number), value);
    }
    Ok(values)
}
