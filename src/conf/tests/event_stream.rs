//! The parameters of the event stream: values, mistakes with their places, defaults.

use super::*;
use crate::conf::types::EventStreamParams;

/// The parameters with these lines in lsb.params, and what is told about them.
fn read(lines: &str) -> (Option<EventStreamParams>, Vec<String>) {
    let mut files = site();
    let text = format!("Begin Parameters\nDEFAULT_QUEUE = normal\n{lines}\nEnd Parameters\n");
    files.put(&format!("{BATCH}/lsb.params"), text);
    let (conf, diags) = load_lenient(&files, ENVDIR, None);
    let said = diags.iter().map(|diag| placed(&files, diag));
    let said = said.filter(|said| said.contains("EVENT")).collect();
    (conf.and_then(|conf| conf.batch.params.log.event_stream), said)
}

#[test]
fn event_stream_is_read_with_its_defaults() {
    assert_eq!(read(""), (None, Vec::new()));
    assert_eq!(read("MAX_EVENT_STREAM_SIZE = 5\nALLOW_EVENT_TYPE = JOB_NEW"), (None, Vec::new()));
    let plain = EventStreamParams { path: None, max_bytes: 1 << 30, files: 10, types: Vec::new() };
    assert_eq!(read("ENABLE_EVENT_STREAM = y"), (Some(plain), Vec::new()));
    let lines = "ENABLE_EVENT_STREAM = Y\nEVENT_STREAM_FILE = /a/b c/s\nMAX_EVENT_STREAM_SIZE = 5\n\
                 MAX_EVENT_STREAM_FILE_NUMBER = 3\nALLOW_EVENT_TYPE = JOB_NEW JOB_FINISH";
    let types = vec!["JOB_NEW".to_owned(), "JOB_FINISH".to_owned()];
    let path = Some("/a/b c/s".to_owned());
    let all = EventStreamParams { path, max_bytes: 5 << 20, files: 3, types };
    assert_eq!(read(lines), (Some(all), Vec::new()));
}

#[test]
fn mistakes_in_the_event_stream_are_told_with_their_place() {
    for (line, told) in [
        (
            "ENABLE_EVENT_STREAM = on",
            "error lsb.params ENABLE_EVENT_STREAM:23 bad value <on> of ENABLE_EVENT_STREAM: Y or N \
             is wanted",
        ),
        (
            "EVENT_STREAM_FILE = stream",
            "error lsb.params EVENT_STREAM_FILE:21 bad value <stream> of EVENT_STREAM_FILE: the \
             absolute path of a file is wanted",
        ),
        (
            "EVENT_STREAM_FILE = /w/logdir/lsb.events",
            "error lsb.params EVENT_STREAM_FILE:21 bad value </w/logdir/lsb.events> of \
             EVENT_STREAM_FILE: a file of its own is wanted, not another one of the batch system",
        ),
        (
            "MAX_EVENT_STREAM_SIZE = 0",
            "error lsb.params MAX_EVENT_STREAM_SIZE:25 bad value <0> of MAX_EVENT_STREAM_SIZE: a \
             number from 1 to 1048576 is wanted",
        ),
        (
            "MAX_EVENT_STREAM_FILE_NUMBER = x",
            "error lsb.params MAX_EVENT_STREAM_FILE_NUMBER:32 bad value <x> of \
             MAX_EVENT_STREAM_FILE_NUMBER: a number from 1 to 10000 is wanted",
        ),
        (
            "ALLOW_EVENT_TYPE = JOB_NEW JOB_FINISHED",
            "warning lsb.params ALLOW_EVENT_TYPE:28 ALLOW_EVENT_TYPE: no record <JOB_FINISHED> is \
             ever written",
        ),
    ] {
        assert_eq!(read(&format!("ENABLE_EVENT_STREAM = Y\n{line}")).1.last().unwrap(), told);
    }
}
