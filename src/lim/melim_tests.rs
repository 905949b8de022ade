//! The master elim, driven by hand in virtual time.

use super::*;
use crate::conf::ResourceDef;

fn shared() -> Shared {
    let def = |name: &str, kind, interval| ResourceDef {
        name: name.into(),
        kind,
        interval,
        ..ResourceDef::default()
    };
    Shared {
        resources: vec![
            def("myrsc", ResourceKind::Numeric, Some(30)),
            def("lic", ResourceKind::Numeric, Some(100)),
            def("word", ResourceKind::String, Some(30)),
            def("flag", ResourceKind::Boolean, Some(30)),
            def("fixed", ResourceKind::Numeric, None),
            def("other", ResourceKind::Numeric, Some(30)),
        ],
        ..Shared::default()
    }
}

fn melim(elims: usize) -> Melim {
    let expected = ["myrsc", "lic", "word", "flag"].map(str::to_owned).to_vec();
    let conf = MelimConf {
        shared: shared(),
        abort: 97,
        expected,
        block: None,
        restarts: None,
        debug: false,
    };
    Melim::new(conf, (0..elims).map(|n| format!("elim.{n}")).collect())
}

fn step(m: &mut Melim, secs: u64, input: MelimInput) -> Vec<MelimEffect> {
    let mut out = Vec::new();
    m.step(secs * US, input, &mut out);
    out
}

fn starts(out: &[MelimEffect]) -> Vec<usize> {
    out.iter().filter_map(|e| if let MelimEffect::Start(i) = e { Some(*i) } else { None }).collect()
}

fn report(out: &[MelimEffect]) -> Option<&str> {
    out.iter().find_map(|e| if let MelimEffect::Report(l) = e { Some(l.as_str()) } else { None })
}

fn said(out: &[MelimEffect]) -> String {
    let text =
        |e: &MelimEffect| if let MelimEffect::Say(_, t) = e { Some(t.clone()) } else { None };
    out.iter().filter_map(text).collect::<Vec<_>>().join("\n")
}

#[test]
fn an_elim_that_ends_is_started_again_every_ninety_seconds_at_most() {
    let mut m = melim(2);
    assert_eq!(starts(&step(&mut m, 0, MelimInput::Tick)), [0, 1]);
    assert!(starts(&step(&mut m, 1, MelimInput::Ended(0, Some(1)))).is_empty());
    assert_eq!(m.deadline(), Some(90 * US));
    assert!(starts(&step(&mut m, 89, MelimInput::Tick)).is_empty());
    assert_eq!(starts(&step(&mut m, 90, MelimInput::Tick)), [0]);
    // one that ran for longer is started at once
    assert_eq!(starts(&step(&mut m, 300, MelimInput::Ended(0, None))), [0]);
    assert!(starts(&step(&mut m, 301, MelimInput::Ended(0, Some(0)))).is_empty());
    assert_eq!(m.deadline(), Some(390 * US));
    // the abort value ends it for good, the other one goes on
    let out = step(&mut m, 302, MelimInput::Ended(1, Some(97)));
    assert!(said(&out).contains("elim.1: ended with exit code 97; it is not wanted"), "{out:?}");
    assert_eq!(starts(&step(&mut m, 100_000, MelimInput::Tick)), [0]);
    // no more than LSF_ELIM_RESTARTS
    let mut m = melim(1);
    m.conf.restarts = Some(1);
    step(&mut m, 0, MelimInput::Tick);
    step(&mut m, 1, MelimInput::Ended(0, Some(1)));
    assert_eq!(starts(&step(&mut m, 90, MelimInput::Tick)), [0]);
    step(&mut m, 91, MelimInput::Ended(0, Some(1)));
    assert_eq!(m.deadline(), None);
}

#[test]
fn lines_are_put_together_and_checked() {
    let mut m = melim(2);
    step(&mut m, 0, MelimInput::Tick);
    assert_eq!(report(&step(&mut m, 1, MelimInput::Output(0, b"1 my"))), None);
    // the other elim's line does not mix with it
    let out = step(&mut m, 2, MelimInput::Output(1, b"2 lic 4 word x\n1 flag"));
    assert_eq!(report(&out), Some("2 lic 4 word x"));
    let out = step(&mut m, 3, MelimInput::Output(0, b"rsc 1.5\n"));
    assert_eq!(report(&out), Some("3 lic 4 myrsc 1.5 word x"));
    // the latest value counts, whoever reports it
    let out = step(&mut m, 4, MelimInput::Output(0, b"1 lic 9\n"));
    assert_eq!(report(&out), Some("3 lic 9 myrsc 1.5 word x"));
    for (line, why) in [
        ("", "<> is not a number of indices"),
        ("x lic 1", "<x> is not a number of indices"),
        ("-1 lic 1", "<-1> is not a number"),
        ("2 lic 1", "2 indices announced, 2 words follow"),
        ("1 lic 1 word y", "1 indices announced, 4 words follow"),
        ("1 nosuch 1", "<nosuch> is not a resource of lsf.shared"),
        ("1 fixed 1", "<fixed> is a static resource"),
        ("1 lic NaN", "<NaN> is not a value of lic"),
        ("1 lic inf", "<inf> is not a value of lic"),
        ("1 lic 1M", "<1M> is not a value of lic"),
        ("1 flag yes", "<yes> is not a value of flag"),
        ("1 word a\x1b[2Jb", "is not a value of word"),
        ("2 lic 5 nosuch 1", "<nosuch> is not"),
        ("18446744073709551615 lic 1", "indices announced, 2 words"),
    ] {
        let out = step(&mut m, 5, MelimInput::Output(0, format!("{line}\n").as_bytes()));
        assert!(said(&out).contains(why) && said(&out).starts_with("elim.0: fault"), "{out:?}");
        assert_eq!(report(&out), None, "{line}");
    }
    // what is not expected here is left out without a word, built-in indices may be overridden
    let out = step(&mut m, 6, MelimInput::Output(0, b"3 other 1 tmp 7 lic 3\n"));
    assert_eq!(report(&out), Some("4 lic 3 myrsc 1.5 tmp 7 word x"));
    assert_eq!(said(&out), "");
    // elim.1's line was never finished
    let out = step(&mut m, 7, MelimInput::Ended(1, None));
    assert!(said(&out).contains("elim.1: fault 1: an unfinished line <1 flag>"), "{out:?}");
}

#[test]
fn a_line_of_a_megabyte_harms_nobody() {
    let mut m = melim(2);
    step(&mut m, 0, MelimInput::Tick);
    let mut faults = 0;
    for _ in 0..256 {
        let out = step(&mut m, 1, MelimInput::Output(0, &[b'1'; 4096]));
        faults += said(&out).matches("a line longer than 65536 bytes").count();
        assert!(m.elims[0].line.len() <= LINE_MAX);
    }
    assert_eq!(faults, 1);
    assert_eq!(report(&step(&mut m, 2, MelimInput::Output(1, b"1 lic 2\n"))), Some("1 lic 2"));
    let out = step(&mut m, 4, MelimInput::Output(0, b" 1\n1 lic 3\n"));
    assert_eq!((report(&out), said(&out).as_str()), (Some("1 lic 3"), ""));
}

#[test]
fn silence_and_lines_that_do_not_end() {
    let mut m = melim(2);
    m.conf.block = Some(2);
    step(&mut m, 0, MelimInput::Tick);
    step(&mut m, 1, MelimInput::Output(0, b"1 lic"));
    assert_eq!(m.deadline(), Some(3 * US));
    assert!(step(&mut m, 3, MelimInput::Tick).contains(&MelimEffect::Kill(0)));
    // a value counts for three intervals, and 180 s at least
    let mut m = melim(2);
    step(&mut m, 0, MelimInput::Tick);
    step(&mut m, 10, MelimInput::Output(0, b"2 lic 4 myrsc 1\n"));
    let out = step(&mut m, 190, MelimInput::Tick);
    assert_eq!(report(&out), Some("1 lic 4"));
    assert_eq!(report(&step(&mut m, 310, MelimInput::Tick)), Some("0"));
    assert_eq!(m.deadline(), None);
}

#[test]
fn reports_are_gathered() {
    let mut m = melim(1);
    step(&mut m, 0, MelimInput::Tick);
    let mut count = 0;
    for n in 0..1000u64 {
        let mut out = Vec::new();
        let line = format!("1 lic {n}\n");
        m.step(US + n * 10_000, MelimInput::Output(0, line.as_bytes()), &mut out);
        count += usize::from(report(&out).is_some());
    }
    assert_eq!(count, 10);
    let out = step(&mut m, 20, MelimInput::Tick);
    assert_eq!(report(&out), Some("1 lic 999"));
}
