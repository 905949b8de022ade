//! The commands and variables of a change of a job's slots on its first execution host: the resize
//! notification command, and the host file that follows it (bresize(1)).

use crate::exec::job_starter::quoted;
use crate::model::event::NamedHosts;
use crate::model::resize::ResizeOrder;
use crate::model::{ByteStr, resize};
use std::fmt::Write;

/// Longest shell text that is handed over, bytes; the kernel takes 128 KiB in one word.
const MAX_TEXT: usize = 120 * 1024;

/// `hostA 2 hostB 1`, as LSB_RESIZE_HOSTS has it.
fn counted(hosts: &NamedHosts) -> String {
    let mut text = String::new();
    for (host, n) in hosts.iter() {
        let _ = write!(text, "{}{host} {n}", if text.is_empty() { "" } else { " " });
    }
    text
}

fn word(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&quoted(bytes)).into_owned()
}

/// The command that carries a change out: the notification command, and if it takes the change, the
/// host file of the job anew. An empty `host_file`: the job has none of its own. A file that cannot
/// be written keeps no change from being taken.
pub fn command(order: &ResizeOrder, host_file: &ByteStr) -> String {
    let mut text = match order.command.is_empty() {
        true => String::new(),
        // a command that exits leaves its own shell alone
        false => format!("(\n{}\n) || exit {}\n", order.command, resize::NOTIFY_FAIL),
    };
    if !host_file.is_empty() {
        let (file, new) = (word(&host_file.0), word(&[&host_file.0[..], b".new"].concat()));
        let mut lines = String::new();
        for (host, n) in order.allocation.iter() {
            let _ = write!(lines, " {} {n}", word(host.as_bytes()));
        }
        let write = format!(
            "set --{lines}\numask 022\nwhile test $# -gt 1; do\n\
             n=$2; while test $n -gt 0; do echo \"$1\"; n=$((n - 1)); done; shift 2\n\
             done > {new} && mv -f {new} {file}\n"
        );
        if text.len() + write.len() <= MAX_TEXT {
            text.push_str(&write);
        }
    }
    text.push_str("exit 0\n");
    text
}

/// Puts the variables of the notification command, beside those of the job.
pub fn variables(order: &ResizeOrder, host_file: &ByteStr, put: &mut dyn FnMut(&str, &str)) {
    put("LS_EXEC_T", "RESIZE");
    put("LSB_RESIZE_NOTIFY_OK", &resize::NOTIFY_OK.to_string());
    put("LSB_RESIZE_NOTIFY_FAIL", &resize::NOTIFY_FAIL.to_string());
    put("LSB_RESIZE_EVENT", if order.grows { "grow" } else { "shrink" });
    put("LSB_RESIZE_HOSTS", &counted(&order.hosts));
    if !host_file.is_empty() {
        put("LSB_DJOB_HOSTFILE", &String::from_utf8_lossy(&host_file.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn order(command: &str) -> ResizeOrder {
        let hosts = |all: &[(&str, u32)]| all.iter().map(|(h, n)| ((*h).into(), *n)).collect();
        ResizeOrder {
            number: 1,
            grows: true,
            hosts: hosts(&[("h2", 2)]),
            allocation: hosts(&[("h1", 1), ("h2", 2)]),
            command: command.into(),
        }
    }

    /// The exit value of the command, and the host file after it.
    fn run(command: &str) -> (Option<i32>, String) {
        let n = u32::from_ne_bytes(crate::sys::random::<4>().unwrap());
        let file = std::env::temp_dir().join(format!("lsf-resize it's {n}"));
        std::fs::write(&file, "h1\n").unwrap();
        let path = ByteStr(file.to_string_lossy().as_bytes().to_vec());
        let order = order(command);
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(super::command(&order, &path));
        variables(&order, &path, &mut |name, value| {
            shell.env(name, value);
        });
        let code = shell.status().unwrap().code();
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        (code, text)
    }

    #[test]
    fn the_host_file_follows_a_command_that_takes_the_change() {
        let all = "h1\nh2\nh2\n".to_string();
        assert_eq!(run(""), (Some(0), all.clone()));
        let asks = "test \"$LSB_RESIZE_EVENT $LSB_RESIZE_HOSTS\" = \"grow h2 2\" || exit 9\n\
                    exit $LSB_RESIZE_NOTIFY_OK";
        assert_eq!(run(asks), (Some(0), all));
        assert_eq!(run("exit $LSB_RESIZE_NOTIFY_FAIL"), (Some(1), "h1\n".into()));
        assert_eq!(run("exit 7 # no"), (Some(1), "h1\n".into()));
        assert_eq!(run(") ; exit 0 (").1, "h1\n");
    }
}
