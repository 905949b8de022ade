//! bmod on a real cluster (bmod(1)).

use crate::common::*;

#[test]
fn a_pending_job_is_changed_and_set_back() {
    let id = bsub(&["-H", "-q", "normal", "-J", "old", "-o", "/dev/null", "sleep", "5"]);
    let changed = format!("Parameters of job <{id}> are being changed\n");
    assert_eq!(ok("bmod", &["-J", "new", "-R", "mem>1", "-W", "5", &id]), changed);
    assert_eq!(field(&id, "job_name"), "new");
    assert_eq!(ok("bmod", &["-q", "idle", "-n", "2", "-Z", "sleep 6", &id]), changed);
    assert_eq!((field(&id, "queue"), field(&id, "command")), ("idle".into(), "sleep 6".into()));
    let long = ok("bjobs", &["-l", &id]).replace("\n                     ", "");
    assert!(long.contains("Requested Resources <mem>1>") && long.contains("RUNLIMIT"), "{long}");
    assert_eq!(ok("bmod", &["-Jn", "-Rn", "-qn", "-nn", "-Wn", &id]), changed);
    assert_eq!((field(&id, "job_name"), field(&id, "queue")), ("sleep 6".into(), "normal".into()));
    let long = ok("bjobs", &["-l", &id]).replace("\n                     ", "");
    assert!(!long.contains("Requested Resources") && !long.contains("RUNLIMIT"), "{long}");
    let said = run("bmod", &["-b", "23:59", &id]);
    assert_eq!((said.code, said.out), (0, changed));
    assert!(said.err.starts_with("Job will be scheduled after "), "{}", said.err);
    let history = ok("bhist", &["-l", &id]).replace("\n                     ", "");
    assert!(history.contains("Parameters of Job are changed: Job Name <new>"), "{history}");
    assert!(history.contains(", RUNLIMIT;"), "the limit was taken back: {history}");
    let begin = "Parameters of Job are changed: Specified Start Time <";
    assert!(history.contains(begin) && history.contains(":59:00>;"), "{history}");
    ok("bmod", &["-W", "90", "-M", "2G", "-p", "7", "-Q", "3", "-wt", "2", "-wa", "URG", &id]);
    let history = ok("bhist", &["-l", &id]).replace("\n                     ", "");
    for words in ["RUNLIMIT <90.0 min", "MEMLIMIT <2 G>", "PROCESSLIMIT <7>"] {
        assert!(history.contains(words), "{words}: {history}");
    }
    for words in
        ["Requeue Exit Values <3>", "Warning Action <URG>", "Warning Time Period <2.0 min>"]
    {
        assert!(history.contains(words), "{words}: {history}");
    }
    assert!(event_log().contains("\"JOB_MODIFY2\""));
    ok("bkill", &[&id]);
}

#[test]
fn bmod_names_what_cannot_be_changed() {
    let id = bsub(&["-o", "/dev/null", "sleep", "300"]);
    until(&id, "RUN");
    let said = run("bmod", &["-J", "z", &id]);
    let words = "Only the following parameters can be used to modify a running job: \
                 -c, -M, -W, -o, -e, -r. Job not modified.\n";
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (255, "", words));
    ok("bkill", &[&id]);
    end_of(&id);
    let row = |args: &[&str]| {
        let said = run("bmod", args);
        assert_eq!((said.code, said.out.as_str()), (255, ""), "{args:?}");
        said.err
    };
    assert_eq!(row(&["-J", "z", &id]), "Job has already finished. Job not modified.\n");
    for nobody in [&["-J", "z", "99999"][..], &["99999"]] {
        assert_eq!(row(nobody), "99999: No matching job found. Job not modified.\n");
    }
    let held = bsub(&["-H", "-o", "/dev/null", "true"]);
    let bad = row(&["-q", "nosuch", &held]);
    assert_eq!(bad, "nosuch: No such queue. Job not modified.\n");
    let bad = row(&["-R", "badres>1", &held]);
    let place = "badres: unknown resource at column 1 of <badres>1>";
    assert_eq!(bad, format!("{place}: Bad resource requirement syntax. Job not modified.\n"));
    assert_eq!(
        row(&["-n", "0", &held]).lines().next(),
        Some("The number of processors must be a positive integer. Job not modified.",)
    );
    assert_eq!(row(&["sleep 6", &held]), format!("sleep 6/{held}: Illegal job ID.\n"));
    assert!(row(&["-J", "x"]).contains("Usage: bmod"));
    let unused = "Modified parameters have not been used. Job not modified.\n";
    assert_eq!(row(&[&held]), unused);
    ok("bkill", &[&held]);
}

#[test]
fn each_reset_takes_back_its_option() {
    let words = ["-H", "-oo", "/dev/null", "-eo", "/tmp/err.%J", "-i", "/dev/null", "-cwd", "/tmp"];
    let id = bsub(&[&words[..], &["sleep", "5"]].concat());
    let list = "output_file error_file input_file sub_cwd";
    let shown = || field(&id, list);
    assert_eq!(shown(), "/dev/null /tmp/err.%J /dev/null /tmp");
    ok("bmod", &["-oon", "-eon", "-isn", "-cwdn", &id]);
    let other = bsub(&["-H", "true"]);
    let here = field(&other, "sub_cwd");
    assert_eq!(shown(), format!("- - - {here}"));
    // -cwd of bmod is taken back to where the job was submitted, also by another change
    ok("bmod", &["-cwd", "/usr", &id]);
    ok("bmod", &["-cwd", "/var", &id]);
    assert_eq!(shown(), "- - - /var");
    ok("bmod", &["-cwdn", &id]);
    assert_eq!(shown(), format!("- - - {here}"));
    // what a job has not is reset all the same, and nothing is taken for another option with a
    // value glued to it
    let changed = format!("Parameters of job <{id}> are being changed\n");
    for word in commands_page_resets() {
        let said = run("bmod", &[word, &id]);
        assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (0, &*changed, ""), "{word}");
    }
    assert_eq!(shown(), format!("- - - {here}"));
    let said = run("bmod", &["-Hn", &id]);
    assert_eq!((said.code, said.err.as_str()), (255, "bmod: option -Hn is not supported yet\n"));
    let said = run("bmod", &["-nnodesn", "-Jd", "still", &id]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(said.err, "bmod: option -nnodesn is accepted but not acted on yet\n");
    ok("bkill", &[&id, &other]);
}

/// The reset forms that LSF documents.
fn commands_page_resets() -> impl Iterator<Item = &'static str> {
    "-Jn -Rn -qn -mn -wn -bn -tn -Wn -Mn -nn -Pn -on -en -in -un -xn -rn -En -Epn -Gn -gn -appn \
     -slan -spn -Qn -Un -Bn -Nn -kn -fn -cn -Cn -Dn -Fn -Sn -vn -pn -Tn -Ln -Zsn -isn -Jdn -wan \
     -wtn -extn -gpun -ptln -eptln -cwdn -outdirn -apsn -arn -hln -uln -rncn -mign -networkn \
     -freqn -datan -Lpn -oon -eon -hostfilen -tin -envn"
        .split_whitespace()
}

#[test]
fn the_script_the_environment_and_limits_are_changed() {
    let dir = scratch("bmod-script");
    let at = |name: &str, text: &str| {
        std::fs::write(dir.join(name), text).unwrap();
        dir.join(name).display().to_string()
    };
    let one = at("one", "#!/bin/sh\necho one $1 $WHAT\n");
    let two = at("two", "#!/bin/sh\necho two $1 $WHAT; ulimit -c\n");
    let out = |id: &str| std::fs::read_to_string(dir.join(format!("out.{id}"))).unwrap();
    let file = dir.join("out.%J").display().to_string();
    let submit = || bsub(&["-H", "-o", &file, "-env", "all, WHAT=ever", "-Zs", &one, "a"]);
    let (changed, back, plain) = (submit(), submit(), submit());
    let long = format!("{two} 'b c'");
    for id in [&changed, &back, &plain] {
        let said = ok("bmod", &["-Zs", &long, "-env", "all, WHAT=else", "-C", "7", id]);
        assert_eq!(said, format!("Parameters of job <{id}> are being changed\n"));
        assert_eq!(field(id, "command"), long);
    }
    // what is spooled is what counts
    at("one", "exit 1\n");
    at("two", "exit 1\n");
    ok("bmod", &["-Zsn", "-envn", &back]);
    ok("bmod", &["-Z", "echo plain $WHAT", &plain]);
    for id in [&changed, &back, &plain] {
        ok("bresume", &[id]);
        assert_eq!(end_of(id), "DONE");
    }
    // dash counts core files in blocks of 512 bytes, bash in KB
    let first = |id: &str| out(id).lines().next().unwrap().to_string();
    assert_eq!(first(&changed), "two b c else");
    assert_eq!(first(&back), "one a ever");
    assert_eq!(first(&plain), "plain else");
    let held = bsub(&["-H", "-o", &file, "true"]);
    let said = run("bmod", &["-Zs", "/no/such/script", &held]);
    let why = "-Zs: the command is not a readable script. Job not modified.\n";
    assert_eq!((said.code, said.err.as_str()), (255, why));
    let why = "=x: Bad argument for option -env. Job not modified.\n";
    assert_eq!(run("bmod", &["-env", "=x", &held]).err, why);
    ok("bkill", &[&held]);
}

#[test]
fn bmod_is_copies_the_input_file() {
    let dir = scratch("bmod-is");
    let (input, out) = (dir.join("in"), dir.join("out"));
    std::fs::write(&input, "what was there\n").unwrap();
    let id = bsub(&["-H", "-o", &out.display().to_string(), "cat"]);
    ok("bmod", &["-is", &input.display().to_string(), &id]);
    std::fs::remove_file(&input).unwrap();
    ok("bresume", &[&id]);
    assert_eq!(end_of(&id), "DONE");
    let text = std::fs::read_to_string(&out).unwrap();
    assert!(text.starts_with("what was there\n"), "{text}");
    let held = bsub(&["-H", "cat"]);
    let said = run("bmod", &["-is", "/no/such/file", &held]);
    assert_eq!((said.code, said.out.as_str()), (255, ""));
    assert!(said.err.ends_with(": No such file or directory. Job not modified.\n"), "{}", said.err);
    ok("bkill", &[&held]);
}
