//! Files that go with jobs (-f), reports above output, and reports that find no room.

use super::outputs::mails;
use super::rig::{Rig, Said, job_id, kill, program, wait_for};
use super::site::{MultiUserSite, uid};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;

/// Has every transfer wait for the file `go` in the cluster's directory.
fn slow_lsrcp(rig: &Rig) {
    let (lsrcp, go) = (rig.path("bin/lsrcp"), rig.path("go"));
    std::fs::remove_file(&lsrcp).unwrap();
    let wait =
        format!("echo x >> {0}.asked; while [ ! -e {0} ]; do sleep 0.05; done", go.display());
    let lsf = super::rig::binary();
    program(&lsrcp, &format!("#!/bin/sh\n{wait}\nexec {} lsrcp \"$@\"\n", lsf.display()));
}

#[test]
fn a_job_is_done_when_its_files_are_back_whatever_daemon_dies() {
    let rig = Rig::up("transfers", 2);
    slow_lsrcp(&rig);
    let (there, back) = (rig.path("there"), rig.path("back"));
    let transfer = format!("{} < {}", back.display(), there.display());
    let make = format!("echo result > {}; exit 3", there.display());
    let job = rig.bsub(&["-m", "host2", "-o", "out", "-f", &transfer, &make]);
    let next = rig.bsub(&[
        "-o",
        "out2",
        "-w",
        &format!("ended({job})"),
        &format!("cat {}", back.display()),
    ]);
    let asked = |n: usize| rig.read("go.asked").lines().count() == n;
    wait_for("the transfer to begin", || asked(1));
    for daemon in ["sbatchd", "launcher", "mbatchd"] {
        let host = if daemon == "mbatchd" { "host1" } else { "host2" };
        assert!(rig.kill9(daemon, host), "{daemon}");
        wait_for("another one", || rig.pid(daemon, host).is_some() || daemon == "launcher");
        rig.ready();
        assert_eq!((rig.stat(job), rig.stat(next)), ("RUN".into(), "PEND".into()), "{daemon}");
        if daemon == "launcher" {
            // one takes its place, and sees when the transfer is over
            std::fs::remove_file(rig.path("bin/lsrcp")).unwrap();
            rig.start();
        }
    }
    rig.write("go", "");
    assert_eq!((rig.end_of(job), rig.end_of(next)), ("EXIT".into(), "DONE".into()));
    assert!(rig.read("out2").starts_with("result\n"), "{}", rig.read("out2"));
    assert!(asked(1), "copied once: {}", rig.read("go.asked"));
    assert_eq!(rig.field(&job.to_string(), "exit_code"), "3");
}

#[test]
fn bsub_k_waits_for_the_files_and_bkill_ends_the_copying() {
    let rig = Rig::up("transferk", 1);
    std::fs::create_dir(rig.path("far")).unwrap();
    let transfer = format!("back < {}", rig.path("far/f").display());
    let make = format!("echo result > {}", rig.path("far/f").display());
    for n in 0..5 {
        let _ = std::fs::remove_file(rig.path("back"));
        rig.ok("bsub", &["-K", "-o", "out", "-f", &transfer, &make]);
        assert_eq!(rig.read("back"), "result\n", "{n}");
    }
    slow_lsrcp(&rig);
    std::fs::remove_file(rig.path("back")).unwrap();
    let job = rig.bsub(&["-o", "out", "-f", &transfer, &make]);
    wait_for("the transfer to begin", || !rig.read("go.asked").is_empty());
    rig.ok("bkill", &[&job.to_string()]);
    rig.end_of(job);
    let long = rig.ok("bjobs", &["-l", &job.to_string()]).replace("\n                     ", "");
    assert!(long.contains("File transfers back were cut short;"), "{long}");
}

#[test]
fn job_is_not_run_when_a_transfer_before_it_fails() {
    let rig = Rig::up("stagein", 1);
    let job = rig.bsub(&["-o", "out", "-f", "nosuch > there", "echo ran > ran"]);
    let back = rig.bsub(&["-o", "out", "-f", "back < none", "true"]);
    let long = |job: u32| {
        rig.ok("bjobs", &["-l", &job.to_string()]).replace("\n                     ", "")
    };
    let reason = "The job's pre-exec command exited with non-zero status";
    wait_for("the reason", || long(job).contains(reason));
    assert_eq!(rig.stat(job), "PEND");
    assert!(!rig.path("ran").exists());
    // it is tried again
    rig.write("nosuch", "here\n");
    assert_eq!(rig.end_of(job), "DONE");
    assert_eq!(rig.read("there"), "here\n");
    assert!(rig.path("ran").exists());
    // what fails after it is told as its user wrote it
    assert_eq!(rig.end_of(back), "DONE");
    let told = format!(
        "File transfer <back < none>: {}: No such file or directory;",
        rig.path("none").display()
    );
    let told = [told, "File transfer <back < none>: none: No such file or directory;".into()];
    let shown = long(back);
    assert!(told.iter().any(|t| shown.contains(t)), "{shown}");
    let history =
        rig.ok("bhist", &["-l", &back.to_string()]).replace("\n                     ", "");
    assert!(
        history.contains("File transfer <back < none>: ") && !history.contains("lsrcp"),
        "{history}"
    );
}

#[test]
fn the_report_stands_above_output_that_is_not_direct() {
    let rig = Rig::up("above", 1);
    assert!(rig.read("conf/lsf.conf").contains("\nLSB_STDOUT_DIRECT=Y\n"));
    let bsub = |args: &[&str]| {
        let mut c = rig.cmd("bsub");
        let said =
            super::rig::Said::from(c.env("LSB_STDOUT_DIRECT", "N").args(args).output().unwrap());
        super::rig::job_id(&said.out).unwrap_or_else(|| panic!("{said:?}"))
    };
    rig.write("out", "before\n");
    let wait = "echo said; echo bad >&2; while [ ! -e go ]; do sleep 0.05; done";
    let job = bsub(&["-o", "out", "-e", "err", wait]);
    let peek = || rig.run("bpeek", &[&job.to_string()]).out;
    wait_for("the output", || peek().contains("said\n") && peek().contains("bad\n"));
    assert_eq!((rig.read("out"), rig.path("err").exists()), ("before\n".into(), false));
    rig.write("go", "");
    assert_eq!(rig.end_of(job), "DONE");
    let text = rig.read("out");
    assert!(text.starts_with("before\nSender: LSF System <"), "{text}");
    let end = "\nThe output (if any) follows:\n\nsaid\n\n\nPS:\n\nRead file <err> for stderr output of \
               this job.\n\n";
    assert!(text.ends_with(end), "{text}");
    assert_eq!(rig.read("err"), "bad\n");
    // as lsf.conf says where the submitter says nothing; a name with a slash is a directory
    let job = rig.bsub(&["-o", "new/dir/", "echo said"]);
    assert_eq!(rig.end_of(job), "DONE");
    let text = rig.read(&format!("new/dir/{job}.out"));
    assert!(
        text.starts_with("said\n\n---") && text.contains("is above this job summary."),
        "{text}"
    );
    let mut c = Command::new("sh");
    rig.dress(&mut c);
    let line = "umask 027; LSB_STDOUT_DIRECT=N bsub -K -o other/ echo said";
    assert!(c.args(["-c", line]).output().unwrap().status.success());
    let made = std::fs::read_dir(rig.path("other")).unwrap().next().unwrap().unwrap();
    assert_eq!(made.metadata().unwrap().mode() & 0o777, 0o640);
}

#[test]
fn bsub_says_where_output_goes_without_a_file_and_a_mail_program() {
    let rig = Rig::up("mailless", 1);
    let words = "the output will be kept in ~/.lsbatch on the execution host, for 30 days.\n";
    let said = |mail: &str, args: &[&str], quiet: bool| {
        rig.set_conf("LSB_MAILPROG", mail);
        let mut c = rig.cmd("bsub");
        if quiet {
            c.env("BSUB_QUIET", "1");
        }
        let said = super::rig::Said::from(c.args(args).output().unwrap());
        assert_eq!(said.code, 0, "{said:?}");
        said.err.ends_with(words)
    };
    assert!(said("/no/such", &["true"], false));
    assert!(!said("/no/such", &["true"], true));
    assert!(!said("/no/such", &["-o", "out", "true"], false));
    assert!(!said("/bin/true", &["true"], false));
}

#[test]
fn report_without_room_is_mailed_or_kept_and_shown() {
    if !MultiUserSite::possible("report_without_room_is_mailed_or_kept_and_shown") {
        return;
    }
    for mailer in [false, true] {
        // each command has a file system of its own there: what fills it is the job
        let site = super::outputs::site("noroom", mailer, &[("small", "size=64k,mode=1777")]);
        let small = site.path("small");
        // a page full, so that the report needs another one
        let page = "printf '%4090s\\n' x; echo said";
        let fill =
            format!("{page}; head -c 1000000 /dev/zero > {}/fill 2>/dev/null", small.display());
        for direct in ["Y", "N"] {
            let line =
                format!("LSB_STDOUT_DIRECT={direct} bsub -o {}/out \"{fill}\"", small.display());
            let job = super::rig::job_id(&site.ok("ann", &line)).unwrap();
            site.end_of(job);
            let long =
                site.ok("ann", &format!("bjobs -l {job}")).replace("\n                     ", "");
            let told = format!(
                "The report cannot be written to <{}/out>: No space left on device; ",
                small.display()
            );
            assert!(long.contains(&told), "wanted {told} in {long}");
            let kept = site.run("ann", "cat .lsbatch/*.report").out;
            let subject = format!("Subject: Job {job}: <");
            if mailer {
                let mail = mails(&site).pop().unwrap();
                assert!(
                    long.contains("; it is mailed;") && mail.contains(&subject),
                    "{long} {mail}"
                );
                assert_eq!(mail.ends_with(" x\nsaid\n"), direct == "N", "{mail}");
                assert_eq!(kept, "");
            } else {
                assert!(
                    long.contains("; it is kept in <") && kept.contains(&subject),
                    "{long} {kept}"
                );
                let output = site.run("ann", "cat .lsbatch/*.out").out;
                assert_eq!(output.contains("said\n"), direct == "N", "{output}");
            }
        }
        let own = site.path("home/ann/.lsbatch").metadata().unwrap();
        assert_eq!((own.uid(), own.permissions().mode() & 0o777), (uid("ann"), 0o700));
    }
}

#[test]
fn files_of_a_job_are_copied_by_rcp_where_res_does_not_answer() {
    let rig = Rig::up("transfer-rcp", 2);
    rig.ready();
    let own = rig.path("own");
    std::fs::create_dir(&own).unwrap();
    let log = rig.path("rcp.log");
    let copy = format!(
        "#!/bin/sh\necho \"$(id -u) $*\" >> {}\nshift; cp \"${{1#*:}}\" \"${{2#*:}}\"\n",
        log.display()
    );
    program(&own.join("rcp"), &copy);
    let file = |name: &str| rig.path(name).display().to_string();
    rig.write("lfile", "text");
    let (local, remote) = (file("lfile"), file("rfile"));
    let res = rig.pid("res", "host1").unwrap();
    kill(res, 19);
    let path = format!("{}:{}", own.display(), std::env::var("PATH").unwrap());
    let mut c = rig.cmd("bsub");
    c.env("PATH", path).args(["-m", "host2", "-o", "out", "-f"]);
    c.arg(format!("{local} > {remote}")).arg(format!("grep -q text {remote}"));
    let said = Said::from(c.output().unwrap());
    let end = rig.end_of(job_id(&said.out).unwrap());
    kill(res, 18);
    assert_eq!(end, "DONE", "{}", rig.read("out"));
    let uid = lsf::sys::euid();
    assert_eq!(rig.read("rcp.log"), format!("{uid} -- host1:{local} {remote}\n"));
}
