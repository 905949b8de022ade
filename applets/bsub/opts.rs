//! The options of bsub: those acted on, and every other that LSF knows, so that its value is
//! never taken for the command. A script's `#BSUB` lines are read with the same table.

use argh::{ArgsInfo, FromArgs};

/// Declares the option struct: the fields acted on as they stand, then the words known only by
/// name, hidden from help, with the function that tells which of them was given.
macro_rules! option_table {
    (
        $(#[$meta:meta])* struct $name:ident { $($acted:tt)* }
        values { $($value:ident($($value_word:tt)*) $value_shown:literal,)* }
        switches { $($switch:ident($($switch_word:tt)*) $switch_shown:literal,)* }
    ) => {
        $(#[$meta])*
        pub struct $name {
            $($acted)*
            $(
                #[argh(option, hidden_help, $($value_word)*, description = "not acted on")]
                pub $value: Option<String>,
            )*
            $(
                #[argh(switch, hidden_help, $($switch_word)*, description = "not acted on")]
                pub $switch: bool,
            )*
        }

        impl $name {
            /// An option that was given and that nothing acts on: submitting without it would
            /// not do what was asked for.
            pub fn refused(&self) -> Option<&'static str> {
                $(if self.$value.is_some() { return Some($value_shown); })*
                $(if self.$switch { return Some($switch_shown); })*
                None
            }
        }
    };
}

option_table! {
/// Submits a job to the batch system.
#[derive(FromArgs, ArgsInfo, Debug, Default)]
struct BsubOpts {
    /// candidate queues; the first one that accepts the job is used
    #[argh(option, short = 'q', arg_name = "queue ...")]
    pub queue: Option<String>,
    /// job name; with an index list a job array, of which at most `limit` elements run at once
    #[argh(option, short = 'J', arg_name = "name[list]%limit")]
    pub name: Option<String>,
    /// description of the job
    #[argh(option, long = "-jd", arg_name = "text")]
    pub description: Option<String>,
    /// number of slots (default 1)
    #[argh(option, short = 'n', arg_name = "min[,max]")]
    pub slots: Option<String>,
    /// resource requirement; may be repeated
    #[argh(option, short = 'R', arg_name = "res_req")]
    pub res_req: Vec<String>,
    /// candidate hosts with their preference
    #[argh(option, short = 'm', arg_name = "host[!|+pref] ...")]
    pub hosts: Option<String>,
    /// file for standard output and the job report, appended to; %J job ID, %I index
    #[argh(option, short = 'o', arg_name = "file")]
    pub out: Option<String>,
    /// file for standard output and the job report, overwritten
    #[argh(option, long = "oo", arg_name = "file")]
    pub out_over: Option<String>,
    /// file for standard error, appended to
    #[argh(option, short = 'e', arg_name = "file")]
    pub err: Option<String>,
    /// file for standard error, overwritten
    #[argh(option, long = "eo", arg_name = "file")]
    pub err_over: Option<String>,
    /// file for standard input
    #[argh(option, short = 'i', arg_name = "file")]
    pub input: Option<String>,
    /// run limit
    #[argh(option, short = 'W', arg_name = "[hour:]minute[/host]")]
    pub run_limit: Option<String>,
    /// memory limit of the job
    #[argh(option, short = 'M', arg_name = "size")]
    pub mem_limit: Option<String>,
    /// CPU limit
    #[argh(option, short = 'c', arg_name = "[hour:]minute[/host]")]
    pub cpu_limit: Option<String>,
    /// core file limit
    #[argh(option, short = 'C', arg_name = "size")]
    pub core_limit: Option<String>,
    /// data segment limit
    #[argh(option, short = 'D', arg_name = "size")]
    pub data_limit: Option<String>,
    /// stack limit
    #[argh(option, short = 'S', arg_name = "size")]
    pub stack_limit: Option<String>,
    /// file size limit
    #[argh(option, short = 'F', arg_name = "size")]
    pub file_limit: Option<String>,
    /// virtual memory limit
    #[argh(option, short = 'v', arg_name = "size")]
    pub swap_limit: Option<String>,
    /// process limit
    #[argh(option, short = 'p', arg_name = "number")]
    pub process_limit: Option<String>,
    /// thread limit
    #[argh(option, short = 'T', arg_name = "number")]
    pub thread_limit: Option<String>,
    /// dependency condition
    #[argh(option, short = 'w', arg_name = "expression")]
    pub depend: Option<String>,
    /// dispatch at or after this time
    #[argh(option, short = 'b', arg_name = "[[month:]day:]hour:minute")]
    pub begin: Option<String>,
    /// end the job at this time
    #[argh(option, short = 't', arg_name = "[[month:]day:]hour:minute")]
    pub term: Option<String>,
    /// working directory of the job
    #[argh(option, long = "cwd", arg_name = "dir")]
    pub cwd: Option<String>,
    /// variables that the job inherits: "all", "none", "all, ~V, W=x"
    #[argh(option, long = "env", arg_name = "variables")]
    pub env: Vec<String>,
    /// project for accounting
    #[argh(option, short = 'P', arg_name = "project")]
    pub project: Option<String>,
    /// login shell that sets up the environment of the job
    #[argh(option, short = 'L', arg_name = "shell")]
    pub login_shell: Option<String>,
    /// submit the job suspended (PSUSP)
    #[argh(switch, short = 'H')]
    pub hold: bool,
    /// wait until the job has finished and exit with its exit code
    #[argh(switch, short = 'K')]
    pub wait: bool,
    /// rerunnable: the job starts again when its host fails
    #[argh(switch, short = 'r')]
    pub rerun: bool,
    /// exclusive use of the hosts, in a queue with EXCLUSIVE=Y
    #[argh(switch, short = 'x')]
    pub exclusive: bool,
    /// not rerunnable, whatever the queue says
    #[argh(switch, long = "rn")]
    pub never_rerun: bool,
    /// command run before the job, which waits until the command succeeds
    #[argh(option, short = 'E', arg_name = "command")]
    pub pre_exec: Option<String>,
    /// command run after the job
    #[argh(option, long = "-ep", arg_name = "command")]
    pub post_exec: Option<String>,
    /// file to copy to the execution host before, or back after the job; may be repeated
    #[argh(option, short = 'f', arg_name = "lfile op [rfile]")]
    pub copy: Vec<String>,
    /// job group
    #[argh(option, short = 'g', arg_name = "/group/path")]
    pub group: Option<String>,
    /// programs of the site that check and change the submission (esub.NAME)
    #[argh(option, short = 'a', arg_name = "name[(arg,...)] ...")]
    pub esub: Option<String>,
    /// directory of the job's checkpoints, with the minutes to the first and between two of them
    #[argh(option, short = 'k', arg_name = "dir [init=min] [period] [method=name]")]
    pub checkpoint: Option<String>,
    /// ask for further slots, up to the maximum of -n, while the job runs
    #[argh(switch, long = "ar")]
    pub autoresize: bool,
    /// command run on the first execution host when slots come or go
    #[argh(option, long = "rnc", arg_name = "command")]
    pub resize_command: Option<String>,
    /// mail address, instead of the submitter
    #[argh(option, short = 'u', arg_name = "address")]
    pub mail_user: Option<String>,
    /// mail the report at the end, also with -o
    #[argh(switch, short = 'N')]
    pub mail_end: bool,
    /// mail the report only if the job fails
    #[argh(switch, long = "-ne")]
    pub mail_error: bool,
    /// mail when the job starts
    #[argh(switch, short = 'B')]
    pub mail_begin: bool,
    /// user group whose share the job is charged to
    #[argh(option, short = 'G', arg_name = "group")]
    pub user_group: Option<String>,
    /// estimated run time
    #[argh(option, long = "-we", arg_name = "[hour:]minute[/host]")]
    pub estimate: Option<String>,
    /// file for standard input, copied at submission
    #[argh(option, long = "is", arg_name = "file")]
    pub spool_in: Option<String>,
    /// directory for the output files, created when it is missing; patterns as for -cwd
    #[argh(option, long = "outdir", arg_name = "dir")]
    pub out_dir: Option<String>,
    /// exit values with which the job is requeued
    #[argh(option, short = 'Q', arg_name = "values")]
    pub requeue: Option<String>,
    /// signal or command before the run limit or the deadline; see -wt
    #[argh(option, long = "wa", arg_name = "signal | command")]
    pub warn_action: Option<String>,
    /// time of the warning action before the limit or deadline
    #[argh(option, long = "wt", arg_name = "[hour:]minute | percent%")]
    pub warn_time: Option<String>,
    /// limit of pending time; shown, not enforced
    #[argh(option, long = "ptl", arg_name = "[hour:]minute")]
    pub pend_limit: Option<String>,
    /// limit of eligible pending time; shown, not enforced
    #[argh(option, long = "eptl", arg_name = "[hour:]minute")]
    pub eligible_limit: Option<String>,
    /// minutes of suspension by load after which the job migrates, if it may run again
    #[argh(option, long = "mig", arg_name = "minutes")]
    pub migrate: Option<String>,
    /// end the job at once when its dependency condition can never become true
    #[argh(switch, long = "ti")]
    pub orphan: bool,
    /// the limits of -M and -v apply to each host
    #[argh(switch, long = "hl")]
    pub per_host: bool,
    /// the limits of this shell that no option sets
    #[argh(switch, long = "ul")]
    pub user_limits: bool,
    /// the job runs a copy of the script that the command names
    #[argh(switch, long = "-zs")]
    pub spool_command: bool,
    /// file of submissions, one on a line
    #[argh(option, long = "pack", arg_name = "file")]
    pub pack: Option<String>,
    /// JSON file of options and the command
    #[argh(option, long = "json", arg_name = "file")]
    pub json: Option<String>,
    /// YAML file of options and the command
    #[argh(option, long = "yaml", arg_name = "file")]
    pub yaml: Option<String>,
    /// JSDL file of options and the command
    #[argh(option, long = "jsdl", arg_name = "file")]
    pub jsdl: Option<String>,
    /// JSDL file without elements of LSF
    #[argh(option, long = "jsdl--strict", arg_name = "file")]
    pub jsdl_strict: Option<String>,
    /// application profile of the job
    #[argh(option, long = "app", arg_name = "profile")]
    pub app: Option<String>,
    /// service class
    #[argh(option, long = "sla", arg_name = "class")]
    pub sla: Option<String>,
    /// priority among the user's own jobs
    #[argh(option, long = "sp", arg_name = "priority")]
    pub priority: Option<String>,
    /// the advance reservation that the job runs in
    #[argh(option, short = 'U', arg_name = "reservation")]
    pub reservation: Option<String>,
    /// license project (accepted with a notice)
    #[argh(option, long = "-lp", arg_name = "project")]
    pub license_project: Option<String>,
    /// file of the exact hosts of the job: a host on each line, with its slots
    #[argh(option, long = "hostfile", arg_name = "file")]
    pub host_file: Option<String>,
    /// GPU request (accepted with a notice)
    #[argh(option, long = "gpu", arg_name = "request")]
    pub gpu: Option<String>,
    /// policy and request attributes for the load balancer, which chooses the hosts
    #[argh(option, long = "nlb-", arg_name = "[policy] [attribute[=value]] ...")]
    pub nlb: Option<String>,
    /// number of nodes (accepted with a notice)
    #[argh(option, long = "nnodes", arg_name = "number")]
    pub nnodes: Option<String>,
    /// allocation flags (accepted with a notice)
    #[argh(option, long = "alloc--flags", arg_name = "flags")]
    pub alloc_flags: Option<String>,
    /// signal when the run window of the queue closes, instead of being suspended
    #[argh(option, short = 's', arg_name = "signal")]
    pub window_signal: Option<String>,
    /// interactive: input and output of the job are those of bsub, which waits for its end
    #[argh(switch, short = 'I')]
    pub interactive: bool,
    /// interactive, on a pseudo-terminal
    #[argh(switch, long = "-ip")]
    pub interactive_pty: bool,
    /// interactive, on a pseudo-terminal in shell mode: for shells and programs that use ^C and ^Z
    #[argh(switch, long = "-is")]
    pub interactive_shell: bool,
    /// as -I; the connection is not made by ssh (accepted with a notice)
    #[argh(switch, long = "-i-s")]
    pub ssh: bool,
    /// as -Ip (accepted with a notice)
    #[argh(switch, long = "-i-sp")]
    pub ssh_pty: bool,
    /// as -Is (accepted with a notice)
    #[argh(switch, long = "-i-ss")]
    pub ssh_shell: bool,
    /// as -I; no X11 forwarding (accepted with a notice)
    #[argh(switch, long = "-i-x")]
    pub x_window: bool,
    /// X11 forwarding (accepted with a notice)
    #[argh(switch, long = "-x-f")]
    pub x_forward: bool,
    /// with -I and its kin: output shown on the screen, too
    #[argh(switch)]
    pub tty: bool,
    /// the command of the job (default: the script on standard input)
    #[argh(positional, greedy, arg_name = "command")]
    pub _command: Vec<String>,
}
values {
    ext_sched(long = "extsched") "-extsched",
    ext(long = "ext") "-ext",
    job_affinity(long = "jobaff") "-jobaff",
    freq(long = "freq") "-freq",
    network(long = "network") "-network",
    data(long = "data") "-data",
    data_group(long = "datagrp") "-datagrp",
    stage(long = "stage") "-stage",
    clusters(long = "clusters") "-clusters",
    core_isolation(long = "core--isolation") "-core_isolation",
    smt(long = "smt") "-smt",
    cn_cu(long = "cn--cu") "-cn_cu",
    cn_mem(long = "cn--mem") "-cn_mem",
    ln_mem(long = "ln--mem") "-ln_mem",
    ln_slots(long = "ln--slots") "-ln_slots",
    jsm(long = "jsm") "-jsm",
    step_cgroup(long = "step--cgroup") "-step_cgroup",
    notify(long = "notify") "-notify",
    exception(short = 'X') "-X",
}
switches {
    data_check(long = "datachk") "-datachk",
    csm(long = "csm") "-csm",
}
}

impl BsubOpts {
    /// Settles -o against -oo and -e against -eo: those of the command line alone (`own`) stand
    /// above what the script says of the same file.
    pub fn settle_files(&mut self, own: &BsubOpts) {
        if own.out.is_some() || own.out_over.is_some() {
            (self.out, self.out_over) = (own.out.clone(), own.out_over.clone());
        }
        if own.err.is_some() || own.err_over.is_some() {
            (self.err, self.err_over) = (own.err.clone(), own.err_over.clone());
        }
    }

    /// The options given that are accepted without being acted on.
    pub fn ignored(&self) -> Vec<&'static str> {
        [
            ("-Lp", self.license_project.is_some()),
            ("-gpu", self.gpu.is_some()),
            ("-nnodes", self.nnodes.is_some()),
            ("-alloc_flags", self.alloc_flags.is_some()),
        ]
        .into_iter()
        .filter_map(|(word, given)| given.then_some(word))
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lsf::cli::front;
    use std::ffi::OsString;

    fn os(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    fn read(words: &[&str]) -> BsubOpts {
        let parsed = front::parse::<BsubOpts>("bsub", &os(words));
        parsed.unwrap_or_else(|e| panic!("{words:?}: {}", e.err)).options
    }

    fn some(s: &str) -> Option<String> {
        Some(s.to_string())
    }

    /// Every option of LSF in daily use, with its value where it takes one.
    const WORDS: &str = "-q:v -J:v -n:v -R:v -W:v -M:v -o:v -oo:v -e:v -eo:v -i:v -is:v -w:v -ti \
        -P:v -m:v -I -Ip -Is -IS -ISp -ISs -IX -XF -K -x -r -rn -N -Ne -B -u:v -b:v -t:v -G:v \
        -g:v -app:v -sla:v -sp:v -c:v -We:v -C:v -D:v -S:v -F:v -v:v -p:v -T:v -hl -ul -cwd:v \
        -outdir:v -env:v -L:v -E:v -Ep:v -H -gpu:- -a:v -f:v -Jd:v -k:v -Q:v -mig:v -U:v -Lp:v \
        -ext:v -extsched:v -s:v -wa:v -wt:v -Zs -pack:v -ptl:v -eptl:v -hostfile:v -jobaff:v -ar \
        -rnc:v -freq:v -network:v -data:v -datachk -datagrp:v -stage:v -clusters:v \
        -core_isolation:v -smt:v -nnodes:v -nlb:v -cn_cu:v -cn_mem:v -ln_mem:v -ln_slots:v \
        -alloc_flags:v -step_cgroup:v -tty -jsdl:v -jsdl_strict:v -json:v -yaml:v -notify:v -X:v";

    #[test]
    fn no_known_option_takes_the_command_for_its_value() {
        for word in WORDS.split_whitespace() {
            let (word, value) = word.split_once(':').map_or((word, None), |(w, v)| (w, Some(v)));
            let words: Vec<&str> = [word].into_iter().chain(value).chain(["cmd"]).collect();
            let parsed = front::parse::<BsubOpts>("bsub", &os(&words));
            let parsed = parsed.unwrap_or_else(|e| panic!("{word}: {}", e.err));
            assert_eq!(parsed.operands, os(&["cmd"]), "{word}");
            let refused = parsed.options.refused();
            assert!(refused.is_none_or(|r| r == word), "{word} is refused as {refused:?}");
        }
    }

    #[test]
    fn the_command_line_settles_the_files() {
        let own = read(&["-o", "b", "cmd"]);
        let mut all = read(&["-o", "b", "-oo", "a", "-eo", "e", "cmd"]);
        all.settle_files(&own);
        assert_eq!((all.out, all.out_over), (some("b"), None));
        assert_eq!((all.err, all.err_over), (None, some("e")));
    }

    #[test]
    fn options_without_effect_are_named() {
        let opts = read(&["-gpu", "-", "-csm", "cmd"]);
        assert_eq!(opts.refused(), Some("-csm"));
        assert_eq!(opts.ignored(), ["-gpu"]);
        assert_eq!(read(&["-mig", "5", "cmd"]).refused(), None);
    }
}
