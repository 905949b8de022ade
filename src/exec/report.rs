//! The report on a job, above or below its output or in a mail: pure text from data (in the layout
//! of LSF 10.1).
//!
//! The result line stands two lines above `Resource usage summary:`, where tools look for it.

use crate::exec::others_usage::ReportedUsage;
use crate::model::JobKey;
use crate::model::job::End;
use crate::model::reason;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;

/// Lines of the job's text that are shown.
pub const SHOWN_LINES: usize = 50;
/// Bytes of the job's text that are shown.
pub const SHOWN_BYTES: usize = 16 << 10;

const RULE: &str = "------------------------------------------------------------";
const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// The contents of a report.
#[derive(Clone, Debug)]
pub struct Report<'a> {
    /// Primary administrator and execution host, for the sender line.
    pub admin: &'a str,
    pub host: &'a str,
    pub cluster: &'a str,
    pub key: JobKey,
    pub name: Cow<'a, str>,
    pub from_host: &'a str,
    pub user: &'a str,
    pub exec_user: &'a str,
    pub queue: &'a str,
    pub hosts: &'a [(Arc<str>, u32)],
    pub home: &'a str,
    pub cwd: &'a str,
    /// Seconds since the epoch.
    pub submitted: i64,
    pub started: i64,
    pub ended: i64,
    /// Command or script, as by [`shown`].
    pub text: &'a str,
    /// The job runs and has no end to report yet.
    pub begins: bool,
    pub end: End,
    /// TERM_ number; 0 none.
    pub exit_info: u32,
    pub used: ReportedUsage,
    /// `rusage[mem=]` altogether, MB.
    pub requested_mb: Option<f64>,
    /// Seconds running, suspended time not counted.
    pub run_secs: i64,
    /// Run limit, seconds.
    pub run_limit: Option<u64>,
    /// Name of the file that has the error output, where it is apart; empty none.
    pub err_file: String,
    /// Name of the file that has the output; empty none.
    pub out_file: String,
    pub place: ReportPlace<'a>,
}

/// The place of a report: in the output file or in a mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportPlace<'a> {
    /// The report stands in the output file, below output that was written there at once.
    Below,
    /// The report stands in the output file, the output behind it, and [`Report::after_output`]
    /// below that.
    Above,
    /// The report is mailed to this user; `output`: the output follows it.
    Mail { to: &'a str, output: bool },
}

/// The part of a command or script that a report shows.
pub fn shown(text: &[u8]) -> String {
    let cut = &text[..text.len().min(SHOWN_BYTES)];
    let text = String::from_utf8_lossy(cut);
    let mut out = String::new();
    for (n, line) in text.lines().enumerate() {
        if n == SHOWN_LINES {
            out.push_str("\n(... more ...)");
            break;
        }
        if n > 0 {
            out.push('\n');
        }
        out.push_str(line);
    }
    out
}

/// `Fri Nov 20 09:12:33 2026`.
pub(crate) fn ctime(zone: &TimeZone, secs: i64) -> String {
    let at = Timestamp::from_second(secs).unwrap_or(Timestamp::UNIX_EPOCH);
    let t = zone.to_datetime(at);
    let day = DAYS[t.weekday().to_monday_zero_offset() as usize];
    let month = MONTHS[t.month() as usize - 1];
    let (d, h, m, s, y) = (t.day(), t.hour(), t.minute(), t.second(), t.year());
    format!("{day} {month} {d:>2} {h:02}:{m:02}:{s:02} {y}")
}

impl Report<'_> {
    /// The text, with times in `zone`.
    pub fn text(&self, zone: &TimeZone) -> String {
        let mut out = String::with_capacity(2048);
        // writing to a String cannot fail
        let _ = self.head(&mut out, zone);
        if self.begins {
            return out;
        }
        let _ = self.result(&mut out);
        let _ = self.summary(&mut out);
        let _ = self.tail(&mut out);
        out
    }

    /// A mail about a job that could not be started.
    pub fn held(&self, text: &str) -> String {
        let Report { admin, cluster, name, .. } = self;
        let id = self.key.job_ref();
        let to = if let ReportPlace::Mail { to, .. } = self.place { to } else { "" };
        format!(
            "From: LSF <{admin}>\nTo: {to}\nSubject: Job {id}: <{name}> in cluster <{cluster}> \
             could not be started\n\n{text}"
        )
    }

    fn head(&self, out: &mut String, zone: &TimeZone) -> std::fmt::Result {
        let Report { admin, host, name, cluster, from_host, user, queue, exec_user, .. } = self;
        let at = |secs| ctime(zone, secs);
        let id = self.key.job_ref();
        let (word, was) = match self.end {
            _ if self.begins => ("Started", "started"),
            End::Status(0) => ("Done", "executed"),
            _ => ("Exited", "executed"),
        };
        match self.place {
            ReportPlace::Below => writeln!(out, "\n{RULE}\nSender: LSF System <{admin}@{host}>")?,
            ReportPlace::Above => writeln!(out, "Sender: LSF System <{admin}@{host}>")?,
            ReportPlace::Mail { to, .. } => writeln!(out, "From: LSF <{admin}>\nTo: {to}")?,
        }
        writeln!(out, "Subject: Job {id}: <{name}> in cluster <{cluster}> {word}\n")?;
        writeln!(
            out,
            "Job <{name}> was submitted from host <{from_host}> by user <{user}> in cluster \
             <{cluster}> at {}",
            at(self.submitted)
        )?;
        let mut hosts = self.hosts.iter().map(|(h, n)| match n {
            0 | 1 => format!("<{h}>"),
            n => format!("<{n}*{h}>"),
        });
        writeln!(
            out,
            "Job was {was} on host(s) {}, in queue <{queue}>, as user <{exec_user}> in cluster \
             <{cluster}> at {}",
            hosts.next().unwrap_or_else(|| format!("<{host}>")),
            at(self.started)
        )?;
        for h in hosts {
            writeln!(out, "{:28}{h}", "")?;
        }
        writeln!(out, "<{}> was used as the home directory.", self.home)?;
        writeln!(out, "<{}> was used as the working directory.", self.cwd)?;
        writeln!(out, "Started at {}", at(self.started))?;
        if !self.begins {
            writeln!(out, "Terminated at {}", at(self.ended))?;
            writeln!(out, "Results reported at {}", at(self.ended))?;
        }
        writeln!(out, "\nYour job looked like:\n\n{RULE}\n# LSBATCH: User input")?;
        writeln!(out, "{}\n{RULE}\n", self.text)
    }

    fn result(&self, out: &mut String) -> std::fmt::Result {
        if self.exit_info != 0 {
            let (name, text) = reason::term_text(self.exit_info);
            writeln!(out, "{name}: {text}.")?;
        }
        match self.end {
            End::Status(0) => writeln!(out, "Successfully completed."),
            End::Status(s) if s & 0x7f != 0 && self.exit_info == 0 => {
                let core = if s & 0x80 != 0 { ", and core dumped" } else { "" };
                let signal = signal_text(s & 0x7f);
                writeln!(out, "Exited with signal termination: {signal}{core}.")
            }
            end => match end.code() {
                Some(code) => writeln!(out, "Exited with exit code {code}."),
                None => writeln!(out, "Exited."),
            },
        }
    }

    fn summary(&self, out: &mut String) -> std::fmt::Result {
        let ReportedUsage { usage: u, counted_on, max_procs, max_threads } = &self.used;
        let mb = |kb: u64| kb as f64 / 1024.0;
        let some = |is: bool, text: String| if is { text } else { "-".into() };
        let (asked, max) = (self.requested_mb.unwrap_or(0.0), mb(u.max_mem_kb));
        let asks = self.requested_mb.is_some();
        let turnaround = self.ended - self.submitted;
        let lines = [
            ("CPU time", format!("{:.2} sec.", u.cpu_secs())),
            ("Max Memory", some(u.max_mem_kb > 0, format!("{max:.0} MB"))),
            ("Average Memory", some(u.avg_mem_kb > 0, format!("{:.2} MB", mb(u.avg_mem_kb)))),
            ("Total Requested Memory", some(asks, format!("{asked:.2} MB"))),
            ("Delta Memory", some(asks, format!("{:.2} MB", asked - max))),
            ("Max Swap", some(u.max_swap_kb > 0, format!("{:.0} MB", mb(u.max_swap_kb)))),
            ("Max Processes", some(*max_procs > 0, max_procs.to_string())),
            ("Max Threads", some(*max_threads > 0, max_threads.to_string())),
            ("Run time", format!("{} sec.", self.run_secs.max(0))),
            ("Turnaround time", format!("{} sec.", turnaround.max(0))),
        ];
        writeln!(out, "\nResource usage summary:\n")?;
        let mut line =
            |label: &str, value: &str| writeln!(out, "    {:<45}{value}", format!("{label} :"));
        lines.iter().try_for_each(|(label, value)| line(label, value))?;
        // Beyond LSF: how much was used of what was asked for.
        if asked > 0.0 && max > 0.0 {
            line("Requested Memory used", &format!("{:.2}%", max * 100.0 / asked))?;
        }
        if let Some(limit @ 1..) = self.run_limit {
            let share = self.run_secs.max(0) as f64 * 100.0 / limit as f64;
            line("Run limit used", &format!("{share:.2}% of {limit} sec."))?;
        }
        if !counted_on.is_empty() {
            let hosts = counted_on.join(" ");
            line("Usage counted on host", &format!("{hosts} alone, see bacct -l"))?;
        }
        Ok(())
    }

    /// Says where the output is. In a mail the output comes last, and a file elsewhere is named
    /// before it.
    fn tail(&self, out: &mut String) -> std::fmt::Result {
        match self.place {
            ReportPlace::Above => return writeln!(out, "\nThe output (if any) follows:\n"),
            ReportPlace::Below => {
                writeln!(out, "\nThe output (if any) is above this job summary.")?;
                self.elsewhere(out, false)?;
            }
            ReportPlace::Mail { output, .. } => {
                self.elsewhere(out, !output)?;
                if output {
                    writeln!(out, "\nThe output (if any) follows:")?;
                }
            }
        }
        writeln!(out)
    }

    /// Names the files with output that is not in this report.
    fn elsewhere(&self, out: &mut String, apart: bool) -> std::fmt::Result {
        let files = [(apart, &self.out_file, "stdout"), (true, &self.err_file, "stderr")];
        let mut files = files.iter().filter(|(told, file, _)| *told && !file.is_empty()).peekable();
        if files.peek().is_some() {
            writeln!(out, "\nPS:\n")?;
        }
        files.try_for_each(|(_, file, what)| {
            writeln!(out, "Read file <{file}> for {what} output of this job.")
        })
    }

    /// The lines below output that follows its report.
    pub fn after_output(&self) -> String {
        let mut out = String::from("\n");
        if !self.err_file.is_empty() {
            // writing to a String cannot fail
            let _ = self.elsewhere(&mut out, false).and_then(|()| writeln!(out));
        }
        out
    }
}

/// The C library's words for a signal.
fn signal_text(signal: i32) -> String {
    let text = match signal {
        1 => "Hangup",
        2 => "Interrupt",
        3 => "Quit",
        4 => "Illegal instruction",
        5 => "Trace/breakpoint trap",
        6 => "Aborted",
        7 => "Bus error",
        8 => "Floating point exception",
        9 => "Killed",
        10 => "User defined signal 1",
        11 => "Segmentation fault",
        12 => "User defined signal 2",
        13 => "Broken pipe",
        14 => "Alarm clock",
        15 => "Terminated",
        24 => "CPU time limit exceeded",
        25 => "File size limit exceeded",
        n => return format!("signal {n}"),
    };
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::job::Usage;

    fn sample(hosts: &[(Arc<str>, u32)]) -> Report<'_> {
        Report {
            admin: "lsfadmin",
            host: "hosta",
            cluster: "cluster1",
            key: JobKey { job: 101, idx: 0, attempt: 1 },
            name: "b_sim".into(),
            from_host: "login1",
            user: "alice",
            exec_user: "alice",
            queue: "normal",
            hosts,
            home: "/home/alice",
            cwd: "/home/alice/w",
            submitted: 1_795_165_921,
            started: 1_795_165_922,
            ended: 1_795_166_064,
            text: "./b_sim.sh",
            begins: false,
            end: End::Status(0),
            exit_info: 0,
            used: ReportedUsage {
                usage: Usage {
                    utime_us: 60_000_000,
                    stime_us: 2_100_000,
                    max_mem_kb: 120 << 10,
                    avg_mem_kb: 98 << 10,
                    ..Usage::default()
                },
                counted_on: vec!["hosta".into()],
                max_procs: 4,
                max_threads: 6,
            },
            requested_mb: Some(1000.0),
            run_secs: 142,
            run_limit: Some(3600),
            err_file: String::new(),
            out_file: String::new(),
            place: ReportPlace::Below,
        }
    }

    const EXPECTED: &str = "
------------------------------------------------------------
Sender: LSF System <lsfadmin@hosta>
Subject: Job 101: <b_sim> in cluster <cluster1> Done

Job <b_sim> was submitted from host <login1> by user <alice> in cluster \
<cluster1> at Fri Nov 20 09:12:01 2026
Job was executed on host(s) <4*hosta>, in queue <normal>, as user <alice> in cluster \
<cluster1> at Fri Nov 20 09:12:02 2026
\x20                           <4*hostb>
</home/alice> was used as the home directory.
</home/alice/w> was used as the working directory.
Started at Fri Nov 20 09:12:02 2026
Terminated at Fri Nov 20 09:14:24 2026
Results reported at Fri Nov 20 09:14:24 2026

Your job looked like:

------------------------------------------------------------
# LSBATCH: User input
./b_sim.sh
------------------------------------------------------------

Successfully completed.

Resource usage summary:

    CPU time :                                   62.10 sec.
    Max Memory :                                 120 MB
    Average Memory :                             98.00 MB
    Total Requested Memory :                     1000.00 MB
    Delta Memory :                               880.00 MB
    Max Swap :                                   -
    Max Processes :                              4
    Max Threads :                                6
    Run time :                                   142 sec.
    Turnaround time :                            143 sec.
    Requested Memory used :                      12.00%
    Run limit used :                             3.94% of 3600 sec.
    Usage counted on host :                      hosta alone, see bacct -l

The output (if any) is above this job summary.

";

    #[test]
    fn report_has_the_documented_text() {
        let hosts = [("hosta".into(), 4), ("hostb".into(), 4)];
        assert_eq!(sample(&hosts).text(&TimeZone::UTC), EXPECTED);
    }

    #[test]
    fn a_job_that_begins() {
        let hosts = [("hosta".into(), 1)];
        let place = ReportPlace::Mail { to: "alice", output: false };
        let text = Report { begins: true, place, ..sample(&hosts) }.text(&TimeZone::UTC);
        let want = "From: LSF <lsfadmin>\nTo: alice\nSubject: Job 101: <b_sim> in cluster \
                    <cluster1> Started\n\nJob <b_sim> was submitted from host <login1> by user \
                    <alice> in cluster <cluster1> at Fri Nov 20 09:12:01 2026\nJob was started on \
                    host(s) <hosta>, in queue <normal>, as user <alice> in cluster <cluster1> at \
                    Fri Nov 20 09:12:02 2026\n</home/alice> was used as the home directory.\n\
                    </home/alice/w> was used as the working directory.\n\
                    Started at Fri Nov 20 09:12:02 2026\n\nYour job looked like:\n\n";
        assert!(text.starts_with(want), "{text}");
        assert!(text.ends_with("\n./b_sim.sh\n{RULE}\n\n".replace("{RULE}", RULE).as_str()));
    }

    #[test]
    fn a_report_above_its_output_names_the_other_file_below_it() {
        let hosts = [("hosta".into(), 4), ("hostb".into(), 4)];
        let mut report = Report { place: ReportPlace::Above, ..sample(&hosts) };
        let below = EXPECTED.strip_prefix(&format!("\n{RULE}\n")).unwrap();
        let want = below.replace("is above this job summary.\n", "follows:\n");
        assert_eq!(report.text(&TimeZone::UTC), want);
        assert_eq!(report.after_output(), "\n");
        report.err_file = "e.101".into();
        assert_eq!(report.text(&TimeZone::UTC), want);
        let ps = "\n\nPS:\n\nRead file <e.101> for stderr output of this job.\n\n";
        assert_eq!(report.after_output(), ps);
    }

    fn result_of(end: End, exit_info: u32) -> String {
        let hosts = [("hosta".into(), 1)];
        let text = Report { end, exit_info, ..sample(&hosts) }.text(&TimeZone::UTC);
        assert!(text.contains("host(s) <hosta>, in"));
        let lines: Vec<_> = text.lines().collect();
        let at = lines.iter().position(|l| *l == "Resource usage summary:").unwrap();
        assert_eq!(lines[at - 1], "");
        let before = if lines[at - 3].is_empty() { "" } else { lines[at - 3] };
        let word = if text.contains("> Done\n") { "Done" } else { "Exited" };
        format!("{word}|{before}|{}", lines[at - 2])
    }

    #[test]
    fn result_of_a_job_names_its_end_and_reason() {
        let of = result_of;
        assert_eq!(of(End::Status(0x300), 0), "Exited||Exited with exit code 3.");
        assert_eq!(
            of(End::Status(2), reason::term::OWNER),
            "Exited|TERM_OWNER: job killed by owner.|Exited with exit code 130."
        );
        assert_eq!(of(End::Status(9), 0), "Exited||Exited with signal termination: Killed.");
        assert_eq!(
            of(End::Status(11 | 0x80), 0),
            "Exited||Exited with signal termination: Segmentation fault, and core dumped."
        );
        let lost = of(End::Unknown, reason::term::LOST_STATUS);
        assert!(lost.starts_with("Exited|TERM_LOST_STATUS: ") && lost.ends_with("|Exited."));
    }

    #[test]
    fn long_scripts_are_cut() {
        let text: String = (1..=60).map(|n| format!("line {n}\n")).collect();
        let got = shown(text.as_bytes());
        assert_eq!(got.lines().count(), SHOWN_LINES + 1);
        assert!(got.ends_with("line 50\n(... more ...)"));
        assert_eq!(shown(b"one\n"), "one");
        assert!(shown(&[b'x'; 1 << 20]).len() <= SHOWN_BYTES);
    }
}
