//! A task of pam has all that its TaskStarter has, and the PJL sees its end as if it had started
//! the task itself (pam(1), TaskStarter(1)).

use super::pam::{run, script, up};

/// Two TaskStarters of one PJL, which runs on the first host: what the tasks see, how they end.
#[test]
fn task_sees_what_its_starter_sees_and_the_pjl_sees_its_end() {
    let rig = up("pam-task");
    script(
        &rig,
        "local.sh",
        "cat\nmkdir sub; cd sub; umask 027; ulimit -n 99; export KEPT='a  b'\n\
         env | sort > ../env.pjl\n\
         $LSF_TS $LSF_TS_OPTIONS ../sees.sh 'x  y'; echo code $?\n\
         $LSF_TS $LSF_TS_OPTIONS sh -c 'kill -9 $$'; echo code $?\nexit 5",
    );
    let sees = "env | sort > ../env.task; echo \"${PWD##*/} $(umask) $(ulimit -n) $KEPT $*\"\n\
        test $(cat /proc/$PPID/comm) = TaskStarter && echo child\nexit 9";
    script(&rig, "sees.sh", sees);
    let line = "echo of pam | LSF_PAM_CLEAN_JOB_DELAY=100 pam -n 3 -g ./local.sh";
    let ran = run(&rig, line);
    let table = ran.out.lines().position(|line| line.starts_with("TID"));
    let before = ran.out.lines().take(table.unwrap_or(0)).filter(|line| !line.is_empty());
    let want = ["of pam", "sub 0027 99 a  b x  y", "child", "code 9", "code 137"];
    assert_eq!(before.collect::<Vec<_>>(), want, "{}{}", ran.out, ran.err);
    assert_eq!(ran.code, "5");
    let ends = ["Exit (9)", "Signal (9)"];
    assert!(ends.iter().all(|end| ran.out.contains(end)), "{}", ran.out);
    // nothing is added and nothing taken away
    let variables = |file: &str| -> Vec<String> {
        let text = rig.read(file);
        text.lines().filter(|line| !line.starts_with("_=")).map(str::to_owned).collect()
    };
    assert!(variables("env.pjl").contains(&"KEPT=a  b".to_owned()));
    assert_eq!(variables("env.task"), variables("env.pjl"));
}

/// A PJL that only LSF_BINDIR has, and tasks that cannot be started: the codes of a shell.
#[test]
fn pjl_of_lsf_bindir_sees_the_codes_of_tasks_that_cannot_be_started() {
    let rig = up("pam-bindir");
    script(
        &rig,
        "bin/only-there.sh",
        "$LSF_TS $LSF_TS_OPTIONS ./nothere; echo code $?\n\
         $LSF_TS $LSF_TS_OPTIONS ./plain; echo code $?; exit 0",
    );
    rig.write("plain", "#!/bin/sh\n");
    let ran = run(&rig, "PATH=/usr/bin:/bin \"$LSF_BINDIR/pam\" -n 3 -g only-there.sh");
    assert!(ran.out.starts_with("code 127\ncode 126\n"), "{}{}", ran.out, ran.err);
    assert_eq!(ran.code, "0");
    let own = "TaskStarter: ./nothere: No such file or directory\n\
               TaskStarter: ./plain: Permission denied\n";
    assert_eq!(ran.err, own);
    for state in ["Failed (No such file or directory)", "Failed (Permission denied)"] {
        assert!(ran.out.contains(state), "{}", ran.out);
    }
}
