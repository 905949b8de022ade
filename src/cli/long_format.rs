//! Pieces of the long listings (-l of bjobs, bhist, bqueues, bhosts): wrapped paragraphs, limit
//! blocks, threshold tables, sizes. Exact widths matter to tools.

use std::fmt::Write;

/// Columns before a long line breaks.
pub const WRAP: usize = 79;
/// Blanks that a continuation line begins with: the width of `Fri Nov 20 09:12:33: `.
pub const INDENT: usize = 21;
/// The line between two records of a -l listing.
pub const RULE: &str =
    "------------------------------------------------------------------------------";

/// Is there anything in `text` that a terminal could take for a command?
pub fn has_control(text: &str) -> bool {
    let b = text.as_bytes();
    if !b.iter().any(|&c| c < 0x20 || c == 0x7f || c == 0xc2) {
        return false;
    }
    (0..b.len()).any(|i| match b[i] {
        0..=0x1f | 0x7f => true,
        // C1 controls are U+0080 to U+009F: 0xc2 0x80..0x9f.
        0xc2 => b.get(i + 1).is_some_and(|&n| n < 0xa0),
        _ => false,
    })
}

/// Appends user-supplied text without controls: a newline is shown `;`, a tab a blank, any other
/// control `?`.
pub fn push_clean(out: &mut String, text: &str) {
    if !has_control(text) {
        out.push_str(text);
        return;
    }
    out.extend(text.chars().map(|c| match c {
        '\n' => ';',
        '\t' => ' ',
        c if c.is_control() => '?',
        c => c,
    }));
}

/// User-supplied text without controls, see [`push_clean`].
pub fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    push_clean(&mut out, text);
    out
}

/// Appends a paragraph and its newline: broken at column [`WRAP`] with [`INDENT`] blanks when
/// `wrap`, as one line otherwise.
pub fn paragraph(out: &mut String, text: &str, wrap: bool) {
    if !wrap || text.len() <= WRAP {
        out.push_str(text);
        out.push('\n');
        return;
    }
    let mut col = 0;
    for c in text.chars() {
        if col == WRAP {
            let _ = write!(out, "\n{:INDENT$}", "");
            col = INDENT;
        }
        out.push(c);
        col += 1;
    }
    out.push('\n');
}

/// `120 Mbytes`, `3.9 Gbytes`, `12 Kbytes` of a size in KB.
pub fn mem_words(out: &mut String, kb: u64) {
    const M: u64 = 1 << 10;
    const G: u64 = 1 << 20;
    const T: u64 = 1 << 30;
    let _ = match kb {
        0 => write!(out, "0 Mbytes"),
        1..M => write!(out, "{kb} Kbytes"),
        M..G => write!(out, "{} Mbytes", kb / M),
        G..T => write!(out, "{:.1} Gbytes", kb as f64 / G as f64),
        _ => write!(out, "{:.1} Tbytes", kb as f64 / T as f64),
    };
}

/// The maximum and average usage of a job, beside its allocation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Efficiency {
    pub max_mem_kb: u64,
    pub avg_mem_kb: u64,
    /// MB; 0 none.
    pub asked_mb: f64,
    pub slots: i64,
    /// Seconds.
    pub ran: f64,
    pub cpu: f64,
    /// Most processors at a time, and after how many seconds that was.
    pub peak: f64,
    pub peak_secs: i64,
}

impl Efficiency {
    /// Per cent of the memory asked for; 0 where none was.
    pub fn mem(&self) -> f64 {
        let share = self.max_mem_kb as f64 / 1024.0 * 100.0 / self.asked_mb;
        if self.asked_mb > 0.0 { share } else { 0.0 }
    }

    /// Per cent of its slots in use all the time.
    pub fn cpu_average(&self) -> f64 {
        let given = self.ran * self.slots as f64;
        if given > 0.0 { self.cpu * 100.0 / given } else { 0.0 }
    }

    /// Per cent of its slots in use at its peak.
    pub fn cpu_peak(&self) -> f64 {
        self.peak * 100.0 / self.slots.max(1) as f64
    }

    /// The blocks of -l; `shares`: that of CPU too, and of what was asked for.
    pub fn push(&self, out: &mut String, indent: &str, shares: bool) {
        let _ = write!(out, "\n{indent}MEMORY USAGE:\n{indent}MAX MEM: ");
        mem_words(out, self.max_mem_kb);
        out.push_str(";  AVG MEM: ");
        mem_words(out, self.avg_mem_kb);
        if !shares {
            return out.push('\n');
        }
        let _ = writeln!(
            out,
            "; MEM Efficiency: {:.2}%\n\n{indent}CPU USAGE:\n\
             {indent}CPU PEAK: {:.2} ;  CPU PEAK DURATION: {} second(s)\n\
             {indent}CPU AVERAGE EFFICIENCY: {:.2}% ;  CPU PEAK EFFICIENCY: {:.2}%",
            self.mem(),
            self.peak,
            self.peak_secs,
            self.cpu_average(),
            self.cpu_peak()
        );
    }
}

/// PENDING TIME DETAILS: how long a job waited, seconds, each behind `indent`; nothing where
/// nothing is known. The two times as published output of `bjobs -l` of 10.1 has them.
pub fn pending_times(out: &mut String, indent: &str, lines: &[(&str, Option<i64>)]) {
    if lines.iter().all(|(_, secs)| secs.is_none()) {
        return;
    }
    let _ = writeln!(out, "\n{indent}PENDING TIME DETAILS:");
    for (label, secs) in lines {
        if let Some(secs) = secs {
            let label = format!("{label} (seconds):");
            let _ = writeln!(out, "{indent}{label:<39}{secs}");
        }
    }
}

/// The labels of the two kinds of waiting.
pub const ELIGIBLE_TIME: &str = "Eligible pending time";
pub const INELIGIBLE_TIME: &str = "Ineligible pending time";

/// `2 G`, `1500 M`, `512 K` of a limit in KB: exact, in the largest unit that it is a whole
/// number of.
pub fn size_words(kb: u64) -> String {
    let (mut n, mut unit) = (kb, 'K');
    for name in ['M', 'G', 'T', 'P'] {
        if n == 0 || !n.is_multiple_of(1 << 10) {
            break;
        }
        (n, unit) = (n >> 10, name);
    }
    format!("{n} {unit}")
}

/// Limits as a block shows them; sizes in KB, times in seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LimitBlock {
    pub cpu: Option<u64>,
    pub run: Option<u64>,
    /// EXTENDABLE RUNLIMIT, in words; empty none.
    pub extendable: String,
    /// Slots: PROCLIMIT or TASKLIMIT, and the text: `4`, `1 2 4`.
    pub slots: Option<(&'static str, String)>,
    pub file: Option<u64>,
    pub data: Option<u64>,
    pub stack: Option<u64>,
    pub core: Option<u64>,
    pub mem: Option<u64>,
    pub swap: Option<u64>,
    pub process: Option<u64>,
    pub thread: Option<u64>,
    /// Host or model that the times are of; empty none.
    pub host: String,
}

impl LimitBlock {
    pub fn is_empty(&self) -> bool {
        *self == LimitBlock { host: self.host.clone(), ..LimitBlock::default() }
    }

    /// The lines, without a blank line before them.
    pub fn push(&self, out: &mut String) {
        let of = if self.host.is_empty() { String::new() } else { format!(" of {}", self.host) };
        let minutes = |secs: u64| format!("{:.1} min{of}", secs as f64 / 60.0);
        let mut times = Vec::new();
        if let Some(s) = self.cpu {
            times.push(("CPULIMIT", minutes(s)));
        }
        if let Some(s) = self.run {
            times.push(("RUNLIMIT", minutes(s)));
        }
        if let Some((name, text)) = &self.slots {
            times.push((name, text.clone()));
        }
        if !times.is_empty() {
            times.iter().for_each(|(name, _)| {
                let _ = write!(out, " {name:<24}");
            });
            out.push('\n');
            let line: String = times.iter().map(|(_, v)| format!(" {v:<24}")).collect();
            out.push_str(line.trim_end());
            out.push('\n');
        }
        if !self.extendable.is_empty() {
            let _ = writeln!(out, " EXTENDABLE RUNLIMIT:\n {}", self.extendable);
        }
        self.push_sizes(out);
    }

    fn push_sizes(&self, out: &mut String) {
        let sizes = [
            ("FILELIMIT", self.file, 6),
            ("DATALIMIT", self.data, 6),
            ("STACKLIMIT", self.stack, 8),
            ("CORELIMIT", self.core, 8),
            ("MEMLIMIT", self.mem, 6),
            ("SWAPLIMIT", self.swap, 8),
        ];
        let counts = [("PROCESSLIMIT", self.process, 12), ("THREADLIMIT", self.thread, 11)];
        let (mut head, mut line) = (String::new(), String::new());
        for (name, kb, width) in sizes {
            let Some(kb) = kb else { continue };
            let _ = write!(head, " {name}");
            let words = size_words(kb);
            let _ = match words.split_once(' ') {
                Some((n, unit)) => write!(line, " {n:>width$} {unit} "),
                None => write!(line, " {words:>width$}"),
            };
        }
        for (name, n, width) in counts {
            let Some(n) = n else { continue };
            let _ = write!(head, " {name}");
            let _ = write!(line, " {n:>width$}");
        }
        if !head.is_empty() {
            let _ = writeln!(out, "{head}\n{line}");
        }
    }
}

/// The column at which each built-in column of a threshold table ends, and the column of its `-`.
const THRESHOLD_COLS: [(usize, usize); 11] = [
    (15, 13),
    (21, 19),
    (27, 25),
    (32, 31),
    (40, 39),
    (46, 45),
    (51, 50),
    (57, 56),
    (64, 62),
    (71, 69),
    (78, 76),
];
/// Columns of a whole threshold line.
const THRESHOLD_WIDTH: usize = 79;

/// The value of threshold number `i` (order of the load indices).
fn threshold_text(i: usize, v: f64) -> String {
    match i {
        0..=2 | 4 => format!("{v:.1}"),
        3 => format!("{:.0}%", v * 100.0),
        8..=10 => format!("{v:.0}M"),
        _ => format!("{v:.0}"),
    }
}

/// The table of loadSched and loadStop by built-in index; missing ones are not set.
pub fn thresholds(out: &mut String, of: &[(Option<f64>, Option<f64>)]) {
    out.push_str(
        "           r15s   r1m  r15m   ut      pg    io   ls    it    tmp    swp    mem\n",
    );
    for (word, stop) in [(" loadSched", false), (" loadStop", true)] {
        let mut line = String::from(word);
        for (i, &(end, dash)) in THRESHOLD_COLS.iter().enumerate() {
            let pair = of.get(i).copied().unwrap_or_default();
            match if stop { pair.1 } else { pair.0 } {
                Some(v) => {
                    let width = end.saturating_sub(line.len());
                    let text = threshold_text(i, v);
                    // A value too wide for its place still stands apart from the one before.
                    let width = width.max(text.len() + 1);
                    let _ = write!(line, "{text:>width$}");
                }
                None => {
                    let width = (dash + 1).saturating_sub(line.len()).max(2);
                    let _ = write!(line, "{:>width$}", "-");
                }
            }
        }
        let _ = writeln!(out, "{line:<THRESHOLD_WIDTH$}");
    }
}

/// The thresholds of external indices, each (name, `sched/stop`); nothing where there are none.
pub fn external_thresholds(out: &mut String, of: &[(String, String)]) {
    if of.is_empty() {
        return;
    }
    let side = |text: &str, stop: bool| {
        let (sched, other) = text.split_once('/').unwrap_or((text, ""));
        let text = if stop { other } else { sched };
        text.parse::<f64>().map_or("-".to_owned(), |v| format!("{v:.1}"))
    };
    let width = |name: &str| name.chars().count().max(5) + 1;
    let _ = write!(out, "\n{:11}", "");
    for (name, _) in of {
        let _ = write!(out, "{:>1$}", clean(name), width(name));
    }
    for (word, stop) in [(" loadSched", false), (" loadStop", true)] {
        let _ = write!(out, "\n{word:<11}");
        for (name, text) in of {
            let _ = write!(out, "{:>1$}", side(text, stop), width(name));
        }
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_break_at_column_80() {
        let mut out = String::new();
        let text = "Fri Nov 20 09:30:13: Running with execution home </home/user1>, \
                    Execution CWD </home/user1>, Execution Pid <17157>;";
        paragraph(&mut out, text, true);
        assert_eq!(
            out,
            "Fri Nov 20 09:30:13: Running with execution home </home/user1>, Execution CWD <\n\
             \x20                    /home/user1>, Execution Pid <17157>;\n"
        );
        out.clear();
        paragraph(&mut out, text, false);
        assert_eq!(out, format!("{text}\n"));
        out.clear();
        let exact = "x".repeat(WRAP + WRAP - INDENT);
        paragraph(&mut out, &exact, true);
        assert_eq!(out.lines().map(str::len).collect::<Vec<_>>(), [WRAP, WRAP]);
        out.clear();
        paragraph(&mut out, &"é".repeat(WRAP), true);
        assert_eq!(out.lines().count(), 1);
    }

    #[test]
    fn nothing_reaches_the_terminal() {
        let mut out = String::new();
        push_clean(&mut out, "a\n\tb\x1b[31m\u{9b}1mé\x7f");
        assert_eq!(out, "a; b?[31m?1mé?");
        out.clear();
        push_clean(&mut out, "é\u{c2}x");
        assert_eq!(out, "éÂx");
    }

    #[test]
    fn memory_size_is_shown_in_words() {
        let mem = |kb| {
            let mut s = String::new();
            mem_words(&mut s, kb);
            s
        };
        assert_eq!(mem(0), "0 Mbytes");
        assert_eq!(mem(12), "12 Kbytes");
        assert_eq!(mem(120 << 10), "120 Mbytes");
        assert_eq!(mem(4_089_446), "3.9 Gbytes");
        assert_eq!(size_words(2 << 20), "2 G");
        assert_eq!(size_words(1000), "1000 K");
        assert_eq!(size_words(1536), "1536 K");
        assert_eq!(size_words(2000 << 10), "2000 M");
        assert_eq!(size_words(0), "0 K");
    }

    #[test]
    fn limit_block_has_the_layout_of_lsf() {
        let mut out = String::new();
        let mut b = LimitBlock { host: "hosta".into(), ..LimitBlock::default() };
        assert!(b.is_empty());
        b.run = Some(3600);
        b.mem = Some(2 << 20);
        b.push(&mut out);
        assert_eq!(out, " RUNLIMIT                \n 60.0 min of hosta\n MEMLIMIT\n      2 G \n");
        out.clear();
        let b = LimitBlock {
            cpu: Some(3600),
            run: Some(7200),
            slots: Some(("PROCLIMIT", "4".into())),
            file: Some(1000),
            data: Some(100_000),
            stack: Some(10_240_001),
            process: Some(20),
            ..LimitBlock::default()
        };
        b.push(&mut out);
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!(
            lines[0],
            " CPULIMIT                 RUNLIMIT                 PROCLIMIT               "
        );
        assert_eq!(lines[1], " 60.0 min                 120.0 min                4");
        assert_eq!(lines[2], " FILELIMIT DATALIMIT STACKLIMIT PROCESSLIMIT");
        assert_eq!(lines[3], "   1000 K  100000 K  10240001 K            20");
    }

    #[test]
    fn tables_of_external_thresholds() {
        let mut out = String::new();
        external_thresholds(&mut out, &[]);
        assert_eq!(out, "");
        let of = [("lic", "2/"), ("scratchdisk", "/0.5")].map(|(n, t)| (n.into(), t.into()));
        external_thresholds(&mut out, &of);
        let want = "\n              lic scratchdisk\n loadSched    2.0           -\n \
                    loadStop       -         0.5\n";
        assert_eq!(out, want);
    }

    #[test]
    fn threshold_table_has_the_layout_of_lsf() {
        let mut out = String::new();
        let mut t = vec![(None, None); 11];
        thresholds(&mut out, &[]);
        let dashes =
            "    -     -     -       -     -    -     -     -      -      -  \n".to_string();
        let head =
            "           r15s   r1m  r15m   ut      pg    io   ls    it    tmp    swp    mem\n";
        assert_eq!(out, format!("{head} loadSched   - {dashes} loadStop    - {dashes}"));
        out.clear();
        t[1] = (Some(20.0), Some(40.0));
        t[3] = (Some(0.8), None);
        t[10] = (Some(500.0), None);
        thresholds(&mut out, &t);
        assert_eq!(
            out,
            format!(
                "{head} loadSched   -   20.0    -   80%       -     -    -     -     -      -    \
                 500M \n loadStop    -   40.0    -     -       -     -    -     -     -      \
                 -      -  \n"
            )
        );
    }
}
