//! Completion files for bash and zsh, written from what each applet's help says: its options,
//! the values these take and its own command words. So they follow the applets' tables.
//!
//! Values and operands that are queues, hosts, users or jobs are asked of the cluster when they
//! are completed, without waiting for a master that is not there.

use std::fmt::Write;

/// The completions after an applet's name.
#[derive(Debug, Default, PartialEq)]
pub struct Words {
    name: String,
    /// Word, value (empty: takes none), what it is.
    options: Vec<[String; 3]>,
    /// Command words of its own, and what they are.
    commands: Vec<[String; 2]>,
    /// The kind of its operands.
    operand: String,
}

impl Words {
    /// Reads the help of an applet.
    pub fn read(name: &str, help: &str) -> Words {
        let mut all = Words { name: name.to_string(), ..Words::default() };
        for line in help.lines() {
            let text = line.trim_start();
            let Some((left, what)) = text.split_once("  ") else { continue };
            let what = what.trim().to_string();
            match line.len() - text.len() {
                2 if left.starts_with('-') => {
                    let (word, value) = left.split_once(' ').unwrap_or((left, ""));
                    all.options.push([word.to_string(), kind(value), what]);
                }
                2 => all.operand = kind(left),
                4 if left != "?" => all.commands.push([left.to_string(), what]),
                _ => {}
            }
        }
        if all.operand.is_empty()
            && let Some((before, _)) = help.split_once(" ...]\n")
            && let Some((_, word)) = before.rsplit_once(" [")
        {
            all.operand = kind(word);
        }
        all
    }
}

/// The first word of a value's name in help.
fn kind(value: &str) -> String {
    value.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect()
}

const BASH: &str = r#"
_lsf_ask() { LSB_NTRIES=1 command "$@" 2> /dev/null | awk 'NR > 1 { print $1 }'; }
_lsf_kind() {
    case $1 in
    queue*) _lsf_ask bqueues -w ;;
    host*) _lsf_ask bhosts -w ;;
    user*) compgen -u ;;
    job_ID) _lsf_ask bjobs -w ;;
    esac
}
_lsf() {
    local cur=$2 prev=$3 name=${1##*/} options= values= commands= operand=
    if [ "$name" = lsf ] && [ "$COMP_CWORD" -gt 1 ]; then name=${COMP_WORDS[1]}; fi
    case $name in
"#;

const BASH_END: &str = r#"    esac
    case " $values " in
    *" $prev="*)
        values=${values#*"$prev="}
        COMPREPLY=($(compgen -W "$(_lsf_kind "${values%% *}")" -- "$cur"))
        return ;;
    esac
    case $cur in
    -*) COMPREPLY=($(compgen -W "$options" -- "$cur")) ;;
    *) COMPREPLY=($(compgen -W "$commands $(_lsf_kind "$operand")" -- "$cur")) ;;
    esac
}
"#;

/// The file for bash.
pub fn bash(all: &[Words]) -> String {
    let mut text = format!("# bash completion of the commands of lsf\n{BASH}");
    let names: Vec<&str> = all.iter().map(|w| w.name.as_str()).collect();
    let names = names.join(" ");
    let _ = writeln!(text, "    lsf) options='{LSF}' commands='{names}' ;;");
    for w in all {
        let options: Vec<&str> = w.options.iter().map(|o| o[0].as_str()).collect();
        let _ = write!(text, "    {}) options='{}'", w.name, options.join(" "));
        let valued = w.options.iter().filter(|o| !o[1].is_empty());
        let values: Vec<String> =
            valued.map(|[word, value, _]| format!("{word}={value}")).collect();
        let _ = write!(text, " values=' {}'", values.join(" "));
        let commands: Vec<&str> = w.commands.iter().map(|c| c[0].as_str()).collect();
        let _ = writeln!(text, " commands='{}' operand={} ;;", commands.join(" "), w.operand);
    }
    let _ = writeln!(text, "{BASH_END}complete -o default -F _lsf lsf {names}");
    text
}

const ZSH: &str = r#"_lsf_ask() {
    local -a found
    found=(${(f)"$(LSB_NTRIES=1 command "$@" 2> /dev/null | awk 'NR > 1 { print $1 }')"})
    compadd -a found
}
_lsf_kind() {
    case $1 in
    queue*) _lsf_ask bqueues -w ;;
    host*) _lsf_ask bhosts -w ;;
    user*) _users ;;
    job_ID) _lsf_ask bjobs -w ;;
    *) _default ;;
    esac
}
local name=$service
if [[ $name == lsf && $CURRENT -gt 2 ]]; then
    name=$words[2]
    shift words
    (( CURRENT-- ))
fi
case $name in
"#;

/// The file for zsh, an autoloaded function `_lsf`.
pub fn zsh(all: &[Words]) -> String {
    let names: Vec<&str> = all.iter().map(|w| w.name.as_str()).collect();
    let names = names.join(" ");
    let mut text = format!("#compdef lsf {names}\n{ZSH}");
    let own: Vec<String> = LSF.split(' ').map(|o| format!("'{o}'")).collect();
    let _ = writeln!(text, "lsf) _arguments {} '1:applet:({names})' ;;", own.join(" "));
    for w in all {
        let _ = write!(text, "{}) _arguments", w.name);
        for [word, value, what] in &w.options {
            let _ = write!(text, " '*{word}[{}]", quoted(what));
            if !value.is_empty() {
                let _ = write!(text, ":{value}: _lsf_kind {value}");
            }
            text.push('\'');
        }
        if !w.commands.is_empty() {
            text.push_str(" '1:command:((");
            for [word, what] in &w.commands {
                let _ = write!(text, "{word}\\:\"{}\" ", quoted(what));
            }
            text.push_str("))'");
        }
        let _ = writeln!(text, " '*:operand: _lsf_kind {}' ;;", w.operand);
    }
    text.push_str("esac\n");
    text
}

/// Options of `lsf` itself.
const LSF: &str = "--list --install --completion -h -V";

/// Words in the brackets of zsh's `_arguments`, within single quotes.
fn quoted(what: &str) -> String {
    let mut text = String::new();
    for c in what.chars() {
        match c {
            '\'' => text.push_str("'\\''"),
            '[' | ']' | ':' | '\\' => text.extend(['\\', c]),
            '"' => text.push('`'),
            c => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELP: &str = "Usage: bx [-h] [-u user_name | all] [-q queue_name]\n          \
        [job_ID | \"job_ID[list]\" ...]\n\n  -u user_name | all  jobs of this user\n  \
        -UF                 long format: it's [not] broken\n  -h                  help\n";

    #[test]
    fn a_help_is_read() {
        let w = Words::read("bx", HELP);
        let words: Vec<&str> = w.options.iter().map(|o| o[0].as_str()).collect();
        assert_eq!(words, ["-u", "-UF", "-h"]);
        assert_eq!((w.options[0][1].as_str(), w.options[1][1].as_str()), ("user_name", ""));
        assert_eq!(w.operand, "job_ID");
        let w = Words::read("ad", "Usage: ad [-h] [command]\n\n    qopen       Open queues\n");
        assert_eq!(w.commands, [["qopen".to_string(), "Open queues".to_string()]]);
    }

    #[test]
    fn both_files_name_options_and_values() {
        let all = [Words::read("bx", HELP)];
        let text = bash(&all);
        assert!(text.contains("    bx) options='-u -UF -h' values=' -u=user_name'"), "{text}");
        let text = zsh(&all);
        assert!(text.starts_with("#compdef lsf bx\n"), "{text}");
        assert!(text.contains("'*-u[jobs of this user]:user_name: _lsf_kind user_name'"), "{text}");
        assert!(text.contains("'*-UF[long format\\: it'\\''s \\[not\\] broken]'"), "{text}");
    }
}
