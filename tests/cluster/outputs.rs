//! The files to which a job's output may go, with two users and a mail program of the site's own:
//! refused output is mailed, and bjobs says why.

use super::rig::{program, wait_for};
use super::site::{ADMIN, MultiUserSite, uid};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A mail program: what it was called with, as whom, and the message, in a file of its own.
const MAILER: &str = r#"#!/bin/sh
umask 022
to=@DIR@/mail/$(id -u).$$
{ echo "called: $*"; echo "as: $(id -u)"; env; echo ---; cat; } > $to.part && mv $to.part $to.mail
"#;

fn with_mail(name: &str) -> MultiUserSite {
    site(name, true, &[])
}

/// A site with a mail program or without, and with file systems of these options.
pub fn site(name: &str, mailer: bool, mounts: &[(&'static str, &'static str)]) -> MultiUserSite {
    let mut site = MultiUserSite::new(name, 1);
    site.mounts = mounts.to_vec();
    for (dir, _) in mounts {
        std::fs::create_dir(site.path(dir)).unwrap();
    }
    std::fs::create_dir(site.path("mail")).unwrap();
    std::fs::set_permissions(site.path("mail"), PermissionsExt::from_mode(0o1777)).unwrap();
    program(&site.path("mailer"), &MAILER.replace("@DIR@", site.dir.to_str().unwrap()));
    let program = site.path(if mailer { "mailer" } else { "none" });
    site.lsf_conf(&format!("LSB_MAILPROG={}\nLSB_MAILTO=!U@mail.site", program.display()));
    site.start();
    site
}

/// The mails there are, oldest first, and none of them from now on.
pub fn mails(site: &MultiUserSite) -> Vec<String> {
    let dir = std::fs::read_dir(site.path("mail")).unwrap().flatten().map(|e| e.path());
    let mut found: Vec<PathBuf> =
        dir.filter(|p| p.extension().is_some_and(|e| e == "mail")).collect();
    found.sort_by_key(|p| p.metadata().unwrap().modified().unwrap());
    let texts = found.iter().map(|p| std::fs::read_to_string(p).unwrap()).collect();
    found.iter().for_each(|p| std::fs::remove_file(p).unwrap());
    texts
}

/// A site whose user ann has files, a directory, a FIFO, and links to files of others.
fn with_links(name: &str) -> MultiUserSite {
    let site = with_mail(name);
    let ann = site.path("home/ann");
    let own = |path: &PathBuf, user: &str, mode: u32| {
        chown(path, Some(uid(user)), Some(uid(user))).unwrap();
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    };
    for (file, user, mode) in [
        ("home/ann/mine", "ann", 0o600),
        ("home/bob/his", "bob", 0o600),
        ("home/bob/open", "bob", 0o666),
        ("rootonly", "root", 0o600),
    ] {
        site.write(file, "before\n");
        own(&site.path(file), user, mode);
    }
    std::fs::create_dir(ann.join("dir")).unwrap();
    own(&ann.join("dir"), "ann", 0o755);
    let made = std::process::Command::new("mkfifo").arg(ann.join("fifo")).status().unwrap();
    assert!(made.success());
    own(&ann.join("fifo"), "ann", 0o666);
    let link = |name: &str, to: &str| symlink(site.path(to), ann.join(name)).unwrap();
    link("to_mine", "home/ann/mine");
    link("to_his", "home/bob/his");
    link("to_open", "home/bob/open");
    link("to_root", "rootonly");
    site
}

#[test]
fn output_file_that_its_user_may_write_gets_the_output() {
    if !MultiUserSite::possible("output_file_that_its_user_may_write_gets_the_output") {
        return;
    }
    let site = with_links("outputs");
    let ann = site.path("home/ann");
    // -o, where the output is found afterwards
    let written = [
        ("to_mine", "home/ann/mine"),
        ("dir", "home/ann/dir/%J.out"),
        ("../ann/up", "home/ann/up"),
        ("dir/../plain", "home/ann/plain"),
    ];
    for (to, found) in written {
        let job = site.bsub("ann", &format!("-o {to} echo said"));
        assert_eq!(site.end_of(job), "DONE", "{to}");
        let file = site.path(&found.replace("%J", &job.to_string()));
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.contains("said\n") && text.contains("Successfully completed."), "{text}");
        assert_eq!(file.metadata().unwrap().uid(), uid("ann"), "{to}");
    }
    let mine = std::fs::read_to_string(ann.join("mine")).unwrap();
    assert!(mine.starts_with("before\nsaid\n"), "{mine}");
    assert_eq!(mails(&site), Vec::<String>::new());
}

/// The job runs, its output is mailed, bjobs tells why.
#[test]
fn output_file_that_its_user_may_not_write_is_refused_and_the_output_mailed() {
    if !MultiUserSite::possible(
        "output_file_that_its_user_may_not_write_is_refused_and_the_output_mailed",
    ) {
        return;
    }
    let site = with_links("mailed");
    let bob = site.path("home/bob");
    let refused = [
        ("to_his", "Permission denied"),
        ("to_open", "a link to a file of another user"),
        ("to_root", "Permission denied"),
        ("fifo", "No such device or address"),
        ("../bob/new", "Permission denied"),
        (bob.to_str().unwrap(), "Permission denied"),
    ];
    for (to, why) in refused {
        let at = std::time::Instant::now();
        let job = site.bsub("ann", &format!("-oo {to} 'echo said; sleep 0.1'"));
        assert_eq!(site.end_of(job), "DONE", "{to}");
        assert!(at.elapsed() < Duration::from_secs(5), "{to}");
        let long =
            site.ok("ann", &format!("bjobs -l {job}")).replace("\n                     ", "");
        let told = format!("Output file <{to}>: {why}; output is mailed;");
        assert!(long.contains(&told), "wanted {told} in {long}");
        let mail = mails(&site).pop().unwrap_or_else(|| panic!("no mail for {to}"));
        let lines = format!(
            "From: LSF <{ADMIN}>\nTo: ann@mail.site\nSubject: Job {job}: <echo said; sleep 0.1> \
             in cluster <personal> Done\n\nJob <"
        );
        assert!(mail.contains(&lines), "{mail}");
        assert!(mail.ends_with("\nThe output (if any) follows:\n\nsaid\n"), "{mail}");
    }
    assert!(!bob.join("new").exists());
    for file in ["home/bob/his", "home/bob/open", "rootonly"] {
        assert_eq!(std::fs::read_to_string(site.path(file)).unwrap(), "before\n", "{file}");
    }
}

#[test]
fn mail_of_a_job_is_sent_as_its_user() {
    if !MultiUserSite::possible("mail_of_a_job_is_sent_as_its_user") {
        return;
    }
    let site = with_mail("mail");
    // without -o the output is mailed and nothing is left
    let job = site.ok("ann", "SECRET=x LD_PRELOAD= bsub 'echo out; echo err >&2; exit 3'");
    let job = super::rig::job_id(&job).unwrap();
    assert_eq!(site.end_of(job), "EXIT");
    let mail = mails(&site).pop().unwrap();
    assert!(mail.starts_with("called: -oi -FLSF ann@mail.site\n"), "{mail}");
    assert!(mail.contains(&format!("as: {}\n", uid("ann"))), "{mail}");
    let env = mail.split("---\n").next().unwrap();
    assert!(!env.contains("SECRET") && !env.contains("LD_") && env.contains("LSB_MAILSIZE="));
    assert!(mail.contains("Exited with exit code 3.\n") && mail.ends_with("\n\nout\nerr\n"));
    assert_eq!(left_of_jobs(&site, "ann"), 0);
    // -o alone: no mail; -N: the report, to whom -u says
    let job = site.bsub("bob", "-o out echo said");
    site.end_of(job);
    assert!(mails(&site).is_empty());
    let job = site.bsub("bob", "-o out -N -u carol@far echo said");
    site.end_of(job);
    let mail = mails(&site).pop().unwrap();
    assert!(mail.starts_with("called: -oi -FLSF carol@far\n"), "{mail}");
    assert!(
        mail.ends_with("\n\nPS:\n\nRead file <out> for stdout output of this job.\n\n"),
        "{mail}"
    );
    // -Ne: of a failure alone; -B: when it starts
    let job = site.bsub("bob", "-o out -Ne true");
    site.end_of(job);
    assert!(mails(&site).is_empty());
    let job = site.bsub("bob", "-o out -Ne exit 3");
    site.end_of(job);
    let mail = mails(&site).pop().unwrap();
    assert!(mail.contains("Exited with exit code 3.\n"), "{mail}");
    let job = site.bsub("bob", "-o out -B -u dan@far 'while [ ! -e go ]; do sleep 0.1; done'");
    let mut mail = Vec::new();
    wait_for("the mail of its start", || {
        mail = mails(&site);
        !mail.is_empty()
    });
    assert_eq!(site.stat(job), "RUN");
    assert!(mail[0].starts_with("called: -oi -FLSF dan@far\n"), "{}", mail[0]);
    assert!(mail[0].contains(&format!("as: {}\n", uid("bob"))), "{}", mail[0]);
    let subject = format!("Subject: Job {job}: <while [ ! -e go ]; do sleep 0.1; done> in cluster");
    assert!(mail[0].contains(&subject) && mail[0].contains("> Started\n"), "{}", mail[0]);
    site.ok("bob", "touch go");
    site.end_of(job);
    assert!(mails(&site).is_empty());
    // nothing that a mail program takes for an option
    let job = site.bsub("bob", "-u -oQ/tmp echo kept");
    site.end_of(job);
    assert!(mails(&site).is_empty());
    // a mail program that fails: the output is kept, with its report
    site.write("mailer", "#!/bin/sh\nexit 75\n");
    let job = site.bsub("bob", "echo kept");
    site.end_of(job);
    wait_for("the output to be kept", || {
        let dir = std::fs::read_dir(site.path("home/bob/.lsbatch")).unwrap().flatten();
        let mut texts = dir.filter_map(|e| std::fs::read_to_string(e.path()).ok());
        texts.any(|t| t.contains("kept\n") && t.contains(&format!("Subject: Job {job}:")))
    });
}

/// Files of jobs that a user has left; those that name a host are for the jobs to come.
fn left_of_jobs(site: &MultiUserSite, user: &str) -> usize {
    let dir = std::fs::read_dir(site.path(&format!("home/{user}/.lsbatch"))).unwrap().flatten();
    dir.filter(|e| !e.file_name().to_string_lossy().starts_with(".hosts.")).count()
}

/// An SMTP server of ours that knows nobody called bob; the messages it took.
fn smtp(listener: TcpListener, took: Arc<Mutex<Vec<String>>>) {
    std::thread::spawn(move || {
        for sock in listener.incoming() {
            let Ok(mut out) = sock else { return };
            let mut lines = BufReader::new(out.try_clone().unwrap()).lines().map_while(Result::ok);
            let mut message = String::new();
            let _ = out.write_all(b"220 here\r\n");
            while let Some(line) = lines.next() {
                let word = line.split([' ', ':']).next().unwrap_or_default().to_uppercase();
                let answer = match word.as_str() {
                    "RCPT" if line.contains("bob@") => "550 no such user",
                    "MAIL" | "RCPT" => {
                        message.push_str(&format!("{line}\n"));
                        "250 ok"
                    }
                    "DATA" => {
                        let _ = out.write_all(b"354 go on\r\n");
                        for line in lines.by_ref().take_while(|l| l != ".") {
                            message.push_str(&format!("{line}\n"));
                        }
                        took.lock().unwrap().push(std::mem::take(&mut message));
                        "250 taken"
                    }
                    "QUIT" => "221 bye",
                    _ => "250 ok",
                };
                let _ = out.write_all(format!("{answer}\r\n").as_bytes());
            }
        }
    });
}

/// A mail program as it is installed on Debian, with a server that takes what it sends.
#[test]
fn output_is_mailed_by_a_mail_program_of_the_system() {
    let name = "output_is_mailed_by_a_mail_program_of_the_system";
    if !Path::new("/usr/bin/msmtp").exists() {
        return super::rig::skipped(&format!("{name}: msmtp is not installed"));
    }
    if !MultiUserSite::possible(name) {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let took = Arc::new(Mutex::new(Vec::new()));
    smtp(listener, took.clone());
    let mut site = MultiUserSite::new("msmtp", 1);
    let conf =
        "account default\nhost 127.0.0.1\nport PORT\nfrom lsf@site.test\nauth off\ntls off\n";
    site.write("etc/msmtprc", &conf.replace("PORT", &port.to_string()));
    let mode = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(site.path("etc/msmtprc"), mode).unwrap();
    site.lsf_conf("LSB_MAILPROG=/usr/bin/msmtp\nLSB_MAILTO=!U@site.test");
    site.start();
    let job = site.bsub("ann", "-J named -B 'echo out; echo .; echo err >&2; exit 3'");
    assert_eq!(site.end_of(job), "EXIT");
    wait_for("both mails", || took.lock().unwrap().len() == 2);
    let mut mails = std::mem::take(&mut *took.lock().unwrap());
    mails.sort_by_key(|m| !m.contains("> Started\n"));
    for (mail, word) in mails.iter().zip(["Started", "Exited"]) {
        let to = "MAIL FROM:<lsf@site.test>\nRCPT TO:<ann@site.test>\n";
        assert!(mail.starts_with(to), "{mail}");
        for line in [
            &format!("From: LSF <{ADMIN}>"),
            "To: ann@site.test",
            &format!("Subject: Job {job}: <named> in cluster <personal> {word}"),
        ] {
            assert!(mail.lines().any(|l| l == line), "{line} in {mail}");
        }
    }
    // a line of one full stop is doubled on its way
    assert!(mails[1].contains("Exited with exit code 3.\n"), "{}", mails[1]);
    assert!(mails[1].ends_with("\n\nout\n..\nerr\n"), "{}", mails[1]);
    assert_eq!(left_of_jobs(&site, "ann"), 0);
    // whom the server does not know: the output is kept
    let job = site.bsub("bob", "echo kept");
    assert_eq!(site.end_of(job), "DONE");
    wait_for("the output to be kept", || {
        let dir = std::fs::read_dir(site.path("home/bob/.lsbatch")).unwrap().flatten();
        let mut texts = dir.filter_map(|e| std::fs::read_to_string(e.path()).ok());
        texts.any(|t| t.starts_with("kept\n") && t.contains("Successfully completed."))
    });
    assert!(took.lock().unwrap().is_empty());
}
