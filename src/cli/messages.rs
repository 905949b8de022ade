//! External messages in listings: the table of bread and bstatus (bread(1)), and the one of
//! bjobs -l (bjobs(1)).

use super::clock::Clock;
use super::columns::tail;
use super::long_format::{clean, push_clean};
use crate::proto::job_message::MessageInfo;
use std::fmt::Write;

/// Columns of the user, cut to them at its beginning.
const FROM: usize = 10;
/// Columns of the text, where it is cut to them.
const TEXT: usize = 35;

/// A message as a table shows it.
pub struct MessageLine<'a> {
    pub index: u32,
    pub user: &'a str,
    /// Seconds since the epoch.
    pub time: i64,
    pub text: &'a str,
    pub attached: bool,
}

/// The headings of the columns that both tables have.
pub fn heading(out: &mut String) {
    let _ = write!(
        out,
        "{:<6} {:<10} {:<14} {:<35} {:<10} ",
        "MSG_ID", "FROM", "POST_TIME", "MESSAGE", "ATTACHMENT"
    );
}

/// One message; with `wide` or where `whole`, nothing is cut.
pub fn line(out: &mut String, m: &MessageLine<'_>, clock: &Clock, whole: bool) {
    let (user, text) = (clean(m.user), clean(m.text));
    let mut time = String::new();
    clock.short(&mut time, m.time);
    let short = whole || user.chars().count() <= FROM;
    let user = if short { user } else { tail(&user, FROM) };
    let text: String = if whole { text } else { text.chars().take(TEXT).collect() };
    let attached = if m.attached { "Y" } else { "N" };
    let _ = write!(out, "{:<6} {user:<10} {time:<14} {text:<35} {attached:<10} ", m.index);
}

/// The table of bread for one message. `level`: with a column of it (-N).
pub fn table(m: &MessageInfo, clock: &Clock, wide: bool, level: bool) -> String {
    let mut out = format!("{:<10} ", "JOBID");
    heading(&mut out);
    out.push_str(if level { "LEVEL\n" } else { "\n" });
    let job = match m.idx {
        0 => m.job.to_string(),
        idx => format!("{}[{idx}]", m.job),
    };
    let _ = write!(out, "{job:<10} ");
    let shown = MessageLine {
        index: m.index,
        user: &m.user,
        time: m.time,
        text: &m.text,
        attached: m.attached,
    };
    line(&mut out, &shown, clock, wide);
    if level {
        push_clean(&mut out, if m.level.is_empty() { "-" } else { &m.level });
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_table_has_the_layout_of_lsf() {
        let m = MessageInfo {
            job: 2500,
            index: 1,
            user: "a-very-long-user".into(),
            time: 1_700_000_000,
            text: "step 1 of 3 is done, and the files of it are there\u{1b}[1m".into(),
            attached: true,
            level: "ERROR".into(),
            ..MessageInfo::default()
        };
        let want = "\
JOBID      MSG_ID FROM       POST_TIME      MESSAGE                             ATTACHMENT LEVEL
2500       1      *long-user Nov 14 22:13   step 1 of 3 is done, and the files  Y          ERROR
";
        assert_eq!(table(&m, &Clock::utc(), false, true), want);
        let of_element = MessageInfo { idx: 3, text: "x".into(), attached: false, ..m.clone() };
        let want = "\
JOBID      MSG_ID FROM       POST_TIME      MESSAGE                             ATTACHMENT 
2500[3]    1      *long-user Nov 14 22:13   x                                   N          
";
        assert_eq!(table(&of_element, &Clock::utc(), false, false), want);
        let wide = table(&m, &Clock::utc(), true, false);
        assert!(wide.contains("a-very-long-user Nov 14 22:13   step 1 of 3 is done, and"));
        assert!(wide.contains("files of it are there?[1m Y "), "{wide}");
    }
}
