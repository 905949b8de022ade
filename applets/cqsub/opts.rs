//! The options of cqsub.

use argh::{ArgsInfo, FromArgs};
use std::ffi::OsString;

/// Submit a batch request.
#[derive(FromArgs, ArgsInfo, Debug, Default)]
pub struct CqsubOpts {
    /// the queue, or queues of which the first that takes the request is used
    #[argh(option, short = 'q', arg_name = "queue")]
    pub queue: Option<String>,
    /// attributes of the request for the policies of the load balancer
    #[argh(option, long = "la", arg_name = "name[=value],...")]
    pub attributes: Vec<String>,
    /// name of the request
    #[argh(option, short = 'r', arg_name = "name")]
    pub name: Option<String>,
    /// not before this time
    #[argh(option, short = 'a', arg_name = "date")]
    pub after: Option<String>,
    /// shell that runs the script
    #[argh(option, short = 's', arg_name = "shell")]
    pub shell: Option<String>,
    /// the request gets the environment of the caller
    #[argh(switch, short = 'x')]
    pub export: bool,
    /// say nothing where it is submitted
    #[argh(switch, short = 'z')]
    pub silent: bool,
    /// file for standard output
    #[argh(option, short = 'o', arg_name = "[host:]file")]
    pub out: Option<String>,
    /// file for standard error
    #[argh(option, short = 'e', arg_name = "[host:]file")]
    pub err: Option<String>,
    /// standard error goes to the file of standard output
    #[argh(switch, long = "eo")]
    pub err_to_out: bool,
    /// priority within the queue, 0 to 63
    #[argh(option, short = 'p', arg_name = "number")]
    pub priority: Option<String>,
    /// mail when the request begins
    #[argh(switch, long = "mb")]
    pub mail_begin: bool,
    /// mail when the request ends
    #[argh(switch, long = "me")]
    pub mail_end: bool,
    /// mail when the request is routed: accepted, no mail is sent
    #[argh(switch, long = "mt")]
    pub mail_routed: bool,
    /// mail goes to this user
    #[argh(option, long = "mu", arg_name = "user")]
    pub mail_user: Option<String>,
    /// the request is not run again
    #[argh(switch, long = "nr")]
    pub never_rerun: bool,
    /// account (project)
    #[argh(option, short = 'A', arg_name = "account")]
    pub account: Option<String>,
    /// core file size of a process
    #[argh(option, long = "lc", arg_name = "size")]
    pub core: Option<String>,
    /// data segment size of a process
    #[argh(option, long = "ld", arg_name = "size")]
    pub data: Option<String>,
    /// permanent file size of a process
    #[argh(option, long = "lf", arg_name = "size")]
    pub file: Option<String>,
    /// permanent file space of the request; for policies alone
    #[argh(option, long = "l-f", arg_name = "size")]
    pub request_file: Option<String>,
    /// memory size of a process; of the request without -lM
    #[argh(option, long = "lm", arg_name = "size")]
    pub memory: Option<String>,
    /// memory size of the request
    #[argh(option, long = "l-m", arg_name = "size")]
    pub request_memory: Option<String>,
    /// SDS of the request; for policies alone
    #[argh(option, long = "l-q", arg_name = "size")]
    pub request_quick: Option<String>,
    /// stack size of a process
    #[argh(option, long = "ls", arg_name = "size")]
    pub stack: Option<String>,
    /// CPU time of a process; of the request without -lT
    #[argh(option, long = "lt", arg_name = "time")]
    pub cpu: Option<String>,
    /// CPU time of the request
    #[argh(option, long = "l-t", arg_name = "time")]
    pub request_cpu: Option<String>,
    /// working set size of a process; for policies alone
    #[argh(option, long = "lw", arg_name = "size")]
    pub working_set: Option<String>,
    /// tape drives of a type, a to h
    #[argh(option, long = "l-u", arg_name = "type number")]
    pub tapes: Vec<String>,
    /// mpp_p=N: slots; mpp_t=TIME: run limit
    #[argh(option, short = 'l', arg_name = "mpp_p=number | mpp_t=time")]
    pub mpp: Vec<String>,
    /// not acted on
    #[argh(option, long = "ln", arg_name = "value")]
    pub nice: Option<String>,
    /// not acted on
    #[argh(option, long = "lq", arg_name = "size")]
    pub quick: Option<String>,
    /// not acted on
    #[argh(option, long = "lv", arg_name = "size")]
    pub temporary: Option<String>,
    /// not acted on
    #[argh(option, long = "l-v", arg_name = "size")]
    pub request_temporary: Option<String>,
    /// output is returned: it always is
    #[argh(switch, long = "ro")]
    pub _return_out: bool,
    /// errors are returned: they always are
    #[argh(switch, long = "re")]
    pub _return_err: bool,
    /// keep output on the execution host: not done
    #[argh(switch, long = "ko")]
    pub keep_out: bool,
    /// keep errors on the execution host: not done
    #[argh(switch, long = "ke")]
    pub keep_err: bool,
    /// no checkpoints: none are made
    #[argh(switch, long = "nc")]
    pub _no_checkpoint: bool,
    /// job log: not kept
    #[argh(option, short = 'J', arg_name = "m | n | y")]
    pub job_log: Option<String>,
    /// begin with a message: not done
    #[argh(switch, long = "bb")]
    pub broadcast_begin: bool,
    /// end with a message: not done
    #[argh(switch, long = "be")]
    pub broadcast_end: bool,
    /// refused: passwords are never sent
    #[argh(switch, short = 'P')]
    pub password: bool,
    /// another user: refused
    #[argh(option, short = 'u', arg_name = "user")]
    pub user: Option<String>,
    /// destination: nqs
    #[argh(option, short = 'd', arg_name = "nqs")]
    pub destination: Option<String>,
    /// the script; standard input without one
    #[argh(positional, greedy, arg_name = "script")]
    pub _script: Vec<String>,
}

/// The words with `-lU a 2` and `-lUa 2` as `-lU a=2`.
pub fn words(args: &[OsString]) -> Vec<OsString> {
    let tape = |word: &str| word.len() == 1 && word.chars().all(|c| ('a'..='h').contains(&c));
    let mut out: Vec<OsString> = Vec::new();
    let mut rest = args.iter().peekable();
    while let Some(word) = rest.next() {
        let text = word.to_string_lossy();
        let kind = match text.strip_prefix("-lU") {
            Some("") => rest.next_if(|w| tape(&w.to_string_lossy())),
            Some(_) => None,
            None => {
                out.push(word.clone());
                continue;
            }
        };
        let glued = text.strip_prefix("-lU").filter(|k| tape(k)).map(str::to_owned);
        let kind = glued.or_else(|| kind.map(|k| k.to_string_lossy().into_owned()));
        match kind {
            Some(kind) => {
                let number = rest.next().map(|n| n.to_string_lossy().into_owned());
                out.push("-lU".into());
                out.push(format!("{kind}={}", number.unwrap_or_default()).into());
            }
            None => out.push(word.clone()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tape_drives_are_read_in_three_spellings() {
        let read = |words_: &[&str]| -> Vec<String> {
            let args: Vec<OsString> = words_.iter().map(OsString::from).collect();
            words(&args).iter().map(|w| w.to_string_lossy().into_owned()).collect()
        };
        for spelled in [&["-lUa", "2", "f"][..], &["-lU", "a", "2", "f"], &["-lU", "a=2", "f"]] {
            assert_eq!(read(spelled), ["-lU", "a=2", "f"]);
        }
        assert_eq!(read(&["-la", "x"]), ["-la", "x"]);
    }
}
