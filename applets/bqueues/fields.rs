//! The fields of bqueues -o (bqueues(1)).

use super::long::{param, split_limit};
use super::table::{per_processor, status};
use lsf::cli::columns::count;
use lsf::cli::fields::{FieldOf, FieldsOf};
use lsf::proto::client::QueueInfo;
use std::fmt::Write;

type Value = fn(&mut String, &QueueInfo);

const fn f(
    name: &'static str,
    alias: &'static [&'static str],
    width: usize,
    value: Value,
) -> FieldOf<QueueInfo> {
    FieldOf { name, alias, width, value }
}

fn int(out: &mut String, n: u64) {
    let _ = write!(out, "{n}");
}

/// The maximum of a limit as lsb.queues writes it.
fn max(out: &mut String, q: &QueueInfo, name: &str) {
    out.push_str(split_limit(param(q, name)).1.unwrap_or(""));
}

/// The default of a limit.
fn default(out: &mut String, q: &QueueInfo, name: &str) {
    out.push_str(split_limit(param(q, name)).0.unwrap_or(""));
}

/// Word `n` of TASKLIMIT or PROCLIMIT: minimum, default, maximum.
fn tasks(out: &mut String, q: &QueueInfo, n: usize) {
    let text = match param(q, "TASKLIMIT") {
        "" => param(q, "PROCLIMIT"),
        text => text,
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    let at = match (words.len(), n) {
        (1, 2) | (2, 0) | (3, 0) => Some(0),
        (2, 2) | (3, 1) => Some(1),
        (3, 2) => Some(2),
        _ => None,
    };
    out.push_str(at.and_then(|at| words.get(at)).unwrap_or(&""));
}

/// Every field, in the order of `all`.
pub const FIELDS: FieldsOf<QueueInfo> = FieldsOf(&[
    f("queue_name", &["qname"], 15, |o, q| o.push_str(&q.name)),
    f("description", &["desc"], 50, |o, q| o.push_str(&q.description)),
    f("priority", &["prio"], 10, |o, q| {
        let _ = write!(o, "{}", q.priority);
    }),
    f("status", &["stat"], 12, |o, q| o.push_str(status(q))),
    f("max", &[], 10, |o, q| o.push_str(&count(q.max))),
    f("jl_u", &["jlu"], 10, |o, q| o.push_str(&count(q.jl_u))),
    f("jl_p", &["jlp"], 10, |o, q| o.push_str(&per_processor(q.jl_p, false))),
    f("jl_h", &["jlh"], 10, |o, q| o.push_str(&count(q.jl_h))),
    f("njobs", &[], 10, |o, q| int(o, q.njobs)),
    f("pend", &[], 10, |o, q| int(o, q.pend)),
    f("run", &[], 10, |o, q| int(o, q.run)),
    f("susp", &[], 10, |o, q| int(o, q.ssusp + q.ususp)),
    f("rsv", &[], 10, |o, q| int(o, q.rsv)),
    f("ususp", &[], 10, |o, q| int(o, q.ususp)),
    f("ssusp", &[], 10, |o, q| int(o, q.ssusp)),
    f("nice", &[], 6, |o, q| {
        let _ = write!(o, "{}", q.nice);
    }),
    f("hosts", &[], 50, |o, q| match param(q, "HOSTS") {
        "" => o.push_str("all"),
        hosts => o.push_str(hosts),
    }),
    f("res_req", &[], 20, |o, q| o.push_str(param(q, "RES_REQ"))),
    f("max_corelimit", &["corelimit"], 8, |o, q| max(o, q, "CORELIMIT")),
    f("max_cpulimit", &["cpulimit"], 30, |o, q| max(o, q, "CPULIMIT")),
    f("default_cpulimit", &["def_cpulimit"], 30, |o, q| default(o, q, "CPULIMIT")),
    f("max_datalimit", &["datalimit"], 8, |o, q| max(o, q, "DATALIMIT")),
    f("default_datalimit", &["def_datalimit"], 8, |o, q| default(o, q, "DATALIMIT")),
    f("max_filelimit", &["filelimit"], 8, |o, q| max(o, q, "FILELIMIT")),
    f("max_memlimit", &["memlimit"], 8, |o, q| max(o, q, "MEMLIMIT")),
    f("default_memlimit", &["def_memlimit"], 8, |o, q| default(o, q, "MEMLIMIT")),
    f("max_processlimit", &["processlimit"], 8, |o, q| max(o, q, "PROCESSLIMIT")),
    f("default_processlimit", &["def_processlimit"], 8, |o, q| default(o, q, "PROCESSLIMIT")),
    f("max_runlimit", &["runlimit"], 12, |o, q| max(o, q, "RUNLIMIT")),
    f("default_runlimit", &["def_runlimit"], 12, |o, q| default(o, q, "RUNLIMIT")),
    f("max_stacklimit", &["stacklimit"], 8, |o, q| max(o, q, "STACKLIMIT")),
    f("max_swaplimit", &["swaplimit"], 8, |o, q| max(o, q, "SWAPLIMIT")),
    f("max_tasklimit", &["tasklimit"], 6, |o, q| tasks(o, q, 2)),
    f("min_tasklimit", &[], 6, |o, q| tasks(o, q, 0)),
    f("default_tasklimit", &["def_tasklimit"], 6, |o, q| tasks(o, q, 1)),
    f("max_threadlimit", &["threadlimit"], 6, |o, q| max(o, q, "THREADLIMIT")),
    f("default_threadlimit", &["def_threadlimit"], 6, |o, q| default(o, q, "THREADLIMIT")),
]);
