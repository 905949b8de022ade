//! Rules that programs which call LSF rely on: how option words are read, #BSUB lines,
//! command words, options that are never refused, the variables of a job.

use crate::common::*;
use crate::rig::job_id;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// A held job submitted with these words, and the answer.
fn held(words: &[&str]) -> (String, Said) {
    let all: Vec<&str> = ["-H"].iter().chain(words).copied().collect();
    let said = run("bsub", &all);
    let id = job_id(&said.out).unwrap_or_else(|| panic!("{words:?}: {said:?}"));
    (id.to_string(), said)
}

fn drop_job(id: &str) {
    ok("bkill", &[id]);
}

#[test]
fn bsub_reads_option_values_glued_and_apart() {
    let me = field(&held(&["true"]).0, "user");
    // (words, a field, its value)
    let rows: &[(&[&str], &str, &str)] = &[
        (&["-Jglued", "true"], "job_name", "glued"),
        (&["-J glued blank", "true"], "job_name", "glued blank"),
        (&["-qshort", "true"], "queue", "short"),
        (&["-q short", "true"], "queue", "short"),
        (&["-n2", "true"], "nreq_slot", "2"),
        (&["-n 2", "true"], "nreq_slot", "2"),
        (&["-P", "p", "-J", "last", "-q", "idle", "true"], "queue", "idle"),
        (&["-q", "idle", "-J", "last", "-P", "p", "true"], "proj_name", "p"),
        (&["-rJ", "bundled", "true"], "job_name", "bundled"),
        (&["-R", "mem>1", "-R", "rusage[mem=1]", "true"], "job_name", "true"),
    ];
    for (words, name, value) in rows {
        let (id, _) = held(words);
        assert_eq!(field(&id, name), *value, "{words:?}");
        drop_job(&id);
    }
    let (id, _) = held(&["-R", "mem>1", "-R", "order[ut]", "true"]);
    let long = ok("bjobs", &["-l", &id]).replace("\n                     ", "");
    assert!(long.contains("mem>1") && long.contains("order[ut]"), "{long}");
    // the same of bjobs
    for words in [
        vec![format!("-u{me}"), "-noheader".into(), "-o jobid".into(), id.clone()],
        vec!["-noheader".into(), "-ojobid".into(), format!("-u {me}"), id.clone()],
        vec!["-a".into(), "-o jobid".into(), "-noheader".into(), id.clone()],
    ] {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        assert_eq!(ok("bjobs", &words), format!("{id}\n"), "{words:?}");
    }
    assert!(ok("bjobs", &["-aJ", "true", "-noheader", "-o", "jobid"]).contains(&id));
    drop_job(&id);
    // several -env: the last word on each variable
    let dir = scratch("words");
    let out = dir.join("out");
    let mut c = cmd("bsub");
    c.env("MINE", "x").env("YOURS", "y");
    c.args(["-K", "-o", "/dev/null", "-env all, ~MINE", "-env", "W=1"]);
    c.arg(format!("env > {}", out.display()));
    assert!(c.output().unwrap().status.success());
    let text = fs::read_to_string(&out).unwrap();
    assert!(!text.contains("MINE=x") && text.contains("\nW=1\n"), "{text}");
}

#[test]
fn bsub_reads_the_options_in_script_lines() {
    let rows: &[(&str, &str, &str)] = &[
        ("#BSUB -J x", "job_name", "x"),
        ("#BSUB-J x", "job_name", "x"),
        ("#BSUB -J \"x y\"", "job_name", "x y"),
        ("#BSUB -J 'x y'", "job_name", "x y"),
        ("#BSUB -J x # what it is", "job_name", "x"),
        ("#BSUB -J x # it isn't y", "job_name", "x"),
        ("#BSUB -J \"x # y\" # what", "job_name", "x # y"),
        ("#BSUB -J x -q short", "queue", "short"),
        ("#BSUB  -q  short", "queue", "short"),
        ("#BSUB -q\tshort", "queue", "short"),
    ];
    for (line, name, value) in rows {
        // with a shebang, without one, with an empty first line, behind commands
        for head in ["#!/bin/sh\n", "", "\n", "#!/bin/bash\necho one\n"] {
            let mut c = cmd("bsub");
            c.arg("-H");
            let said = feed(c, format!("{head}{line}\necho two\n").as_bytes());
            let id = job_id(&said.out).unwrap_or_else(|| panic!("{line}: {said:?}")).to_string();
            assert_eq!(field(&id, name), *value, "{head:?} {line}");
            drop_job(&id);
        }
    }
    let mut c = cmd("bsub");
    c.arg("-H");
    let said = feed(c, b"#!/bin/sh\n    #BSUB -J no\necho\n");
    let id = job_id(&said.out).unwrap().to_string();
    assert_ne!(field(&id, "job_name"), "no");
    drop_job(&id);
}

#[test]
fn bsub_passes_the_words_of_the_command_unchanged() {
    let dir = scratch("commands");
    let out = dir.join("out");
    let file = out.to_str().unwrap();
    let line = |text: &str| format!("{text} > {file}");
    // the first word as it stands: a whole shell line; later ones as the user typed them
    let show = format!("printf '<%s>' \"$@\" > {file}");
    let rows: &[(&[&str], &str)] = &[
        (&[&line("echo a; echo b | tr b c")], "a\n"),
        (&[&line("(echo a; echo b | tr b c)")], "a\nc\n"),
        (&[&line("for i in 1 2; do echo $i; done")], "1\n2\n"),
        (
            &["sh", "-c", &show, "sh", "a b", "it's", "\"q\"", "", "x=y", "say \"$HOME\" it's"],
            "<a b><it's><\"q\"><><x=y><say \"$HOME\" it's>",
        ),
        (&["sh", "-c", &show, "sh", "a\tb", "a  b", "(a b)", "* ?"], "<a\tb><a  b><(a b)><* ?>"),
    ];
    for (words, want) in rows {
        let _ = fs::remove_file(&out);
        let all: Vec<&str> = ["-K", "-o", "/dev/null"].iter().chain(*words).copied().collect();
        let said = run("bsub", &all);
        assert_eq!(said.code, 0, "{words:?}: {said:?}");
        // of a list the redirection is that of its last command
        let want = if words[0].starts_with("echo a;") { "c\n" } else { want };
        assert_eq!(fs::read_to_string(&out).unwrap_or_default(), want, "{words:?}");
    }
}

#[test]
fn options_of_foreign_tools_are_never_refused() {
    let rows: &[&[&str]] = &[
        &["-nnodes", "2"],
        &["-gpu", "-"],
        &["-gpu", "num=1:mode=shared"],
        &["-alloc_flags", "gpumps smt4"],
        &["-sp", "10"],
        &["-app", "sim"],
        &["-sla", "gold"],
        &["-P", "proj"],
        &["-G", "chip"],
        &["-Lp", "lp1"],
    ];
    for words in rows {
        let all: Vec<&str> = words.iter().chain(&["true"]).copied().collect();
        let (id, said) = held(&all);
        assert!(said.out.starts_with(&format!("Job <{id}> is submitted to ")), "{said:?}");
        // acted on, or a notice on standard error that names it
        let honoured = matches!(words[0], "-P" | "-app" | "-G" | "-sla");
        assert!(honoured || said.err.contains(words[0]), "{words:?}: {}", said.err);
        let kept = match words[0] {
            "-P" => Some("proj_name"),
            "-app" => Some("application"),
            "-sla" => Some("service_class"),
            "-G" => Some("user_group"),
            _ => None,
        };
        if let Some(name) = kept {
            assert_eq!(field(&id, name), words[1], "{words:?}");
        }
        drop_job(&id);
    }
}

fn variables(path: &Path) -> BTreeMap<String, String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let pair = |l: &str| l.split_once('=').map(|(n, v)| (n.to_string(), v.to_string()));
    text.lines().filter_map(pair).collect()
}

#[test]
fn jobs_have_the_documented_variables() {
    let dir = scratch("variables");
    let base = dir.to_str().unwrap();
    let script = format!(
        "env > {base}/env.$LSB_JOBINDEX; for f in DJOB_HOSTFILE DJOB_RANKFILE; \
         do eval cat \\$LSB_$f; done > {base}/hosts.$LSB_JOBINDEX; exit 3"
    );
    let submit = |words: &[&str]| {
        let mut c = cmd("bsub");
        c.current_dir(&dir).env("PWD", base).args(words).arg(&script);
        let said: Said = c.output().unwrap().into();
        let id = job_id(&said.out).unwrap_or_else(|| panic!("{said:?}")).to_string();
        assert!(end_of(&id).lines().all(|stat| stat == "EXIT"));
        id
    };
    let id = submit(&["-J", "name", "-q", "short", "-n", "2", "-R", "span[hosts=1]", "-o", "o.%J"]);
    let env = variables(&dir.join("env.0"));
    let host = field(&id, "first_host");
    let get = |name: &str| env.get(name).map(String::as_str).unwrap_or("(missing)");
    let lsid = ok("lsid", &[]);
    let cluster = lsid.lines().find_map(|l| l.strip_prefix("My cluster name is ")).unwrap();
    for (name, want) in [
        ("LSB_JOBID", id.as_str()),
        ("LSB_BATCH_JID", &id),
        ("LSB_JOBINDEX", "0"),
        ("LSB_JOBNAME", "name"),
        ("LSB_QUEUE", "short"),
        ("LSB_HOSTS", &format!("{host} {host}")),
        ("LSB_MCPU_HOSTS", &format!("{host} 2")),
        ("LSB_DJOB_NUMPROC", "2"),
        ("LSB_MAX_NUM_PROCESSORS", "2"),
        ("LSB_SUB_HOST", &field(&id, "from_host")),
        ("LSB_SUB_USER", &field(&id, "user")),
        ("LSB_OUTDIR", base),
        ("LSB_OUTPUTFILE", &format!("o.{id}")),
        ("LS_SUBCWD", base),
        ("LSB_EXEC_CLUSTER", cluster),
        ("LSB_PROJECT_NAME", &field(&id, "proj_name")),
    ] {
        assert_eq!(get(name), want, "{name}");
    }
    // directories in which there is what tools look for
    assert!(Path::new(get("LSF_ENVDIR")).join("lsf.conf").exists(), "{}", get("LSF_ENVDIR"));
    assert!(Path::new(get("LSF_BINDIR")).join("bsub").exists(), "{}", get("LSF_BINDIR"));
    for name in ["LSF_SERVERDIR", "LSF_LIBDIR"] {
        assert!(get(name).starts_with('/'), "{name}: {}", get(name));
    }
    let hosts = fs::read_to_string(dir.join("hosts.0")).unwrap();
    assert_eq!(hosts, format!("{host}\n{host}\n").repeat(2));
    // launchers take the processors of tasks from this file where there is one
    let none = ["LSB_AFFINITY_HOSTFILE", "LSB_BIND_CPU_LIST"];
    for name in ["LSB_JOBINDEX_END", "LSB_INTERACTIVE", "LSB_RESTART", "TERM"].iter().chain(&none) {
        assert!(!env.contains_key(*name), "{name}");
    }

    // an element, on the hosts that it gets
    let id = submit(&["-J", "arr[2-6:2]", "-n", "1", "-o", "/dev/null"]);
    for idx in ["2", "4", "6"] {
        let env = variables(&dir.join(format!("env.{idx}")));
        let get = |name: &str| env.get(name).map(String::as_str).unwrap_or("(missing)");
        assert_eq!((get("LSB_JOBID"), get("LSB_JOBINDEX")), (id.as_str(), idx));
        assert_eq!((get("LSB_JOBINDEX_END"), get("LSB_JOBINDEX_STEP")), ("6", "2"));
        assert_eq!(get("LSB_JOBNAME"), format!("arr[{idx}]"));
        assert_eq!(get("LSB_HOSTS"), get("LSB_DJOB_HOSTFILE").rsplit('.').nth(1).unwrap_or(""));
    }
}

#[test]
fn a_job_on_several_hosts_has_a_host_file_of_its_own() {
    let dir = scratch("ranks");
    let (shown, path) = (dir.join("shown"), dir.join("path"));
    let line = format!(
        "cat $LSB_DJOB_HOSTFILE > {}; echo $LSB_DJOB_HOSTFILE > {}",
        shown.display(),
        path.display()
    );
    let said = run("bsub", &["-K", "-n", "2", "-R", "span[ptile=1]", "-o", "/dev/null", &line]);
    assert_eq!(said.code, 0, "{said:?}");
    let id = job_id(&said.out).unwrap().to_string();
    let hosts: Vec<String> = field(&id, "exec_host").split(':').map(str::to_string).collect();
    assert_eq!(hosts.len(), 2, "{hosts:?}");
    assert_eq!(fs::read_to_string(&shown).unwrap(), format!("{}\n{}\n", hosts[0], hosts[1]));
    let file = fs::read_to_string(&path).unwrap();
    crate::rig::wait_for("the file to go", || !Path::new(file.trim()).exists());
}
