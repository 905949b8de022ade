//! bacct on a real cluster.

use crate::common::*;

#[test]
fn bacct_sums_up_finished_jobs() {
    let good = bsub(&["-P", "bacct-test", "-o", "/dev/null", "true"]);
    let bad = bsub(&["-P", "bacct-test", "-J", "b[1-2]", "-o", "/dev/null", "exit 3"]);
    end_of(&good);
    let lines = |text: &str, part: &str| text.lines().filter(|l| l.contains(part)).count();
    let mut said = String::new();
    for _ in 0..100 {
        said = ok("bacct", &["-P", "bacct-test"]);
        if said.contains("exited jobs:     2") {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let total = " Total number of done jobs:       1      Total number of exited jobs:     2\n";
    assert!(said.contains(total), "{said}");
    assert!(said.contains("  - accounted on projects bacct-test, \n"), "{said}");
    let long = ok("bacct", &["-l", &good]);
    assert!(long.contains(&format!("\nJob <{good}>, User <")), "{long}");
    assert!(long.contains(": Completed <done>.\n"), "{long}");
    let brief = ok("bacct", &["-b", "-e", "-P", "bacct-test"]);
    assert_eq!(lines(&brief, &format!("{bad}[")), 2, "{brief}");
    let element = ok("bacct", &["-b", &format!("{bad}[2]")]);
    assert_eq!(lines(&element, &format!("{bad}[")), 1, "{element}");
    // An empty selection is an answer, too.
    let none = ok("bacct", &["-P", "no-such-project"]);
    assert!(none.contains("done jobs:       0 "), "{none}");
    let said = run("bacct", &["-f", "/nonexistent/lsb.acct"]);
    assert_eq!((said.code, said.out.as_str()), (255, ""));
    assert!(said.err.contains("/nonexistent/lsb.acct: No such file"), "{}", said.err);
}

#[test]
fn periods_of_reservations_are_shown_where_they_are_asked_for() {
    let dir = scratch("bacct-periods");
    let file = dir.join("lsb.acct");
    let lines = [
        r#""EVENT_ADRSV_FINISH" "10.1" 700 50 1 0 "ann#0" "ann" "0-600" "root" 600 1 "hosta" 4"#,
        r#""EVENT_ADRSV_FINISH" "10.1" 900 50 12 7 "rsv" "" "9:00-9:10" "bob" 65 2 "hosta" 4 "b" 1"#,
    ];
    std::fs::write(&file, lines.join("\n") + "\n").unwrap();
    let path = file.to_str().unwrap();
    let table = |words: &[&str]| {
        let said = ok("bacct", &[&["-f", path], words].concat());
        let rows = said.lines().skip_while(|l| !l.starts_with("RSVID"));
        let rows = rows.take_while(|l| !l.is_empty());
        // the times of the first are those of this machine's zone
        let words = |l: &str| match l.rsplit_once(' ').filter(|_| l.starts_with("ann#0")) {
            Some((words, _)) => words.to_owned(),
            None => l.to_owned(),
        };
        let rows = rows.map(|l| words(&l.split_whitespace().collect::<Vec<_>>().join(" ")));
        rows.collect::<Vec<_>>()
    };
    let head = "RSVID TYPE CREATOR USER NCPUS RSV_HOSTS TIME_WINDOW";
    let [once, weekly] =
        ["ann#0 user root ann 4 hosta:4", "rsv sys bob system 5 hosta:4 9:00-9:10 *"];
    let total = |text: &str| format!("Total duration time: {text}");
    let [both, one] = [total("0 hour 11 minute 5 second"), total("0 hour 1 minute 5 second")];
    assert_eq!(table(&["-U", "all"]), [head, once, weekly, "b:1", &both]);
    assert_eq!(table(&["-U", "all", "-u", "bob"]), [head, weekly, "b:1", &one]);
    assert_eq!(table(&["-U", "rsv x"]), [head, weekly, "b:1", &one]);
    assert_eq!(table(&["-U", "x"]), [""; 0]);
    assert_eq!(table(&["-u", "all"]), [""; 0]);
}

/// Records of an accounting file that is long enough for a bar.
const LONG: usize = 100_000;

/// Records that take longer to read than an interrupt needs; what ships reads them faster.
fn slow() -> usize {
    if std::env::var_os("LSF_TEST_BIN").is_some() { 400_000 } else { LONG }
}

fn long_file(name: &str, records: usize) -> std::path::PathBuf {
    let path = scratch(name).join("lsb.acct");
    let line = include_str!("expected/past.acct");
    std::fs::write(&path, line.repeat(records)).unwrap();
    path
}

/// A terminal of its own for a command's standard error: what it is shown, and the end to give it.
fn terminal() -> (std::fs::File, std::fs::File) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let slave = std::fs::File::options().write(true).open(name.to_str().unwrap()).unwrap();
    (std::fs::File::from(master), slave)
}

/// Runs bacct with a terminal for its errors; `shown` gets what that shows, and the child, until
/// the child is gone. Returns its stdout and its exit status.
fn on_a_terminal(
    path: &std::path::Path,
    mut shown: impl FnMut(&str, &std::process::Child),
) -> (String, std::process::ExitStatus) {
    use std::io::Read;
    let (mut master, slave) = terminal();
    let mut c = cmd("bacct");
    c.args(["-u", "all", "-f"]).arg(path).stdout(std::process::Stdio::piped()).stderr(slave);
    let mut child = c.spawn().unwrap();
    // the command's end of the terminal must not stay open here
    drop(c);
    let (mut seen, mut buf) = (String::new(), [0; 256]);
    // a terminal that nobody has open any more is an error to read
    while let Ok(n @ 1..) = master.read(&mut buf) {
        seen.push_str(&String::from_utf8_lossy(&buf[..n]));
        shown(&seen, &child);
    }
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    (out, child.wait().unwrap())
}

#[test]
fn bacct_shows_its_progress_on_a_terminal() {
    let path = long_file("bacct-bar", LONG);
    let mut last = String::new();
    let (out, status) = on_a_terminal(&path, |seen, _| last = seen.to_string());
    assert!(status.success() && out.contains(&format!("exited jobs: {LONG}")), "{out}");
    let shown: Vec<&str> = last.split('\r').collect();
    let tenths = shown.iter().filter(|bar| bar.starts_with("[#####")).count();
    assert!(tenths >= 9 && shown[1].ends_with("]   0%"), "{last:?}");
    assert!(last.ends_with("\r\x1b[K"), "{last:?}");
    // The bar is shown on terminals only.
    let said = run("bacct", &["-u", "all", "-f", path.to_str().unwrap()]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
}

#[test]
fn interrupted_bacct_erases_its_bar() {
    use std::os::unix::process::ExitStatusExt;
    let path = long_file("bacct-interrupt", slow());
    let (mut sent, mut last) = (false, String::new());
    let (out, status) = on_a_terminal(&path, |seen, child| {
        last = seen.to_string();
        if !std::mem::replace(&mut sent, true) {
            let pid = rustix::process::Pid::from_child(child);
            rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        }
    });
    assert!(sent && last.ends_with("\r\x1b[K"), "{last:?}");
    assert_eq!((status.signal(), out.as_str()), (Some(2), ""));
    std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
}
