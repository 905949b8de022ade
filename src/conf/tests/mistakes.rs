//! Messages of ckconfig about one mistake in the example site.

use super::*;

#[test]
fn mistakes_in_lsf_conf() {
    assert_eq!(
        said("lsf.conf", "LSB_MBD_PORT=6881", "  LSB_MDB_PORT=6881"),
        ["error lsf.conf LSB_MDB_PORT:3 unknown parameter <LSB_MDB_PORT> ~LSB_MBD_PORT"]
    );
    assert_eq!(
        said("lsf.conf", "LSB_MBD_PORT=6881", "LSB_MBD_PORT=68810"),
        ["error lsf.conf LSB_MBD_PORT:14 bad value <68810> of LSB_MBD_PORT: a port is \
             wanted"]
    );
    assert_eq!(
        said("lsf.conf", "LSF_RUNDIR=/run/lsf", "MBD_HANG_TIME=1m"),
        ["error lsf.conf MBD_HANG_TIME:15 bad value <1m> of MBD_HANG_TIME: seconds are wanted, a \
             day at most; 0 for never"]
    );
}

#[test]
fn process_parameters_of_lsf_conf_are_read_and_checked() {
    let read = |text: &str| {
        let mut diags = crate::conf::Diags::new();
        let files = MapFiles::one("/c/lsf.conf", text);
        let conf = crate::conf::lsf_conf::parse(&files, "/c", &mut diags).unwrap();
        (conf.process_tracking(), conf.pim_interval(), diags.list().len())
    };
    assert_eq!(read(""), (true, 0, 0));
    assert_eq!(read("LSF_PROCESS_TRACKING=n"), (false, 0, 0));
    assert_eq!(read("LSF_PIM_SLEEPTIME=60"), (true, 0, 0));
    assert_eq!(read("LSF_PIM_SLEEPTIME_UPDATE=Y"), (true, 30, 0));
    assert_eq!(read("LSF_PIM_SLEEPTIME_UPDATE=Y\nLSF_PIM_SLEEPTIME=60"), (true, 60, 0));
    assert_eq!(
        said("lsf.conf", "LSF_RUNDIR=/run/lsf", "LSF_PROCESS_TRACKING=maybe"),
        [
            "error lsf.conf LSF_PROCESS_TRACKING:22 bad value <maybe> of LSF_PROCESS_TRACKING: Y or N \
             is wanted"
        ]
    );
    assert_eq!(
        said("lsf.conf", "LSF_RUNDIR=/run/lsf", "LSF_PIM_SLEEPTIME=0"),
        ["error lsf.conf LSF_PIM_SLEEPTIME:19 bad value <0> of LSF_PIM_SLEEPTIME: seconds are \
             wanted, from 1 to a day"]
    );
}

#[test]
fn enforcement_of_limits_follows_four_parameters_of_lsf_conf() {
    let read = |text: &str| {
        let mut diags = crate::conf::Diags::new();
        let files = MapFiles::one("/c/lsf.conf", text);
        let conf = crate::conf::lsf_conf::parse(&files, "/c", &mut diags).unwrap();
        assert!(diags.list().is_empty(), "{text}");
        let e = conf.limit_enforcement();
        (e.cpu_of_job, e.cpu_of_process, e.memory_of_job, e.memory_of_process)
    };
    assert_eq!(read(""), (true, true, false, true));
    assert_eq!(read("LSB_JOB_CPULIMIT=y"), (true, false, false, true));
    assert_eq!(read("LSB_JOB_CPULIMIT=n"), (false, true, false, true));
    assert_eq!(read("LSB_JOB_MEMLIMIT=y"), (true, true, true, false));
    assert_eq!(read("LSB_JOB_MEMLIMIT=n\nLSB_MEMLIMIT_ENFORCE=y"), (true, true, true, true));
    // the group of a job in the place of both
    assert_eq!(read("LSB_RESOURCE_ENFORCE=memory"), (true, true, true, false));
    assert_eq!(
        read("LSB_RESOURCE_ENFORCE=\"memory\"\nLSB_JOB_MEMLIMIT=n"),
        (true, true, true, false)
    );
    let other = said("lsf.conf", "LSB_JOB_MEMLIMIT=Y", "LSB_RESOURCE_ENFORCE=\"memory cpu\"");
    let text = "notice lsf.conf LSB_RESOURCE_ENFORCE:23 <cpu> of LSB_RESOURCE_ENFORCE is not \
                acted on";
    assert!(other.iter().any(|line| line.starts_with(text)), "{other:?}");
    assert!(!other.iter().any(|line| line.contains("MEMLIMIT is left")), "{other:?}");
    let bad = said("lsf.conf", "LSB_JOB_MEMLIMIT=Y", "LSB_JOB_MEMLIMIT=maybe");
    let text = "error lsf.conf LSB_JOB_MEMLIMIT:18 bad value <maybe> of LSB_JOB_MEMLIMIT: Y or N \
                is wanted";
    assert_eq!(bad[0], text);
    let unset = said("lsf.conf", "LSB_JOB_MEMLIMIT=Y", "LSB_JOB_MEMLIMIT=N");
    let text = "notice lsb.queues MEMLIMIT:18 MEMLIMIT is left to the kernel, which enforces none, \
                without LSB_JOB_MEMLIMIT=Y in lsf.conf";
    assert!(unset.iter().any(|line| line == text), "{unset:?}");
}

#[test]
fn control_of_memory_limits_is_read_or_refused_with_its_place() {
    let read_control = |text: &str| {
        let mut diags = crate::conf::Diags::new();
        let files = MapFiles::one("/c/lsf.conf", text);
        let conf = crate::conf::lsf_conf::parse(&files, "/c", &mut diags).unwrap();
        let control = conf.limit_enforcement().memory_control?;
        Some((control.memory_percent, control.swap_percent, control.pause, control.all))
    };
    let control = read_control("LSB_MEMLIMIT_ENF_CONTROL=90:50:60:all");
    assert_eq!(control, Some((90, 50, 60, true)));
    assert_eq!(read_control("LSB_MEMLIMIT_ENF_CONTROL=90:0:60"), Some((90, 0, 60, false)));
    let by_group = "LSB_RESOURCE_ENFORCE=memory\nLSB_MEMLIMIT_ENF_CONTROL=90:50:60";
    assert_eq!(read_control(by_group), None);
    for wrong in ["0:50:60", "101:50:60", "90:101:60", "90:50:0", "90:50", "90:50:60:some", "a:b:c"]
    {
        let line = format!("LSB_JOB_MEMLIMIT=Y\nLSB_MEMLIMIT_ENF_CONTROL={wrong}");
        let bad = said("lsf.conf", "LSB_JOB_MEMLIMIT=Y", &line);
        let want = format!(
            "LSB_MEMLIMIT_ENF_CONTROL:26 bad value <{wrong}> of LSB_MEMLIMIT_ENF_CONTROL: "
        );
        assert!(bad.iter().any(|text| text.contains(&want)), "{wrong}: {bad:?}");
    }
}

#[test]
fn interval_of_egroup_is_in_hours_or_minutes() {
    let read = |value: &str| {
        let text = format!("Begin Parameters\nEGROUP_UPDATE_INTERVAL = {value}\nEnd Parameters\n");
        let mut diags = crate::conf::Diags::new();
        let files = MapFiles::one("/c/lsb.params", text);
        let conf = crate::conf::lsb_params::parse(&files, "/c/lsb.params", &mut diags).unwrap();
        (conf.egroup_interval, diags.list().iter().map(|d| d.to_string()).collect::<Vec<_>>())
    };
    assert_eq!(read("2"), (Some(7200), vec![]));
    assert_eq!(read("30m"), (Some(1800), vec![]));
    for bad in ["0", "x", "-1", "30s", "9000", "99999999999999999999"] {
        let (value, diags) = read(bad);
        assert_eq!((value, diags.len()), (None, 1), "{bad}");
        let text = "EGROUP_UPDATE_INTERVAL: hours are wanted, or minutes with m: 30m";
        assert!(diags[0].ends_with(text) && diags[0].contains("lsb.params:2:26"), "{diags:?}");
    }
}

#[test]
fn primary_log_directory_is_an_absolute_path_apart_from_the_shared_one() {
    for (text, dir, wrong) in [
        ("LSB_LOCALDIR=/d", Some("/d/c1/logdir"), 0),
        ("", None, 0),
        ("LSB_LOCALDIR=d", Some("d/c1/logdir"), 1),
        ("LSB_SHAREDIR=/w\nLSB_LOCALDIR=/w", Some("/w/c1/logdir"), 1),
    ] {
        let mut diags = crate::conf::Diags::new();
        let files = MapFiles::one("/c/lsf.conf", text);
        let conf = crate::conf::lsf_conf::parse(&files, "/c", &mut diags).unwrap();
        let found = conf.local_logdir("c1");
        assert_eq!((found.as_deref(), diags.list().len()), (dir, wrong), "{text}");
    }
}

#[test]
fn hang_time_of_lsf_conf_is_read_in_seconds() {
    for (text, secs) in [("MBD_HANG_TIME=5", 5), ("MBD_HANG_TIME=0", 0), ("", 60)] {
        let mut diags = crate::conf::Diags::new();
        let files = MapFiles::one("/c/lsf.conf", text);
        let conf = crate::conf::lsf_conf::parse(&files, "/c", &mut diags).unwrap();
        assert_eq!((conf.mbd_hang_secs(), diags.list().len()), (secs, 0), "{text}");
    }
}

#[test]
fn remote_copy_command_is_a_command_other_than_lsrcp() {
    let cases = [
        ("LSF_REMOTE_COPY_CMD=\"scp -B -o 'A no'\"", Some("scp -B -o 'A no'"), 0),
        ("LSF_REMOTE_COPY_COMMAND=scp", Some("scp"), 0),
        ("LSF_REMOTE_COPY_COMMAND=scp\nLSF_REMOTE_COPY_CMD=rcp", Some("rcp"), 0),
        ("LSF_REMOTE_COPY_CMD=/bin/lsrcp -a", Some("/bin/lsrcp -a"), 1),
        ("LSF_REMOTE_COPY_CMD=scp 'x", Some("scp 'x"), 1),
        ("", None, 0),
    ];
    for (text, command, wrong) in cases {
        let mut diags = crate::conf::Diags::new();
        let files = MapFiles::one("/c/lsf.conf", text);
        let conf = crate::conf::lsf_conf::parse(&files, "/c", &mut diags).unwrap();
        assert_eq!((conf.remote_copy_command(), diags.list().len()), (command, wrong), "{text}");
    }
}

#[test]
fn lsb_sigstop_is_the_name_or_number_of_a_signal() {
    let cases = [
        ("LSB_SIGSTOP=SIGTSTP", Some(20), 0),
        ("LSB_SIGSTOP=STOP", Some(19), 0),
        ("LSB_SIGSTOP=10", Some(10), 0),
        ("LSB_SIGSTOP=SIGSTP", None, 1),
        ("LSB_SIGSTOP=65", None, 1),
        ("", None, 0),
    ];
    for (text, number, wrong) in cases {
        let mut diags = crate::conf::Diags::new();
        let files = MapFiles::one("/c/lsf.conf", text);
        let conf = crate::conf::lsf_conf::parse(&files, "/c", &mut diags).unwrap();
        assert_eq!((conf.stop_signal(), diags.list().len()), (number, wrong), "{text}");
    }
    assert_eq!(
        said("lsf.conf", "LSF_RUNDIR=/run/lsf", "LSB_SIGSTOP=STP"),
        ["error lsf.conf LSB_SIGSTOP:13 bad value <STP> of LSB_SIGSTOP: the name or number of a \
             signal is wanted"]
    );
}

#[test]
fn mistakes_in_the_host_list_and_the_form_of_lsf_conf() {
    assert_eq!(
        said("lsf.conf", "LSB_MBD_PORT=6881", "LSB_MBD_PORT 6881"),
        ["error lsf.conf LSB_MBD_PORT:1 <LSB_MBD_PORT 6881> is not KEYWORD = value"]
    );
    assert_eq!(
        said("lsf.conf", "\"alpha beta\"", "\"alpha  betta desk1\""),
        [
            "error lsf.conf LSF_MASTER_LIST:25 host <betta> of LSF_MASTER_LIST is not in \
             the cluster ~beta",
            "error lsf.conf LSF_MASTER_LIST:31 host <desk1> is not a server host",
        ]
    );
    assert_eq!(
        said("lsf.conf", "\"alpha beta\"", "\"alpha beta"),
        [
            "error lsf.conf LSF_MASTER_LIST:17 bad value <\"alpha beta> of \
             LSF_MASTER_LIST: quotes are not paired",
            "error lsf.conf LSF_MASTER_LIST:17 host <\"alpha> of LSF_MASTER_LIST is not in \
             the cluster ~alpha",
        ]
    );
    assert_eq!(
        said("lsf.conf", "LSF_RUNDIR=/run/lsf", "LSB_SIM_EXEC=Y"),
        ["error lsf.conf LSB_SIM_EXEC:14 bad value <Y> of LSB_SIM_EXEC: only a personal \
             cluster (LSF_PERSONAL=Y) may imagine its jobs"]
    );
}

#[test]
fn names_of_lsf_conf_that_nothing_acts_on_are_told() {
    assert_eq!(
        said("lsf.conf", "LSF_LOG_MASK=LOG_WARNING", "OUR_SITE=1\nLSF_LOG_MASK=LOG_WARN"),
        [
            "warning lsf.conf OUR_SITE:1 unknown parameter <OUR_SITE>",
            "error lsf.conf LSF_LOG_MASK:14 bad value <LOG_WARN> of LSF_LOG_MASK: LOG_ERR, \
             LOG_WARNING ... is wanted",
        ]
    );
    assert_eq!(
        said("lsf.conf", "LSF_LOG_MASK=", "LSB_UTMP=Y # x\nLSF_LOG_MASK=LOG_ERR\nLSF_LOG_MASK="),
        [
            "notice lsf.conf LSB_UTMP:1 LSB_UTMP is known and not acted on",
            "warning lsf.conf LSF_LOG_MASK:1 LSF_LOG_MASK is given again; the last one \
             counts",
        ]
    );
    for name in ["LSF_LIVE_CONFDIR", "LSF_PIM_LINUX_ENHANCE", "LSB_CGROUP_MEM_INCLUDE_CACHE"] {
        assert_eq!(
            said("lsf.conf", "LSF_LOG_MASK=", &format!("{name}=Y\nLSF_LOG_MASK=")),
            [format!("notice lsf.conf {name}:1 {name} is known and not acted on")]
        );
    }
}

#[test]
fn mistakes_in_lsf_shared() {
    assert_eq!(
        said("lsf.shared", "PC_new      15.0", "PC_new      fast"),
        ["error lsf.shared PC_new:13 bad value <fast> of CPUFACTOR: a number from 0 to \
             1000000000 is wanted"]
    );
    assert_eq!(
        said(
            "lsf.shared",
            "String    ()         ()           (Where the host stands)",
            "Word () () ()"
        ),
        ["error lsf.shared rack:16 bad value <Word> of TYPE: one of Boolean, Numeric, \
             String is wanted"]
    );
    assert_eq!(
        said("lsf.shared", "bigmem  ", "mem     "),
        [
            "error lsf.shared mem:1 bad resource name <mem>: it is built in",
            "error lsf.cluster.example gamma:69 resource <bigmem> is not in lsf.shared",
        ]
    );
}

#[test]
fn mistakes_in_lsf_cluster() {
    assert_eq!(
        said("lsf.cluster.example", "beta       PC_new", "beta       PC_knew"),
        ["error lsf.cluster.example beta:12 MODEL <PC_knew> is not in lsf.shared ~PC_new"]
    );
    assert_eq!(
        said("lsf.cluster.example", "alpha      PC_old", "BETA       PC_old"),
        [
            "error lsf.cluster.example beta:1 HOSTNAME <beta> is given twice",
            "error lsf.conf LSF_MASTER_LIST:18 host <alpha> of LSF_MASTER_LIST is not in \
             the cluster",
            "warning lsb.hosts alpha:1 <alpha> is neither a host nor a host group; ignored",
            "warning lsb.hosts rack1:1 <alpha> is neither a host nor a host group; ignored",
            "warning lsb.hosts compute:1 <alpha> is neither a host nor a host group; ignored",
            "warning lsb.queues ~alpha:18 <alpha> is neither a host nor a host group; ignored",
        ]
    );
    for name in ["-Fx", "../x", ".x", "a/b"] {
        let why = format!(
            "error lsf.cluster.example {name}:1 bad value <{name}> of HOSTNAME: the name of a \
             host is wanted"
        );
        let all = said("lsf.cluster.example", "beta       PC_new", &format!("{name} PC_new"));
        assert!(all.contains(&why), "{all:?}");
    }
    assert_eq!(
        said("lsf.cluster.example", "(10@[all])", "(10@[all)"),
        ["error lsf.cluster.example licence:17 bad LOCATION <10@[all>: value@[hosts] is \
             wanted"]
    );
    assert_eq!(
        said("lsf.cluster.example", "(rack=r2 scratch bigmem)", "(rack=r2 scratch bigmem"),
        [
            "error lsf.cluster.example gamma:52 <(rack=r2 scratch bigmem>: parenthesis is \
             not closed",
            "warning lsb.queues HOSTS:18 <gamma> is neither a host nor a host group; ignored",
        ]
    );
    assert_eq!(
        said("lsf.cluster.example", "r1m    mem ", "r1m    mme "),
        ["error lsf.cluster.example HOSTNAME:46 unknown keyword <mme> in section Host \
             ~mem"]
    );
    assert_eq!(
        said("lsf.cluster.example", "EXINTERVAL = 15", "EXINTERVAL = -1"),
        ["error lsf.cluster.example EXINTERVAL:14 bad value <-1> of EXINTERVAL: a \
             number from 0 to 31536000 is wanted"]
    );
}

#[test]
fn mistakes_in_the_batch_files() {
    assert_eq!(
        said("lsb.params", "DEFAULT_QUEUE = normal idle", "DEFAULT_QUEUE = normal idel"),
        ["error lsb.params DEFAULT_QUEUE:24 DEFAULT_QUEUE <idel> is not in lsb.queues \
             ~idle"]
    );
    assert_eq!(
        said("lsb.params", "MAX_JOBID = 9999999", "MAX_JOBID = 1000"),
        ["error lsb.params MAX_JOBID:13 bad value <1000> of MAX_JOBID: a number from \
             999999 to 2147483646 is wanted"]
    );
    let more = "MAX_JOBID = 9999999\nMAX_USER_SPACE = 0\nMAX_USER_JOBS = many";
    assert_eq!(
        said("lsb.params", "MAX_JOBID = 9999999", more),
        [
            "error lsb.params MAX_USER_JOBS:17 bad value <many> of MAX_USER_JOBS: a number from \
             1 to 2147483646 is wanted",
            "error lsb.params MAX_USER_SPACE:18 bad value <0> of MAX_USER_SPACE: a number from \
             1 to 1073741824 is wanted"
        ]
    );
    assert_eq!(
        said("lsb.hosts", "alpha       6", "alpha       six"),
        ["error lsb.hosts alpha:13 bad value <six> of MXJ: a number, ! or () is wanted"]
    );
    assert_eq!(
        said("lsb.hosts", "PC_new      !", "PC_new"),
        ["error lsb.hosts PC_new:1 1 values for 2 columns: <PC_new>"]
    );
    assert_eq!(
        said("lsb.hosts", "PC_new      !", "PC_new      !    4"),
        ["error lsb.hosts PC_new:18 3 values for 2 columns: <PC_new ! 4>"]
    );
    assert_eq!(
        said("lsb.hosts", "(alpha beta)", "(alpha beta everyone)"),
        [
            "error lsb.hosts rack1:1 group <rack1> contains itself",
            "error lsb.hosts everyone:1 group <everyone> contains itself",
        ]
    );
    assert_eq!(
        said("lsb.users", "(anna bert)", "(anna bert"),
        ["error lsb.users solver:14 <(anna bert>: parenthesis is not closed"]
    );
    assert_eq!(
        said("lsb.resources", "#\n# Begin", "Begin Limits\nEnd Limits\n# Begin"),
        ["error lsb.resources Begin:7 unknown section <Limits> ~Limit"]
    );
}

#[test]
fn doubtful_values_of_batch_files_are_warnings() {
    let mut files = site();
    let path = format!("{BATCH}/lsb.params");
    files.edit(&path, "DEFAULT_QUEUE = normal idle", "");
    files.edit(&format!("{BATCH}/lsb.hosts"), "PC_new      !\ndefault     !", "gamma !");
    let (conf, diags) = load(&files, ENVDIR);
    assert!(conf.is_some(), "a warning changes nothing");
    let queues = format!("{BATCH}/lsb.queues");
    let hosts = format!("{BATCH}/lsb.hosts");
    assert_eq!(
        told(&diags),
        [
            format!(
                "warning: {queues}: no DEFAULT_QUEUE and no queue <default>: \
                 jobs must name a queue"
            ),
            format!("warning: {hosts}: host <beta> has no row and takes no jobs"),
        ]
    );
    assert_eq!(conf.unwrap().host_slots("beta", None, None, 4), Some(0));
    files.put(&hosts, "");
    let (conf, diags) = load(&files, ENVDIR);
    let line = "no section Host: every server host takes as many jobs as it has CPUs";
    assert!(told(&diags).contains(&format!("warning: {hosts}: {line}")));
    // as in LSF, what a queue names and is not there is left out, and said
    let gone =
        told(&diags).into_iter().filter(|l| l.contains("is neither a host nor a host group"));
    assert!(gone.count() == 1 && conf.is_some(), "{:?}", told(&diags));
}

#[test]
fn mistakes_in_lsb_queues() {
    let q = |from: &str, to: &str| said("lsb.queues", from, to);
    assert_eq!(
        q("PRIORITY       = 30", "PRIORTIY       = 30"),
        ["error lsb.queues PRIORTIY:1 unknown keyword <PRIORTIY> in section Queue \
             ~PRIORITY"]
    );
    assert_eq!(
        q("PRIORITY       = 30", "PRIORITY       = high"),
        ["error lsb.queues PRIORITY:18 bad value <high> of PRIORITY: a number from 1 to \
             2147483647 is wanted"]
    );
    assert_eq!(
        q("MEMLIMIT       = 2G 32G", "MEMLIMIT       = 64G 32G"),
        ["error lsb.queues MEMLIMIT:18 bad value <64G 32G> of MEMLIMIT: the default \
             exceeds the maximum"]
    );
    assert_eq!(
        q("= 24:00", "= 24:00:00"),
        ["error lsb.queues RUNLIMIT:18 bad value <24:00:00> of RUNLIMIT: [[h:]m[/host]] \
             [h:]m[/host] is wanted"]
    );
    // The second line of a continued value.
    assert_eq!(
        q("                 ~alpha", "                 ~alhpa"),
        ["warning lsb.queues ~alhpa:18 <alhpa> is neither a host nor a host group; ignored ~alpha"]
    );
    assert_eq!(
        q("QUEUE_NAME     = idle", "QUEUE_NAME     = big"),
        [
            "error lsb.queues QUEUE_NAME:18 queue <big> is already defined in line 30",
            "error lsb.params DEFAULT_QUEUE:24 DEFAULT_QUEUE <idle> is not in lsb.queues",
        ]
    );
    assert_eq!(
        q("QUEUE_NAME     = idle", ""),
        [
            "error lsb.queues Begin:7 queue without QUEUE_NAME",
            "error lsb.params DEFAULT_QUEUE:24 DEFAULT_QUEUE <idle> is not in lsb.queues",
        ]
    );
    assert_eq!(
        q("DESCRIPTION    = Jobs that need much memory\nEnd Queue", ""),
        ["error lsb.queues Begin:7 section <Queue> has no End"]
    );
    assert_eq!(
        q("NICE           = 20", "NICE           = 20\nPLAN = Y\nr1m = 1.5/3\nut = x"),
        [
            "notice lsb.queues PLAN:1 PLAN is known and not acted on",
            "error lsb.queues ut:6 bad value <x> of ut: loadSched/loadStop is wanted",
        ]
    );
    assert_eq!(
        q("HOSTS          = gamma+2 compute+1", "HOSTS          = (gamma+2 compute+1"),
        ["error lsb.queues HOSTS:18 bad value <(gamma+2 compute+1 ~alpha> of HOSTS: \
             parenthesis or quote is not closed"]
    );
}

#[test]
fn account_map_of_other_clusters_is_told_to_change_no_account_here() {
    let map = |rows: &str| {
        let text = format!("Begin UserMap\nLOCAL REMOTE DIRECTION\n{rows}End UserMap\n\n");
        said("lsb.users", "Begin UserGroup", &format!("{text}Begin UserGroup"))
    };
    let told = map("ann u@c2 export\nbob v@c2 import\n");
    let scope = "UserMap maps accounts of other clusters only (MultiCluster); for hosts of this \
                 cluster, users map accounts in ~/.lsfhosts";
    assert_eq!(told.iter().filter(|line| line.ends_with(scope)).count(), 1, "{told:?}");
    assert!(told.iter().all(|line| line.starts_with("notice lsb.users")), "{told:?}");
    assert!(map("").is_empty());
}

#[test]
fn actions_of_job_controls_are_checked() {
    let q = |to: &str| said("lsb.queues", "NICE           = 20", to);
    assert!(q("JOB_CONTROLS = SUSPEND[SIGTSTP] \\\n  TERMINATE[a[1]; b]").is_empty());
    assert_eq!(
        q("JOB_CONTROLS = SUSPEND[x] STOP[y]"),
        ["error lsb.queues JOB_CONTROLS:16 bad value <SUSPEND[x] STOP[y]> of JOB_CONTROLS: \
             SUSPEND[action] RESUME[action] TERMINATE[action] is wanted"]
    );
    assert!(q("JOB_CONTROLS = TERMINATE[CHKPNT]").is_empty());
}

#[test]
fn mistakes_inside_expressions_and_windows() {
    let q = |to: &str| said("lsb.queues", "NICE           = 20", to);
    let right = q("RES_REQ = select[bigmem] order[mem] rusage[licence=1]\n\
                   DISPATCH_WINDOW = (19:00-7:00 5:19:00-1:7:00)");
    assert!(right.is_empty(), "{right:?}");
    let wrong = q("RES_REQ = select[bigmme] \\\n  order[mem]");
    assert_eq!(wrong.len(), 1);
    let start = "error lsb.queues RES_REQ:18 bad value <select[bigmme] order[mem]> of RES_REQ: \
                 Bad resource requirement syntax: ";
    assert!(wrong[0].starts_with(start), "{}", wrong[0]);
    let wrong = q("RES_REQ = select[bigmem] \\\n  order[mme]");
    assert!(wrong[0].starts_with("error lsb.queues order[mme]:9 bad value"), "{}", wrong[0]);
    assert_eq!(
        q("RUN_WINDOW = 8:00-17:00 25-3"),
        ["error lsb.queues RUN_WINDOW:25 bad value <25-3> of RUN_WINDOW: \
             [day:]hour[:minute]-[day:]hour[:minute] is wanted"]
    );
}

/// The configuration and the diagnostics with this lsb.applications.
pub(super) fn of_applications(text: &str) -> (Option<ClusterConf>, Vec<String>) {
    let mut files = site();
    files.put(&format!("{BATCH}/lsb.applications"), text);
    let (conf, diags) = load(&files, ENVDIR);
    (conf, diags.iter().map(|d| placed(&files, d)).collect())
}

#[test]
fn mistakes_in_lsb_applications() {
    let wrong = "Begin Application\nNAME = sim\nRUNLIMTI = 5\nMEMLIMIT = much\nEnd Application\n\
                 Begin Application\nDESCRIPTION = x\nEnd Application\n\
                 Begin Application\nNAME = sim\nTASKLIMIT = 4 2\nPLAN = Y\nEnd Application\n\
                 Begin Aplication\nEnd Aplication\n";
    let (conf, said) = of_applications(wrong);
    assert_eq!(
        said,
        [
            "error lsb.applications RUNLIMTI:1 unknown keyword <RUNLIMTI> in section Application \
             ~RUNLIMIT",
            "error lsb.applications MEMLIMIT:12 bad value <much> of MEMLIMIT: a size is wanted",
            "error lsb.applications Begin:7 application profile without NAME",
            "notice lsb.applications PLAN:1 PLAN is known and not acted on",
            "error lsb.applications TASKLIMIT:13 bad value <4 2> of TASKLIMIT: minimum, default and \
             maximum must rise",
            "error lsb.applications NAME:8 application profile <sim> is already defined in line 1",
            "error lsb.applications Begin:7 unknown section <Aplication> ~Application",
        ]
    );
    assert_eq!(conf, None);
}

#[test]
fn default_application_must_be_a_profile() {
    let to = "DEFAULT_APPLICATION = sin";
    let mut files = site();
    files.edit(&format!("{BATCH}/lsb.params"), "End Parameters", &format!("{to}\nEnd Parameters"));
    let name = format!("{BATCH}/lsb.applications");
    files.put(&name, "Begin Application\nNAME = sim\nEnd Application\n");
    let (_, diags) = load(&files, ENVDIR);
    let said: Vec<String> = diags.iter().map(|d| placed(&files, d)).collect();
    assert_eq!(
        said,
        ["error lsb.params DEFAULT_APPLICATION:23 DEFAULT_APPLICATION <sin> is not in \
          lsb.applications ~sim"]
    );
    files.put(&name, "Begin Application\nNAME = sin\nRUNLIMIT = 5 7\nEnd Application\n");
    let (conf, diags) = load(&files, ENVDIR);
    assert_eq!(told(&diags), Vec::<String>::new());
    let limit = &conf.unwrap().batch.applications[0].run_limit;
    let secs = |limit: &Option<TimeLimit>| limit.as_ref().map(|limit| limit.seconds);
    assert_eq!((secs(&limit.default), secs(&limit.maximum)), (Some(300), Some(420)));
}

#[test]
fn mistakes_in_parameters_of_application_profiles() {
    for (line, want) in [
        (
            "ENV_VARS = A",
            Some("bad value <A> of ENV_VARS: name='value'[,name='value' ...] is wanted"),
        ),
        ("DJOB_DISABLED = maybe", Some("bad value <maybe> of DJOB_DISABLED: Y or N is wanted")),
        (
            "RTASK_GONE_ACTION = \"KILLJOB\"",
            Some("KILLJOB_TASKDONE or KILLJOB_TASKEXIT, and IGNORE_TASKCRASH are known"),
        ),
        ("DJOB_COMMFAIL_ACTION = x", Some("one of KILL_TASKS, IGNORE_COMMFAIL is wanted")),
        ("DJOB_HB_INTERVAL = 0", Some("a number from 1 to 86400 is wanted")),
        ("DJOB_RU_INTERVAL = 0", Some("a number from 1 to 86400 is wanted")),
        ("DJOB_RU_INTERVAL = x", Some("a number from 1 to 86400 is wanted")),
        ("DJOB_RU_INTERVAL = 90", None),
        ("DJOB_ENV_SCRIPT = a b", Some("<a b> of DJOB_ENV_SCRIPT: the path of a script is wanted")),
        ("DJOB_ENV_SCRIPT = /etc/", Some("the path of a script is wanted")),
        ("DJOB_ENV_SCRIPT = mpi/env.sh", None),
        ("ENV_VARS = 1A=b", Some("name='value'")),
        ("ENV_VARS = A='b", Some("name='value'")),
        ("ENV_VARS = \"A='b c', B='',A=d\"", None),
        ("SUCCESS_EXIT_VALUES = 300", Some("exit values from 0 to 255")),
        ("SUCCESS_EXIT_VALUES = EXCLUDE(3)", Some("exit values from 0 to 255")),
        ("SUCCESS_EXIT_VALUES = all ~3", None),
        ("REQUEUE_EXIT_VALUES = 2 EXCLUDE(3)", None),
        ("RESUME_CONTROL = CHKPNT", Some("a job cannot be resumed by CHKPNT")),
        ("SUSPEND_CONTROL = CHKPNT", None),
        ("CHKPNT_PERIOD = 5", Some("CHKPNT_PERIOD has no effect without CHKPNT_DIR")),
        ("CHKPNT_DIR = /a b", Some("a directory is wanted")),
        ("CHKPNT_DIR = /a\nCHKPNT_METHOD = ../x", Some("the name of a method is wanted")),
        ("RERUNNABLE = maybe", Some("Y or N is wanted")),
        ("ESTIMATED_RUNTIME = x", Some("[h:]m[/host] is wanted")),
        ("RES_REQ = select[nosuch]", Some("nosuch: ")),
        ("NICE = 30", Some("a number from -20 to 20 is wanted")),
    ] {
        let text = format!("Begin Application\nNAME = sim\n{line}\nEnd Application\n");
        let (_, said) = of_applications(&text);
        match want {
            None => assert_eq!(said, [""; 0], "{line}"),
            Some(want) => assert!(said.len() == 1 && said[0].contains(want), "{line}: {said:?}"),
        }
    }
}

#[test]
fn mistakes_in_reservation_and_backfill_of_a_queue() {
    let told = |line: &str| said("lsb.queues", "NICE           = 20", line);
    let error = |name: &str, at: &str, value: &str, want: &str| {
        format!("error lsb.queues {name}:{at} bad value <{value}> of {name}: {want}")
    };
    let is_told = |line: &str, error: String| {
        let all = told(line);
        assert!(all.contains(&error), "{line}: {all:?}");
    };
    let wanted = "MAX_RESERVE_TIME[turns], from 1 on, is wanted";
    for value in ["MAX_RESERVE_TIME[0]", "MAX_RESERVE_TIME[x]", "MAX_RESERVE_TIME", "5"] {
        let line = format!("SLOT_RESERVE = {value}");
        is_told(&line, error("SLOT_RESERVE", "16", value, wanted));
    }
    let line = "RESOURCE_RESERVE = MAX_TIME[5]";
    is_told(line, error("RESOURCE_RESERVE", "20", "MAX_TIME[5]", wanted));
    is_told("BACKFILL = maybe", error("BACKFILL", "12", "maybe", "Y or N is wanted"));
    let needs = "the queue needs BACKFILL = Y and a RUNLIMIT for it";
    let line = "INTERRUPTIBLE_BACKFILL = 60";
    is_told(line, error("INTERRUPTIBLE_BACKFILL", "26", "60", needs));
    let both = "RESOURCE_RESERVE = MAX_RESERVE_TIME[2]\nSLOT_RESERVE = MAX_RESERVE_TIME[3]";
    let ignored = "SLOT_RESERVE is ignored: RESOURCE_RESERVE stands above it";
    let all = told(both);
    assert!(all.iter().any(|line| line.contains(ignored)), "{all:?}");
}

#[test]
fn hung_jobs_that_are_removed_are_named_with_their_times() {
    let read = |value: &str| {
        let text = format!("Begin Parameters\nREMOVE_HUNG_JOBS_FOR = {value}\nEnd Parameters\n");
        let mut diags = crate::conf::Diags::new();
        let files = MapFiles::one("/c/lsb.params", text);
        let conf = crate::conf::lsb_params::parse(&files, "/c/lsb.params", &mut diags).unwrap();
        let all = conf.removal.hung;
        (all.runlimit, all.host_unavail, diags.list().len())
    };
    assert_eq!(read("all"), (Some(600), Some(600), 0));
    assert_eq!(read("runlimit,wait_time=5:host_unavail"), (Some(300), Some(600), 0));
    assert_eq!(read("host_unavail, wait_time = 1"), (None, Some(60), 0));
    for bad in ["host", "all:runlimit", "runlimit,5", "runlimit,wait_time=0", "all,wait_time=1,x"] {
        assert_eq!(read(bad), (None, None, 1), "{bad}");
    }
}
