//! Tests of the option front.

use super::*;
use argh::{ArgsInfo, FromArgs};
use proptest::prelude::*;
use std::os::unix::ffi::OsStringExt;

/// Show some jobs.
#[derive(FromArgs, ArgsInfo, Debug, PartialEq, Default)]
struct Jobs {
    /// show all jobs
    #[argh(switch, short = 'a')]
    all: bool,
    /// long format
    #[argh(switch, short = 'l')]
    long: bool,
    /// long format without wrapping
    #[argh(switch, long = "-u-f")]
    uf: bool,
    /// interactive with a shell
    #[argh(switch, long = "-is")]
    is: bool,
    /// no header line
    #[argh(switch)]
    noheader: bool,
    /// jobs of this user
    #[argh(option, short = 'u', arg_name = "user_name | all")]
    user: Option<String>,
    /// jobs of this name
    #[argh(option, short = 'J', arg_name = "job_name")]
    job_name: Option<String>,
    /// description
    #[argh(option, long = "-jd", arg_name = "text")]
    jd: Option<String>,
    /// output format
    #[argh(option, short = 'o', arg_name = "format")]
    output: Option<String>,
    /// overwriting
    #[argh(option, arg_name = "file")]
    oo: Option<String>,
    /// resource requirement
    #[argh(option, short = 'R', arg_name = "res_req")]
    res_req: Vec<String>,
    /// environment
    #[argh(option, arg_name = "list")]
    env: Vec<String>,
    /// a number
    #[argh(option, short = 'n', arg_name = "count")]
    count: Option<u32>,
    /// show again and again
    #[argh(switch)]
    watch: bool,
    /// for ourselves
    #[argh(switch, hidden_help)]
    secret: bool,
    /// the jobs
    #[argh(positional, greedy, arg_name = "job_ID")]
    operands: Vec<String>,
}

/// No operands.
#[derive(FromArgs, ArgsInfo, Debug, PartialEq)]
struct Bare {
    /// a letter of its own
    #[argh(switch, short = 'h')]
    huge: bool,
}

fn os(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

fn jobs(words: &[&str]) -> (Jobs, Vec<OsString>) {
    let p = parse::<Jobs>("bjobs", &os(words)).unwrap_or_else(|e| panic!("{words:?}: {}", e.err));
    (p.options, p.operands)
}

fn exit(words: &[&str]) -> Exit {
    parse::<Jobs>("bjobs", &os(words)).expect_err(&format!("{words:?}"))
}

#[test]
fn whole_words_and_their_values() {
    let (j, operands) = jobs(&["-a", "-UF", "-Is", "-noheader", "-u", "all", "-Jd", "x y", "7"]);
    assert!(j.all && j.uf && j.is && j.noheader && !j.long);
    assert_eq!((j.user.as_deref(), j.jd.as_deref()), (Some("all"), Some("x y")));
    assert_eq!(operands, os(&["7"]));
    assert_eq!(j.operands, ["7"]);
    assert_eq!(jobs(&["-u", "-a"]).0.user.as_deref(), Some("-a"), "the next word, whatever it is");
    assert_eq!(jobs(&["-oo", "f", "-o", "g"]).0.oo.as_deref(), Some("f"));
}

#[test]
fn long_names_spell_capitals_and_underscores() {
    for (long, word) in [("---u-f", "UF"), ("--alloc--flags", "alloc_flags"), ("--x", "x")] {
        assert_eq!(classic_word(None, long), word);
    }
}

#[test]
fn glued_values_and_bundles() {
    assert_eq!(jobs(&["-uUSER"]).0.user.as_deref(), Some("USER"));
    assert_eq!(jobs(&["-Rselect[mem>1] order[mem]"]).0.res_req, ["select[mem>1] order[mem]"]);
    let j = jobs(&["-aJ", "*x*"]).0;
    assert!(j.all);
    assert_eq!(j.job_name.as_deref(), Some("*x*"));
    let j = jobs(&["-alubob"]).0;
    assert!(j.all && j.long);
    assert_eq!(j.user.as_deref(), Some("bob"));
    assert_eq!(jobs(&["-u\u{e9}"]).0.user.as_deref(), Some("\u{e9}"));
}

#[test]
fn a_word_with_a_glued_value_can_be_explained() {
    let said = |words: &[&str]| readings::<Jobs>(&os(words)).join("; ");
    assert_eq!(
        said(&["-aluacct", "-n4"]),
        "-aluacct was read as -a -l -u acct; -n4 was read as -n 4"
    );
    for plain in [&["-u", "x"][..], &["-o exit_code"], &["-al"], &["-aJ", "*x*"], &["--user=x"]] {
        assert_eq!(said(plain), "", "{plain:?}");
    }
    assert_eq!(said(&["sleep", "-uall"]), "", "an operand's words");
}

#[test]
fn a_value_in_the_same_word_after_a_blank() {
    assert_eq!(jobs(&["-o exit_code"]).0.output.as_deref(), Some("exit_code"));
    assert_eq!(jobs(&["-o  id stat"]).0.output.as_deref(), Some("id stat"));
    assert_eq!(jobs(&["-env all", "-env none"]).0.env, ["all", "none"]);
    assert_eq!(jobs(&["-Jd\ttext"]).0.jd.as_deref(), Some("text"));
}

#[test]
fn the_last_value_wins_except_in_lists() {
    let j = jobs(&["-u", "a", "-R", "1", "-ub", "-R2", "-a", "-a"]).0;
    assert_eq!(j.user.as_deref(), Some("b"));
    assert_eq!(j.res_req, ["1", "2"]);
}

#[test]
fn the_first_operand_ends_the_options() {
    let (j, operands) = jobs(&["-a", "sleep", "-l", "--", "-u"]);
    assert!(j.all && !j.long);
    assert_eq!(operands, os(&["sleep", "-l", "--", "-u"]));
    assert_eq!(jobs(&["--", "-a"]).1, os(&["-a"]));
    assert_eq!(jobs(&["-", "-a"]).1, os(&["-", "-a"]));
    assert_eq!(jobs(&["help"]).1, os(&["help"]), "argh's own trigger must not act");
    assert_eq!(jobs(&["--", "--help"]).1, os(&["--help"]));
    assert_eq!(jobs(&["", "-a"]).1, os(&["", "-a"]));
}

#[test]
fn operands_need_not_be_text_but_values_must() {
    let odd = OsString::from_vec(vec![b'f', 0xff]);
    let p = parse::<Jobs>("bjobs", &[OsString::from("-a"), odd.clone()]).unwrap();
    assert_eq!(p.operands, std::slice::from_ref(&odd));
    for words in [vec![OsString::from("-u"), odd], vec![OsString::from_vec(vec![b'-', b'u', 0xff])]]
    {
        let e = parse::<Jobs>("bjobs", &words).unwrap_err();
        assert_eq!(e.err, "bjobs: the value of option -u is not valid UTF-8\n");
    }
}

#[test]
fn long_names_of_options_are_read_too() {
    let j = jobs(&["--user=x=y", "--all", "--job-name", "n"]).0;
    assert!(j.all);
    assert_eq!((j.user.as_deref(), j.job_name.as_deref()), (Some("x=y"), Some("n")));
    assert_eq!(exit(&["--help"]).code, 0);
    assert_eq!(exit(&["--all=1"]).code, 255);
}

const USAGE: &str = "\
Usage: bjobs [-h] [-V] [-a] [-l] [-UF] [-Is] [-noheader] [-u user_name | all]
             [-J job_name] [-Jd text] [-o format] [-oo file] [-R res_req]...
             [-env list]... [-n count] [--watch] [job_ID ...]
";

#[test]
fn unknown_options_and_missing_values() {
    for (words, said) in [
        (&["-z"][..], "illegal option -- z"),
        // -n takes a number: what is glued to it is none
        (&["-a", "-nosuch"], "illegal option -- nosuch"),
        (&["-nohaeder"], "illegal option -- nohaeder; did you mean -noheader?"),
        (&["--nohaeder"], "illegal option -- -nohaeder; did you mean -noheader?"),
        (&["-wtach"], "illegal option -- wtach; did you mean --watch?"),
        (&["-zebra"], "illegal option -- zebra"),
        (&["-alz"], "illegal option -- alz"),
        // no help that nobody asked for: -l -h -o st1
        (&["-lhost1"], "illegal option -- lhost1"),
        (&["-az"], "illegal option -- z"),
        (&["-hz"], "illegal option -- z"),
        (&["--nosuch"], "illegal option -- -nosuch"),
        (&["-u"], "option requires an argument -- u"),
        (&["-au"], "option requires an argument -- u"),
        (&["-Jd"], "option requires an argument -- Jd"),
    ] {
        let err = format!("bjobs: {said}\n{USAGE}");
        assert_eq!(exit(words), Exit { code: 255, out: String::new(), err }, "{words:?}");
    }
    assert_eq!(exit(&["-n", "x"]).err, "bjobs: Bad argument for option -n.\n");
    let e = parse::<Bare>("bare", &os(&["x"])).unwrap_err();
    assert_eq!(e.err, "bare: unexpected word -- x\nUsage: bare [-V] [-h]\n");
    let e = usage_error::<Bare>("bare", "Something must be specified.");
    assert_eq!(e.err, "Something must be specified.\nUsage: bare [-V] [-h]\n");
}

#[test]
fn help_and_version_go_to_stderr_and_succeed() {
    let e = exit(&["-a", "-h"]);
    assert_eq!((e.code, e.out.as_str()), (0, ""));
    assert!(e.err.starts_with(USAGE), "{}", e.err);
    assert!(e.err.contains("\n  -UF                 long format without wrapping\n"), "{}", e.err);
    assert!(e.err.contains("\n  -u user_name | all  jobs of this user\n"), "{}", e.err);
    assert!(e.err.contains("\n  job_ID              the jobs\n"), "{}", e.err);
    assert!(!e.err.contains("secret") && !e.err.contains("--help"));
    assert_eq!(e.err, exit(&["-lh"]).err);
    assert_eq!(e.err, exit(&["-help"]).err);
    let e = exit(&["-V"]);
    assert_eq!((e.code, e.err), (0, format!("{}\n", version::line())));
    assert!(parse::<Bare>("bare", &os(&["-h"])).unwrap().options.huge, "its own letter");
    assert!(jobs(&["--secret"]).0.secret && jobs(&["-secret"]).0.secret);
}

#[test]
fn the_command_line_wins_over_embedded_lines() {
    let lines = [os(&["-u", "low", "-R", "1", "ignored", "-l"]), os(&["-R", "2", "-Jd", "kept"])];
    let p = parse_over::<Jobs>("bsub", &[&lines], &os(&["-u", "high", "cmd"])).unwrap();
    assert_eq!(p.options.user.as_deref(), Some("high"));
    assert_eq!(p.options.jd.as_deref(), Some("kept"));
    assert_eq!(p.options.res_req, ["1", "2"]);
    assert!(!p.options.long);
    assert_eq!(p.operands, os(&["cmd"]));
    let p = parse_over::<Jobs>("bsub", &[&lines], &os(&["-R", "3"])).unwrap();
    assert_eq!(p.options.res_req, ["3"]);
    let file = [os(&["-R", "4"]), os(&["-u", "middle"])];
    let p = parse_over::<Jobs>("bsub", &[&lines, &file], &os(&["-u", "high"])).unwrap();
    assert_eq!(p.options.res_req, ["4"]);
    assert_eq!((p.options.user.as_deref(), p.options.jd.as_deref()), (Some("high"), Some("kept")));
    assert!(parse_over::<Jobs>("bsub", &[&[os(&["-z"])]], &[]).is_err());
}

proptest! {
    #[test]
    fn any_words_are_read_without_panic(words in proptest::collection::vec("-{0,2}[aluJoRUF =h\u{e9}]{0,6}", 0..6)) {
        let words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
        let _ = parse::<Jobs>("bjobs", &words);
    }

    #[test]
    fn order_does_not_matter(shuffled in Just(vec![
        vec!["-a"], vec!["-l"], vec!["-UF"], vec!["-u", "x"], vec!["-Jd", "y"], vec!["-oz"],
    ]).prop_shuffle()) {
        let words: Vec<&str> = shuffled.concat();
        let same = jobs(&["-a", "-l", "-UF", "-u", "x", "-Jd", "y", "-oz"]);
        prop_assert_eq!(jobs(&words), same);
    }
}

#[test]
fn help_of_the_options_named() {
    let said = |words: &[&str]| exit(words).err;
    assert_eq!(said(&["-h", "-u"]), "  -u user_name | all  jobs of this user\n");
    let two = said(&["-h", "-UF", "-a"]);
    assert_eq!(
        two,
        "  -a                  show all jobs\n  -UF                 long format without wrapping\n"
    );
    let all = said(&["-h"]);
    assert!(
        all.starts_with("Usage: ") && all.contains("\n  -u user_name | all  jobs of this user\n")
    );
    // all of it, or an option that is not told of: everything
    for words in [&["-h", "all"][..], &["-h", "-u", "all"], &["-h", "-secret"]] {
        assert_eq!(said(words), all, "{words:?}");
    }
    for word in ["limit", "-zz", "nosuch"] {
        let e = exit(&["-h", "-u", word]);
        let why = format!("bjobs: {word}: No such option or category of options\n");
        assert_eq!((e.code, e.out, e.err), (255, String::new(), why));
    }
    let long = "a word ".repeat(30);
    let mut text = String::new();
    help::line(&mut text, "-x", &long);
    assert!(text.lines().all(|l| l.len() < 80) && text.lines().count() == 4, "{text}");
    assert!(text.lines().skip(1).all(|l| l.starts_with(&" ".repeat(22))), "{text}");
}
