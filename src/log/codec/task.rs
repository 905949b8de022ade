//! Lines of lsf.acct.HOST (res(8)): a task of res that has ended.

use super::record_error::RecordError;
use super::text::{Fields, digits, put_int, put_str};
use super::usage::{get_usage, put_usage};
use crate::proto::res::Account;

/// Appends the line of a task, newline included.
pub fn put_task(out: &mut Vec<u8>, a: &Account) {
    digits(out, u64::from(a.pid));
    put_str(out, a.user.as_bytes());
    put_int(out, a.exit_status);
    put_int(out, a.started);
    put_int(out, a.ended);
    put_str(out, a.from_host.as_bytes());
    put_str(out, a.exec_host.as_bytes());
    put_str(out, a.cwd.as_bytes());
    put_str(out, a.command.as_bytes());
    put_usage(out, &a.usage);
    out.push(b'\n');
}

/// Reads a line of any writer's.
pub fn read_task(line: &[u8]) -> Result<Account, RecordError> {
    let f = &mut Fields::new(line.trim_ascii_end());
    Ok(Account {
        pid: f.num()?,
        user: f.text()?,
        exit_status: f.num()?,
        started: f.num()?,
        ended: f.num()?,
        from_host: f.text()?,
        exec_host: f.text()?,
        cwd: f.bytes()?.into_owned().into(),
        command: f.bytes()?.into_owned().into(),
        usage: get_usage(f)?.unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::job::Usage;

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let usage = Usage { utime_us: 1_500_000, stime_us: 20, minflt: 7, ..Usage::default() };
        let (user, from_host, exec_host) = ("ann".to_owned(), "a".to_owned(), "b".to_owned());
        let (cwd, command) = ("/tmp".into(), "echo \"x\" y".into());
        let (pid, exit_status, started, ended) = (77, 256, 1_000, 1_009);
        let a = Account {
            pid,
            user,
            exit_status,
            started,
            ended,
            from_host,
            exec_host,
            cwd,
            command,
            usage,
        };
        let mut line = Vec::new();
        put_task(&mut line, &a);
        let text = String::from_utf8(line.clone()).unwrap();
        let head = "77 \"ann\" 256 1000 1009 \"a\" \"b\" \"/tmp\" \"echo \"\"x\"\" y\" \
                    1.500000 0.000020 0 ";
        assert!(text.starts_with(head), "{text}");
        assert_eq!(text.split_whitespace().count(), 9 + 2 + 19);
        assert_eq!(read_task(&line).unwrap(), a);
        assert!(read_task(b"77 \"ann\" 256\n").is_err());
    }
}
