//! Account mapping by ~/.lsfhosts (lsfhosts(5)) between hosts of a cluster.

use super::rig::wait_for;
use super::site::{ADMIN, MultiUserSite, uid};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

/// Writes ~/.lsfhosts of a user.
fn lsfhosts(site: &MultiUserSite, user: &str, text: &str, mode: u32) {
    let path = site.path(&format!("home/{user}/.lsfhosts"));
    std::fs::write(&path, text).unwrap();
    chown(&path, Some(uid(user)), Some(uid(user))).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
}

fn submit(site: &MultiUserSite, user: &str, host: &str) -> u32 {
    let command = "id -un; id -u; echo $HOME $LSFUSER; pwd";
    let line = format!("LSF_LOCAL_HOST=host1 bsub -m {host} -o said.%J '{command}'");
    super::rig::job_id(&site.ok(user, &line)).unwrap()
}

/// The job waits with these words.
fn refused(site: &MultiUserSite, user: &str, words: &str) {
    let job = submit(site, user, "host2");
    wait_for(words, || {
        let told = site.run(user, &format!("bjobs -p {job}")).out;
        told.contains("The user has no permission to run the job on remote host/cluster")
            && told.contains(words)
    });
    site.ok(user, &format!("bkill {job}"));
}

#[test]
fn job_runs_under_the_account_that_both_users_have_agreed_on() {
    if !MultiUserSite::possible("job_runs_under_the_account_that_both_users_have_agreed_on") {
        return;
    }
    let site = MultiUserSite::up("accounts", 2);
    lsfhosts(&site, "ann", "# mine\nhost2 bob send\n", 0o600);
    refused(&site, "ann", "~bob/.lsfhosts on the execution host: not there");
    lsfhosts(&site, "bob", "host1 eve recv\nhost1 ann send\nhost2 ann recv\n", 0o600);
    refused(&site, "ann", "does not accept ann at host1");
    lsfhosts(&site, "bob", "host1 ann recv\n", 0o620);
    refused(&site, "ann", "not a regular file that its owner alone can write");
    // a link to a file that would do
    let good = site.path("home/bob/good");
    std::fs::rename(site.path("home/bob/.lsfhosts"), &good).unwrap();
    std::fs::set_permissions(&good, PermissionsExt::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink(&good, site.path("home/bob/.lsfhosts")).unwrap();
    refused(&site, "ann", "~bob/.lsfhosts on the execution host");
    std::fs::rename(&good, site.path("home/bob/.lsfhosts")).unwrap();
    // root is nobody's account
    lsfhosts(&site, ADMIN, "host2 root send\n", 0o600);
    refused(&site, ADMIN, "account <root> of .lsfhosts is root's");
    lsfhosts(&site, ADMIN, "host2 bob send\n", 0o600);
    refused(&site, ADMIN, &format!("does not accept {ADMIN} at host1"));

    let job = submit(&site, "ann", "host2");
    assert_eq!(site.end_of(job), "DONE");
    let home = site.path("home/bob").display().to_string();
    let file = site.path(&format!("home/bob/said.{job}"));
    let read = || std::fs::read_to_string(&file).unwrap_or_default();
    wait_for("its report", || read().contains("in cluster"));
    let said = read();
    let want = format!("bob\n{}\n{home} ann\n{home}\n", uid("bob"));
    assert!(said.contains(&want), "{said}");
    assert!(said.contains("as user <bob> in cluster"), "{said}");
    assert_eq!(std::fs::metadata(&file).unwrap().uid(), uid("bob"));
    let long = site.ok("ann", &format!("bjobs -UF -l {job}"));
    assert!(long.contains("User <ann>") && long.contains("Execution user name <bob>"), "{long}");

    let history = site.ok("ann", &format!("bhist -UF -l {job}"));
    assert!(history.contains(", Execution user name <bob>;"), "{history}");
    // on the host of submission, and where ~/.lsfhosts does not name one, the user stays
    let job = submit(&site, "ann", "host1");
    assert_eq!(site.end_of(job), "DONE");
    assert!(site.path(&format!("home/ann/said.{job}")).exists());
    let params = "conf/lsbatch/personal/configdir/lsb.params";
    let text = std::fs::read_to_string(site.path(params)).unwrap();
    let more = "DISABLE_UACCT_MAP = Y\nEnd Parameters";
    site.write(params, &text.replace("End Parameters", more));
    site.ok(ADMIN, "badmin reconfig -f");
    let job = submit(&site, "ann", "host2");
    assert_eq!(site.end_of(job), "DONE");
    assert!(site.path(&format!("home/ann/said.{job}")).exists());
}

/// PRE_EXEC of the queue runs as bob before a job of ann's that runs as bob.
#[test]
fn queue_commands_wait_for_the_account_to_accept_the_job() {
    if !MultiUserSite::possible("queue_commands_wait_for_the_account_to_accept_the_job") {
        return;
    }
    let mut site = MultiUserSite::new("accountpre", 2);
    let (queues, mark) = ("conf/lsbatch/personal/configdir/lsb.queues", site.path("home/bob/ran"));
    let text = std::fs::read_to_string(site.path(queues)).unwrap();
    let queue = format!(
        "\nBegin Queue\nQUEUE_NAME = pre\nPRIORITY = 50\nPRE_EXEC = id -un >> {}\nEnd Queue\n",
        mark.display()
    );
    site.write(queues, &format!("{text}{queue}"));
    site.write("etc/lsf.sudoers", "LSB_PRE_POST_EXEC_USER=bob\n");
    std::fs::set_permissions(site.path("etc/lsf.sudoers"), PermissionsExt::from_mode(0o600))
        .unwrap();
    site.start();
    lsfhosts(&site, "ann", "host2 bob send\n", 0o600);
    let line = "LSF_LOCAL_HOST=host1 bsub -q pre -m host2 -o /dev/null true";
    let job = super::rig::job_id(&site.ok("ann", line)).unwrap();
    let words = "~bob/.lsfhosts on the execution host: not there";
    wait_for(words, || site.run("ann", &format!("bjobs -p {job}")).out.contains(words));
    assert!(!mark.exists());
    lsfhosts(&site, "bob", "host1 ann recv\n", 0o600);
    assert_eq!(site.end_of(job), "DONE");
    assert_eq!(std::fs::read_to_string(&mark).unwrap(), "bob\n");
}
