//! The completion files, in a real bash and a real zsh: what they offer is what each applet's
//! help names, and values come from the cluster.

use crate::common::*;
use crate::rig::{binary, skipped};
use std::path::Path;
use std::process::Command;

fn lsf(args: &[&str]) -> Said {
    Command::new(binary()).args(args).output().unwrap().into()
}

/// The words of a help text that begin with a dash, sorted.
fn options(applet: &str) -> Vec<String> {
    let help = lsf(&[applet, "-h"]);
    let text = help.out + &help.err;
    let lines = text.lines().filter(|l| l.starts_with("  -"));
    let mut all: Vec<String> =
        lines.map(|l| l.split_whitespace().next().unwrap().to_string()).collect();
    all.sort();
    all
}

fn shell(dir: &Path, words: &[&str]) -> Said {
    program(words).current_dir(dir).env("TERM", "vt100").output().unwrap().into()
}

/// Compares the offered words with the options: one line for each applet, its name, then its
/// options.
fn compare(offered: &str) {
    let mut seen = 0;
    for line in offered.lines() {
        let mut words: Vec<&str> = line.split_whitespace().collect();
        let applet = words.remove(0);
        words.sort_unstable();
        assert_eq!(words, options(applet), "{applet}");
        seen += words.len();
    }
    assert_eq!(offered.lines().count(), lsf(&["--list"]).out.lines().count(), "{offered}");
    assert!(seen > 300, "{offered}");
}

#[test]
fn bash_completes_every_option() {
    let dir = scratch("complete-bash");
    std::fs::write(dir.join("lsf"), lsf(&["--completion", "bash"]).out).unwrap();
    let ask = |words: &str| {
        let script = format!(
            "set -e; . ./lsf; ask() {{ COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); \
             _lsf \"$1\" \"${{@: -1}}\" \"${{@: -2:1}}\" || :; printf '%s ' \"${{COMPREPLY[@]}}\"; echo; }}; {words}"
        );
        let said = shell(&dir, &["bash", "--norc", "--noprofile", "-c", &script]);
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{words}");
        said.out.replace(" \n", "\n")
    };
    let all = lsf(&["--list"]).out.replace('\n', " ");
    compare(&ask(&format!("for a in {all}; do echo \"$a $(ask $a -)\"; done")));
    assert_eq!(ask("ask bjobs -no"), "-noheader\n");
    assert_eq!(ask("ask lsf bjobs -no"), "-noheader\n");
    assert_eq!(ask("ask lsf --comp; ask lsf bjob; ask badmin qop"), "--completion\nbjobs\nqopen\n");
    if matches!(installation(), Installation::Own(_)) {
        let id = bsub(&["-H", "true"]);
        assert_eq!(
            ask(&format!("ask bsub -q shor; ask bkill {id}; ask bhosts host1")),
            format!("short\n{id}\nhost1\n")
        );
        assert_eq!(ask("ask bjobs -w host1"), "\n");
        ok("bkill", &[&id]);
    }
}

#[test]
fn zsh_completes_every_option() {
    if Command::new("zsh").arg("--version").output().is_err() {
        return skipped("completion::zsh_completes_every_option: no zsh");
    }
    let dir = scratch("complete-zsh");
    std::fs::write(dir.join("_lsf"), lsf(&["--completion", "zsh"]).out).unwrap();
    let all = lsf(&["--list"]).out.replace('\n', " ");
    let script = format!(
        "fpath=(. $fpath); autoload -Uz _lsf; _arguments() {{ print -rn -- $service; \
         for w in $@; do case $w in '*-'*) print -rn -- \" ${{${{w#\\*}}%%\\[*}}\";; esac; done; \
         print; }}; CURRENT=2; for service in {all}; do _lsf; done"
    );
    let said = shell(&dir, &["zsh", "-f", "-c", &script]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    compare(&said.out);
    // and on a terminal, with zsh's own functions: the words that a command is given
    let script = "zmodload zsh/zpty; zpty z 'zsh -f -i'; \
        zpty -w z 'PS1=; fpath=($PWD $fpath); autoload -Uz compinit; compinit -u -D; \
        bjobs() { print -r -- go\"\"t $* }; print rea\"\"dy'; zpty -r z text '*ready*'; \
        zpty -w z $'bjobs -noh\\t-q shor\\t'; zpty -r z text '*got -noheader -q short*'; \
        print seen; zpty -d z";
    if matches!(installation(), Installation::Own(_)) {
        let said = shell(&dir, &["zsh", "-f", "-c", script]);
        assert_eq!((said.code, said.out.as_str()), (0, "seen\n"), "{}", said.err);
    }
}

#[test]
fn other_shells_are_refused() {
    for words in [&["--completion"][..], &["--completion", "fish"], &["--completion", "bash", "x"]]
    {
        let said = lsf(words);
        assert_eq!((said.code, said.out.as_str()), (255, ""));
        assert_eq!(said.err, "lsf: --completion takes bash or zsh\n");
    }
}
