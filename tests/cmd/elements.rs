//! Elements of an array that bmod, bswitch, btop and bbot change by themselves, on a cluster of
//! their own: what is said, logged (idx), listed, and still so after a restart.

use crate::rig::Rig;

fn rows(rig: &Rig, id: u32, fields: &str) -> Vec<String> {
    let out = rig.ok("bjobs", &["-a", "-noheader", "-o", fields, &id.to_string()]);
    out.lines().map(str::to_string).collect()
}

/// Fields 4 and 5 of the records of a kind, with the last two.
fn logged(rig: &Rig, kind: &str) -> Vec<String> {
    let log = std::fs::read_to_string(rig.logdir().join("lsb.events")).unwrap();
    let of = |line: &&str| line.starts_with(&format!("\"{kind}\" "));
    log.lines().filter(of).map(|l| l.split(' ').skip(3).collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn elements_that_are_named_are_changed_without_the_others() {
    let rig = Rig::up("elements", 1);
    rig.ready();
    let id = rig.bsub(&["-H", "-q", "normal", "-J", "a[1-6]", "-o", "/dev/null", "true"]);
    let of = |list: &str| format!("{id}[{list}]");
    let said = rig.ok("bmod", &["-P", "other", "-W", "7", &of("2-3,5")]);
    assert_eq!(said, format!("Parameters of job <{id}[2-3,5]> are being changed\n"));
    let said = rig.ok("bswitch", &["idle", &of("5-6")]);
    assert_eq!(
        said,
        format!(
            "Job <{id}[5]> is switched to queue <idle>\nJob <{id}[6]> is switched to queue <idle>\n"
        )
    );
    let said = rig.run("btop", &[&of("4")]);
    let want = format!("Job <{id}[4]> has been moved to position 1 from top.\n");
    assert_eq!((said.code, said.out.as_str(), said.err), (0, "", want));
    let said = rig.run("bbot", &[&of("1")]);
    let want = format!("Job <{id}[1]> has been moved to position 1 from bottom.\n");
    assert_eq!((said.code, said.err), (0, want));
    missing_element_is_refused(&rig, id);

    let seen = |when: &str| {
        // in the order of dispatch, those of the queue of higher priority first
        let want = [
            format!("{id} 4 normal default"),
            format!("{id} 2 normal other"),
            format!("{id} 3 normal other"),
            format!("{id} 1 normal default"),
            format!("{id} 5 idle other"),
            format!("{id} 6 idle default"),
        ];
        assert_eq!(rows(&rig, id, "jobid jobindex queue proj"), want, "{when}");
        let in_idle = rig.ok("bjobs", &["-q", "idle", "-noheader", "-o", "jobindex"]);
        assert_eq!(in_idle, "5\n6\n", "{when}");
        let queue = rig.ok("bqueues", &["-noheader", "-o", "njobs pend", "idle"]);
        assert_eq!(queue.split_whitespace().next(), Some("2"), "{when}: {queue}");
    };
    seen("before the restart");
    assert!(logged(&rig, "JOB_MODIFY2")[0].starts_with(&format!("\"{id}[2-3,5]\" ")));
    let user = rig.field(&id.to_string(), "user");
    let user = user.lines().next().unwrap().to_string();
    let (switched, moved) = (logged(&rig, "JOB_SWITCH"), logged(&rig, "JOB_MOVE"));
    assert_eq!((switched.len(), moved.len()), (2, 2));
    for (line, idx) in switched.iter().zip([5, 6]) {
        let words: Vec<&str> = line.split(' ').skip(1).collect();
        assert_eq!(words, [&id.to_string(), "\"idle\"", &idx.to_string(), &format!("\"{user}\"")]);
    }
    for (line, (base, idx)) in moved.iter().zip([(1, 4), (2, 1)]) {
        let words: Vec<&str> = line.split(' ').skip(1).take(5).collect();
        let want = format!("{id} 1 {base} {idx} \"{user}\"");
        assert_eq!(words.join(" "), want);
    }
    rig.down();
    rig.start();
    rig.ready();
    seen("after the restart");

    run_and_recorded(&rig, id);
}

/// No element 9.
fn missing_element_is_refused(rig: &Rig, id: u32) {
    let of = |list: &str| format!("{id}[{list}]");
    let refused = |applet: &str, args: &[&str], words: String| {
        let said = rig.run(applet, args);
        assert_eq!((said.code, said.out.as_str(), said.err), (255, "", words), "{applet} {args:?}");
    };
    refused(
        "bmod",
        &["-P", "x", &of("9")],
        format!("{id}[9]: No matching job found. Job not modified.\n"),
    );
    refused("bswitch", &["idle", &of("9")], format!("Job <{id}[9]>: No matching job found\n"));
    refused("btop", &[&of("9")], format!("{id}[9]: No matching job found\n"));
}

/// bhist and bacct show what each element was changed to.
fn run_and_recorded(rig: &Rig, id: u32) {
    let of = |list: &str| format!("{id}[{list}]");
    rig.ok("bresume", &[&id.to_string()]);
    for idx in 1..=6 {
        crate::rig::wait_for("the end", || rows(rig, id, "stat").iter().all(|s| s == "DONE"));
        let long =
            rig.ok("bhist", &["-l", &of(&idx.to_string())]).replace("\n                     ", "");
        let switched = long.contains("Switched to Queue <idle>");
        let changed = long.contains("Parameters of Job are changed");
        assert_eq!((switched, changed), (idx >= 5, [2, 3, 5].contains(&idx)), "{long}");
    }
    let acct = rig.ok("bacct", &["-P", "other", "-l"]).replace("\n                     ", "");
    for (idx, is) in [(1, false), (2, true), (3, true), (5, true), (6, false)] {
        assert_eq!(acct.contains(&format!("Job <{id}[{idx}]>")), is, "{acct}");
    }
}
