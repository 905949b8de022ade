//! LSB_PRE_POST_EXEC_USER of lsf.sudoers: as whom the commands of queues run before and after jobs.

use super::rig::wait_for;
use super::site::{ADMIN, MultiUserSite};
use std::os::unix::fs::{MetadataExt, PermissionsExt};

/// The queues of the site; DIR is its directory.
const QUEUES: &str = "
Begin Queue
QUEUE_NAME     = asother
PRIORITY       = 50
HOST_PRE_EXEC  = id -un > DIR/said/host; test ! -e DIR/said/bad || exit 5
PRE_EXEC       = id -un > DIR/said/pre; id -G >> DIR/said/pre; env >> DIR/said/pre
POST_EXEC      = id -un > DIR/said/post; echo $LSB_JOBEXIT_STAT >> DIR/said/post; exit 6
End Queue
Begin Queue
QUEUE_NAME     = asroot
PRIORITY       = 50
PRE_EXEC       = /usr/bin/touch DIR/said/root
End Queue
Begin Queue
QUEUE_NAME     = shell
PRIORITY       = 50
PRE_EXEC       = /usr/bin/touch DIR/said/evil; true
End Queue
";

fn site(name: &str, sudoers: &str) -> MultiUserSite {
    let mut site = MultiUserSite::new(name, 1);
    let dir = site.dir.display().to_string();
    std::fs::create_dir_all(site.path("said")).unwrap();
    std::fs::set_permissions(site.path("said"), PermissionsExt::from_mode(0o1777)).unwrap();
    let queues = "conf/lsbatch/personal/configdir/lsb.queues";
    let text = std::fs::read_to_string(site.path(queues)).unwrap();
    site.write(queues, &format!("{text}{}", QUEUES.replace("DIR", &dir)));
    site.write("etc/lsf.sudoers", sudoers);
    std::fs::set_permissions(site.path("etc/lsf.sudoers"), PermissionsExt::from_mode(0o600))
        .unwrap();
    site.start();
    site
}

fn said(site: &MultiUserSite, name: &str) -> String {
    std::fs::read_to_string(site.path("said").join(name)).unwrap_or_default()
}

fn waits_for(site: &MultiUserSite, job: u32, words: &str) {
    wait_for(words, || site.run(ADMIN, &format!("bjobs -u all -p {job}")).out.contains(words));
}

#[test]
fn commands_of_queues_run_as_the_user_that_root_names() {
    if !MultiUserSite::possible("commands_of_queues_run_as_the_user_that_root_names") {
        return;
    }
    let site = site("prepost", "LSB_PRE_POST_EXEC_USER=bob\n");
    let line =
        "LSB_MARK=m1 BASH_ENV=/evil LD_PRELOAD= bsub -q asother -E 'id -un > own' -o /dev/null";
    let job = super::rig::job_id(&site.ok("ann", &format!("{line} 'exit 3'"))).unwrap();
    assert_eq!(site.end_of(job), "EXIT");
    wait_for("the command after the job", || said(&site, "post").lines().count() == 2);
    assert_eq!(
        (said(&site, "host").as_str(), said(&site, "post").as_str()),
        ("bob\n", "bob\n768\n")
    );
    let pre = said(&site, "pre");
    let id = super::site::uid("bob");
    assert!(pre.starts_with(&format!("bob\n{id} {}\n", super::site::PROJ)), "{pre}");
    assert!(pre.contains("LSB_MARK=m1\n") && pre.contains("LSFUSER=ann\n"), "{pre}");
    assert!(!pre.contains("BASH_ENV") && !pre.contains("LD_PRELOAD"), "{pre}");
    // the command of the job is the user's own
    assert_eq!(std::fs::read_to_string(site.path("home/ann/own")).unwrap(), "ann\n");
    wait_for("its failure", || {
        site.ok("ann", &format!("bhist -l {job}")).contains("Post job process failed")
    });
    std::fs::write(site.path("said/bad"), "").unwrap();
    let job = site.bsub("ann", "-q asother -o /dev/null true");
    waits_for(&site, job, "the queue's host pre-exec command: exit status: 5");
    site.ok("ann", &format!("bkill {job}"));
}

#[test]
fn root_runs_only_the_programs_that_lsf_sudoers_names() {
    if !MultiUserSite::possible("root_runs_only_the_programs_that_lsf_sudoers_names") {
        return;
    }
    let sudoers = "LSB_PRE_POST_EXEC_USER=root\nLSB_PRE_POST_EXEC_PROGRAMS=/usr/bin/touch\n";
    let site = site("prepostroot", sudoers);
    let job = site.bsub("ann", "-q asroot -o /dev/null true");
    assert_eq!(site.end_of(job), "DONE");
    assert_eq!(std::fs::metadata(site.path("said/root")).unwrap().uid(), 0);
    let job = site.bsub("ann", "-q shell -o /dev/null true");
    waits_for(&site, job, "root runs only a program of LSB_PRE_POST_EXEC_PROGRAMS in lsf.sudoers");
    assert!(!site.path("said/evil").exists());
    site.ok("ann", &format!("bkill {job}"));
}

#[test]
fn user_who_is_not_known_lets_no_job_of_such_a_queue_begin() {
    if !MultiUserSite::possible("user_who_is_not_known_lets_no_job_of_such_a_queue_begin") {
        return;
    }
    let site = site("prepostnone", "LSB_PRE_POST_EXEC_USER=nobodyhere\n");
    let job = site.bsub("ann", "-q asroot -o /dev/null true");
    waits_for(&site, job, "LSB_PRE_POST_EXEC_USER: user nobodyhere is not known here");
    assert_eq!(site.end_of(site.bsub("ann", "-o /dev/null true")), "DONE");
    site.ok("ann", &format!("bkill {job}"));
}
