//! bpost, bread and bstatus on a real cluster: output, data files, conditions, refusals (bpost(1),
//! bread(1), bstatus(1)).

use crate::common::*;

/// A text that no other test posts.
const REFUSED: &str = "refused-message-of-the-table";

#[test]
fn messages_are_shown_by_bread_bjobs_and_bhist_as_documented() {
    let id = bsub(&["-H", "-J", "messages", "sleep", "300"]);
    for (command, args) in [
        ("bstatus", &["-d", "step 1 of a long list of steps, all of them told", &id][..]),
        ("bpost", &["-i", "1", "-N", "WARNING", "-J", "messages"]),
        ("bpost", &["-i", "1", "-d", "two words", "-N", "ERROR", &id]),
    ] {
        let said = run(command, args);
        let none = Said { code: 0, out: String::new(), err: String::new() };
        assert_eq!(said, none, "{command}");
    }
    let user = field(&id, "user");
    let user = user.trim();
    let heading =
        "MSG_ID FROM       POST_TIME      MESSAGE                             ATTACHMENT ";
    let status = ok("bstatus", &[&id]);
    assert_eq!(status, ok("bread", &["-i", "0", &id]));
    let lines: Vec<&str> = status.lines().collect();
    assert_eq!(lines[0], format!("JOBID      {heading}"));
    let begin = format!("{id:<10} 0      {user:<10} ");
    let rest = lines[1].strip_prefix(&begin).unwrap_or_else(|| panic!("{}", lines[1]));
    assert_eq!(&rest[14..], " step 1 of a long list of steps, all N          ");
    let wide = ok("bread", &["-w", &id]);
    assert!(wide.contains("steps, all of them told N "), "{wide}");
    let level = ok("bread", &["-N", "-i", "1", &id]);
    assert!(level.lines().next().is_some_and(|l| l.ends_with("ATTACHMENT LEVEL")), "{level}");
    assert!(level.contains(" two words ") && level.ends_with(" N          ERROR\n"), "{level}");
    let long = ok("bjobs", &["-l", &id]);
    assert!(long.contains(&format!("\n EXTERNAL MESSAGES:\n {heading}\n 0      ")), "{long}");
    assert!(long.contains("steps, all of them told N "), "{long}");
    let history = ok("bhist", &["-l", &id]);
    let history: String = history.split_whitespace().collect();
    let told = format!("ExternalMessage\"twowords\"waspostedfrom\"{user}\"tomessagebox1;");
    assert!(history.contains(&told), "{history}");
    ok("bkill", &[&id]);
}

#[test]
fn data_of_a_message_come_back_as_they_were() {
    let dir = scratch("messages");
    let (from, to) = (dir.join("data file"), dir.join("copy"));
    let data: Vec<u8> = (0..100_000u32).map(|n| (n * 7 % 251) as u8).collect();
    std::fs::write(&from, &data).unwrap();
    let path = |p: &std::path::Path| p.display().to_string();
    let id = bsub(&["-H", "sleep", "300"]);
    ok("bpost", &["-i", "2", "-d", "with data", "-a", &path(&from), &id]);
    let shown = ok("bread", &["-i", "2", "-a", &path(&to), &id]);
    assert!(shown.ends_with(" Y          \n"), "{shown}");
    assert_eq!(std::fs::read(&to).unwrap(), data);
    let big = dir.join("big");
    std::fs::File::create(&big).unwrap().set_len((2 << 20) + 1).unwrap();
    for (file, words) in [
        (big, "larger than 2097152 bytes, the limit of a data file"),
        (dir.join("none"), "No such file or directory"),
        (dir.clone(), "not a regular file"),
    ] {
        let said = run("bpost", &["-d", REFUSED, "-a", &path(&file), &id]);
        assert_eq!((said.code, said.err), (255, format!("{}: {words}\n", path(&file))));
    }
    ok("bkill", &[&id]);
    let _ = std::fs::remove_dir_all(&dir);
}

#[test]
fn job_waits_for_the_external_status_of_another() {
    let first = bsub(&["-H", "sleep", "300"]);
    let waits = bsub(&["-w", &format!("external({first}, \"ready\")"), "true"]);
    assert_eq!(field(&waits, "stat").trim(), "PEND");
    ok("bstatus", &["-d", "ready now", &first]);
    assert_eq!(end_of(&waits), "DONE");
    ok("bkill", &[&first]);
}

#[test]
fn requests_about_messages_that_are_refused_are_not_logged() {
    let held = bsub(&["-H", "-J", "refused-messages", "sleep", "300"]);
    let over = bsub(&["-o", "/dev/null", "true"]);
    end_of(&over);
    let of = |id: &str, words: &str| format!("Job <{id}>: {words}");
    let none = of("99999", "No matching job found");
    let finished = of(&over, "Job has already finished");
    let beyond = of(&held, "message index 128 is not below 128, the value of MAX_JOB_MSG_NUM");
    let long = "x".repeat(513);
    let too_long = of(&held, "the message has 513 characters; the limit is 512");
    let element = format!("{held}[1]");
    let rows: &[(&str, &[&str], &str)] = &[
        ("bpost", &["99999"], &none),
        ("bpost", &[&over], &finished),
        ("bpost", &["-i", "128", &held], &beyond),
        ("bpost", &["-i", "x", &held], "x: Bad message index"),
        ("bpost", &["-i", "-1", &held], "-1: Bad message index"),
        ("bpost", &["-d", &long, &held], &too_long),
        ("bpost", &["-N", "LOUD", &held], "LOUD: Bad argument for option -N."),
        ("bpost", &["-J", "no-such-name"], "Job <no-such-name>: No matching job found"),
        ("bpost", &["abc"], "abc: Illegal job ID."),
        ("bpost", &["0"], "0: Illegal job ID."),
        ("bpost", &[&element], &of(&element, "No matching job found")),
        ("bstatus", &["-d", REFUSED, "99999"], &none),
        ("bstatus", &["-d", REFUSED, &over], &finished),
        ("bstatus", &[&held], &of(&held, "No message at index 0")),
        ("bread", &[&held], &of(&held, "No message at index 0")),
        ("bread", &["-i", "128", &held], &beyond),
        ("bread", &["99999"], &none),
        ("bread", &[&over], &finished),
    ];
    let logged = || event_log().matches("\"JOB_EXT_MSG\" \"10.1\"").count();
    let before = logged();
    for (applet, args, words) in rows {
        let args: Vec<&str> = match *applet {
            "bpost" if !args.contains(&"-d") => [&["-d", REFUSED], *args].concat(),
            _ => args.to_vec(),
        };
        let said = run(applet, &args);
        let want = Said { code: 255, out: String::new(), err: format!("{words}\n") };
        assert_eq!(said, want, "{applet} {args:?}");
    }
    for applet in ["bpost", "bread", "bstatus"] {
        let some = format!("{held}[1-2]");
        let held = held.as_str();
        for args in [&[][..], &[held, held], &["-J", "a", held], &[&some]] {
            let said = run(applet, args);
            assert_eq!((said.code, said.out.as_str()), (255, ""), "{applet} {args:?}");
            let words = "One job must be specified, by its ID or with -J.";
            assert!(said.err.contains(words), "{applet} {args:?}: {}", said.err);
        }
    }
    assert!(!event_log().contains(REFUSED), "something was logged");
    assert!(logged() >= before);
    ok("bkill", &[&held]);
}
