//! badmin diagnose -c query, ENABLE_DIAGNOSE: who asks mbatchd for what, a line for each query in
//! query_info.querylog.HOST of DIAGNOSE_LOGDIR ("Enabling daemon log files for diagnostics" in the
//! documentation of LSF 10.1): `DATE TIME YEAR COMMAND,USER,HOSTNAME,SIZE,OPTION`, SIZE being the
//! bytes of the query.
//!
//! Invariant: a line is one line of five fields, whatever a user has put into the query.

use crate::batch::site::permissions::{Action, Caller};
use crate::batch::soft_state::diagnose::QueryLoggingState;
use crate::batch::{Mbatchd, StepContext};
use crate::exec::report::ctime;
use crate::model::Now;
use crate::model::reason::err;
use crate::proto::Refusal;
use crate::proto::client::{AdminLine, ClientMsg, JobQuery};
use crate::proto::machine::Effect;

/// Longest text of what was asked for in a line, bytes.
const MAX_OPTION: usize = 256;
/// Longest time that badmin may ask for, minutes: a year.
const MAX_MINUTES: u64 = 366 * 24 * 60;
/// Beginning of the usual file's name.
const FILE: &str = "query_info";

impl Mbatchd {
    /// badmin diagnose: `query` begins (`on`) or ends it; `job` asks only whether the caller may
    /// see why jobs of others wait.
    pub(crate) fn diagnose(
        &mut self,
        now: Now,
        who: &Caller,
        (what, on): (&str, bool),
        file: &str,
        minutes: u64,
    ) -> Result<Vec<AdminLine>, Refusal> {
        self.site.check(who, Action::Logging, "", "")?;
        let bad = file.contains(char::is_control) || file.ends_with('/');
        match what {
            "job" => {}
            "query" if !bad && minutes <= MAX_MINUTES => {
                let until = (on && minutes > 0).then(|| now.after(minutes * 60));
                self.diagnose.ask(on, file.to_string(), until);
            }
            _ => return Err(Refusal::new(err::BAD_ARG)),
        }
        Ok(Vec::new())
    }

    /// The file that queries are noted in now.
    fn query_log(&mut self, now: Now) -> Option<String> {
        let param = |name: &str| self.site.params().raw.get(name).map(|v| v.text.trim());
        let name = match self.diagnose.asked(now) {
            Some(QueryLoggingState::Off) => return None,
            Some(QueryLoggingState::On(file)) => file.unwrap_or(FILE),
            None => {
                param("ENABLE_DIAGNOSE")?.split_whitespace().find(|w| *w == "query")?;
                FILE
            }
        };
        let full = format!("{name}.querylog.{}", self.me);
        if full.starts_with('/') {
            return Some(full);
        }
        let usual = || self.site.conf.base.lsf.logdir();
        let dir = param("DIAGNOSE_LOGDIR").filter(|d| d.starts_with('/')).or_else(usual)?;
        Some(format!("{dir}/{full}"))
    }

    /// A command asks for something.
    pub(crate) fn note_query(&mut self, context: &mut StepContext, who: &Caller, msg: &ClientMsg) {
        if matches!(msg, ClientMsg::Submit(_) | ClientMsg::Control(_)) {
            return;
        }
        let Some(file) = self.query_log(context.now) else { return };
        let Some((command, option)) = told(msg) else { return };
        let size = serde_json::to_vec(msg).map_or(0, |m| m.len());
        let time = ctime(self.windows.zone(), context.now.secs());
        let (user, host, option) = (clean(&who.user), clean(&who.host), clean(&option));
        let text = format!("{time} {command},{user},{host},{size},{option}\n");
        context.out.push(Effect::Aside { file, text });
    }
}

/// No line is ended by it, and no field.
fn clean(text: &str) -> String {
    let plain = |c: char| if c.is_control() || c == ',' { '?' } else { c };
    let mut out: String = text.chars().map(plain).collect();
    while out.len() > MAX_OPTION {
        out.pop();
    }
    out
}

/// The command of a query and its subject; `None`: the message is no query.
fn told(msg: &ClientMsg) -> Option<(&'static str, String)> {
    Some(match msg {
        ClientMsg::Jobs(q) => ("bjobs", of_jobs(q)),
        ClientMsg::Queues { names, .. } => ("bqueues", names.join(" ")),
        ClientMsg::Hosts { names, res_req } if res_req.is_empty() => ("bhosts", names.join(" ")),
        ClientMsg::Hosts { names, res_req } => {
            ("bhosts", format!("-R {res_req} {}", names.join(" ")))
        }
        ClientMsg::Users { names } => ("busers", names.join(" ")),
        ClientMsg::Slots { res_req } => ("bslots", res_req.clone()),
        ClientMsg::Groups { hosts: true, names, .. } => ("bmgroup", names.join(" ")),
        ClientMsg::Groups { names, .. } => ("bugroup", names.join(" ")),
        ClientMsg::Params => ("bparams", String::new()),
        _ => return None,
    })
}

fn of_jobs(q: &JobQuery) -> String {
    let (w, s) = (&q.which, &q.select);
    let mut words: Vec<String> =
        [(w.all, "-a"), (w.done, "-d"), (w.pend, "-p"), (w.run, "-r"), (w.susp, "-s")]
            .into_iter()
            .filter(|(given, _)| *given)
            .map(|(_, word)| word.to_string())
            .collect();
    let texts = [("-u", &s.user), ("-q", &s.queue), ("-m", &s.host), ("-J", &s.name)];
    let texts = texts.into_iter().chain([("-P", &s.project)]);
    words.extend(texts.filter(|t| !t.1.is_empty()).map(|(word, text)| format!("{word} {text}")));
    words.extend(s.given.iter().map(|(option, text)| format!("-{option} {text}")));
    let shown = s.ids.iter().take(MAX_OPTION).map(|id| id.job.to_string());
    words.extend(shown);
    words.join(" ")
}
