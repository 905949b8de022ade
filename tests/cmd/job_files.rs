//! bsub -json, -yaml and -jsdl: files with the options and the command of a job.

use crate::common::*;

#[test]
fn job_of_a_file_has_its_options_and_runs_its_command() {
    let dir = scratch("jobfile");
    let out = dir.join("out");
    let yaml = format!(
        "io:\n  oo: {}\nproperties:\n  queueName: short\n  J: of_yaml\nlimit:\n  W: 7\n\
         command: echo \"$LSB_JOBNAME $LSB_QUEUE\"; exit 3\n",
        out.display()
    );
    let file = dir.join("job.yaml").display().to_string();
    std::fs::write(&file, yaml).unwrap();
    let said = run("bsub", &["-yaml", &file]);
    assert!(said.out.ends_with("is submitted to queue <short>.\n"), "{said:?}");
    let id = job_id(&said.out).unwrap().to_string();
    assert_eq!((end_of(&id).as_str(), field(&id, "exit_code").as_str()), ("EXIT", "3"));
    assert_eq!(field(&id, "runtimelimit"), "7.0");
    wait_for("the output", || out.exists());
    let text = std::fs::read_to_string(&out).unwrap();
    assert!(text.contains("of_yaml short\n"), "{text}");
    // the command line is above the file
    let said = run("bsub", &["-H", "-yaml", &file, "-q", "normal", "-o", "/dev/null", "true"]);
    let id = job_id(&said.out).unwrap().to_string();
    let words = |id: &str| ok("bjobs", &["-o", "queue name command output_file", "-noheader", id]);
    assert_eq!(
        words(&id).split_whitespace().collect::<Vec<_>>(),
        ["normal", "of_yaml", "true", "/dev/null"]
    );
    ok("bkill", &[&id]);
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn job_file_without_command_stands_between_script_and_command_line() {
    let dir = scratch("jobfile-script");
    let file = dir.join("job.json").display().to_string();
    let json = r#"{"properties": {"J": "of_file"}, "limit": {"W": 7}, "io": {"oo": "/dev/null"}}"#;
    std::fs::write(&file, json).unwrap();
    let mut c = cmd("bsub");
    c.args(["-H", "-json", &file, "-P", "of_line"]);
    let script = "#BSUB -J of_script -P of_script -W 3 -Jd kept -o /tmp/no\ntrue\n";
    let said = feed(c, script.as_bytes());
    let id = job_id(&said.out).unwrap().to_string();
    for (name, value) in [
        ("job_name", "of_file"),
        ("runtimelimit", "7.0"),
        ("proj_name", "of_line"),
        ("job_description", "kept"),
        ("output_file", "/dev/null"),
    ] {
        assert_eq!(field(&id, name), value, "{name}");
    }
    ok("bkill", &[&id]);
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn jsdl_file_becomes_a_job() {
    let dir = scratch("jsdl");
    let out = dir.join("out");
    let file = dir.join("job.jsdl").display().to_string();
    let text = format!(
        "<JobDefinition xmlns=\"http://schemas.ggf.org/jsdl/2005/11/jsdl\" xmlns:p=\"http://\
         schemas.ggf.org/jsdl/2005/11/jsdl-posix\"><JobDescription><JobIdentification><JobName>\
         of_jsdl</JobName></JobIdentification><Application><p:POSIXApplication><p:Executable>\
         printenv</p:Executable><p:Argument>OF JSDL</p:Argument><p:Output>{}</p:Output>\
         <p:Environment name=\"OF JSDL\">x</p:Environment></p:POSIXApplication></Application>\
         </JobDescription></JobDefinition>",
        out.display()
    );
    std::fs::write(&file, text.replace("OF JSDL", "OF_JSDL")).unwrap();
    let said = run("bsub", &["-jsdl_strict", &file]);
    let id = job_id(&said.out).unwrap_or_else(|| panic!("{said:?}")).to_string();
    assert_eq!((end_of(&id).as_str(), field(&id, "job_name").as_str()), ("DONE", "of_jsdl"));
    wait_for("the output", || out.exists());
    let text = std::fs::read_to_string(&out).unwrap();
    assert!(text.lines().any(|line| line == "x"), "{text}");
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn job_files_with_mistakes_submit_nothing() {
    let dir = scratch("jobfile-wrong");
    let file = dir.join("job").display().to_string();
    let mark = "job-file-mistake-mark";
    for (option, text, why) in [
        ("-json", "{", "EOF while parsing an object at line 1 column 1"),
        ("-json", "{\"io\": {\"zz\": 1}}", "zz: no such option"),
        ("-yaml", "properties:\n  r: often\n", "r: the option takes no value"),
        ("-yaml", "limit:\n  W: soon\n", "Bad RUNLIMIT specification"),
        ("-jsdl", "<a/>", "a: a JobDefinition of JSDL is expected at line 1 column 1"),
    ] {
        std::fs::write(&file, text).unwrap();
        let said = run("bsub", &[option, &file, mark]);
        assert_eq!((said.code, said.out.as_str()), (255, ""), "{text}");
        let path = if text.contains("soon") { "soon" } else { &file };
        assert_eq!(said.err, format!("{path}: {why}. Job not submitted.\n"), "{text}");
    }
    let said = run("bsub", &["-json", "/nosuch", mark]);
    assert_eq!(said.err, "/nosuch: No such file or directory. Job not submitted.\n");
    let said = run("bsub", &["-json", &file, "-yaml", &file, mark]);
    let words = "Option -json cannot be combined with option -yaml. Job not submitted.\n";
    assert_eq!((said.code, said.err.as_str()), (255, words));
    let pack = dir.join("pack").display().to_string();
    std::fs::write(&pack, format!("-json {file} {mark}\n")).unwrap();
    let said = run("bsub", &["-pack", &pack]);
    assert!(said.err.starts_with("line 1: option -json cannot be used here. Job not"), "{said:?}");
    assert!(!event_log().contains(mark));
    std::fs::remove_dir_all(&dir).unwrap();
}
