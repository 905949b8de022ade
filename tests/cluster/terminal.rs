//! Full-screen programs and job control under `lsrun -P`, driven through a real
//! pseudo-terminal with an interactive shell before it.

use super::rig::{PATIENCE, Rig, binary, wait_for};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

pub struct Terminal {
    master: File,
    shell: Child,
    seen: Vec<u8>,
}

impl Terminal {
    /// An interactive shell on a terminal of 30 rows and 90 columns.
    #[allow(unsafe_code)]
    pub fn new(rig: &Rig) -> Terminal {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        rustix::io::fcntl_setfd(&master, rustix::io::FdFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let path = name.to_str().unwrap();
        let open = || File::options().read(true).write(true).open(path).unwrap();
        let mut sh = Command::new("bash");
        rig.dress(&mut sh);
        sh.args(["--norc", "--noprofile", "-i"]).env("PS1", "$ ").env("TERM", "xterm");
        sh.env("L", binary()).env("INPUTRC", "/dev/null");
        sh.stdin(Stdio::from(open())).stdout(Stdio::from(open())).stderr(Stdio::from(open()));
        // SAFETY: both are system calls and touch no memory of the parent.
        unsafe {
            sh.pre_exec(|| {
                rustix::process::setsid()?;
                Ok(rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?)
            });
        }
        let shell = sh.spawn().unwrap();
        rustix::io::ioctl_fionbio(&master, true).unwrap();
        let mut t = Terminal { master: File::from(master), shell, seen: Vec::new() };
        t.size(30, 90);
        t.until("$ ");
        t
    }

    pub fn size(&mut self, rows: u16, cols: u16) {
        let size = Winsize { ws_row: rows, ws_col: cols, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.master, size).unwrap();
    }

    pub fn keys(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until this is shown, and forgets all up to it.
    pub fn until(&mut self, text: &str) {
        let end = Instant::now() + PATIENCE;
        let mut buf = [0u8; 4096];
        loop {
            let at = self.seen.windows(text.len()).position(|w| w == text.as_bytes());
            if let Some(at) = at {
                self.seen.drain(..at + text.len());
                return;
            }
            assert!(Instant::now() < end, "{text:?} is not shown: {:?}", self.shown());
            match self.master.read(&mut buf) {
                Ok(n) if n > 0 => self.seen.extend_from_slice(&buf[..n]),
                _ => std::thread::sleep(std::time::Duration::from_millis(5)),
            }
        }
    }

    pub fn shown(&self) -> String {
        String::from_utf8_lossy(&self.seen).into_owned()
    }

    /// A line for the shell, and what shows that it is done.
    pub fn line(&mut self, line: &str, then: &str) {
        self.keys(&format!("{line}\n"));
        self.until(then);
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

fn up(name: &str) -> Rig {
    let rig = Rig::up(name, 2);
    wait_for("res to answer", || rig.run("lsrun", &["-m", "host2", "true"]).code == 0);
    rig
}

#[test]
fn remote_terminal_has_the_modes_of_the_local_one_and_follows_its_size() {
    let rig = up("tty");
    let mut t = Terminal::new(&rig);
    t.line("$L lsrun -P -m host2 sh -c 'tty; stty size; test -O $(tty) && echo my own'", "/dev/");
    t.until("30 90");
    t.until("my own");
    t.until("$ ");
    // modes travel: no echo here, none there
    t.line("stty -echo; $L lsrun -P -m host2 stty -a; stty echo; echo E$((1))O", "-echo ");
    t.until("E1O");
    t.until("$ ");
    // a program that draws anew when the window changes
    let draw = "trap 'echo size \\$(stty size)' WINCH; echo on; while :; do sleep 0.05; done";
    t.line(&format!("$L lsrun -P -m host2 sh -c \"{draw}\""), "\ron\r\n");
    t.size(41, 77);
    t.until("size 41 77");
    t.keys("\x03");
    t.until("$ ");
    t.line("echo rc=$?", "rc=130");
    t.line("stty -a", " echo ");
}

/// Whether a process of these words is in a state that begins so.
pub fn shown_by_ps(words: &str, state: &str) -> bool {
    let out = Command::new("ps").args(["-eo", "stat,args"]).output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let parted = text.lines().filter_map(|l| l.split_once(' '));
    parted.into_iter().any(|(stat, args)| stat.starts_with(state) && args.trim() == words)
}

#[test]
fn keys_for_interrupt_quit_and_stop_reach_the_task() {
    let rig = up("jobctl");
    let mut t = Terminal::new(&rig);
    for pty in ["", "-P"] {
        t.line(&format!("$L lsrun {pty} -m host2 sh -c 'echo o\"\"n; sleep 919'"), "on\r\n");
        // (a child of vfork that is stopped before its exec keeps its parent from stopping)
        wait_for("its last command", || shown_by_ps("sleep 919", ""));
        t.keys("\x1a");
        t.until("Stopped");
        let state = "ps -eo stat,args | grep '[0-9] *sleep 919\\|^[A-Z].*sleep 91[9]$'";
        t.line(&format!("{state}; echo E$((1))E"), "E1E");
        t.line("ps -eo stat,args | grep '^T.*sleep 91[9]$' | cut -c1; echo E$((2))E", "T");
        t.until("E2E");
        t.keys("fg\n");
        t.until("lsrun");
        wait_for("the task to go on", || shown_by_ps("sleep 919", "S"));
        t.keys("\x1c");
        t.until("$ ");
        t.line("echo rc=$?", "rc=131");
    }
}

#[test]
fn remote_shell_leads_its_session_and_ends_with_its_input() {
    let rig = up("shellmode");
    let mut t = Terminal::new(&rig);
    // with -S ^Z is the task's own matter; with -P it stops lsrun
    let script = "trap '' INT; echo o\"\"n; read x; echo got $x";
    t.line(
        &format!("$L lsrun -S -m host2 sh -c '{}'", script.replace("'' INT", ":  INT")),
        "on\r\n",
    );
    t.keys("\x1a");
    t.keys("abc\n");
    t.until("got abc");
    t.until("$ ");
    t.line("$L lsrun -P -m host2 sh -c 'echo o\"\"n; read x'", "on\r\n");
    t.keys("\x1a");
    t.until("Stopped");
    t.line("kill -9 %1; echo E$((1))O", "E1O");
    // a shell there has job control of its own
    t.line("$L lsrun -S -m host2 bash --norc -i", "$ ");
    t.line("sleep 921", "sleep 921");
    wait_for("it to run", || {
        let out = Command::new("pgrep").args(["-xf", "sleep 921"]).output().unwrap();
        out.status.success()
    });
    t.keys("\x1a");
    t.until("Stopped");
    // a shell that does not know yet that its job is gone does not exit
    t.line("kill -9 %1; wait; echo in $((3+4)) $LSF_LOCAL_HOST", "in 7 host2");
    t.until("$ ");
    t.line("exit 6", "\rexit\r\n");
    t.until("$ ");
    t.line("echo rc=$?", "rc=6");

    // the end of input is seen: within a line, by a later reader, after the queue was emptied
    let code = |script: &str, input: &str| {
        let said = rig.feed("lsrun", &["-P", "-m", "host2", "sh", "-c", script], input);
        assert_eq!(said.code, 0, "{said:?}");
        said.out
    };
    assert!(code("cat; echo over", "no newline").contains("over"));
    assert!(code("cat > /dev/null; cat; echo both over", "one\n").contains("both over"));
    let flush = "stty raw; sleep 0.2; stty sane; cat > /dev/null; echo seen";
    assert!(code(flush, "x").contains("seen"));
    assert!(code("stty eof ^E; cat > /dev/null; echo own", "x\n").contains("own"));
}

#[test]
fn full_screen_programs_run_on_a_remote_terminal() {
    let rig = up("screen");
    let mut t = Terminal::new(&rig);
    let has = |name: &str| Command::new("which").arg(name).output().unwrap().status.success();
    std::fs::write(rig.path("text"), (1..=200).map(|n| format!("line {n}\n")).collect::<String>())
        .unwrap();
    if has("vi") {
        t.line("$L lsrun -P -m host2 vi -u NONE -N text", "line 28");
        t.keys(":set nocp\rGoadded by hand\x1b");
        t.size(20, 70);
        t.keys("gg");
        t.until("line 1");
        // stopped in the middle of it, and back
        t.keys("\x1a");
        t.until("Stopped");
        t.line("echo outside $((40+2))", "outside 42");
        t.keys("fg\n");
        t.until("line 1");
        t.keys(":wq\r");
        t.until("$ ");
        t.line("echo rc=$?", "rc=0");
        assert!(rig.read("text").ends_with("line 200\nadded by hand\n"));
    }
    if has("less") {
        t.size(30, 90);
        t.line("$L lsrun -P -m host2 less text", "line 29");
        t.keys("G");
        t.until("line 200");
        t.keys("?line 77\n");
        t.until("line 77");
        t.keys("q");
        t.until("$ ");
        t.line("echo rc=$?", "rc=0");
    }
    // and one that every machine has: raw keys, cursor addressing, the alternate screen
    rig.write(
        "screen.sh",
        "stty raw -echo\nprintf '\\033[?1049h\\033[5;7HHERE'\n\
         while k=$(dd bs=1 count=1 2>/dev/null) && [ \"$k\" != q ]; do printf '<%s>' \"$k\"; done\n\
         printf '\\033[?1049l'; stty sane; exit 3\n",
    );
    t.line("$L lsrun -P -m host2 sh screen.sh", "\x1b[5;7HHERE");
    t.keys("a");
    t.until("<a>");
    t.keys("\x03");
    t.until("<\x03>");
    t.keys("q");
    t.until("\x1b[?1049l");
    t.until("$ ");
    t.line("echo rc=$?", "rc=3");
}
