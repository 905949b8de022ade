//! Carries out the steps of a scenario's timeline (tests/policy/README).

use super::parse::{Scenario, Step};
use crate::batch::tests::cluster::{ADMINISTRATOR, Cluster, element};
use crate::model::JobRef;
use crate::model::run_limit::{SHOWN_RUN_LIMIT, ShownRunLimit};
use crate::model::specfield::SpecField;
use crate::proto::client::{Col, Verb};
use std::collections::BTreeMap;

/// The result of a step: nothing, or how the cluster differs from the scenario.
type Outcome = Result<(), String>;

/// The outcome of a request that is either done or refused.
fn told(done: Result<String, crate::proto::Refusal>) -> Outcome {
    done.map(drop).map_err(|refusal| format!("refused: {}", refusal.words()))
}

/// A scenario under way.
pub struct Steps<'a> {
    scenario: &'a Scenario,
    cluster: Cluster,
    began: i64,
    jobs: BTreeMap<String, JobRef>,
    /// Starts that no step has looked at yet.
    started: Vec<JobRef>,
}

impl<'a> Steps<'a> {
    pub fn new(scenario: &'a Scenario) -> Steps<'a> {
        let cluster = scenario.site.clone().up();
        let began = cluster.secs();
        Steps { scenario, cluster, began, jobs: BTreeMap::new(), started: Vec::new() }
    }

    pub fn take(&mut self, step: &Step) -> Outcome {
        let now = (self.cluster.secs() - self.began) as u64;
        let ahead = step.at.checked_sub(now).ok_or("this step is before the one above it")?;
        if ahead > 0 {
            self.cluster.advance(ahead);
        }
        match step.text.split_once(": ") {
            Some(("starts", names)) => self.starts(names),
            Some((user, request)) if !user.contains(' ') => self.request(user, request.trim()),
            _ if step.text == "nothing starts" => self.starts(""),
            _ => self.other(&step.text),
        }
    }

    fn job(&self, name: &str) -> Result<JobRef, String> {
        if let Some((array, idx)) = name.strip_suffix(']').and_then(|n| n.split_once('[')) {
            let idx = idx.parse().map_err(|_| format!("{name} is no element"))?;
            return Ok(element(self.job(array)?, idx));
        }
        let job = self.jobs.get(name).copied();
        job.ok_or_else(|| format!("{name} is no job of this scenario"))
    }

    fn name(&self, at: JobRef) -> String {
        let whole = JobRef { idx: 0, ..at };
        let name = self.jobs.iter().find(|(_, job)| **job == whole).map(|(name, _)| name.clone());
        let name = name.unwrap_or_else(|| format!("job <{}>", at.job));
        if at.idx > 0 { format!("{name}[{}]", at.idx) } else { name }
    }

    /// `starts: a b`: these jobs have started, in this order, since a step of this kind looked.
    fn starts(&mut self, names: &str) -> Outcome {
        let fresh = self.cluster.started();
        self.started.extend(fresh);
        let started = std::mem::take(&mut self.started);
        let found: Vec<String> = started.into_iter().map(|at| self.name(at)).collect();
        let wanted: Vec<&str> = names.split_whitespace().collect();
        match found == wanted {
            true => Ok(()),
            false => Err(format!("started: {}; expected: {}", list(&found), list(&wanted))),
        }
    }

    /// `USER: COMMAND ...`.
    fn request(&mut self, user: &str, request: &str) -> Outcome {
        let (verb, rest) = request.split_once(' ').unwrap_or((request, ""));
        let rest = rest.trim();
        if verb != "bsub"
            && let Some((request, why)) = request.split_once(" is refused: ")
        {
            return match self.request(user, request) {
                Err(told) if told == why.trim() => Ok(()),
                Err(told) => Err(format!("refused: {told}")),
                Ok(()) => Err("the request was accepted".to_owned()),
            };
        }
        match verb {
            "bsub" => self.bsub(user, rest),
            "bmod" => self.bmod(user, rest),
            "brsvadd" => told(self.cluster.try_brsvadd(user, rest)),
            "brsvmod" => {
                let (id, options) = rest.split_once(' ').ok_or("brsvmod ID OPTIONS")?;
                told(self.cluster.try_brsvmod(user, id, options.trim()))
            }
            "brsvdel" => told(self.cluster.try_brsvdel(user, rest)),
            "badmin" if rest.starts_with("reconfig") => self.reconfigure(rest),
            "badmin" => {
                assert_eq!(user, ADMINISTRATOR, "badmin is for the administrator");
                self.cluster.badmin(rest);
                Ok(())
            }
            _ => self.control(user, verb, rest),
        }
    }

    /// `bsub OPTIONS -> NAME`, `bsub OPTIONS is refused: TEXT`.
    fn bsub(&mut self, user: &str, text: &str) -> Outcome {
        if let Some((options, why)) = text.split_once("is refused: ") {
            return match self.cluster.try_submit(user, options.trim()) {
                Err(refusal) if refusal.words() == why.trim() => Ok(()),
                Err(refusal) => Err(format!("refused: {}", refusal.words())),
                Ok(_) => Err("the job was accepted".to_owned()),
            };
        }
        let (options, name) = match text.strip_prefix("-> ") {
            Some(name) => ("", name),
            None => text.rsplit_once(" -> ").ok_or("bsub OPTIONS -> NAME")?,
        };
        let refused = |refusal: crate::proto::Refusal| format!("refused: {}", refusal.words());
        let job = self.cluster.try_submit(user, options).map_err(refused)?;
        match self.jobs.insert(name.trim().to_owned(), job) {
            None => Ok(()),
            Some(_) => Err(format!("two jobs are called {name}")),
        }
    }

    /// `bmod OPTIONS NAME`.
    fn bmod(&mut self, user: &str, text: &str) -> Outcome {
        let (options, name) = text.rsplit_once(' ').ok_or("bmod OPTIONS NAME")?;
        let words: Vec<&str> = options.split_whitespace().collect();
        let reset = |field: SpecField| {
            words.iter().any(|word| word.strip_prefix('-') == Some(&format!("{}n", field.word())))
        };
        let given = |field: &&SpecField| {
            let word = |word: &&str| word.strip_prefix('-') == Some(field.word());
            words.iter().any(word) || reset(**field)
        };
        let fields: Vec<SpecField> = SpecField::ALL.iter().filter(given).copied().collect();
        let value = |word: &&&str| {
            let name = word.strip_prefix('-').and_then(|name| name.strip_suffix('n'));
            !SpecField::ALL.iter().any(|f| Some(f.word()) == name && reset(*f))
        };
        let options = words.iter().filter(value).copied().collect::<Vec<_>>().join(" ");
        let job = self.job(name)?;
        match self.cluster.try_modify(user, job, &fields, &options) {
            Ok(0) => Ok(()),
            Ok(code) => Err(crate::model::reason::err_text(code).to_owned()),
            Err(refusal) => Err(refusal.words()),
        }
    }

    /// `badmin reconfig LABEL`: with the files of this label.
    fn reconfigure(&mut self, text: &str) -> Outcome {
        let label = text.trim_start_matches("reconfig").trim();
        let files = self.scenario.later.get(label);
        let files = files.ok_or_else(|| format!("no file is labelled {label}"))?;
        let put = |site: crate::batch::tests::cluster::ClusterBuilder, file: &(String, String)| {
            site.file(&file.0, &file.1)
        };
        self.cluster.reconfigure(files.iter().fold(self.scenario.site.clone(), put));
        Ok(())
    }

    /// `bkill NAME`, `bswitch QUEUE NAME` and their like.
    fn control(&mut self, user: &str, verb: &str, rest: &str) -> Outcome {
        let (about, name) = rest.rsplit_once(' ').unwrap_or(("", rest));
        let job = self.job(name)?;
        let position = about.parse().unwrap_or(1);
        let verb = match verb {
            "bkill" => Verb::Kill,
            "bstop" => Verb::Stop,
            "bresume" => Verb::Resume,
            "bswitch" => Verb::Switch { queue: about.to_owned() },
            "btop" => Verb::Move { top: true, position },
            "bbot" => Verb::Move { top: false, position },
            "brequeue" => {
                self.cluster.requeue(user, job);
                return Ok(());
            }
            _ => return Err(format!("{verb} is no command of scenarios")),
        };
        let codes = self.cluster.control(user, verb, job);
        match codes.iter().find(|code| **code != 0) {
            None => Ok(()),
            Some(code) => Err(crate::model::reason::err_text(*code).to_owned()),
        }
    }

    /// Acts of hosts and jobs, and expectations: `SUBJECT VERB ...`.
    fn other(&mut self, text: &str) -> Outcome {
        if let Some((class, goals)) =
            text.strip_prefix("bsla ").and_then(|rest| rest.split_once(" shows "))
        {
            return self.goals(class, goals);
        }
        let (subject, rest) = text.split_once(' ').unwrap_or((text, ""));
        let (verb, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        let rest = rest.trim();
        match (subject, verb) {
            ("mbatchd", "restarts") => self.cluster.restart(),
            (host, "reports") => self.cluster.load(host, rest),
            (host, "is") if rest == "lost" => self.cluster.lose(host),
            (host, "is") if rest == "back" => self.cluster.find(host),
            (name, "ends") => {
                let job = self.job(name)?;
                let code = rest.strip_prefix("with ").map_or(Ok(0), str::parse);
                self.cluster.end(job, code.map_err(|_| "ends with CODE")?);
            }
            (name, "uses") => {
                let job = self.job(name)?;
                let memory = rest.strip_prefix("mem=").and_then(|mb| mb.parse().ok());
                self.cluster.uses(job, memory.ok_or("uses mem=MB")?);
            }
            (name, "runs") => return self.runs(name, rest.strip_prefix("on ").unwrap_or(rest)),
            (name, "is") if rest.starts_with("bound to ") => {
                let job = self.job(name)?;
                let found = self.cluster.bound_to(job);
                return match Some(found.as_str()) == rest.strip_prefix("bound to ") {
                    true => Ok(()),
                    false => Err(format!("{name} is bound to {found}")),
                };
            }
            (name, "is") => return self.is(name, rest),
            (name, "has") => return self.has(name, rest),
            (name, "pends:") => return self.pends(name, rest),
            (name, "never") if rest.starts_with("pends:") => return self.never_pends(name, rest),
            (name, _) => {
                self.job(name)?;
                return Err(format!("{verb} is no verb of scenarios"));
            }
        }
        Ok(())
    }

    /// `bsla NAME shows VELOCITY 2 Active:On time; DEADLINE Active:Delayed 3`: the goals, and the
    /// number of jobs that should run.
    fn goals(&mut self, class: &str, wanted: &str) -> Outcome {
        let rows = self.cluster.service_classes();
        let row = rows.iter().find(|row| row.name == class).ok_or("no such service class")?;
        let shown = |goal: &crate::proto::limit_rows::GoalInfo| {
            let status = match (goal.active, goal.on_time) {
                (false, _) => "Inactive",
                (true, true) => "Active:On time",
                (true, false) => "Active:Delayed",
            };
            let optimum = goal.optimum.map_or(String::new(), |n| format!(" {n}"));
            format!("{} {status}{optimum}", goal.words)
        };
        let found = row.goals.iter().map(shown).collect::<Vec<_>>().join("; ");
        match found == wanted {
            true => Ok(()),
            false => Err(format!("bsla shows {found}, not {wanted}")),
        }
    }

    /// `NAME runs on h1*2 h2`; without hosts: anywhere.
    fn runs(&mut self, name: &str, hosts: &str) -> Outcome {
        let job = self.job(name)?;
        self.is(name, "RUN")?;
        let slots = self.cluster.running_on(job);
        let mut found: Vec<(String, usize)> = Vec::new();
        for host in slots {
            match found.last_mut().filter(|last| last.0 == host) {
                Some(last) => last.1 += 1,
                None => found.push((host, 1)),
            }
        }
        let shown = |(host, slots): &(String, usize)| match slots {
            1 => host.clone(),
            _ => format!("{host}*{slots}"),
        };
        let found = found.iter().map(shown).collect::<Vec<_>>().join(" ");
        match hosts.is_empty() || found == hosts {
            true => Ok(()),
            false => Err(format!("{name} runs on {found}, not on {hosts}")),
        }
    }

    /// `NAME is PEND`.
    fn is(&mut self, name: &str, state: &str) -> Outcome {
        let job = self.job(name)?;
        let found = self.cluster.state(job);
        match found == state {
            true => Ok(()),
            false => {
                Err(format!("{name} is {found}, not {state}: {}", self.reasons(job).join("; ")))
            }
        }
    }

    /// `NAME has EXTENDABLE RUNLIMIT 10.0 min`, as bjobs -l shows it; `-`: none.
    fn has_run_limit(&mut self, name: &str, wanted: &str) -> Outcome {
        let job = self.job(name)?;
        let cell = self.cluster.column(job, Col::Extra);
        let limit = cell[SHOWN_RUN_LIMIT].as_str().and_then(ShownRunLimit::parse);
        let found = limit.map_or("-".to_owned(), |limit| limit.words());
        match found == wanted {
            true => Ok(()),
            false => Err(format!("{name} has the run limit {found}, not {wanted}")),
        }
    }

    /// `NAME has APS 109.00`: its absolute priority, as bjobs -aps shows it.
    fn has(&mut self, name: &str, text: &str) -> Outcome {
        if let Some(wanted) = text.strip_prefix("EXTENDABLE RUNLIMIT ") {
            return self.has_run_limit(name, wanted);
        }
        let wanted = text.strip_prefix("APS ").ok_or("has APS NUMBER")?;
        let job = self.job(name)?;
        let cell = self.cluster.column(job, Col::AbsolutePriority);
        let found = match (cell[0].as_f64(), cell[1].as_bool()) {
            (None, _) => "-".to_owned(),
            (Some(total), Some(true)) => format!("({total})"),
            (Some(total), _) => format!("{total:.2}"),
        };
        match found == wanted {
            true => Ok(()),
            false => Err(format!("{name} has APS {found}, not {wanted}")),
        }
    }

    /// The pending reasons, as bjobs -p prints them: with the names of hosts where they are about
    /// some.
    fn reasons(&mut self, job: JobRef) -> Vec<String> {
        let all = self.cluster.reasons(job);
        let shown = |(reason, hosts): &(crate::model::reason::PendReason, Vec<String>)| match hosts
            .is_empty()
        {
            true => reason.text().to_owned(),
            false => format!("{}: {}", reason.text(), hosts.join(" ")),
        };
        all.iter().map(shown).collect()
    }

    /// `NAME pends: TEXT`: one of its reasons is this, with or without its hosts.
    fn pends(&mut self, name: &str, text: &str) -> Outcome {
        self.is(name, "PEND")?;
        let job = self.job(name)?;
        let found = self.reasons(job);
        let hit = |reason: &String| {
            reason == text || reason.strip_prefix(text).is_some_and(|rest| rest.starts_with(": "))
        };
        match found.iter().any(hit) {
            true => Ok(()),
            false => Err(format!("{name} pends: {}", found.join("; "))),
        }
    }

    /// `NAME never pends: TEXT`: none of its reasons is this.
    fn never_pends(&mut self, name: &str, text: &str) -> Outcome {
        let text = text.trim_start_matches("pends:").trim();
        let job = self.job(name)?;
        let found = self.reasons(job);
        match found.iter().find(|reason| reason.starts_with(text)) {
            None => Ok(()),
            Some(reason) => Err(format!("{name} pends: {reason}")),
        }
    }
}

fn list<T: AsRef<str>>(names: &[T]) -> String {
    match names.is_empty() {
        true => "nothing".to_owned(),
        false => names.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(" "),
    }
}
