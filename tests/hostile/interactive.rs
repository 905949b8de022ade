//! Interactive jobs among several users: nobody but its owner gives a job its bsub, or a bsub its
//! job; terminals of jobs are their users' own.

use super::rig::{job_id, kill, wait_for};
use super::site::MultiUserSite;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Stdio};

/// Brings res descriptors in the name of another user's job, over and over, and keeps them open.
const FORGE: &str = r#"
import array, glob, os, socket, struct, sys, time
job, kept = int(sys.argv[1]), []
path = [p for p in glob.glob(sys.argv[2] + "/**/res", recursive=True)][0]
for attempt in list(range(1, 4)) + [1] * 400:
    token = b"interactive job " + struct.pack(">IIII", job, 0, attempt, 0)
    out, into = os.pipe()
    os.write(into, b"forged\n")
    sock = socket.socket(socket.AF_UNIX)
    try:
        sock.connect(path)
        fds = array.array("i", [into, out, out])
        sock.sendmsg([token], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
        kept.append((sock, out, into))
    except OSError:
        pass
print("sent", len(kept), flush=True)
time.sleep(60)
"#;

fn spawn(site: &MultiUserSite, user: &str, line: &str) -> (Child, BufReader<ChildStdout>) {
    let mut c = site.shell(user, line);
    c.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = c.spawn().unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    (child, out)
}

fn line(out: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

#[test]
fn another_user_gives_no_bsub_descriptors_and_reaches_no_terminal() {
    if !MultiUserSite::possible("another_user_gives_no_bsub_descriptors_and_reaches_no_terminal") {
        return;
    }
    let site = MultiUserSite::up("joined", 1);
    site.write("forge.py", FORGE);
    let go = site.path("go");
    let hold = format!("while [ ! -e {} ]; do sleep 0.1; done", go.display());
    let (mut ann, mut out) =
        spawn(&site, "ann", &format!("exec bsub -I -E '{hold}' 'cat; id -un'"));
    let job = job_id(&line(&mut out)).unwrap();
    let mut err = BufReader::new(ann.stderr.take().unwrap());
    let mut started = String::new();
    while !started.starts_with("<<Starting on ") {
        started.clear();
        assert_ne!(err.read_line(&mut started).unwrap(), 0);
    }
    // bob is before ann's starter, with more than anybody may leave there
    let (forge, run) = (site.path("forge.py"), site.path("run"));
    let words = format!("exec python3 {} {job} {}", forge.display(), run.display());
    let (mut bob, mut said) = spawn(&site, "bob", &words);
    let sent = line(&mut said);
    assert!(sent.starts_with("sent ") && sent != "sent 0", "{sent}");
    std::fs::write(&go, "").unwrap();
    ann.stdin.take().unwrap().write_all(b"real\n").unwrap();
    let mut text = String::new();
    out.read_to_string(&mut text).unwrap();
    assert_eq!((text.as_str(), ann.wait().unwrap().code()), ("real\nann\n", Some(0)));
    kill(bob.id(), 9);
    bob.wait().unwrap();

    // the terminal of a job is its user's
    let (mut ann, mut out) = spawn(&site, "ann", "exec bsub -Ip 'tty; sleep 600'");
    let job = job_id(&line(&mut out)).unwrap();
    let tty = line(&mut out);
    assert!(tty.starts_with("/dev/pts/"), "{tty}");
    let mode = site.ok("ann", &format!("stat -c '%U %a' {tty}"));
    assert!(mode.starts_with("ann 6") && mode.ends_with("0\n"), "{mode}");
    for try_it in [format!("echo x > {tty}"), format!("head -c1 < {tty}")] {
        let said = site.run("bob", &try_it);
        assert!(said.code != 0 && said.err.contains("ermission denied"), "{try_it}: {said:?}");
    }
    // nor does anybody else stop, end or look into the job by its terminal
    assert_ne!(site.run("bob", &format!("battach {job}")).code, 0);
    assert_ne!(site.run("bob", &format!("bkill {job}")).code, 0);
    wait_for("the job", || site.stat(job) == "RUN");
    kill(ann.id(), 15);
    ann.wait().unwrap();
    assert_eq!(site.end_of(job), "EXIT");
}
