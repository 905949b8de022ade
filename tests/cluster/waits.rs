//! Commands while the master is stopped, gone and on its way back: each waits with LSF's words,
//! as often as LSB_NTRIES says, and then says why it fails.

use crate::rig::{Rig, Said, program, wait_for};
use std::process::{Child, Stdio};

/// The messages of LSF before another try.
const WORDS: [&str; 3] = [
    "LSF is down. Please wait ...",
    "Cannot connect to LSF. Please wait ...",
    "LSF is processing your request. Please wait ...",
];

/// Every command that asks mbatchd; `ID` is a held job of its own.
const BATCH: &[&str] = &[
    "bjobs -a",
    "bjobs -l ID",
    "bqueues",
    "bqueues -l",
    "bhosts",
    "busers all",
    "bugroup",
    "bmgroup",
    "bparams",
    "bsub true",
    "bmod -W 5 ID",
    "bswitch short ID",
    "btop ID",
    "bbot ID",
    "bresume ID",
    "bkill ID",
    "bwait -t 1 -w ended(1)",
    "badmin qopen normal",
];

/// More of them, which have nothing to do for such a job.
const MORE: &[&str] = &[
    "bpeek ID",
    "bstop ID",
    "brequeue ID",
    "bjobs -env ID",
    "bjobs -script ID",
    "bjobs --watch ID",
    "bhosts -l",
    "badmin hopen host1",
    "badmin showstatus",
    "badmin showconf mbd",
];

/// Every command that asks LIM.
const BASE: &[&str] =
    &["lsid", "lsload", "lshosts", "lsclusters", "lsinfo", "lsplace", "lseligible x"];

/// Starts each command of a table; one that needs a job gets its own.
fn start(rig: &Rig, table: &[&'static str], tries: Option<&str>) -> Vec<(&'static str, Child)> {
    let mut all = Vec::new();
    for (n, line) in table.iter().enumerate() {
        let mut words: Vec<String> = line.split(' ').map(str::to_string).collect();
        for w in &mut words {
            *w = w.replace("ID", &(n + 1).to_string());
        }
        let mut c = rig.cmd(&words[0]);
        if let Some(tries) = tries {
            c.env("LSB_NTRIES", tries);
        }
        c.args(&words[1..]).stdout(Stdio::piped());
        let err = std::fs::File::create(rig.path(&format!("err{n}"))).unwrap();
        all.push((*line, c.stderr(err).spawn().unwrap()));
    }
    all
}

fn ends(rig: &Rig, all: Vec<(&'static str, Child)>) -> Vec<(&'static str, Said)> {
    let mut said = Vec::new();
    for (n, (line, child)) in all.into_iter().enumerate() {
        let mut s = Said::from(child.wait_with_output().unwrap());
        s.err = rig.read(&format!("err{n}"));
        said.push((line, s));
    }
    said
}

/// The first word of notice, and what stands last.
fn refused(rig: &Rig, table: &[&'static str], notice: &[&str]) {
    for (line, said) in ends(rig, start(rig, table, Some("1"))) {
        assert_eq!((said.code, said.out.as_str()), (255, ""), "{line}: {said:?}");
        let first = said.err.lines().next().unwrap_or_default();
        let last = said.err.lines().last().unwrap_or_default();
        assert!(notice.contains(&first), "{line}: {said:?}");
        assert!(!last.is_empty() && !WORDS.contains(&last), "{line}: {said:?}");
        assert!(said.err.lines().count() <= 3, "{line}: {said:?}");
    }
}

#[test]
fn every_command_waits_for_a_master_and_says_when_there_is_none() {
    let rig = Rig::up("waits", 1);
    for _ in BATCH {
        rig.bsub(&["-H", "true"]);
    }
    rig.ok("bkill", &["1"]);
    assert_eq!(rig.end_of(1), "EXIT");
    // stopped: it takes the connection and does not answer
    let conf = rig.read("conf/lsf.conf");
    rig.write("conf/lsf.conf", &format!("{conf}\nLSB_API_CONNTIMEOUT=1\nLSB_API_RECVTIMEOUT=1\n"));
    let signal = |name: &str| {
        let pid = rig.pid("mbatchd", "host1").unwrap().to_string();
        assert!(std::process::Command::new("kill").args([name, &pid]).status().unwrap().success());
    };
    signal("-STOP");
    refused(&rig, BATCH, &WORDS);
    refused(&rig, MORE, &WORDS);
    for (line, said) in ends(&rig, start(&rig, BASE, None)) {
        assert!(said.code < 2 && !said.out.is_empty(), "{line}: {said:?}");
    }
    // the site may say it in words of its own, and so may the caller
    let first = |name: &str, value: Option<&str>| {
        let mut c = rig.cmd("bqueues");
        c.env("LSB_NTRIES", "1").envs(value.map(|words| (name, words)));
        let said = Said::from(c.output().unwrap());
        assert_eq!((said.code, said.out.as_str()), (255, ""), "{said:?}");
        said.err.lines().next().unwrap_or_default().to_string()
    };
    let name = "LSB_MBD_CONNECT_FAIL_MSG";
    assert_eq!(first(name, None), WORDS[1]);
    rig.set_conf(name, "\"Is the network up?\"");
    assert_eq!(first(name, None), "Is the network up?");
    assert_eq!(first(name, Some("Ask Ann.")), "Ask Ann.");
    signal("-CONT");
    rig.write("conf/lsf.conf", &conf);
    rig.ready();
    // none
    assert_eq!(rig.down().code, 0);
    let name = "LSB_MBD_DOWN_MSG";
    rig.set_conf(name, "Back at noon.");
    assert_eq!(first(name, None), "Back at noon.");
    assert_eq!(first(name, Some("Ask Bob.")), "Ask Bob.");
    rig.write("conf/lsf.conf", &conf);
    refused(&rig, BATCH, &WORDS[..1]);
    refused(&rig, MORE, &WORDS[..1]);
    for (line, said) in ends(&rig, start(&rig, &BASE[..6], None)) {
        let told = said.err.contains("is not running; `lsf up --dir");
        // lsplace(1): 246 where LSF does not answer; 255 is what a usage error gives
        let code = if line == "lsplace" { 246 } else { 255 };
        assert!(said.code == code && told, "{line}: {said:?}");
    }
    // as often as it is told to
    for tries in ["1", "2", "3"] {
        let mut c = rig.cmd("bqueues");
        let said = Said::from(c.env("LSB_NTRIES", tries).output().unwrap());
        let words = said.err.lines().filter(|l| *l == WORDS[0]).count();
        assert_eq!((said.code, words.to_string().as_str()), (255, tries), "{said:?}");
    }
    // back while they wait, as often as they were told: else they end, where nobody would start it
    let all = start(&rig, BATCH, Some("1000"));
    for n in 0..BATCH.len() {
        wait_for("words", || rig.read(&format!("err{n}")).starts_with(WORDS[0]));
    }
    rig.start();
    for (line, said) in ends(&rig, all) {
        assert!(said.err.starts_with(WORDS[0]), "{line}: {said:?}");
        assert_eq!(said.code, 0, "{line}: {said:?}");
    }
}

/// bsub -pack speaks over one connection: an esub holds its second submission back until mbatchd
/// has stopped, so that nothing but the answer is waited for.
#[test]
fn commands_wait_for_an_answer_as_long_as_lsf_conf_says() {
    let rig = Rig::up("recv", 1);
    let conf = rig.read("conf/lsf.conf");
    let dir = rig.path("esubs");
    std::fs::create_dir(&dir).unwrap();
    let begin = |name: &str, secs: u32| {
        let go = rig.path(&format!("go-{name}"));
        let script = format!("#!/bin/sh\nwhile [ ! -e {} ]; do sleep 0.1; done\n", go.display());
        program(&dir.join(format!("esub.{name}")), &script);
        std::fs::create_dir(rig.path(name)).unwrap();
        let own = format!(
            "{conf}\nLSF_SERVERDIR={}\nLSB_API_CONNTIMEOUT=1\nLSB_API_RECVTIMEOUT={secs}\n\
             LSB_MAX_PACK_JOBS=1\nLSB_MBD_BUSY_MSG=Patience with {name}.\n",
            dir.display()
        );
        rig.write(&format!("{name}/lsf.conf"), &own);
        rig.write(&format!("{name}/pack"), &format!("-H -J {name} true\n-H -a {name} true\n"));
        let mut c = rig.cmd("bsub");
        c.env("LSF_ENVDIR", rig.path(name)).env("LSB_NTRIES", "1").arg("-pack");
        c.arg(rig.path(&format!("{name}/pack"))).stdout(Stdio::null());
        c.stderr(std::fs::File::create(rig.path(&format!("said-{name}"))).unwrap());
        let child = c.spawn().unwrap();
        wait_for("the first line", || !rig.run("bjobs", &["-J", name]).out.is_empty());
        child
    };
    let (mut patient, mut hasty) = (begin("patient", 3600), begin("hasty", 1));
    let pid = rig.pid("mbatchd", "host1").unwrap().to_string();
    let signal = |name: &str| {
        assert!(std::process::Command::new("kill").args([name, &pid]).status().unwrap().success());
    };
    signal("-STOP");
    rig.write("go-patient", "");
    // were both to wait for the same time, the patient one would be the first to give up
    std::thread::sleep(std::time::Duration::from_secs(3));
    rig.write("go-hasty", "");
    assert_eq!(hasty.wait().unwrap().code(), Some(255));
    let said = rig.read("said-hasty");
    assert!(said.lines().any(|l| l == "Patience with hasty."), "{said}");
    assert!(
        patient.try_wait().unwrap().is_none(),
        "{}{}",
        rig.read("said-hasty"),
        rig.read("said-patient")
    );
    signal("-CONT");
    assert_eq!(patient.wait().unwrap().code(), Some(0));
}
