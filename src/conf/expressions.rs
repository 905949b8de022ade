//! The small languages inside the files: requirement strings and time windows are checked when
//! the file is read, so that a slip is told with its place and never becomes a queue without
//! requirement.
//!
//! See lsb.queues(5).

use super::lexer::shown;
use super::section::Values;
use super::types::{ResourceKind, Shared};
use crate::lang::resreq::{Builtins, ResKind, ResNames, ResReq, RusageRange, Syntax};
use crate::lang::window::Windows;

/// The resource names a requirement may use: built-in ones and those of lsf.shared.
#[derive(Clone, Copy, Debug)]
pub struct ResourceNames<'a>(pub &'a Shared);

impl ResNames for ResourceNames<'_> {
    fn kind(&self, name: &str) -> Option<ResKind> {
        let own = || {
            let resource = self.0.resources.iter().find(|r| r.name == name)?;
            Some(match resource.kind {
                ResourceKind::Boolean => ResKind::Boolean,
                ResourceKind::String => ResKind::String,
                ResourceKind::Numeric => {
                    ResKind::Numeric { increasing: resource.increasing.unwrap_or(false) }
                }
            })
        };
        Builtins.kind(name).or_else(own)
    }
}

impl Values<'_> {
    /// The ranges of RESRSV_LIMIT, checked and left as written.
    pub fn ranges(&mut self, name: &str, syntax: &Syntax<'_>) -> Option<String> {
        let value = self.raw.get(name)?;
        match RusageRange::parse_all(&value.text, syntax) {
            Ok(_) => Some(value.text.clone()),
            Err(error) => {
                let text = format!(
                    "bad value <{}> of {name}: {}",
                    shown(&value.text),
                    shown(&error.reason)
                );
                self.diags.error(&value.pos_at(error.offset), text);
                None
            }
        }
    }

    /// A requirement string, checked and left as written.
    pub fn requirement(&mut self, name: &str, syntax: &Syntax<'_>) -> Option<String> {
        let value = self.raw.get(name)?;
        match ResReq::parse(&value.text, syntax) {
            Ok(requirement) => {
                for what in requirement.not_acted_on() {
                    self.diags.not_acted_on(&value.pos, format!("{what} of {name}"));
                }
                Some(value.text.clone())
            }
            Err(error) => {
                let text = format!(
                    "bad value <{}> of {name}: {error}: {}",
                    shown(&value.text),
                    shown(&error.reason)
                );
                // Point at the word complained of, not at what follows it.
                let word = error.reason.split(':').next().unwrap_or_default();
                let read = value.text.get(..error.offset).unwrap_or_default();
                let offset = read.strip_suffix(word).map_or(error.offset, str::len);
                self.diags.error(&value.pos_at(offset), text);
                None
            }
        }
    }

    /// Time windows, checked; empty is always.
    pub fn windows(&mut self, name: &str) -> String {
        let mut kept: Vec<String> = Vec::new();
        for word in self.words(name) {
            match Windows::parse(&word.text) {
                Ok(_) => kept.push(word.text),
                Err(_) => {
                    self.bad(name, &word, "[day:]hour[:minute]-[day:]hour[:minute] is wanted")
                }
            }
        }
        kept.join(" ")
    }
}
