//! Temporary directories of jobs (LSB_JOB_TMPDIR, LSB_SET_TMPDIR) and DEFAULT_JOB_OUTDIR.

use super::rig::{Rig, wait_for};
use std::os::unix::fs::symlink;

#[test]
fn job_has_a_temporary_directory_of_its_own_until_its_end() {
    let rig = Rig::up("temporary", 1);
    rig.down();
    let base = rig.path("scratch");
    std::fs::create_dir(&base).unwrap();
    rig.set_conf("LSB_JOB_TMPDIR", base.to_str().unwrap());
    rig.set_conf("LSB_SET_TMPDIR", "y");
    rig.start();
    let out = rig.path("out");
    let left = || std::fs::read_dir(&base).unwrap().count();
    let line = "echo $TMPDIR $LSB_JOB_TMPDIR; stat -c %a $TMPDIR; ls -A $TMPDIR; \
                mkdir $TMPDIR/d; ln -s / $TMPDIR/d/root; mktemp > /dev/null; exit 0";
    let job = rig.bsub(&["-oo", out.to_str().unwrap(), line]);
    assert_eq!(rig.end_of(job), "DONE");
    let dir = base.join(format!("{job}.tmpdir")).display().to_string();
    let said = std::fs::read_to_string(&out).unwrap();
    assert!(said.starts_with(&format!("{dir} {dir}\n700\n\n")), "{said}");
    wait_for("the directory to go", || left() == 0);
    // another has the name of the next one: the job runs without it, and bjobs says so
    let next = base.join(format!("{}.tmpdir", job + 1));
    symlink("/etc", &next).unwrap();
    let line = "echo [$LSB_JOB_TMPDIR]";
    let job = rig.bsub(&["-oo", out.to_str().unwrap(), line]);
    assert_eq!(rig.end_of(job), "DONE");
    assert!(std::fs::read_to_string(&out).unwrap().starts_with("[]\n"));
    let shown = rig.ok("bjobs", &["-UF", &job.to_string()]);
    assert!(shown.contains(&format!("emporary directory <{}>: File exists", next.display())));
    std::fs::remove_file(&next).unwrap();
    // elements, one of which is killed
    let array = rig.bsub(&["-J", "a[3]", "sleep 300"]);
    let element = base.join(format!("{array}_3.tmpdir"));
    wait_for("its directory", || element.is_dir());
    rig.ok("bkill", &[&array.to_string()]);
    wait_for("it to go", || left() == 0);
}

/// The hosts of this cluster share the directory above, so the job takes its own one away first.
#[test]
fn tasks_on_other_hosts_make_the_temporary_directory_that_goes_with_the_job() {
    let rig = Rig::up("temporary2", 2);
    rig.down();
    let base = rig.path("scratch");
    std::fs::create_dir(&base).unwrap();
    rig.set_conf("LSB_JOB_TMPDIR", base.to_str().unwrap());
    rig.set_conf("LSB_SET_TMPDIR", "y");
    rig.start();
    let out = rig.path("out");
    let task = "echo $TMPDIR $LSB_JOB_TMPDIR; stat -c %a $TMPDIR; mktemp > /dev/null";
    let line = format!(
        "rmdir $TMPDIR; for n in 1 2; do blaunch -z host2 '{task}'; done; ls $TMPDIR | wc -l"
    );
    let slots = ["-n", "2", "-R", "span[ptile=1]", "-m", "host1! host2"];
    let job = rig.bsub(&[&slots[..], &["-oo", out.to_str().unwrap(), &line]].concat());
    assert_eq!(rig.end_of(job), "DONE");
    let dir = base.join(format!("{job}.tmpdir")).display().to_string();
    let said = std::fs::read_to_string(&out).unwrap();
    let each = format!("{dir} {dir}\n700\n");
    assert!(said.starts_with(&format!("{each}{each}2\n")), "{said}");
    wait_for("the directory to go", || std::fs::read_dir(&base).unwrap().count() == 0);
    // a link in its place leads nobody astray, and stays
    let trap = rig.path("trap");
    std::fs::create_dir(&trap).unwrap();
    std::fs::write(trap.join("kept"), "").unwrap();
    let line = format!(
        "rmdir $TMPDIR; ln -s {} $TMPDIR; blaunch host2 'touch ${{TMPDIR:-.}}/x; echo [$LSB_JOB_TMPDIR]'; \
         echo $?",
        trap.display()
    );
    let job = rig.bsub(&[&slots[..], &["-oo", out.to_str().unwrap(), &line]].concat());
    rig.end_of(job);
    let said = std::fs::read_to_string(&out).unwrap();
    // the task has none
    assert!(said.starts_with("[]\n0\n"), "{said}");
    assert!(trap.join("kept").exists() && !trap.join("x").exists(), "{said}");
}

#[test]
fn jobs_have_the_output_directory_of_the_cluster() {
    let rig = Rig::up("outdir", 1);
    rig.down();
    let params = rig.configdir().join("lsb.params");
    let text = std::fs::read_to_string(&params).unwrap();
    let line = "DEFAULT_JOB_OUTDIR = kept/%P/%J_%I\nEnd Parameters";
    std::fs::write(&params, text.replace("End Parameters", line)).unwrap();
    rig.start();
    let job = rig.bsub(&["-P", "p", "-o", "o", "echo $LSB_OUTDIR; sleep 300"]);
    let dir = rig.path(&format!("kept/p/{job}_0"));
    wait_for("the output", || dir.join("o").exists());
    wait_for("bpeek", || rig.run("bpeek", &[&job.to_string()]).out.contains(dir.to_str().unwrap()));
    rig.ok("bkill", &[&job.to_string()]);
    assert_eq!(rig.end_of(job), "EXIT");
    let own = rig.bsub(&["-outdir", "mine", "-o", "o", "true"]);
    assert_eq!(rig.end_of(own), "DONE");
    assert!(rig.path("mine/o").exists() && !rig.path(&format!("kept/default/{own}_0")).exists());
}
