//! bsub -Q -ti -wa -wt -ul -hl -ptl -eptl -is -Zs -outdir and the patterns of -cwd on a real
//! cluster, and the same options of bmod (bsub(1)).

use crate::common::*;
use std::fs;

fn text(path: &std::path::Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn long(id: &str) -> String {
    ok("bhist", &["-l", id]).replace("\n                     ", "")
}

#[test]
fn exit_values_send_a_job_back_to_its_queue() {
    let dir = scratch("requeue");
    let (runs, posts) = (dir.join("runs"), dir.join("posts"));
    let job = format!("echo x >> {0}; test $(wc -l < {0}) -ge 3 && exit 4; exit 3", runs.display());
    let post = format!("echo \"$LSB_JOBPEND $LSB_EXIT_REQUEUE\" >> {}", posts.display());
    let id = bsub(&["-o", "/dev/null", "-Q", "all ~4", "-Ep", &post, &job]);
    assert_eq!(end_of(&id), "EXIT");
    assert_eq!((text(&runs).lines().count(), field(&id, "exit_code").as_str()), (3, "4"));
    let requeued = "Pending: Requeued job is waiting for rescheduling;(exit code 3)";
    assert_eq!(long(&id).matches(requeued).count(), 2, "{}", long(&id));
    assert!(event_log().contains("\"all ~4\""));
    crate::rig::wait_for("the last post-execution command", || text(&posts).lines().count() == 3);
    assert_eq!(text(&posts), "1 all ~4\n1 all ~4\n all ~4\n");
    // bmod takes it away
    let id = bsub(&["-H", "-o", "/dev/null", "-Q", "3", "exit 3"]);
    ok("bmod", &["-Qn", &id]);
    ok("bresume", &[&id]);
    assert_eq!(end_of(&id), "EXIT");
    assert!(!long(&id).contains("requeued"));
}

#[test]
fn a_job_that_cannot_start_says_why_and_holds_back_none_of_its_likes() {
    let dir = scratch("unstarted");
    let missing = dir.join("in").display().to_string();
    let no_input = bsub(&["-i", &missing, "-o", "/dev/null", "cat"]);
    let no_shell = bsub(&["-L", "/no/such/shell", "-o", "/dev/null", "true"]);
    for (id, want) in [
        (&no_input, format!("Unable to open job's I/O buffers: input file <{missing}>: No such")),
        (&no_shell, "job's environment variables: login shell </no/such/shell>: No such".into()),
    ] {
        let says = |words: &[&str]| ok("bjobs", words).replace("\n                     ", "");
        crate::rig::wait_for("the reason", || {
            says(&["-l", id]).contains(&want) && says(&["-p", id]).contains(&want)
        });
        crate::rig::wait_for("bhist -l", || long(id).contains(&want));
    }
    // likes of the first, submitted after it had failed
    for _ in 0..3 {
        let like = bsub(&["-i", "/dev/null", "-o", "/dev/null", "cat"]);
        assert_eq!(end_of(&like), "DONE");
    }
    assert_eq!(field(&no_input, "stat"), "PEND");
    fs::write(&missing, "").unwrap();
    assert_eq!(end_of(&no_input), "DONE");
    ok("bkill", &[&no_shell]);
}

#[test]
fn orphan_job_ends_at_once() {
    let first = bsub(&["-H", "-o", "/dev/null", "true"]);
    let depend = format!("done({first})");
    let ends = bsub(&["-ti", "-w", &depend, "-o", "/dev/null", "true"]);
    let waits = bsub(&["-w", &depend, "-o", "/dev/null", "true"]);
    ok("bkill", &[&first]);
    assert_eq!(end_of(&ends), "EXIT");
    assert_eq!(field(&waits, "stat"), "PEND");
    assert_eq!(field(&ends, "exit_reason").split(':').next(), Some("TERM_ORPHAN_SYSTEM"));
    // the same by bmod
    ok("bmod", &["-ti", &waits]);
    assert_eq!(end_of(&waits), "EXIT");
}

#[test]
fn job_gets_its_warning_signal_before_the_deadline() {
    let dir = scratch("warn");
    let seen = dir.join("seen");
    // a script on standard input, so that the shell that traps is the job itself
    let script = format!(
        "trap 'echo warned >> {0}; exit 0' URG\necho ready >> {0}\nwhile :; do sleep 0.1; done\n",
        seen.display()
    );
    // run limit of a minute, warned all but a second before
    let said: Said = feed(
        {
            let mut c = cmd("bsub");
            c.args(["-W", "1", "-wa", "SIGURG", "-wt", "97%", "-o", "/dev/null"]);
            c
        },
        script.as_bytes(),
    );
    let id = crate::rig::job_id(&said.out).unwrap().to_string();
    assert_eq!(end_of(&id), "DONE");
    assert_eq!(text(&seen), "ready\nwarned\n");
    let log = event_log();
    let new = log.lines().find(|l| l.contains("\"JOB_NEW\" \"10.1\" ") && l.contains("\"URG\""));
    assert!(new.is_some(), "warningAction is recorded");
}

#[test]
fn warning_command_runs_before_the_run_limit() {
    let dir = scratch("warncmd");
    let (seen, out) = (dir.join("seen"), dir.join("out"));
    let command = format!("echo $LSB_JOBID $MINE $LSB_JOBPGIDS $PWD > {}; exit 3", seen.display());
    let mut c = cmd("bsub");
    c.env("MINE", "yes").current_dir(&dir);
    c.args(["-W", "1", "-wa", &command, "-wt", "97%", "-oo"]).arg(&out);
    let said: Said = c.args(["echo $$; sleep 100"]).output().unwrap().into();
    let id = crate::rig::job_id(&said.out).unwrap().to_string();
    assert_eq!(field(&id, "warning_action").chars().next(), Some('e'));
    wait_for("the command", || text(&seen).ends_with('\n'));
    let pid = text(&out).lines().next().unwrap().to_string();
    assert_eq!(text(&seen), format!("{id} yes {pid} {}\n", dir.display()));
    assert_eq!(field(&id, "stat"), "RUN", "it ends nothing by itself");
    ok("bkill", &[&id]);
    // the same by bmod
    let held = bsub(&["-H", "-W", "1", "true"]);
    ok("bmod", &["-wa", "touch it", "-wt", "10%", &held]);
    let fields = "warning_action action_warning_time delimiter=','";
    assert_eq!(field(&held, fields), "touch it,10%");
    ok("bmod", &["-wan", &held]);
    assert_eq!(field(&held, fields), "-,10%");
    ok("bmod", &["-wtn", "-wa", "URG", &held]);
    assert_eq!(field(&held, fields), "URG,-");
    let said = run("bmod", &["-wa", "CHKPNT", &held]);
    let words = "CHKPNT: Job is not checkpointable. Job not modified.\n";
    assert_eq!((said.code, said.err.as_str()), (255, words));
    ok("bkill", &[&held]);
}

#[test]
fn bsub_ul_passes_the_limits_of_the_shell() {
    let dir = scratch("ul");
    let out = dir.join("out");
    let with = |args: &[&str]| {
        let mut c = program(&["/bin/sh", "-c"]);
        let script = format!(
            "ulimit -S -c 8; ulimit -S -s 4096; exec bsub -K {} -oo {} 'ulimit -S -c; ulimit -S -s'",
            args.join(" "),
            out.display()
        );
        let said: Said = c.arg(script).output().unwrap().into();
        assert_eq!(said.code, 0, "{}", said.err);
        let lines: Vec<String> = text(&out).lines().take(2).map(str::to_string).collect();
        lines
    };
    // dash counts core files in blocks of 512 bytes
    let blocks = with(&["-ul"]);
    assert!(blocks == ["8", "4096"] || blocks == ["4", "4096"], "{blocks:?}");
    assert_ne!(with(&[]), blocks);
    // an option counts more
    assert_eq!(with(&["-ul", "-S", "2048K"])[1], "2048");
}

#[test]
fn the_output_directory_is_made_and_holds_the_files() {
    let dir = scratch("outdir");
    let base = dir.display().to_string();
    let user = field(&bsub(&["-H", "true"]), "user");
    let host = {
        let out_dir = format!("{base}/%P/%U.%J/%I");
        let id = bsub(&[
            "-P",
            "a/../b",
            "-J",
            "x[3]",
            "-outdir",
            &out_dir,
            "-cwd",
            &format!("{base}/%J.%I"),
            "-o",
            "o.%J",
            "-e",
            "e",
            "echo $LSB_OUTDIR; pwd; echo $LSB_OUTPUTFILE; echo err >&2",
        ]);
        end_of(&id);
        let made = dir.join(format!("a-..-b/{user}.{id}/3"));
        let output = text(&made.join(format!("o.{id}")));
        let want = format!("{}\n{base}/{id}.3\n", made.display());
        assert!(output.starts_with(&want), "{output}");
        assert_eq!(text(&made.join("e")), "err\n");
        field(&id, "exec_host").lines().next().unwrap().to_string()
    };
    // a directory relative to the working directory; the host and the group
    let id = bsub(&["-g", "/a/b", "-outdir", "%H/%JG", "-cwd", &base, "-o", "o", "true"]);
    end_of(&id);
    let file = dir.join(format!("{host}/a/b/o"));
    let other = field(&id, "exec_host");
    let file = if file.exists() { file } else { dir.join(format!("{other}/a/b/o")) };
    assert!(text(&file).contains("Successfully completed."), "{}", file.display());
    // one that cannot be made is said, and the job runs
    let id = bsub(&["-outdir", "/proc/none", "-cwd", &base, "-o", "there", "true"]);
    assert_eq!(end_of(&id), "DONE");
    assert!(text(&dir.join("there")).contains("Successfully completed."));
}

#[test]
fn the_input_and_the_command_file_are_copied() {
    let dir = scratch("spooled");
    let (input, out) = (dir.join("in"), dir.join("out"));
    fs::write(&input, "first\n").unwrap();
    let id = bsub(&["-H", "-is", input.to_str().unwrap(), "-o", out.to_str().unwrap(), "cat"]);
    fs::write(&input, "second\n").unwrap();
    let copy = field(&id, "input_file");
    assert!(copy != input.to_str().unwrap() && text(copy.as_ref()) == "first\n", "{copy}");
    ok("bresume", &[&id]);
    assert_eq!(end_of(&id), "DONE");
    assert!(text(&out).starts_with("first\n"), "{}", text(&out));
    crate::rig::wait_for("the copy to be removed", || !std::path::Path::new(&copy).exists());

    let script = dir.join("job.sh");
    fs::write(&script, "#!/bin/sh\n#BSUB -J ignored\necho \"one $1\"\n").unwrap();
    let file = script.to_str().unwrap();
    let out = dir.join("out2");
    let id = bsub(&["-H", "-Zs", "-o", out.to_str().unwrap(), file, "a b"]);
    fs::remove_file(&script).unwrap();
    ok("bresume", &[&id]);
    assert_eq!(end_of(&id), "DONE");
    assert!(text(&out).starts_with("one a b\n"), "{}", text(&out));
    assert!(!field(&id, "job_name").contains("ignored"));

    // nothing is left of a submission that is refused
    let spool = std::path::Path::new(&copy).parent().unwrap().to_path_buf();
    let copies = || fs::read_dir(&spool).unwrap().count();
    let before = copies();
    let said = run("bsub", &["-is", input.to_str().unwrap(), "-q", "nosuch", "cat"]);
    assert!(said.code == 255 && copies() <= before, "{}", said.err);

    for (args, words) in [
        (
            &["-is", "/no/such/file", "cat"][..],
            "/no/such/file: the input file cannot be copied to ",
        ),
        (&["-is", "in.%J", "cat"], "in.%J: option -is takes no %J: the job has no ID yet. Job not"),
        (&["-Zs", "/bin/true"], "-Zs: the command is not a readable script. Job"),
    ] {
        let said = run("bsub", args);
        assert_eq!((said.code, said.out.as_str()), (255, ""), "{args:?}");
        assert!(said.err.starts_with(words), "{}", said.err);
    }
}

#[test]
fn options_without_effect_are_kept_in_the_log_and_can_be_changed() {
    let id = bsub(&["-H", "-hl", "-ptl", "1:30", "-eptl", "5", "-Q", "3", "true"]);
    let log = event_log();
    let new = log.lines().find(|l| l.starts_with("\"JOB_NEW\"") && l.contains(&format!(" {id} ")));
    let new = new.unwrap();
    for pair in ["\"lsf.x.ptl\" \"5400\"", "\"lsf.x.eptl\" \"300\"", "\"lsf.x.hl\" \"Y\""] {
        assert!(new.contains(pair), "{pair}: {new}");
    }
    ok("bmod", &["-ptln", "-hln", "-wa", "USR2", "-wt", "2", "-outdir", "/tmp/x", &id]);
    let changed = "Parameters of Job are changed: ";
    assert!(long(&id).contains(changed), "{}", long(&id));
    ok("bkill", &[&id]);
}
