//! Job files of bsub -json, -yaml, -jsdl and -jsdl_strict: the options of a job and its command
//! (bsub(1) JOB FILES).
//!
//! A job file becomes lines of options that bsub reads like `#BSUB` lines: above those of a script
//! and below the command line. A JSON or YAML file names an option as bsub does, without the
//! hyphen, or by its longer name. The three readers only take their language apart; all rules
//! about keys are here.

mod contents;
mod jsdl;
mod json;
mod yaml;

use super::opts::BsubOpts;
use super::rejection::Rejection;
pub use contents::JobFile;
use contents::{COMMAND, Value, option_line};
use lsf::cli::ctx::os_words;
use lsf::cli::front;
use std::fs::File;
use std::io::Read;

/// Longest job file, bytes.
const MAX_FILE: u64 = 4 << 20;
/// The categories of options. An option is taken under each of them.
const CATEGORIES: [&str; 6] = ["io", "limit", "notify", "properties", "resource", "schedule"];
/// The longer names of options.
const LONGER_NAMES: [(&str, &str); 19] = [
    ("allocFlags", "alloc_flags"),
    ("appName", "app"),
    ("appSpecific", "a"),
    ("autoResize", "ar"),
    ("computeNodeMem", "cn_mem"),
    ("coreLimit", "C"),
    ("cpuTimeLimit", "c"),
    ("hold", "H"),
    ("hostFile", "hostfile"),
    ("inputFile", "i"),
    ("mailUser", "u"),
    ("notifyJobDispatch", "B"),
    ("notifyJobDone", "N"),
    ("notifyJobExit", "Ne"),
    ("outputDir", "outdir"),
    ("queueName", "q"),
    ("rerun", "r"),
    ("specifiedStartTime", "b"),
    ("userGroup", "G"),
];

/// The option that names a job file, and the file.
pub fn asked(opts: &BsubOpts) -> Result<Option<(&'static str, &str)>, Rejection> {
    let all = [
        ("-json", &opts.json),
        ("-yaml", &opts.yaml),
        ("-jsdl", &opts.jsdl),
        ("-jsdl_strict", &opts.jsdl_strict),
    ];
    let mut given = all.into_iter().filter_map(|(word, file)| Some((word, file.as_deref()?)));
    let first = given.next();
    if let (Some((one, _)), Some((other, _))) = (first, given.next()) {
        let words = format!("Option {one} cannot be combined with option {other}");
        return Err(Rejection::new(words));
    }
    Ok(first)
}

/// Takes the job file, which has been read, out of the options.
pub fn forget(opts: &mut BsubOpts) {
    (opts.json, opts.yaml, opts.jsdl, opts.jsdl_strict) = (None, None, None, None);
}

/// The contents of the job file that the options name.
pub fn read(opts: &BsubOpts) -> Result<Option<JobFile>, Rejection> {
    let Some((word, path)) = asked(opts)? else { return Ok(None) };
    let about = |why: String| Rejection::about(path, why);
    let mut text = String::new();
    let got = File::open(path).and_then(|f| f.take(MAX_FILE + 1).read_to_string(&mut text));
    match got {
        Err(e) => return Err(about(os_words(&e))),
        Ok(n) if n as u64 > MAX_FILE => {
            return Err(about(format!("the job file is longer than {MAX_FILE} bytes")));
        }
        Ok(_) => {}
    }
    let file = match word {
        "-json" => json::read(&text).and_then(keyed),
        "-yaml" => yaml::read(&text).and_then(keyed),
        _ => jsdl::read(&text, word == "-jsdl_strict"),
    };
    Ok(Some(file.map_err(about)?))
}

/// The job file of a JSON or YAML value.
fn keyed(value: Value) -> Result<JobFile, String> {
    let Value::Map(top) = value else {
        return Err("keys and values are expected".into());
    };
    let mut file = JobFile::default();
    for (key, value) in top {
        match value {
            Value::Map(options) if CATEGORIES.contains(&key.as_str()) => {
                for (option, value) in options {
                    add(&mut file, &option, &value)?;
                }
            }
            Value::Flag | Value::Off if CATEGORIES.contains(&key.as_str()) => {}
            _ if CATEGORIES.contains(&key.as_str()) => {
                return Err(format!("{key}: keys and values are expected"));
            }
            Value::Map(_) => {
                let all = CATEGORIES.join(", ");
                return Err(format!("{key}: no such category of options (there are {all})"));
            }
            value => add(&mut file, &key, &value)?,
        }
    }
    Ok(file)
}

/// Adds what one key of a JSON or YAML file says.
fn add(file: &mut JobFile, key: &str, value: &Value) -> Result<(), String> {
    if key == COMMAND {
        let Value::Text(command) = value else {
            return Err(format!("{key}: a text is expected"));
        };
        return file.set_command(command.into());
    }
    let word = LONGER_NAMES.iter().find(|(longer, _)| *longer == key).map_or(key, |(_, w)| w);
    // a job file names no further one, and no file of submissions
    let other = matches!(word, "json" | "yaml" | "jsdl" | "jsdl_strict" | "pack");
    if word.is_empty() || other || !front::knows::<BsubOpts>(word) {
        return Err(format!("{key}: no such option"));
    }
    if file.options.iter().any(|line| line[0].to_str() == Some(&format!("-{word}"))) {
        return Err(format!("{key}: the option is there already"));
    }
    match value {
        Value::Off => Ok(()),
        Value::List(values) => values.iter().try_for_each(|v| line(file, key, word, v)),
        value => line(file, key, word, value),
    }
}

/// Adds the line of an option with its value.
fn line(file: &mut JobFile, key: &str, word: &str, value: &Value) -> Result<(), String> {
    let takes = front::takes_value::<BsubOpts>(word);
    let text = match (value, takes) {
        (Value::Text(text), false) if !text.is_empty() => {
            return Err(format!("{key}: the option takes no value"));
        }
        (Value::Flag | Value::Text(_), false) => None,
        (Value::Text(text), true) => Some(text),
        (Value::Flag | Value::Off, _) => {
            return Err(format!("{key}: the option requires a value"));
        }
        (Value::List(_) | Value::Map(_), _) => {
            return Err(format!("{key}: a text or number is expected"));
        }
    };
    file.options.push(option_line(word, text.map(String::as_str)));
    Ok(())
}

#[cfg(test)]
mod tests;
