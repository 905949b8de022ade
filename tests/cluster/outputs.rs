//! Where a job's output may go and where not, with two users and a real mail program of the
//! site's: what is refused is mailed, and bjobs tells why.

use super::rig::wait_for;
use super::site::{ADMIN, Site, uid};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::PathBuf;
use std::time::Duration;

/// A mail program: what it was called with, as whom, and the message, in a file of its own.
const MAILER: &str = r#"#!/bin/sh
umask 022
to=@DIR@/mail/$(id -u).$$
{ echo "called: $*"; echo "as: $(id -u)"; env; echo ---; cat; } > $to.part && mv $to.part $to.mail
"#;

fn with_mail(name: &str) -> Site {
    let mut site = Site::new(name, 1);
    std::fs::create_dir(site.path("mail")).unwrap();
    std::fs::set_permissions(site.path("mail"), PermissionsExt::from_mode(0o1777)).unwrap();
    site.write("mailer", &MAILER.replace("@DIR@", site.dir.to_str().unwrap()));
    std::fs::set_permissions(site.path("mailer"), PermissionsExt::from_mode(0o755)).unwrap();
    let program = site.path("mailer");
    site.lsf_conf(&format!("LSB_MAILPROG={}\nLSB_MAILTO=!U@mail.site", program.display()));
    site.start();
    site
}

/// The mails there are, oldest first, and none of them from now on.
fn mails(site: &Site) -> Vec<String> {
    let dir = std::fs::read_dir(site.path("mail")).unwrap().flatten().map(|e| e.path());
    let mut found: Vec<PathBuf> =
        dir.filter(|p| p.extension().is_some_and(|e| e == "mail")).collect();
    found.sort_by_key(|p| p.metadata().unwrap().modified().unwrap());
    let texts = found.iter().map(|p| std::fs::read_to_string(p).unwrap()).collect();
    found.iter().for_each(|p| std::fs::remove_file(p).unwrap());
    texts
}

#[test]
fn output_goes_only_where_its_user_may_write() {
    if !Site::possible("output_goes_only_where_its_user_may_write") {
        return;
    }
    let site = with_mail("outputs");
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
    // refused: the job runs, its output is mailed, bjobs tells why
    let bob = site.path("home/bob");
    let refused = [
        ("to_his", "Permission denied"),
        ("to_open", "a link to a file of another user's"),
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
fn mail_goes_out_as_its_user() {
    if !Site::possible("mail_goes_out_as_its_user") {
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
    let left = std::fs::read_dir(site.path("home/ann/.lsbatch")).unwrap().count();
    assert_eq!(left, 0);
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
