//! ENABLE_EVENT_STREAM, EVENT_STREAM_FILE, MAX_EVENT_STREAM_SIZE, MAX_EVENT_STREAM_FILE_NUMBER and
//! ALLOW_EVENT_TYPE of lsb.params(5).

use super::lexer::shown;
use super::section::Values;
use super::types::EventStreamParams;
use crate::model::record_names::{ACCT_RECORD_NAMES, RECORD_NAMES};

/// Largest file, MB.
const MAX_MB: u64 = 1 << 20;
/// Most former files.
const MAX_FILES: u32 = 10_000;
/// Default of MAX_EVENT_STREAM_SIZE, MB.
const DEFAULT_MB: u64 = 1024;
/// Default of MAX_EVENT_STREAM_FILE_NUMBER.
const DEFAULT_FILES: u32 = 10;

/// The settings of the stream, where there is one.
pub(super) fn event_stream(v: &mut Values<'_>) -> Option<EventStreamParams> {
    let mut on = false;
    v.flag(&mut on, "ENABLE_EVENT_STREAM");
    let (mut mb, mut files) = (DEFAULT_MB, DEFAULT_FILES);
    v.set(&mut mb, "MAX_EVENT_STREAM_SIZE", 1..=MAX_MB);
    v.set(&mut files, "MAX_EVENT_STREAM_FILE_NUMBER", 1..=MAX_FILES);
    let (path, types) = (path(v), types(v));
    on.then_some(EventStreamParams { path, max_bytes: mb << 20, files, types })
}

fn path(v: &mut Values<'_>) -> Option<String> {
    const NAME: &str = "EVENT_STREAM_FILE";
    let value = v.raw.get(NAME)?;
    if !value.text.starts_with('/') || value.text.ends_with('/') {
        v.bad(NAME, value, "the absolute path of a file is wanted");
        return None;
    }
    // lsb.events would be written by two, and renamed
    let name = value.text.rsplit('/').next().unwrap_or_default();
    if name.starts_with("lsb.") && !name.starts_with("lsb.stream") {
        v.bad(NAME, value, "a file of its own is wanted, not another one of the batch system");
        return None;
    }
    Some(value.text.clone())
}

fn types(v: &mut Values<'_>) -> Vec<String> {
    const NAME: &str = "ALLOW_EVENT_TYPE";
    let words = v.words(NAME);
    for word in &words {
        let name = word.text.as_str();
        if !RECORD_NAMES.contains(&name) && !ACCT_RECORD_NAMES.contains(&name) {
            let text = format!("{NAME}: no record <{}> is ever written", shown(name));
            v.diags.warning(&word.pos, text);
        }
    }
    words.into_iter().map(|word| word.text).collect()
}
