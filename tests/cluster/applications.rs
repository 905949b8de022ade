//! Application profiles on a real cluster: lsb.applications is read by badmin reconfig, bsub -app
//! takes its profiles, and jobs have what their profile gives (lsb.applications(5), bapp(1)).

use crate::rig::Rig;

/// A cluster with these profiles.
fn with_profiles(name: &str, hosts: usize, text: &str) -> Rig {
    let rig = Rig::up(name, hosts);
    assert_eq!(rig.run("bapp", &[]).err, "No application profiles defined\n");
    std::fs::write(rig.configdir().join("lsb.applications"), text).unwrap();
    rig.ok("badmin", &["reconfig"]);
    rig
}

#[test]
fn profiles_are_read_at_a_reconfiguration_and_jobs_belong_to_them() {
    let text = "Begin Application\nNAME = a_profile_of_a_long_name\nDESCRIPTION = Flow simulation\n\
                RUNLIMIT = 5\nCORELIMIT = 0\nPLAN = Y\nEnd Application\n\
                Begin Application\nNAME = sim\nEnd Application\n";
    let rig = with_profiles("applications", 1, text);
    let said = rig.run("bsub", &["-app", "sin", "true"]);
    assert_eq!(said.code, 255);
    assert_eq!(said.err, "sin: Application profile does not exist. Job not submitted.\n");
    let out = rig.path("out");
    let out = out.to_str().unwrap();
    let script = "echo $LSB_APPLICATION_NAME; ulimit -c; sleep 600";
    let job = rig.bsub(&["-app", "a_profile_of_a_long_name", "-oo", out, script]).to_string();
    let later = rig.bsub(&["-H", "-app", "sim", "true"]).to_string();
    crate::rig::wait_for("the job to run", || rig.stat(job.parse().unwrap()) == "RUN");
    let said = rig.run("bapp", &[]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    assert_eq!(said.out, include_str!("../expected/bapp.txt"));
    let wide = rig.ok("bapp", &["-w", "-alloc", "a_profile_of_a_long_name", "sim"]);
    assert_eq!(wide, include_str!("../expected/bapp-w.txt"));
    let long = rig.ok("bapp", &["-l", "a_profile_of_a_long_name"]);
    assert_eq!(long, include_str!("../expected/bapp-l.txt"));
    assert_eq!(rig.field(&job, "application"), "a_profile_of_a_long_name");
    assert_eq!(
        rig.ok("bjobs", &["-noheader", "-o", "jobid app", "-app", "sim", "-u", "all"]).trim(),
        format!("{later} sim")
    );
    let text = rig.ok("bjobs", &["-UF", &job]);
    assert!(text.contains("Application <a_profile_of_a_long_name>"), "{text}");
    assert!(text.contains(" RUNLIMIT                \n 5.0 min\n"), "{text}");
    assert!(rig.ok("bhist", &["-l", &job]).contains("Application <a_profile_of_a_long"));
    rig.ok("bmod", &["-app", "a_profile_of_a_long_name", &later]);
    assert_eq!(rig.field(&later, "app"), "a_profile_of_a_long_name");
    rig.ok("bmod", &["-appn", &later]);
    assert_eq!(rig.field(&later, "app"), "-");
    rig.ok("bkill", &["-app", "a_profile_of_a_long_name", "0"]);
    assert_eq!(rig.end_of(job.parse().unwrap()), "EXIT");
    let text = std::fs::read_to_string(out).unwrap();
    assert!(text.contains("a_profile_of_a_long_name\n0\n"), "{text}");
    assert_eq!(rig.stat(later.parse().unwrap()), "PSUSP");
    let text = rig.ok("bacct", &["-app", "a_profile_of_a_long_name"]);
    assert!(text.contains("Total number of exited jobs:     1"), "{text}");
}

#[test]
fn mistakes_in_the_file_change_nothing_and_are_pointed_at() {
    let good = "Begin Application\nNAME = sim\nEnd Application\n";
    let rig = with_profiles("applications-wrong", 1, good);
    let path = rig.configdir().join("lsb.applications");
    std::fs::write(
        &path,
        format!("{good}Begin Application\nNAME = x\nRUNLIMIT = y\nEnd Application\n"),
    )
    .unwrap();
    for words in [&["reconfig"][..], &["ckconfig", "-v"]] {
        let said = rig.run("badmin", words);
        assert_eq!(said.code, 255, "{said:?}");
        assert!(
            format!("{}{}", said.out, said.err).contains("lsb.applications:6:12: "),
            "{said:?}"
        );
    }
    assert_eq!(rig.run("bapp", &["x"]).err, "x: Application profile does not exist\n");
    assert!(rig.ok("bapp", &[]).contains("sim "));
}

#[test]
fn commands_of_a_profile_run_and_its_exit_values_count_as_success() {
    let mark = std::env::temp_dir().join(format!("lsf-applications-{}", std::process::id()));
    let file = mark.to_str().unwrap();
    let text = format!(
        "Begin Application\nNAME = sim\nPRE_EXEC = echo pre >> {file}\n\
         POST_EXEC = echo post $LSB_JOBEXIT_STAT >> {file}\n\
         HOST_PRE_EXEC = echo every >> {file}\nJOB_STARTER = LEVEL=7 %USRCMD\n\
         SUCCESS_EXIT_VALUES = 3\nENV_VARS = OWN='a b',TOLD=no\n\
         JOB_CWD = {file}.%J\nREQUEUE_EXIT_VALUES = 4\nEnd Application\n\
         Begin Application\nNAME = clean\nJOB_CWD_TTL = 0\n\
         POST_EXEC = cat own > {file}.post; sleep 1; ls own >> {file}.post\nEnd Application\n"
    );
    let rig = with_profiles("applications-life", 1, &text);
    let out = rig.path("out");
    let words = ["-app", "sim", "-oo", out.to_str().unwrap()];
    let line = format!("echo job $LEVEL $OWN $TOLD $(pwd) >> {file}; exit 3");
    let said = rig.cmd("bsub").env("TOLD", "yes").args(words).arg(&line).output().unwrap();
    let job = crate::rig::job_id(&String::from_utf8_lossy(&said.stdout)).unwrap();
    assert_eq!(rig.end_of(job), "DONE");
    let marks = || std::fs::read_to_string(&mark).unwrap_or_default();
    crate::rig::wait_for("the command after the job", || marks().contains("post"));
    assert_eq!(marks(), format!("every\npre\njob 7 a b yes {file}.{job}\npost 768\n"));
    assert!(std::fs::read_to_string(&out).unwrap().contains("Successfully completed."));
    let told = rig.ok("bhist", &["-l", &job.to_string()]);
    assert!(told.contains("Done successfully"), "{told}");
    let line = format!("test -e {file}.again && exit 0; touch {file}.again; exit 4");
    let again = rig.bsub(&[&words[..], &[line.as_str()]].concat());
    assert_eq!(rig.end_of(again), "DONE");
    assert!(rig.ok("bhist", &["-UF", &again.to_string()]).contains("(exit code 4)"));
    // JOB_CWD_TTL: a directory that was made for a job goes when its last command has ended
    let line = "echo mine > own; mkdir -p a/b; ln -s / a/b/root; pwd";
    let words = ["-app", "clean", "-cwd", &format!("{file}.%J/d%I"), "-o", "/dev/null"];
    let gone = rig.bsub(&[&words[..], &[line]].concat());
    assert_eq!(rig.end_of(gone), "DONE");
    let dir = std::path::PathBuf::from(format!("{file}.{gone}/d0"));
    crate::rig::wait_for("its directory to go", || !dir.exists());
    assert!(dir.parent().unwrap().exists());
    let post = format!("{file}.post");
    assert_eq!(std::fs::read_to_string(&post).unwrap(), "mine\nown\n");
    let _ = std::fs::remove_dir(dir.parent().unwrap());
    let _ = std::fs::remove_file(post);
    let _ = std::fs::remove_file(format!("{file}.again"));
    let _ = std::fs::remove_file(&mark);
    for id in [job, again] {
        let _ = std::fs::remove_dir_all(format!("{file}.{id}"));
    }
}
