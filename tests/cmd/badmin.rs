//! badmin: queues and hosts, checks, what it does without a terminal.

use crate::common::*;
use crate::rig::wait_for;

#[test]
fn badmin_opens_and_closes_queues() {
    for (verb, word) in [
        ("qclose", "closed"),
        ("qopen", "opened"),
        ("qinact", "inactivated"),
        ("qact", "activated"),
    ] {
        assert_eq!(ok("badmin", &[verb, "idle"]), format!("Queue <idle> is {word}\n"));
        if verb == "qclose" {
            let said = run("bsub", &["-q", "idle", "true"]);
            assert_eq!(said.code, 255);
            assert!(said.err.contains("Queue has been closed. Job not submitted."));
        }
        if verb == "qinact" {
            assert!(ok("bqueues", &["idle"]).contains("Open:Inact"));
        }
    }
    let said = run("badmin", &["qclose", "nosuch"]);
    assert_eq!(said, Said { code: 255, out: String::new(), err: "nosuch: No such queue\n".into() });
}

#[test]
fn badmin_opens_and_closes_hosts() {
    let said = run("badmin", &["hclose", "-C", "a test", "host2"]);
    assert_eq!((said.code, said.err.as_str()), (0, "Close <host2> ...... done\n"));
    let shown = ok("bhosts", &["host2"]);
    assert!(shown.contains("closed"), "{shown}");
    let said = run("badmin", &["hopen", "host2"]);
    assert_eq!((said.code, said.err.as_str()), (0, "Open <host2> ...... done\n"));
    // each lock ID keeps it closed by itself
    for id in ["disk-1", "net_2"] {
        let said = run("badmin", &["hclose", "-i", id, "host2"]);
        assert_eq!((said.code, said.err.as_str()), (0, "Close <host2> ...... done\n"));
    }
    let failed = "Open <host2> ...... Host control failed.: ";
    let said = run("badmin", &["hopen", "host2"]);
    let words = format!("{failed}Lock IDs keep the host closed: disk-1 net_2\n");
    assert_eq!((said.code, said.err), (255, words));
    assert_eq!(run("badmin", &["hopen", "-i", "disk-1", "host2"]).code, 0);
    assert!(ok("bhosts", &["host2"]).contains("closed"));
    let said = run("badmin", &["hopen", "-i", "disk-1", "host2"]);
    assert_eq!((said.code, said.err), (255, format!("{failed}Lock ID <disk-1> is not attached\n")));
    assert_eq!(run("badmin", &["hopen", "-i", "net_2", "host2"]).code, 0);
    assert!(!ok("bhosts", &["host2"]).contains("closed"));
    let said = run("badmin", &["hclose", "-i", "a b", "host2"]);
    let words = "a lock ID has up to 128 letters, digits, - and _";
    assert!(said.code == 255 && said.err.contains(words), "{}", said.err);
    let said = run("badmin", &["qclose", "-i", "x", "idle"]);
    assert!(said.code == 255 && said.err.contains("illegal option -- i"), "{}", said.err);
    assert!(!ok("bhosts", &["host2"]).contains("closed"));
    let said = run("badmin", &["hclose", "nosuch"]);
    assert_eq!(said.code, 255);
    assert_eq!(said.err, "nosuch: Bad host name, host group name or cluster name\n");
}

#[test]
fn badmin_with_a_correct_configuration_finds_no_errors_and_reconfigures() {
    let said = run("badmin", &["ckconfig"]);
    assert_eq!((said.code, said.out.as_str()), (0, "No errors found.\n\n"), "{}", said.err);
    assert!(said.err.starts_with("\nChecking configuration files ...\n"), "{}", said.err);
    let said = run("badmin", &["reconfig"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(said.out, "No errors found.\n\nReconfiguration initiated\n");
}

#[test]
fn badmin_refuses_unknown_commands_with_its_usage() {
    let said = run("badmin", &["nosuch"]);
    assert_eq!((said.code, said.out.as_str()), (255, ""));
    assert!(said.err.starts_with("Invalid command <nosuch>\n\nUsage: badmin"), "{}", said.err);
    for (args, why) in [
        (&["showstatus", "x"][..], "Invalid argument <x>\nUsage: badmin showstatus\n"),
        (
            &["showconf", "nosuch"],
            "nosuch: neither mbd nor sbd, nor a host of the cluster\n\
             Usage: badmin showconf mbd | [sbd] [host_name ... | all]\n",
        ),
        (&["showconf"], "Usage: badmin showconf mbd | [sbd] [host_name ... | all]\n"),
    ] {
        let want = Said { code: 255, out: String::new(), err: why.into() };
        assert_eq!(run("badmin", args), want, "{args:?}");
    }
    assert_eq!(run("badmin", &["gpdrestart"]).err, "badmin: gpdrestart is not supported yet\n");
}

#[test]
fn badmin_reads_commands_from_standard_input() {
    let said = feed(cmd("badmin"), b"help qopen\nqclose nosuch\nquit\n");
    assert_eq!(said.code, 255);
    assert!(said.err.contains("Usage: badmin qopen"), "{}", said.err);
    assert!(said.err.ends_with("nosuch: No such queue\n"), "{}", said.err);
}

/// A copy of the cluster's configuration with more text in lsb.queues, for LSF_ENVDIR. `None`,
/// reported as skipped, where the cluster is not ours.
fn changed_queues(name: &str, more: &str) -> Option<std::path::PathBuf> {
    let rig = own_cluster()?;
    let dir = rig.path(&format!("changed-{name}"));
    std::fs::create_dir(&dir).unwrap();
    let from = rig.path("conf").display().to_string();
    let copied = std::process::Command::new("cp").args(["-r", &from]).arg(&dir).status().unwrap();
    assert!(copied.success());
    let conf = dir.join("conf");
    let text = std::fs::read_to_string(conf.join("lsf.conf")).unwrap();
    let own = conf.display().to_string();
    std::fs::write(conf.join("lsf.conf"), text.replace(&from, &own)).unwrap();
    let queues = rig.configdir().join("lsb.queues").display().to_string().replace(&from, &own);
    let text = std::fs::read_to_string(&queues).unwrap();
    std::fs::write(&queues, text + more).unwrap();
    Some(conf)
}

const BROKEN: &str = "\nBegin Queue\nQUEUE_NAME = extra\nPRIORITTY = 7\nEnd Queue\n";
/// Given twice: a warning.
const DOUBTFUL: &str = "\nBegin Queue\nQUEUE_NAME = extra\nNICE = 1\nNICE = 2\nEnd Queue\n";

#[test]
fn badmin_without_a_terminal_ends_at_errors_alone() {
    let Some(envdir) = changed_queues("broken", BROKEN) else { return };
    for verb in ["reconfig", "mbdrestart", "ckconfig"] {
        let mut c = cmd("badmin");
        let said: Said = c.env("LSF_ENVDIR", &envdir).arg(verb).output().unwrap().into();
        assert_eq!((said.code, said.out.as_str()), (255, "There are fatal errors.\n\n"), "{verb}");
        assert!(said.err.contains("PRIORITTY") && said.err.contains("lsb.queues:"), "{said:?}");
        assert_eq!(said.err.contains(" aborted."), verb != "ckconfig", "{said:?}");
    }
    let Some(envdir) = changed_queues("doubtful", DOUBTFUL) else { return };
    let mut c = cmd("badmin");
    let said: Said = c.env("LSF_ENVDIR", &envdir).arg("reconfig").output().unwrap().into();
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(said.out, "There are warning errors.\n\nReconfiguration initiated\n");
}

/// Runs badmin on a terminal of its own.
fn on_a_terminal(envdir: &std::path::Path, args: &[&str], answers: &str) -> (String, Option<i32>) {
    let mut c = cmd("badmin");
    c.env("LSF_ENVDIR", envdir).args(args);
    typed(c, answers)
}

/// Runs a command on a terminal of its own, typing `answers`; everything that came out, and the
/// exit code.
fn typed(mut c: std::process::Command, answers: &str) -> (String, Option<i32>) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use std::io::{Read, Write};
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let open = || std::fs::OpenOptions::new().read(true).write(true).open(&name).unwrap();
    c.stdin(open()).stdout(open()).stderr(open());
    let mut child = c.spawn().unwrap();
    drop(c);
    let mut master = std::fs::File::from(master);
    master.write_all(answers.as_bytes()).unwrap();
    let mut text = Vec::new();
    // Reading a terminal whose other side was closed by all is an error.
    let _ = master.read_to_end(&mut text);
    let code = child.wait().unwrap().code();
    (String::from_utf8(text).unwrap().replace("\r\n", "\n"), code)
}

#[test]
fn badmin_reconfig_on_a_terminal_asks_about_errors_and_warnings() {
    let Some(envdir) = changed_queues("asked", BROKEN) else { return };
    let (text, code) = on_a_terminal(&envdir, &["reconfig"], "y\n");
    assert_eq!(code, Some(255), "{text}");
    let question = text.find("Do you want to see detailed messages? [y/n]");
    assert!(question < text.find("PRIORITTY") && question.is_some(), "{text}");
    assert!(text.ends_with("Reconfiguration aborted.\n"), "{text}");
    let Some(envdir) = changed_queues("confirmed", DOUBTFUL) else { return };
    let (text, code) = on_a_terminal(&envdir, &["reconfig"], "n\nn\n");
    assert_eq!(code, Some(255), "{text}");
    assert!(text.contains("Do you want to reconfigure? [y/n]"), "{text}");
    let (text, code) = on_a_terminal(&envdir, &["reconfig"], "n\ny\n");
    assert_eq!(code, Some(0), "{text}");
    assert!(text.ends_with("Reconfiguration initiated\n"), "{text}");
    let (text, code) = on_a_terminal(&envdir, &["reconfig", "-f"], "");
    assert_eq!(code, Some(0), "{text}");
    assert!(!text.contains("[y/n]"), "{text}");
}

#[test]
fn daemon_commands_ask_about_each_host_or_about_all() {
    let all = |what: &str| format!("Do you really want to {what} on all hosts? [y/n] ");
    for (command, words, want) in [
        ("badmin", &["hrestart", "host2"][..], "Restart slave batch daemon on <host2> ? [y/n] "),
        ("badmin", &["hshutdown"], "Shut down slave batch daemon on <host1> ? [y/n] "),
        ("badmin", &["hrestart", "all"], &all("restart slave batch daemons")),
        ("lsadmin", &["limstartup", "host1"], "Start up LIM on <host1> ? [y/n] "),
        ("lsadmin", &["limrestart", "all"], &all("restart LIMs")),
        ("lsadmin", &["reconfig"], &all("restart LIMs")),
        ("lsadmin", &["resshutdown", "all"], &all("shut down RES")),
    ] {
        let mut c = cmd(command);
        c.args(words);
        let (text, code) = typed(c, "n\n");
        assert_eq!(code, Some(255), "{text}");
        assert!(text.contains(want) && !text.contains("......"), "{words:?}: {text}");
    }
    let mut c = cmd("lsadmin");
    c.args(["limstartup", "host1", "host2"]);
    let (text, code) = typed(c, "n\ny\n");
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("LIM on <host2> ...... ") && !text.contains("<host1> ......"), "{text}");
}

#[test]
fn badmin_without_a_queue_acts_on_the_default_queue() {
    assert_eq!(ok("badmin", &["qact"]), "Queue <normal> is activated\n");
    assert_eq!(ok("badmin", &["qopen", "-C", "as it was"]), "Queue <normal> is opened\n");
}

#[test]
fn badmin_histories_refuse_words() {
    for verb in ["hist", "mbdhist"] {
        let said = run("badmin", &[verb, "x"]);
        assert_eq!((said.code, said.out.as_str()), (255, ""));
        assert_eq!(said.err, "badmin: unexpected word -- x\n");
    }
}

#[test]
fn badmin_ckconfig_v_names_the_files_and_the_time() {
    let said = run("badmin", &["ckconfig", "-v"]);
    assert_eq!((said.code, said.out.as_str()), (0, ""));
    let lines: Vec<&str> = said.err.lines().collect();
    assert_eq!(lines[..3], ["", "Checking configuration files ...", ""]);
    assert!(lines[3].starts_with("lsf "), "{}", said.err);
    assert!(lines[4].starts_with("Reading configuration from /"), "{}", said.err);
    assert!(lines[4].ends_with("/lsf.conf"), "{}", said.err);
    // date, time, year, process
    let done = lines.iter().position(|l| l.ends_with(" Checking Done")).unwrap();
    let words: Vec<&str> = lines[done].split_whitespace().collect();
    assert_eq!(words.len(), 7, "{}", said.err);
    assert!(words[4].parse::<u32>().is_ok() && words[2].len() == 8, "{}", said.err);
    assert_eq!(lines[done + 1], "-".repeat(57));
    assert_eq!(lines[done + 2..], ["No errors found.", ""]);
}

#[test]
fn badmin_mbdrestart_restarts_the_master_once() {
    // A cluster of its own: the other tests would see the master go away.
    let rig = crate::rig::Rig::up("mbdrestart", 1);
    rig.ready();
    // who waits goes on waiting: one for an end, one for any change
    let said = rig.run("bsub", &["-H", "true"]);
    let id = job_id(&said.out).unwrap().to_string();
    let mut bwait = rig.cmd("bwait");
    bwait.args(["-w", &format!("ended({id})")]).stderr(std::process::Stdio::piped());
    let bwait = bwait.spawn().unwrap();
    let mut watch = rig.cmd("bjobs");
    watch.args(["--watch", "-noheader", "-o", "stat delimiter=','", &id]);
    let (mut watch, lines) = lines_of(watch);
    let next = || lines.recv_timeout(std::time::Duration::from_secs(60)).unwrap();
    assert_eq!(next(), "PSUSP");
    let before = rig.pid("mbatchd", "host1");
    let said = rig.run("badmin", &["mbdrestart", "-C", "a test"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(said.out, "No errors found.\n\nMBD restart initiated\n");
    wait_for("another mbatchd", || {
        let now = rig.pid("mbatchd", "host1");
        now.is_some() && now != before
    });
    rig.ready();
    let now = rig.pid("mbatchd", "host1");
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert_eq!(rig.pid("mbatchd", "host1"), now);
    assert_eq!(rig.run("bkill", &[&id]).code, 0);
    assert_eq!(next(), "EXIT");
    assert_eq!(watch.wait().unwrap().code(), Some(0));
    let waited = Said::from(bwait.wait_with_output().unwrap());
    assert_eq!((waited.code, waited.out.as_str()), (0, ""), "{}", waited.err);
}

#[test]
fn badmin_mbdrestart_fails_when_the_master_dies() {
    let rig = crate::rig::Rig::up("mbdlost", 1);
    rig.ready();
    // The next master kills itself when its second commit, the order's, is written.
    rig.write("crash.at", "before-reply:2");
    let before = rig.pid("mbatchd", "host1");
    assert!(rig.kill9("mbatchd", "host1"));
    wait_for("another mbatchd", || {
        let now = rig.pid("mbatchd", "host1");
        now.is_some() && now != before
    });
    rig.ready();
    let said = rig.run("badmin", &["mbdrestart"]);
    assert_eq!(said.code, 255, "{said:?}");
    assert_eq!(said.out, "No errors found.\n\n");
    let words = "The answer was lost: whether mbdrestart takes effect is not known.\n";
    assert!(said.err.ends_with(words), "{said:?}");
    rig.ready();
}

#[test]
fn sbatchd_of_every_host_is_restarted() {
    let rig = crate::rig::Rig::up("hrestart", 2);
    let before = rig.pids("sbatchd");
    let said = rig.run("badmin", &["hrestart", "all"]);
    let want = "Restart slave batch daemon on <host1> ...... done\n\
                Restart slave batch daemon on <host2> ...... done\n";
    assert_eq!((said.code, said.err.as_str()), (0, want));
    let after = rig.pids("sbatchd");
    assert!(after.len() == 2 && before.iter().all(|(h, pid)| after[h] != *pid), "{after:?}");
    assert_eq!(rig.run("lsadmin", &["limshutdown", "host2"]).code, 0);
    assert_eq!(rig.pids("lim").len(), 1);
    assert_eq!(rig.run("lsadmin", &["limstartup", "host2"]).code, 0);
    // asked for, it is there as soon as its launcher has got round to it
    wait_for("the lim of host2", || rig.pids("lim").len() == 2);
}

#[test]
fn queries_and_jobs_are_counted_by_periods() {
    let off = "Performance metric sampling has not been started.\n";
    assert_eq!(
        run("badmin", &["perfmon", "view"]),
        Said { code: 255, out: "".into(), err: off.into() }
    );
    for words in [&["perfmon"][..], &["perfmon", "start", "0"], &["perfmon", "view", "1"]] {
        let said = run("badmin", words);
        assert!(said.code == 255 && said.err.contains("Usage: badmin perfmon start"), "{said:?}");
    }
    ok("badmin", &["perfmon", "start", "1"]);
    let id = bsub(&["-o", "/dev/null", "true"]);
    end_of(&id);
    let total = |table: &str, name: &str| -> Option<u64> {
        table.lines().find(|l| l.starts_with(name))?.split_whitespace().last()?.parse().ok()
    };
    let mut table = String::new();
    wait_for("a whole period", || {
        table = run("badmin", &["perfmon", "view"]).out;
        total(&table, "Jobs completed") >= Some(1)
    });
    for name in ["Total queries", "Jobs information queries", "Jobs submitted", "Jobs dispatched"] {
        assert!(total(&table, name) >= Some(1), "{name}\n{table}");
    }
    assert!(table.contains("\nSample period :                  1 Seconds\n"), "{table}");
    ok("badmin", &["perfmon", "setperiod", "9"]);
    ok("badmin", &["perfmon", "stop"]);
    assert_eq!(run("badmin", &["perfmon", "view"]).err, off);
}

#[test]
fn queries_and_reasons_are_diagnosed() {
    let job = bsub(&["-o", "/dev/null", "-R", "mem > 99999999", "true"]);
    wait_for("a reason", || ok("bjobs", &["-p", &job]).contains("not satisfied"));
    let said = run("badmin", &["diagnose", &job]);
    assert_eq!(said, run("bjobs", &["-p3", &job]));
    assert!(said.out.contains("Job's resource requirements not satisfied"), "{}", said.out);
    ok("bkill", &[&job]);

    let dir = scratch("diagnose");
    let file = dir.join("mine");
    assert_eq!(ok("badmin", &["diagnose", "-c", "query", "-f", file.to_str().unwrap()]), "");
    ok("bqueues", &["normal"]);
    run("bjobs", &["-u", "all", "-a"]);
    assert_eq!(ok("badmin", &["diagnose", "-c", "query", "-o"]), "");
    ok("bqueues", &["idle"]);
    let log = std::fs::read_dir(&dir).unwrap().flatten().next().unwrap();
    assert!(log.file_name().to_string_lossy().starts_with("mine.querylog."), "{log:?}");
    let text = std::fs::read_to_string(log.path()).unwrap();
    // others may ask meanwhile
    let asked = |what: &str| {
        text.lines()
            .any(|l| l.split(' ').count() > 4 && l.contains(what) && l.matches(',').count() == 4)
    };
    assert!(text.contains(" bqueues,") && asked(",normal") && asked(" bjobs,"), "{text}");
    assert!(asked("-a -u all") && !asked(",idle"), "{text}");
    for (args, why) in [
        (&["diagnose"][..], "Usage: badmin diagnose pending_jobID ... | -c query"),
        (&["diagnose", "-c", "query", "-o", "-d", "3"], "Usage: badmin diagnose"),
        (&["diagnose", "-c", "nosuch"], "Usage: badmin diagnose"),
        (&["diagnose", "-c", "jobreq"], "badmin: diagnose -c jobreq is not supported yet"),
        (&["diagnose", "-c", "query", "-f", "/dir/"], "Bad argument"),
    ] {
        let said = run("badmin", args);
        assert_eq!((said.code, said.out.as_str()), (255, ""), "{args:?}");
        assert!(said.err.starts_with(why), "{args:?}: {}", said.err);
    }
}
