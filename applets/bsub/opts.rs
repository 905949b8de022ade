//! The options of bsub: those acted on, and every other that LSF knows, so that its value is
//! never taken for the command. A script's `#BSUB` lines are read with the same table; an option
//! of the command line stands above the same option of a line (clients.md rules 4 and 5).

use argh::{ArgsInfo, FromArgs};

/// Declares the option struct: the fields acted on as they stand, then the words known only by
/// name, hidden from help, with the function that tells which of them was given.
macro_rules! option_table {
    (
        $(#[$meta:meta])* struct $name:ident { $($acted:tt)* }
        values { $($value:ident $value_word:tt $value_shown:literal,)* }
        switches { $($switch:ident $switch_word:tt $switch_shown:literal,)* }
    ) => {
        $(#[$meta])*
        pub struct $name {
            $($acted)*
            $(
                #[argh(option, hidden_help, long = $value_word, description = "not acted on")]
                pub $value: Option<String>,
            )*
            $(
                #[argh(switch, hidden_help, long = $switch_word, description = "not acted on")]
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

            fn take_refused(&mut self, base: &mut $name) {
                $(self.$value = self.$value.take().or(base.$value.take());)*
                $(self.$switch |= base.$switch;)*
            }
        }
    };
}

option_table! {
/// Submits a job to the batch system.
#[derive(FromArgs, ArgsInfo, Debug, Default)]
struct BsubOpts {
    /// candidate queues; the first that takes the job wins
    #[argh(option, long = "q", arg_name = "queue ...")]
    pub queue: Option<String>,
    /// job name; with an index list a job array, of which at most `limit` elements run at once
    #[argh(option, long = "-j", arg_name = "name[list]%limit")]
    pub name: Option<String>,
    /// description of the job
    #[argh(option, long = "-jd", arg_name = "text")]
    pub description: Option<String>,
    /// number of slots (default 1)
    #[argh(option, long = "n", arg_name = "min[,max]")]
    pub slots: Option<String>,
    /// resource requirement; may be repeated
    #[argh(option, long = "-r", arg_name = "res_req")]
    pub res_req: Vec<String>,
    /// candidate hosts with their preference
    #[argh(option, long = "m", arg_name = "host[+pref] ...")]
    pub hosts: Option<String>,
    /// file for standard output and the job report, appended to; %J job ID, %I index
    #[argh(option, long = "o", arg_name = "file")]
    pub out: Option<String>,
    /// as -o, but the file is overwritten
    #[argh(option, long = "oo", arg_name = "file")]
    pub out_over: Option<String>,
    /// file for standard error, appended to
    #[argh(option, long = "e", arg_name = "file")]
    pub err: Option<String>,
    /// as -e, but the file is overwritten
    #[argh(option, long = "eo", arg_name = "file")]
    pub err_over: Option<String>,
    /// file for standard input
    #[argh(option, long = "i", arg_name = "file")]
    pub input: Option<String>,
    /// run limit
    #[argh(option, long = "-w", arg_name = "[hour:]minute[/host]")]
    pub run_limit: Option<String>,
    /// memory limit of the job
    #[argh(option, long = "-m", arg_name = "size")]
    pub mem_limit: Option<String>,
    /// CPU limit
    #[argh(option, long = "c", arg_name = "[hour:]minute[/host]")]
    pub cpu_limit: Option<String>,
    /// core file limit
    #[argh(option, long = "-c", arg_name = "size")]
    pub core_limit: Option<String>,
    /// data segment limit
    #[argh(option, long = "-d", arg_name = "size")]
    pub data_limit: Option<String>,
    /// stack limit
    #[argh(option, long = "-s", arg_name = "size")]
    pub stack_limit: Option<String>,
    /// file size limit
    #[argh(option, long = "-f", arg_name = "size")]
    pub file_limit: Option<String>,
    /// virtual memory limit
    #[argh(option, long = "v", arg_name = "size")]
    pub swap_limit: Option<String>,
    /// process limit
    #[argh(option, long = "p", arg_name = "number")]
    pub process_limit: Option<String>,
    /// thread limit
    #[argh(option, long = "-t", arg_name = "number")]
    pub thread_limit: Option<String>,
    /// dependency condition
    #[argh(option, long = "w", arg_name = "expression")]
    pub depend: Option<String>,
    /// dispatch at or after this time
    #[argh(option, long = "b", arg_name = "[[month:]day:]hour:minute")]
    pub begin: Option<String>,
    /// end the job at this time
    #[argh(option, long = "t", arg_name = "[[month:]day:]hour:minute")]
    pub term: Option<String>,
    /// working directory of the job
    #[argh(option, long = "cwd", arg_name = "dir")]
    pub cwd: Option<String>,
    /// variables that the job inherits: "all", "none", "all, ~V, W=x"
    #[argh(option, long = "env", arg_name = "variables")]
    pub env: Vec<String>,
    /// project to account the job to
    #[argh(option, long = "-p", arg_name = "project")]
    pub project: Option<String>,
    /// login shell whose environment the job gets
    #[argh(option, long = "-l", arg_name = "shell")]
    pub login_shell: Option<String>,
    /// submit held
    #[argh(switch, long = "-h")]
    pub hold: bool,
    /// wait until the job has finished and exit with its exit code
    #[argh(switch, long = "-k")]
    pub wait: bool,
    /// rerunnable: started again when its host fails
    #[argh(switch, long = "r")]
    pub rerun: bool,
    /// exclusive use of the hosts
    #[argh(switch, long = "x")]
    pub exclusive: bool,
    /// mail address (accepted with a notice)
    #[argh(option, long = "u", arg_name = "address")]
    pub mail_user: Option<String>,
    /// mail the report at the end (accepted with a notice)
    #[argh(switch, long = "-n")]
    pub mail_end: bool,
    /// mail the report if the job fails (accepted with a notice)
    #[argh(switch, long = "-ne")]
    pub mail_error: bool,
    /// mail when the job starts (accepted with a notice)
    #[argh(switch, long = "-b")]
    pub mail_begin: bool,
    /// user group (accepted with a notice)
    #[argh(option, long = "-g", arg_name = "group")]
    pub user_group: Option<String>,
    /// application profile (accepted with a notice)
    #[argh(option, long = "app", arg_name = "profile")]
    pub app: Option<String>,
    /// service class (accepted with a notice)
    #[argh(option, long = "sla", arg_name = "class")]
    pub sla: Option<String>,
    /// priority among one's own jobs (accepted with a notice)
    #[argh(option, long = "sp", arg_name = "priority")]
    pub priority: Option<String>,
    /// advance reservation (accepted with a notice)
    #[argh(option, long = "-u", arg_name = "reservation")]
    pub reservation: Option<String>,
    /// license project (accepted with a notice)
    #[argh(option, long = "-lp", arg_name = "project")]
    pub license_project: Option<String>,
    /// GPU request (accepted with a notice)
    #[argh(option, long = "gpu", arg_name = "request")]
    pub gpu: Option<String>,
    /// number of nodes (accepted with a notice)
    #[argh(option, long = "nnodes", arg_name = "number")]
    pub nnodes: Option<String>,
    /// allocation flags (accepted with a notice)
    #[argh(option, long = "alloc--flags", arg_name = "flags")]
    pub alloc_flags: Option<String>,
}
values {
    spool_in "is" "-is",
    estimate "-we" "-We",
    group "g" "-g",
    out_dir "outdir" "-outdir",
    pre_exec "-e" "-E",
    post_exec "-ep" "-Ep",
    esub "a" "-a",
    copy "f" "-f",
    checkpoint "k" "-k",
    requeue "-q" "-Q",
    migrate "mig" "-mig",
    ext_sched "extsched" "-extsched",
    ext "ext" "-ext",
    window_signal "s" "-s",
    warn_action "wa" "-wa",
    warn_time "wt" "-wt",
    pack "pack" "-pack",
    pend_limit "ptl" "-ptl",
    eligible_limit "eptl" "-eptl",
    host_file "hostfile" "-hostfile",
    job_affinity "jobaff" "-jobaff",
    resize_command "rnc" "-rnc",
    freq "freq" "-freq",
    network "network" "-network",
    data "data" "-data",
    data_group "datagrp" "-datagrp",
    stage "stage" "-stage",
    clusters "clusters" "-clusters",
    core_isolation "core--isolation" "-core_isolation",
    smt "smt" "-smt",
    cn_cu "cn--cu" "-cn_cu",
    cn_mem "cn--mem" "-cn_mem",
    ln_mem "ln--mem" "-ln_mem",
    ln_slots "ln--slots" "-ln_slots",
    jsm "jsm" "-jsm",
    step_cgroup "step--cgroup" "-step_cgroup",
    jsdl "jsdl" "-jsdl",
    jsdl_strict "jsdl--strict" "-jsdl_strict",
    json "json" "-json",
    yaml "yaml" "-yaml",
    notify "notify" "-notify",
    exception "-x" "-X",
}
switches {
    interactive "-i" "-I",
    interactive_pty "-ip" "-Ip",
    interactive_shell "-is" "-Is",
    ssh "-i-s" "-IS",
    ssh_pty "-i-sp" "-ISp",
    ssh_shell "-i-ss" "-ISs",
    x_window "-i-x" "-IX",
    x_forward "-x-f" "-XF",
    orphan "ti" "-ti",
    never_rerun "rn" "-rn",
    per_host "hl" "-hl",
    user_limits "ul" "-ul",
    spool_command "-zs" "-Zs",
    autoresize "ar" "-ar",
    data_check "datachk" "-datachk",
    csm "csm" "-csm",
    tty "tty" "-tty",
}
}

/// Fills what `self` lacks from `base`, field by field.
macro_rules! fill {
    ($self:ident, $base:ident; $($field:ident)*) => {
        $($self.$field = $self.$field.take().or($base.$field.take());)*
    };
}

impl BsubOpts {
    /// These options over those of `base` (a script's lines, or earlier ones). `join`: repeated
    /// -R and -env add up, as within one script; else the later ones replace.
    pub fn over(mut self, mut base: BsubOpts, join: bool) -> BsubOpts {
        fill!(self, base;
            queue name description slots hosts input run_limit mem_limit cpu_limit core_limit
            data_limit stack_limit file_limit swap_limit process_limit thread_limit depend
            begin term cwd project login_shell mail_user user_group app sla priority
            reservation license_project gpu nnodes alloc_flags);
        if self.out.is_none() && self.out_over.is_none() {
            (self.out, self.out_over) = (base.out.take(), base.out_over.take());
        }
        if self.err.is_none() && self.err_over.is_none() {
            (self.err, self.err_over) = (base.err.take(), base.err_over.take());
        }
        for (mine, theirs) in
            [(&mut self.res_req, &mut base.res_req), (&mut self.env, &mut base.env)]
        {
            if join || mine.is_empty() {
                theirs.append(mine);
                std::mem::swap(mine, theirs);
            }
        }
        self.hold |= base.hold;
        self.wait |= base.wait;
        self.rerun |= base.rerun;
        self.exclusive |= base.exclusive;
        self.mail_end |= base.mail_end;
        self.mail_error |= base.mail_error;
        self.mail_begin |= base.mail_begin;
        self.take_refused(&mut base);
        self
    }

    /// The options given that are accepted without being acted on.
    pub fn ignored(&self) -> Vec<&'static str> {
        [
            ("-u", self.mail_user.is_some()),
            ("-N", self.mail_end),
            ("-Ne", self.mail_error),
            ("-B", self.mail_begin),
            ("-G", self.user_group.is_some()),
            ("-app", self.app.is_some()),
            ("-sla", self.sla.is_some()),
            ("-sp", self.priority.is_some()),
            ("-U", self.reservation.is_some()),
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

    fn some(s: &str) -> Option<String> {
        Some(s.to_string())
    }

    #[test]
    fn the_command_line_stands_above_the_script() {
        let script = BsubOpts {
            queue: some("night"),
            out: some("a"),
            res_req: vec!["mem>1".into()],
            hold: true,
            esub: some("x"),
            ..BsubOpts::default()
        };
        let line = BsubOpts {
            out_over: some("b"),
            res_req: vec!["ut<0.5".into()],
            name: some("x"),
            ..BsubOpts::default()
        };
        let all = line.over(script, false);
        assert_eq!((all.queue, all.name), (some("night"), some("x")));
        assert_eq!((all.out, all.out_over), (None, some("b")));
        assert_eq!(all.res_req, ["ut<0.5"]);
        assert!(all.hold);
        assert_eq!(all.esub, some("x"));
    }

    #[test]
    fn lines_of_one_script_add_up() {
        let with = |r: &str| BsubOpts { res_req: vec![r.into()], ..BsubOpts::default() };
        let all = with("b").over(with("a"), true);
        assert_eq!(all.res_req, ["a", "b"]);
    }

    #[test]
    fn what_nothing_acts_on_is_named() {
        let opts = BsubOpts { interactive: true, gpu: some("-"), ..BsubOpts::default() };
        assert_eq!(opts.refused(), Some("-I"));
        assert_eq!(opts.ignored(), ["-gpu"]);
    }
}
