//! A submission in the sentences of `bjobs -l` and `bhist -l` (bjobs(1)).
//!
//! Invariant: what users typed is shown without terminal controls.

use super::clock::Clock;
use super::long_format::{LimitBlock, push_clean};
use crate::model::checkpoint::Checkpoint;
use crate::model::further::{self, CopyFile};
use crate::model::job::{JobSpec, Limits, opt, opt2};
use std::borrow::Cow;
use std::fmt::Write;

/// The part of a submission that the long listings tell.
#[derive(Clone, Debug, Default)]
pub struct Submission<'a> {
    pub from_host: Cow<'a, str>,
    pub begin_time: i64,
    pub term_time: i64,
    pub cwd: Cow<'a, str>,
    /// The directory in which bsub was called, if `cwd` was given to it
    /// (`further::SUBMISSION_DIRECTORY`).
    pub sub_cwd: Cow<'a, str>,
    pub home: Cow<'a, str>,
    pub in_file: Cow<'a, str>,
    pub out_file: Cow<'a, str>,
    pub err_file: Cow<'a, str>,
    pub options: u32,
    pub options2: u32,
    pub min_slots: i64,
    pub max_slots: i64,
    pub res_req: Cow<'a, str>,
    pub login_shell: Cow<'a, str>,
    pub pre_exec: Cow<'a, str>,
    pub post_exec: Cow<'a, str>,
    pub hosts: Vec<Cow<'a, str>>,
    pub depend: Cow<'a, str>,
    /// The file transfers.
    pub copies: Cow<'a, [CopyFile]>,
    /// -k.
    pub checkpoint: Option<Box<Checkpoint>>,
    /// -ar, -rnc.
    pub autoresize: bool,
    pub resize_command: Cow<'a, str>,
    /// -sp; 0 where it was not given.
    pub priority: i64,
}

impl<'a> Submission<'a> {
    pub fn of(s: &'a JobSpec) -> Self {
        let text = |t: &'a str| Cow::Borrowed(t);
        Submission {
            from_host: text(&s.from_host),
            begin_time: s.begin_time,
            term_time: s.term_time,
            cwd: s.cwd.lossy(),
            sub_cwd: text(&s.further.submission_directory),
            home: s.home.lossy(),
            in_file: s.in_file.lossy(),
            out_file: s.out_file.lossy(),
            err_file: s.err_file.lossy(),
            options: s.options,
            options2: s.options2,
            min_slots: i64::from(s.min_slots),
            max_slots: i64::from(s.max_slots),
            res_req: text(&s.res_req),
            login_shell: s.login_shell.lossy(),
            pre_exec: s.pre_exec.lossy(),
            post_exec: s.post_exec.lossy(),
            hosts: s.hosts.iter().map(|h| Cow::Borrowed(h.as_str())).collect(),
            depend: text(&s.depend),
            copies: Cow::Borrowed(&s.further.copies),
            checkpoint: s.further.checkpoint.clone(),
            autoresize: s.further.autoresize.0,
            resize_command: text(&s.further.resize_command),
            priority: i64::from(s.priority),
        }
    }

    /// `Submitted from host <h>, ...;`. `queue`: told where the head of the record does not.
    /// `tasks`: LSB_ENABLE_HPC_ALLOCATION=Y.
    pub fn sentence(&self, t: &mut String, clock: &Clock, queue: Option<&str>, tasks: bool) {
        push(t, "Submitted from host ", &self.from_host);
        if self.options2 & opt2::HOLD != 0 {
            t.push_str(" with hold");
        }
        if let Some(queue) = queue {
            push(t, ", to Queue ", queue);
        }
        for (time, label) in [
            (self.begin_time, ", Specified Start Time <"),
            (self.term_time, ", Specified Termination Time <"),
        ] {
            if time > 0 {
                t.push_str(label);
                clock.long(t, time);
                t.push('>');
            }
        }
        let cwd = cwd_words(&self.cwd, &self.home);
        match self.sub_cwd.is_empty() {
            true => push(t, ", CWD ", &cwd),
            false => {
                push(t, ", CWD ", &cwd_words(&self.sub_cwd, &self.home));
                push(t, ", Specified CWD ", &cwd);
            }
        }
        self.files(t);
        self.requirements(t, tasks);
        t.push(';');
    }

    fn files(&self, t: &mut String) {
        push_given(t, ", Input File ", &self.in_file);
        for (file, bit, plain, over) in [
            (&self.out_file, opt2::OVERWRITE_OUT, ", Output File ", ", Output File (overwrite) "),
            (&self.err_file, opt2::OVERWRITE_ERR, ", Error File ", ", Error File (overwrite) "),
        ] {
            push_given(t, if self.options2 & bit != 0 { over } else { plain }, file);
        }
    }

    /// The order is that of the openlava family (its `bjobs -l`), which published output of 10.1
    /// keeps as far as it goes.
    fn requirements(&self, t: &mut String, tasks: bool) {
        for (i, file) in self.copies.iter().enumerate() {
            t.push_str(if i == 0 { ", Copy Files \"" } else { " \"" });
            push_clean(t, &file.to_string());
            t.push('"');
        }
        let has = |bit| self.options & bit != 0;
        t.push_str(match (has(opt::NOTIFY_BEGIN), has(opt::NOTIFY_END)) {
            (true, true) => ", Notify when job begins/ends",
            (true, false) => ", Notify when job begins",
            (false, true) => ", Notify when job ends",
            (false, false) => "",
        });
        if has(opt::EXCLUSIVE) {
            t.push_str(", Exclusive Execution");
        }
        if has(opt::RERUNNABLE) {
            t.push_str(", Re-runnable");
        }
        if has(opt::RESTART) {
            t.push_str(if has(opt::RESTART_FORCE) { ", Restart force" } else { ", Restart" });
        }
        if let Some(checkpoint) = &self.checkpoint {
            if let Some(minutes) = checkpoint.period {
                let _ = write!(t, ", Checkpoint period {minutes} min.");
            }
            push(t, ", Checkpoint directory ", &checkpoint.dir);
        }
        let (min, max) = (self.min_slots, self.max_slots);
        let of = if tasks { "Task(s)" } else { "Processors Requested" };
        if max > min {
            let _ = write!(t, ", {min}-{max} {of}");
        } else if min > 1 {
            let _ = write!(t, ", {min} {of}");
        }
        push_given(t, ", Requested Resources ", &self.res_req);
        push_given(t, ", Dependency Condition ", &self.depend);
        push_given(t, ", Login Shell ", &self.login_shell);
        push_given(t, ", Pre-execute Command ", &self.pre_exec);
        push_given(t, ", Post-execute Command ", &self.post_exec);
        for (i, host) in self.hosts.iter().enumerate() {
            push(t, if i == 0 { ", Specified Hosts " } else { ", " }, host);
        }
        if self.autoresize {
            t.push_str(", Autoresizable");
        }
        push_given(t, ", Resize Notification Command ", &self.resize_command);
        if self.priority > 0 {
            let _ = write!(t, ", User Priority <{}>", self.priority);
        }
    }
}

/// The mode of an interactive job, as it stands in the head of a job before the command.
pub fn interactive_mode(options: u32) -> &'static str {
    match options {
        o if o & opt::INTERACTIVE == 0 => "",
        o if o & opt::PTY_SHELL != 0 => ", Interactive pseudo-terminal shell mode",
        o if o & opt::PTY != 0 => ", Interactive pseudo-terminal mode",
        _ => ", Interactive mode",
    }
}

/// `label<value>`.
pub fn push(text: &mut String, label: &str, value: &str) {
    text.push_str(label);
    text.push('<');
    push_clean(text, value);
    text.push('>');
}

/// Options that stand behind the project in the head of a job, with their labels.
pub const KEPT: [(&str, &str); 3] = [
    (", License Project ", further::LICENSE),
    (", Application ", further::APP),
    (", Service Class ", further::SLA),
];

/// `label<value>` unless the value is empty.
pub fn push_given(text: &mut String, label: &str, value: &str) {
    if !value.is_empty() {
        push(text, label, value);
    }
}

/// A deviation from the submission, as a sentence after `lead`; nothing for an empty note.
pub fn push_note(text: &mut String, lead: &str, note: &str) {
    let mut rest = note.chars();
    if let Some(first) = rest.next() {
        text.push_str(lead);
        let words: String = first.to_uppercase().chain(rest).collect();
        push_clean(text, &words);
        text.push(';');
    }
}

/// The directory of submission as the user knows it: `$HOME/w` below the home directory.
pub fn cwd_words(cwd: &str, home: &str) -> String {
    let home = home.trim_end_matches('/');
    match cwd.strip_prefix(home) {
        Some(rest) if !home.is_empty() && (rest.is_empty() || rest.starts_with('/')) => {
            format!("$HOME{rest}")
        }
        _ => cwd.to_string(),
    }
}

/// The limits of a job as a block.
pub fn limit_block(l: &Limits, host: &str) -> LimitBlock {
    LimitBlock {
        cpu: l.cpu,
        run: l.run,
        extendable: String::new(),
        slots: None,
        file: l.fsize,
        data: l.data,
        stack: l.stack,
        core: l.core,
        mem: l.rss,
        swap: l.swap,
        process: l.process,
        thread: l.thread,
        host: host.to_string(),
    }
}

/// How a job ended, without the time before it: `Done successfully`, `Exited with exit code 3`.
/// `status`: raw wait status, `None` where there is none.
pub fn end_words(done: bool, started: bool, status: Option<i64>) -> String {
    match status {
        _ if done => "Done successfully".to_string(),
        Some(w) if started && w & 0x7f != 0 => format!("Exited by signal {}", w & 0x7f),
        Some(w) if started => format!("Exited with exit code {}", (w >> 8) & 0xff),
        _ => "Exited".to_string(),
    }
}

/// The CPU time of a job that ended: ` The CPU time used is 0.1 seconds`.
pub fn cpu_words(secs: Option<f64>) -> String {
    match secs {
        Some(s) => format!(" The CPU time used is {s:.1} seconds"),
        None => " The CPU time used is unknown".to_string(),
    }
}

/// `Dispatched to <hosta>, Effective RES_REQ <...>;`, as bhist -l and bacct -l tell it.
pub fn dispatched<T: AsRef<str>>(t: &mut String, hosts: &[(T, u32)], res_req: &str, tasks: bool) {
    let slots: u32 = hosts.iter().map(|(_, n)| (*n).max(1)).sum();
    let list = |t: &mut String, condensed: bool| {
        let mut blank = "";
        for (host, n) in hosts {
            let host = host.as_ref();
            let (times, name) = match (condensed, *n) {
                (true, 2..) => (1, format!("{n}*{host}")),
                (_, n) => (if condensed { 1 } else { n.max(1) }, host.to_string()),
            };
            for _ in 0..times {
                push(t, blank, &name);
                blank = " ";
            }
        }
    };
    if tasks {
        let _ = write!(t, "Dispatched {slots} Task(s) on Host(s) ");
        list(t, true);
        let _ = write!(t, ", Allocated {slots} Slot(s) on Host(s) ");
        list(t, true);
    } else {
        t.push_str("Dispatched to ");
        if slots > 1 {
            let _ = write!(t, "{slots} Hosts/Processors ");
        }
        list(t, false);
    }
    push_given(t, ", Effective RES_REQ ", res_req);
    t.push(';');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_below_home_is_shown_with_home() {
        assert_eq!(cwd_words("/home/a", "/home/a"), "$HOME");
        assert_eq!(cwd_words("/home/a/w", "/home/a/"), "$HOME/w");
        assert_eq!(cwd_words("/home/ab", "/home/a"), "/home/ab");
        assert_eq!(cwd_words("/w", "/"), "/w");
        assert_eq!(cwd_words("/w", ""), "/w");
    }

    #[test]
    fn end_of_a_job_is_told_in_words() {
        assert_eq!(end_words(true, true, Some(0)), "Done successfully");
        assert_eq!(end_words(false, true, Some(3 << 8)), "Exited with exit code 3");
        assert_eq!(end_words(false, true, Some(9)), "Exited by signal 9");
        assert_eq!(end_words(false, true, None), "Exited");
        assert_eq!(end_words(false, false, Some(0)), "Exited");
    }
}
