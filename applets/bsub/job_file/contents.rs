//! The contents of a job file of any language: options and a command.

use std::ffi::OsString;

/// Key of the command.
pub const COMMAND: &str = "command";

/// The contents of a job file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct JobFile {
    /// The options, each a line of its own.
    pub options: Vec<Vec<OsString>>,
    /// The command.
    pub command: Option<OsString>,
}

/// A value of a JSON or YAML file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// null, or true: the option without a value.
    Flag,
    /// false: not given.
    Off,
    /// A text or number.
    Text(String),
    /// Several values of an option that may be repeated.
    List(Vec<Value>),
    /// Keys and values.
    Map(Vec<(String, Value)>),
}

impl JobFile {
    /// Sets the command, which a file has once.
    pub fn set_command(&mut self, command: OsString) -> Result<(), String> {
        match self.command.replace(command) {
            None => Ok(()),
            Some(_) => Err(format!("{COMMAND}: the command is there already")),
        }
    }
}

/// The words of an option with its value.
pub fn option_line(word: &str, value: Option<&str>) -> Vec<OsString> {
    let word = OsString::from(format!("-{word}"));
    [word].into_iter().chain(value.map(OsString::from)).collect()
}
