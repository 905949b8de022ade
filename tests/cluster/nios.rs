//! The side of bsub in interactive jobs: ^Z at a terminal, the parameters LSF_NIOS_*, and a network
//! between submission and execution host that is cut.

use super::install::{HOSTS, installed};
use super::interactive::Bsub;
use super::nodes::Nodes;
use super::rig::{Rig, Said, kill, wait_for};
use super::site::ADMIN;
use super::terminal::{Terminal, shown_by_ps};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

fn up(name: &str) -> Rig {
    let rig = Rig::up(name, 1);
    rig.ready();
    rig
}

#[test]
fn stop_key_stops_bsub_and_its_job_and_fg_continues_both() {
    let rig = up("stopkey");
    let mut t = Terminal::new(&rig);
    // without a terminal of its own, and with a child
    t.line("$L bsub -I 'sh -c \"sleep 924; true\"; echo all \"\"over'", "<<Starting on host1>>");
    wait_for("its last command", || shown_by_ps("sleep 924", "S"));
    t.keys("\x1a");
    t.until("Stopped");
    t.line("echo outside $((40+2))", "outside 42");
    wait_for("the job to be stopped", || shown_by_ps("sleep 924", "T"));
    t.keys("fg\n");
    wait_for("the job to go on", || shown_by_ps("sleep 924", "S"));
    let found = std::process::Command::new("pgrep").args(["-xf", "sleep 924"]).output().unwrap();
    kill(String::from_utf8_lossy(&found.stdout).trim().parse().unwrap(), 15);
    t.until("all over");
    t.until("$ ");
    t.line("echo rc=$?", "rc=0");
}

#[test]
fn job_that_is_pending_for_too_long_is_killed_by_its_bsub() {
    let rig = up("pendtime");
    let env = [("LSF_NIOS_PEND_TIMEOUT", "0.05")];
    let held = Bsub::with(&rig, &["-I", "-H", "true"], &env);
    let job = held.job;
    let said = held.end();
    let why = "is killed: pending for 3 seconds (LSF_NIOS_PEND_TIMEOUT)\n";
    assert!(said.err.contains(&format!("bsub: job <{job}> {why}")), "{said:?}");
    assert!(said.err.ends_with("<<Terminated while pending>>\n"), "{said:?}");
    assert_eq!((said.code, rig.end_of(job).as_str()), (246, "EXIT"));
    // a job that runs is left alone
    let runs = Bsub::with(&rig, &["-I", "sleep 4; exit 4"], &env);
    assert_eq!(runs.end().code, 4);
}

#[test]
fn debug_messages_tell_how_often_the_job_is_asked_about() {
    let rig = up("niosdebug");
    let env = [("LSF_NIOS_DEBUG", "1"), ("LSF_NIOS_JOBSTATUS_INTERVAL", "0.005")];
    let said = Bsub::with(&rig, &["-I", "-H", "exit 5"], &env);
    let job = said.job;
    std::thread::sleep(Duration::from_secs(2));
    rig.ok("bresume", &[&job.to_string()]);
    let said = said.end();
    assert_eq!(said.code, 5, "{said:?}");
    let asked = said.err.matches("mbatchd: state Psusp").count();
    assert!(asked >= 3, "{said:?}");
    for text in ["joined the job", "RES reports the end, wait status Some(1280)"] {
        assert!(said.err.contains(text), "{text}: {said:?}");
    }
    // into a file instead, which is named by the host
    let dir = rig.path("").display().to_string();
    let env = [("LSF_NIOS_DEBUG", "1"), ("LSF_CMD_LOGDIR", dir.as_str())];
    let said = Bsub::with(&rig, &["-I", "exit 6"], &env).end();
    assert_eq!((said.code, said.err.contains("nios[")), (6, false), "{said:?}");
    let log = rig.read("nios.log.host1");
    assert!(log.contains("joined the job") && log.contains("host host1"), "{log}");
    // without it a job is asked about when it changes
    let said = Bsub::with(&rig, &["-I", "sleep 2"], &[("LSF_NIOS_DEBUG", "1")]).end();
    assert!(said.err.matches("mbatchd: state Run").count() <= 2, "{said:?}");
}

/// A bsub on a node, whose output is read line by line.
struct OnNode {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
    job: u32,
}

impl OnNode {
    fn start(nodes: &Nodes, host: &str, line: &str) -> OnNode {
        let mut c = nodes.shell("ann", host, &format!("exec {line}"));
        c.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = c.spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut first = String::new();
        out.read_line(&mut first).unwrap();
        let job = super::rig::job_id(&first).unwrap_or_else(|| panic!("{first}"));
        OnNode { child, out, job }
    }

    fn line(&mut self, text: &str) {
        let mut line = String::new();
        while line.trim_end() != text {
            line.clear();
            assert_ne!(self.out.read_line(&mut line).unwrap(), 0, "no line {text}");
        }
    }

    fn end(mut self) -> Said {
        let mut out = String::new();
        self.out.read_to_string(&mut out).unwrap();
        let mut said = Said::from(self.child.wait_with_output().unwrap());
        said.out = out;
        said
    }
}

/// Three hosts that serve, with this line in lsf.conf; beside them the text of lsf.conf before.
fn nodes_up(name: &str, line: &str) -> (Nodes, String) {
    let nodes = installed(name, &HOSTS);
    let conf = nodes.path("top/conf/lsf.conf");
    let text = std::fs::read_to_string(&conf).unwrap();
    std::fs::write(&conf, format!("{text}{line}\n")).unwrap();
    let setup = format!("{}/top/bin/hostsetup --check", nodes.dir.display());
    for host in ["hostb", "hostc"] {
        nodes.ok("root", "hosta", &format!("ssh {host} {setup} --key=- < /etc/lsf.key"));
    }
    HOSTS.iter().for_each(|host| drop(nodes.ok("root", host, "lsf_daemons start")));
    wait_for("the hosts to be ready", || {
        nodes.run(ADMIN, "hosta", "bhosts -w").out.matches(" ok ").count() == 3
    });
    (nodes, text)
}

#[test]
fn cut_network_ends_an_interactive_job_with_words_and_a_short_cut_does_not() {
    if !Nodes::possible("cut_network_ends_an_interactive_job_with_words_and_a_short_cut_does_not") {
        return;
    }
    let (nodes, text) = nodes_up("nioscut", "LSF_RES_TIMEOUT=3");
    let conf = nodes.path("top/conf/lsf.conf");
    // hosta is the master and has the hub of the net; jobs run on hostc
    let link = |way: &str| drop(nodes.ok("root", "hosta", &format!("ip link set v2 {way}")));
    let beat = "LSF_NIOS_RES_HEARTBEAT=0.05";
    let script = "'echo on; while read x; do echo got $x; done'";
    std::fs::write(&conf, format!("{text}LSF_RES_TIMEOUT=3\n{beat}\n")).unwrap();
    let mut short = OnNode::start(&nodes, "hostb", &format!("bsub -I -m hostc {script}"));
    short.line("on");
    link("down");
    std::thread::sleep(Duration::from_secs(2));
    short.child.stdin.as_mut().unwrap().write_all(b"it\n").unwrap();
    link("up");
    short.line("got it");
    drop(short.child.stdin.take());
    let said = short.end();
    assert_eq!(said.code, 0, "{said:?}");
    // longer than a heartbeat and the time for its answer
    // the end of its input does not end the job
    let line = "timeout 60 bsub -I -m hostc 'echo on; sleep 300'";
    let mut long = OnNode::start(&nodes, "hostb", line);
    long.line("on");
    let job = long.job;
    link("down");
    let mut err = BufReader::new(long.child.stderr.take().unwrap());
    let mut line = String::new();
    let cut = Instant::now();
    while !line.contains("RES does not answer") {
        line.clear();
        assert_ne!(err.read_line(&mut line).unwrap(), 0, "no word of the cut");
    }
    assert!(line.contains(&format!("job <{job}> is killed")), "{line}");
    assert!(cut.elapsed() < Duration::from_secs(20), "{:?}", cut.elapsed());
    link("up");
    assert_eq!(nodes.end_of("hosta", job), "EXIT");
    assert_ne!(long.end().code, 0);
    // the host of submission is gone for good: what was sent to it is not acknowledged
    nodes.ok("root", "hostc", "echo 3 > /proc/sys/net/ipv4/tcp_retries2");
    let endless = "'echo on; while sleep 0.1; do echo more; done'";
    let mut gone = OnNode::start(&nodes, "hostb", &format!("bsub -I -m hostc {endless}"));
    gone.line("on");
    link("down");
    gone.child.kill().unwrap();
    assert_eq!(nodes.end_of("hosta", gone.job), "EXIT");
    gone.child.wait().unwrap();
}

/// The job says nothing and is told nothing, so that no byte is missed on either side.
#[test]
fn interactive_job_ends_when_the_host_of_its_silent_bsub_is_gone_and_not_when_bsub_is_stopped() {
    let name = "interactive_job_ends_when_the_host_of_its_silent_bsub_is_gone_and_not_when_bsub_is_\
                stopped";
    if !Nodes::possible(name) {
        return;
    }
    let (nodes, _) = nodes_up("niosgone", "LSF_RES_TIMEOUT=3\nLSF_RES_ALIVE_TIMEOUT=4");
    // a stopped bsub reads nothing of very much output, for longer than that
    let much = "echo on; yes more | head -c 20000000; echo; echo over";
    let script = format!("echo $$ > pid; exec bsub -I -m hostc '{much}'");
    nodes.write("home/ann/much.sh", &script);
    let mut stopped = OnNode::start(&nodes, "hostb", "sh much.sh");
    stopped.line("on");
    nodes.ok("ann", "hostb", "kill -STOP $(cat pid)");
    std::thread::sleep(Duration::from_secs(9));
    nodes.ok("ann", "hostb", "kill -CONT $(cat pid)");
    // nsenter has stopped with it
    kill(stopped.child.id(), 18);
    stopped.line("over");
    assert_eq!(stopped.end().code, 0);
    let mut gone = OnNode::start(&nodes, "hostb", "bsub -I -m hostc 'echo on; sleep 300'");
    gone.line("on");
    let cut = Instant::now();
    drop(nodes.ok("root", "hosta", "ip link set v2 down"));
    gone.child.kill().unwrap();
    assert_eq!(nodes.end_of("hosta", gone.job), "EXIT");
    assert!(cut.elapsed() < Duration::from_secs(30), "{:?}", cut.elapsed());
    gone.child.wait().unwrap();
}
