//! Output as tools read it: answers, fields, tables, reports and files. Options and variables that
//! tools rely on are in rules.rs, unusual streams and operands in robust.rs.

use crate::common::*;
use crate::rig::job_id;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// A job that ended so.
fn ended(words: &[&str], want: &str) -> String {
    let id = bsub(words);
    assert_eq!(end_of(&id), want, "{words:?}");
    id
}

#[test]
fn answer_of_bsub_is_one_line_with_the_job_id() {
    // with and without a queue, with notices, as an array, from a script, as a pack
    let rows: &[&[&str]] = &[
        &["-H", "true"],
        &["-H", "-q", "short", "true"],
        &["-H", "-q", "nosuch short", "true"],
        &["-H", "-gpu", "-", "-Lp", "x", "true"],
        &["-H", "-b", "23:59", "-t", "23:59", "true"],
        &["-H", "-J", "a[1-3]", "true"],
    ];
    for words in rows {
        let said = run("bsub", words);
        assert_eq!(said.code, 0, "{words:?}: {}", said.err);
        // split by blanks: the second word is the number between brackets
        let second = said.out.split_whitespace().nth(1).unwrap();
        let id = second.strip_prefix('<').and_then(|w| w.strip_suffix('>')).unwrap();
        let digits: String = said.out.chars().filter(char::is_ascii_digit).collect();
        assert_eq!((digits.as_str(), said.out.lines().count()), (id, 1), "{words:?}");
        let named = words.contains(&"-q");
        let queue = if named { "queue <short>" } else { "default queue <normal>" };
        assert_eq!(said.out, format!("Job <{id}> is submitted to {queue}.\n"), "{words:?}");
        ok("bkill", &[id]);
    }
    for (words, why) in [
        (&["-q", "nosuch", "true"][..], "nosuch: No such queue."),
        (&["-R", "select[", "true"], "Bad resource requirement syntax."),
        (&["-w", "done(", "true"], "Dependency condition syntax error."),
        (&["-m", "nosuch", "true"], "Bad host name, host group name or cluster name."),
    ] {
        let said = run("bsub", words);
        assert_eq!((said.code, said.out.as_str()), (255, ""), "{words:?}");
        assert!(said.err.contains(&format!("{why} Job not submitted.")), "{words:?}: {}", said.err);
    }
}

#[test]
fn fields_without_widths_are_not_cut() {
    let id = bsub(&["-H", "-J", "two words", "true"]);
    let show = |format: &str| ok("bjobs", &["-noheader", "-o", format, &id]);
    for (format, want) in [
        ("jobid stat exit_code", format!("{id} PSUSP -\n")),
        ("ID Stat EXIT_CODE", format!("{id} PSUSP -\n")),
        ("proj name", "default two words\n".into()),
        ("jobid %complete", format!("{id} -\n")),
        ("id: stat:10 stat:-10", format!("{id:<7} {:<10} {:>10}\n", "PSUSP", "PSUSP")),
        ("id stat name delimiter='^'", format!("{id}^PSUSP^two words\n")),
        ("id stat delimiter=\"|\"", format!("{id}|PSUSP\n")),
        ("id:3 stat:7 delimiter=\",\"", format!("{id:<3},PSUSP  \n")),
    ] {
        let want = if format == "id:3 stat:7 delimiter=\",\"" && id.len() > 3 {
            format!("{},PSUSP  \n", &id[..3])
        } else {
            want
        };
        assert_eq!(show(format), want, "{format}");
    }
    let head = ok("bjobs", &["-o", "jobid exit_code", &id]);
    assert_eq!(head, format!("JOBID EXIT_CODE\n{id} -\n"));
    ok("bkill", &[&id]);
}

#[test]
fn json_of_bjobs_has_counts_and_records() {
    let id = bsub(&["-H", "-J", "json", "true"]);
    let read = |words: &[&str]| -> (Value, i32) {
        let said = run("bjobs", words);
        assert_eq!(said.err, "", "{words:?}");
        (serde_json::from_str(&said.out).unwrap(), said.code)
    };
    let (v, code) = read(&["-json", "-o", "jobid stat exit_code", &id, "99999"]);
    assert_eq!((&v["COMMAND"], &v["JOBS"], code), (&"bjobs".into(), &2.into(), 255));
    let first = &v["RECORDS"][0];
    assert_eq!((&first["JOBID"], &first["STAT"]), (&id.as_str().into(), &"PSUSP".into()));
    assert_eq!(first["EXIT_CODE"], "");
    let missing = &v["RECORDS"][1];
    assert_eq!(missing["JOBID"], "99999");
    assert_eq!(missing["ERROR"], "Job <99999> is not found");
    let (v, code) = read(&["-json", &id]);
    assert_eq!(code, 0);
    for key in ["JOBID", "STAT", "JOB_NAME"] {
        assert!(v["RECORDS"][0][key].is_string(), "{key}");
    }
    let all = v["RECORDS"][0].as_object().unwrap();
    assert!(all.iter().all(|(k, v)| v.is_string() && *k == k.to_uppercase()), "{all:?}");
    let (v, code) = read(&["-json", "-P", "no_such_project"]);
    assert_eq!((&v["RECORDS"], &v["JOBS"], code), (&serde_json::json!([]), &0.into(), 0));
    ok("bkill", &[&id]);
}

#[test]
fn script_files_are_submitted_by_stdin_and_by_name() {
    let dir = scratch("scripts");
    let (file, out) = (dir.join("job.sh"), dir.join("out"));
    let text =
        format!("#!/bin/sh\n#BSUB -J from_file\n#BSUB -q short\necho ran > {}\n", out.display());
    let submit = |envdir: Option<&Path>, parse: bool| -> Said {
        fs::write(&file, &text).unwrap();
        let mut c = cmd("bsub");
        if let Some(dir) = envdir {
            c.env("LSF_ENVDIR", dir);
        }
        if parse {
            c.env("LSB_BSUB_PARSE_SCRIPT", "Y");
        }
        let said: Said = c.args(["-o", "/dev/null"]).arg(&file).output().unwrap().into();
        // the caller deletes the file at once
        fs::remove_file(&file).unwrap();
        said
    };
    let site = other_envdir(&dir, "LSB_BSUB_PARSE_SCRIPT=Y\n");
    for (envdir, parse) in [(site.as_deref(), false), (None, true)] {
        let _ = fs::remove_file(&out);
        let said = submit(envdir, parse);
        let id = job_id(&said.out).unwrap_or_else(|| panic!("{said:?}")).to_string();
        assert!(said.out.contains("queue <short>"), "{}", said.out);
        assert_eq!(end_of(&id), "DONE");
        assert_eq!((field(&id, "job_name"), fs::read_to_string(&out).unwrap()), {
            ("from_file".to_string(), "ran\n".to_string())
        });
    }
    // on standard input always
    let mut c = cmd("bsub");
    c.args(["-o", "/dev/null"]);
    let said = feed(c, text.as_bytes());
    assert!(said.out.contains("queue <short>"), "{said:?}");
    assert_eq!(end_of(&job_id(&said.out).unwrap().to_string()), "DONE");
}

#[test]
fn listings_without_a_match_say_so_with_the_documented_code() {
    for (words, why, code) in [
        (&["99999"][..], "Job <99999> is not found", 255),
        (&["-P", "none"], "No unfinished job found", 0),
        (&["-a", "-P", "none"], "No job found", 0),
        (&["-d", "-P", "none"], "No DONE/EXIT job found", 0),
        (&["-p", "-P", "none"], "No pending job found", 0),
        (&["-r", "-P", "none"], "No running job found", 0),
        (&["-s", "-P", "none"], "No suspended job found", 0),
    ] {
        for form in [&[][..], &["-w"], &["-l"], &["-o", "jobid"], &["-noheader"]] {
            let all = [form, words].concat();
            let want = Said { code, out: String::new(), err: format!("{why}\n") };
            assert_eq!(run("bjobs", &all), want, "{all:?}");
            let mut c = cmd("bjobs");
            let strict: Said =
                c.env("LSB_BJOBS_CONSISTENT_EXIT_CODE", "Y").args(&all).output().unwrap().into();
            assert_eq!(strict, Said { code: 255, ..want }, "{all:?}");
        }
    }
    for _ in 0..5 {
        let id = bsub(&["-H", "true"]);
        assert_eq!(ok("bjobs", &["-noheader", "-o", "jobid", &id]), format!("{id}\n"));
        ok("bkill", &[&id]);
    }
}

#[test]
fn bkill_answers_each_job_and_gives_its_term_reason() {
    let running = bsub(&["-o", "/dev/null", "sleep 100"]);
    until(&running, "RUN");
    let held = bsub(&["-H", "true"]);
    let term = |id: &str| format!("Job <{id}> is being terminated\n");
    assert_eq!(run("bkill", &["-s", "URG", &running]).out, {
        format!("Job <{running}> is being signaled\n")
    });
    assert_eq!(run("bkill", &[&held]), Said { code: 0, out: term(&held), err: String::new() });
    assert_eq!(run("bkill", &[&running]).out, term(&running));
    until(&running, "EXIT");
    for (id, why) in
        [(running.as_str(), "Job has already finished"), ("99999", "No matching job found")]
    {
        let said = run("bkill", &[id]);
        assert_eq!((said.code, said.err), (255, format!("Job <{id}>: {why}\n")));
        assert_eq!(said.out, "");
    }
    let reason = |id: &str| field(id, "exit_reason");
    assert_eq!(reason(&running), "TERM_OWNER: job killed by owner");
    assert_eq!(reason(&held), "TERM_OWNER: job killed by owner");
    let plain = ended(&["-o", "/dev/null", "exit 5"], "EXIT");
    assert_eq!((reason(&plain).as_str(), field(&plain, "exit_code").as_str()), ("-", "5"));
    let done = ended(&["-o", "/dev/null", "true"], "DONE");
    assert_eq!(reason(&done), "-");
    // what LSF ends
    let hog = "a=x; while :; do a=$a$a; done";
    let fat = ended(&["-o", "/dev/null", "-M", "30MB", hog], "EXIT");
    let why = reason(&fat);
    assert!(why.starts_with("TERM_MEMLIMIT:"), "{why}");
}

#[test]
fn report_of_a_job_has_the_documented_lines() {
    let dir = scratch("report");
    let base = dir.to_str().unwrap();
    let sub = dir.join("below");
    fs::create_dir(&sub).unwrap();
    let read = |name: &str| fs::read_to_string(dir.join(name)).unwrap_or_default();
    // relative to -cwd; %J; stderr joins
    let words = ["-cwd", sub.to_str().unwrap(), "-o", "../out.%J", "echo word; echo wrong >&2"];
    let id = ended(&words, "DONE");
    let text = read(&format!("out.{id}"));
    let lines: Vec<&str> = text.lines().collect();
    let at = |what: &str| lines.iter().position(|l| *l == what).unwrap_or_else(|| panic!("{text}"));
    assert_eq!(at("Successfully completed.") + 2, at("Resource usage summary:"), "{text}");
    assert!(at("word") < at("wrong") && at("wrong") < at("Successfully completed."), "{text}");
    let id = ended(&["-o", &format!("{base}/bad.%J"), "exit 7"], "EXIT");
    let text = read(&format!("bad.{id}"));
    let lines: Vec<&str> = text.lines().collect();
    let at = |what: &str| lines.iter().position(|l| *l == what).unwrap_or_else(|| panic!("{text}"));
    assert_eq!(at("Exited with exit code 7.") + 2, at("Resource usage summary:"), "{text}");
    // elements, and stderr by itself
    let (o, e) = (format!("{base}/o.%J.%I"), format!("{base}/e.%J.%I"));
    let id = bsub(&["-J", "a[2-3]", "-o", &o, "-e", &e, "echo out; echo err >&2"]);
    assert!(end_of(&id).lines().all(|s| s == "DONE"));
    for idx in [2, 3] {
        let (out, err) = (read(&format!("o.{id}.{idx}")), read(&format!("e.{id}.{idx}")));
        assert!(out.lines().any(|l| l == "out") && !out.lines().any(|l| l == "err"), "{out}");
        assert_eq!(err, "err\n");
    }
}

/// `Nov 20 09:12`.
fn is_date(text: &str) -> bool {
    let months =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let b = text.as_bytes();
    b.len() == 12 && months.contains(&&text[..3]) && b[3] == b' ' && b[6] == b' ' && b[9] == b':'
}

#[test]
fn times_in_listings_have_the_documented_form() {
    let run_id = bsub(&["-o", "/dev/null", "-J", "w", "-W", "60", "sleep 100"]);
    until(&run_id, "RUN");
    for name in ["submit_time", "start_time"] {
        assert!(is_date(&field(&run_id, name)), "{name}: {}", field(&run_id, name));
    }
    let finish = field(&run_id, "finish_time");
    assert!(finish.strip_suffix(" L").is_some_and(is_date), "{finish}");
    // -W: 11/20-09:12:33
    let wide = ok("bjobs", &["-noheader", "-W", &run_id]);
    let words: Vec<&str> = wide.split_whitespace().collect();
    let slashed = |w: &str| {
        let b = w.as_bytes();
        b.len() == 14 && b[2] == b'/' && b[5] == b'-' && b[8] == b':' && b[11] == b':'
    };
    assert_eq!(words.len(), 16, "{wide}");
    assert!(slashed(words[7]) && slashed(words[13]), "{wide}");
    // -l: Fri Nov 20 09:12:33: and a constant indent; -UF does not wrap
    let long = ok("bjobs", &["-l", &run_id]);
    let stamped = long.lines().filter(|l| l.contains(": Submitted from host <")).count();
    assert_eq!(stamped, 1, "{long}");
    let line = long.lines().find(|l| l.contains(": Submitted from host <")).unwrap();
    let (day, date, colon) = (&line[..4], &line[4..10], &line[19..21]);
    assert!(day.ends_with(' ') && is_date(&format!("{date} {}", &line[11..16])), "{line}");
    assert_eq!(colon, ": ");
    let command = format!("sleep 100 # {}", "x".repeat(200));
    ok("bkill", &[&run_id]);
    let id = bsub(&["-H", &command]);
    let long = ok("bjobs", &["-l", &id]);
    let head: Vec<&str> = long.lines().skip(1).take(4).collect();
    assert_eq!(head.len(), 4, "{long}");
    assert!(head.iter().all(|l| l.len() <= 79), "{long}");
    assert!(head[1..].iter().all(|l| l.starts_with(&" ".repeat(21))), "{long}");
    let joined = long.replace(&format!("\n{}", " ".repeat(21)), "");
    assert!(joined.contains(&format!("Command <{command}>")), "{joined}");
    let plain = ok("bjobs", &["-UF", &id]);
    assert!(plain.lines().any(|l| l.contains(&format!("Command <{command}>"))), "{plain}");
    ok("bkill", &[&id]);
}

/// The directory of the site's configuration.
fn envdir() -> Option<PathBuf> {
    match installation() {
        Installation::Own(rig) => Some(rig.path("conf")),
        Installation::Path => std::env::var_os("LSF_ENVDIR").map(PathBuf::from),
    }
}

/// A plain `NAME=value` of lsf.conf, as tools look it up.
fn conf(name: &str) -> Option<String> {
    let text = fs::read_to_string(envdir()?.join("lsf.conf")).ok()?;
    let found = text.lines().rev().find_map(|l| l.strip_prefix(&format!("{name}=")))?;
    Some(found.trim_matches('"').to_string())
}

#[test]
fn configuration_and_log_files_have_the_documented_form() {
    if envdir().is_none() {
        return crate::rig::skipped(
            "configuration_and_log_files_have_the_documented_form: LSF_ENVDIR is not set",
        );
    }
    for name in [
        "LSF_UNIT_FOR_LIMITS",
        "LSB_JOB_MEMLIMIT",
        "RESOURCE_RESERVE_PER_TASK",
        "LSF_INCLUDEDIR",
        "LSF_LIBDIR",
        "LSF_VERSION",
        "LSB_SHAREDIR",
        "LSF_CONFDIR",
    ] {
        let value = conf(name);
        let needed = !matches!(name, "LSB_JOB_MEMLIMIT" | "RESOURCE_RESERVE_PER_TASK");
        assert!(!needed || value.is_some(), "{name} is not in lsf.conf");
        if let Some(value) = value {
            assert!(!value.is_empty() && !value.contains([' ', '$', '\'']), "{name}={value}");
        }
    }
    let cluster =
        ok("lsclusters", &["-w"]).lines().nth(1).unwrap().split(' ').next().unwrap().to_string();
    let params = Path::new(&conf("LSF_CONFDIR").unwrap())
        .join("lsbatch")
        .join(&cluster)
        .join("configdir/lsb.params");
    assert!(params.exists(), "{}", params.display());
    let logs = Path::new(&conf("LSB_SHAREDIR").unwrap()).join(&cluster).join("logdir");
    let id = ended(&["-o", "/dev/null", "-J", "two \"words\"", "true"], "DONE");
    crate::rig::wait_for("the record", || {
        let text = fs::read_to_string(logs.join("lsb.acct")).unwrap_or_default();
        text.lines().any(|l| l.split(' ').nth(3) == Some(&id))
    });
    // split by shell-like quoting, fields by number
    let acct = fs::read_to_string(logs.join("lsb.acct")).unwrap();
    let line = acct.lines().find(|l| l.split(' ').nth(3) == Some(&id)).unwrap();
    let words = quoted_words(line);
    assert_eq!((words[0].as_str(), words[3].as_str()), ("JOB_FINISH", id.as_str()));
    assert_eq!((words[11].as_str(), words[12].as_str()), (field(&id, "user").as_str(), "normal"));
    let name = words.iter().position(|w| w == "two \"words\"").unwrap_or_else(|| panic!("{line}"));
    assert_eq!(words[name + 1], "true");
    let events = fs::read_to_string(logs.join("lsb.events")).unwrap();
    let new = events.lines().map(quoted_words).find(|w| w[0] == "JOB_NEW" && w[3] == id).unwrap();
    assert_eq!(new[13], field(&id, "user"));
}

/// Words in double quotes, a quote in them doubled.
fn quoted_words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => word.extend(chars.next()),
            '"' => quoted = !quoted,
            ' ' if !quoted => words.push(std::mem::take(&mut word)),
            c => word.push(c),
        }
    }
    words.push(word);
    words
}

#[test]
fn showconf_and_lsid_describe_the_cluster() {
    for (command, words) in [("badmin", ["showconf", "mbd"]), ("lsadmin", ["showconf", "lim"])] {
        let text = ok(command, &words);
        let mut lines = text.lines();
        let head = lines.next().unwrap();
        assert!(head.contains("configuration at "), "{command}: {head}");
        let pairs: Vec<(&str, &str)> = lines.filter_map(|l| l.trim().split_once(" = ")).collect();
        for name in ["LSB_SHAREDIR", "LSF_CONFDIR"] {
            let found = pairs.iter().find(|p| p.0 == name);
            let value = found.unwrap_or_else(|| panic!("{command}: no {name}: {text}")).1;
            assert!(value.starts_with('/'), "{name}: {value}");
        }
    }
    let params = ok("bparams", &["-a"]);
    assert!(params.lines().any(|l| l.trim() == "DEFAULT_QUEUE = normal"), "{params}");
    let lsid = ok("lsid", &[]);
    let lines: Vec<&str> = lsid.lines().collect();
    assert!(lines[0].contains(", compatible with IBM Spectrum LSF Standard 10.1.0.0, "), "{lsid}");
    assert!(lines[0].starts_with("lsf "), "{lsid}");
    let name = lsid.lines().find_map(|l| l.strip_prefix("My cluster name is ")).unwrap();
    let master = lsid.lines().find_map(|l| l.strip_prefix("My master name is ")).unwrap();
    assert_eq!(
        ok("lsclusters", &["-w"]).lines().nth(1).unwrap().split_whitespace().next(),
        Some(name)
    );
    assert!(ok("lshosts", &["-w"]).lines().any(|l| l.split_whitespace().next() == Some(master)));
}

#[test]
fn tables_of_hosts_have_one_line_for_each_host() {
    let table = ok("bhosts", &["-o", "hname max ng"]);
    for line in rows(&table) {
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words.len(), 3, "{line}");
        assert!(words[1].parse::<u32>().is_ok() && words[2].parse::<u32>().is_ok(), "{line}");
    }
    let wide = ok("lshosts", &["-w"]);
    for line in rows(&wide) {
        let words: Vec<&str> = line.split_whitespace().collect();
        assert!(words[4].parse::<u32>().is_ok(), "{line}");
    }
    // with -w no column is blank
    let id = bsub(&["-H", "true"]);
    for (command, words) in [
        ("lshosts", &["-w"][..]),
        ("lsload", &["-w"]),
        ("bhosts", &["-w"]),
        ("bqueues", &["-w"]),
        ("bjobs", &["-w", &id]),
    ] {
        let text = ok(command, words);
        let columns = text.lines().next().unwrap().split_whitespace().count();
        for line in rows(&text) {
            // a date is three words
            let more = if command == "bjobs" { 2 } else { 0 };
            assert_eq!(line.split_whitespace().count(), columns + more, "{command}: {line}");
        }
    }
    ok("bkill", &[&id]);
}

#[test]
fn histories_have_the_documented_columns() {
    let id = ended(&["-o", "/dev/null", "-J", "hist", "sleep 1; exit 4"], "EXIT");
    let plain = ok("bhist", &["-a", &id]);
    let lines: Vec<&str> = plain.lines().collect();
    assert_eq!(lines[0], "Summary of time in seconds spent in various states:");
    assert_eq!(lines[1].split_whitespace().count(), 10, "{plain}");
    assert_eq!(lines[2].split_whitespace().count(), 10, "{plain}");
    let long = ok("bhist", &["-l", &id]);
    for event in [
        ": Submitted from host <",
        ": Dispatched to <",
        ": Starting (Pid ",
        ": Exited with exit code 4. The CPU time used is ",
        "MAX MEM: ",
    ] {
        assert!(long.contains(event), "{event}: {long}");
    }
    let used = long.split("The CPU time used is ").nth(1).unwrap().split(' ').next().unwrap();
    assert!(used.parse::<f64>().is_ok(), "{long}");
    let max = long.split("MAX MEM: ").nth(1).unwrap();
    let words: Vec<&str> = max.split_whitespace().collect();
    assert!(words[0].parse::<f64>().is_ok() && words[1].ends_with("bytes;"), "{max}");
    let good = ended(&["-o", "/dev/null", "true"], "DONE");
    assert!(ok("bhist", &["-l", &good]).contains(": Done successfully. The CPU time used is "));
    assert_eq!(ok("bhist", &["-n", "0", "-a", &id]), plain);
    let acct = ok("bacct", &["-l", &id]);
    for event in [
        &format!("Job <{id}>, Job Name <hist>, User <"),
        ": Submitted from host <",
        ": Dispatched to <",
        ": Completed <exit>.",
        "Accounting information about this job:",
        "CPU_T     WAIT     TURNAROUND   STATUS     HOG_FACTOR    MEM    SWAP",
    ] {
        assert!(acct.contains(event), "{event}: {acct}");
    }
}
