//! The table of tasks that pam prints at its end.

use std::fmt::Write;

/// Longest command in the table, bytes.
pub const COMMAND_MAX: usize = 16;

/// One task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskRow {
    pub tid: usize,
    pub host: String,
    /// The application with its words.
    pub command: String,
    pub status: String,
    /// Seconds since the epoch; `None`: not known.
    pub ended: Option<i64>,
}

/// The text of the table. `time` writes a time as `MM/DD/YYYY hh:mm:ss`.
pub fn text(rows: &[TaskRow], time: &dyn Fn(i64) -> String) -> String {
    let widest = |width: usize, of: &dyn Fn(&TaskRow) -> usize| {
        rows.iter().map(of).max().unwrap_or(0).max(width)
    };
    let host = widest(10, &|row| row.host.chars().count());
    let status = widest(23, &|row| row.status.chars().count());
    let mut out = String::new();
    let _ = writeln!(
        out,
        "TID   {:<host$}   COMMAND_LINE            {:<state$}TERMINATION_TIME   ",
        "HOST_NAME",
        "STATUS",
        state = status - 5,
    );
    let line = |n: usize| "=".repeat(n);
    let _ =
        writeln!(out, "{} {} {}  {}  {}", line(5), line(host), line(16), line(status), line(19));
    for row in rows {
        let ended = row.ended.map(time).unwrap_or_default();
        let command: String = crate::model::cut(&row.command, COMMAND_MAX)
            .chars()
            .map(|c| if c.is_control() { '?' } else { c })
            .collect();
        let row = format!(
            "{:05} {:<host$} {command:<16}  {:<status$}  {ended}",
            row.tid, row.host, row.status
        );
        out.push_str(row.trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(tid: usize, host: &str, status: &str, ended: Option<i64>) -> TaskRow {
        let command = "./a.out with many words"[..if tid < 7 { 7 } else { 23 }].to_owned();
        TaskRow { tid, host: host.into(), command, status: status.into(), ended }
    }

    #[test]
    fn table_is_laid_out_as_documented_and_widens_for_long_words() {
        let time = |_: i64| "11/20/2026 09:10:11".to_owned();
        let rows = [row(0, "hosta", "Done", Some(1)), row(1, "hostb", "Exit (1)", Some(1))];
        let want = "\
TID   HOST_NAME    COMMAND_LINE            STATUS            TERMINATION_TIME   
===== ========== ================  =======================  ===================
00000 hosta      ./a.out           Done                     11/20/2026 09:10:11
00001 hostb      ./a.out           Exit (1)                 11/20/2026 09:10:11
";
        assert_eq!(text(&rows, &time), want);
        let rows = [row(7, "a-long-host.name", "Failed (No such file or directory)", None)];
        let text = text(&rows, &time);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[2],
            "00007 a-long-host.name ./a.out with man  Failed (No such file or directory)"
        );
        assert_eq!(lines[0].find("COMMAND_LINE"), Some(25));
        assert_eq!(lines[1].find("=  ="), Some(38));
    }
}
