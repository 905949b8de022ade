//! The fields of bhosts -o (bhosts(1)). The status is the long one.

use lsf::cli::columns::{Column, Fields, count, in_unit};
use lsf::cli::fields::{FieldOf, FieldsOf};
use lsf::cli::long_format::mem_words;
use lsf::proto::client::HostInfo;
use std::fmt::Write;

type Value = fn(&mut String, &HostInfo);

const fn f(
    name: &'static str,
    alias: &'static [&'static str],
    width: usize,
    value: Value,
) -> FieldOf<HostInfo> {
    FieldOf { name, alias, width, value }
}

fn int(out: &mut String, n: u64) {
    let _ = write!(out, "{n}");
}

/// Every field, in the order of `all`.
pub const FIELDS: FieldsOf<HostInfo> = FieldsOf(&[
    f("host_name", &["hname"], 20, |o, h| o.push_str(&h.name)),
    f("status", &["stat"], 15, |o, h| o.push_str(&h.status)),
    f("cpuf", &[], 10, |o, h| {
        let _ = write!(o, "{:.2}", h.cpu_factor);
    }),
    f("jl_u", &["jlu"], 8, |o, h| o.push_str(&count(h.jl_u))),
    f("max", &[], 8, |o, h| o.push_str(&count(h.max))),
    f("njobs", &[], 8, |o, h| int(o, h.njobs)),
    f("run", &[], 8, |o, h| int(o, h.run)),
    f("ssusp", &[], 8, |o, h| int(o, h.ssusp)),
    f("ususp", &[], 8, |o, h| int(o, h.ususp)),
    f("rsv", &[], 8, |o, h| int(o, h.rsv)),
    f("dispatch_window", &["dispwin"], 50, |o, h| o.push_str(&h.dispatch_window)),
    f("slots", &[], 8, |o, h| o.push_str(&count(h.max.map(|m| m.saturating_sub(h.njobs))))),
    f("slots_alloc", &[], 11, |o, h| int(o, h.njobs)),
    f("ngpus", &["ng"], 8, |o, _| int(o, 0)),
    f("ngpus_alloc", &["ngu"], 11, |o, _| int(o, 0)),
    f("ngpus_excl_alloc", &["ngx"], 16, |o, _| int(o, 0)),
    f("ngpus_shared_alloc", &["ngs"], 18, |o, _| int(o, 0)),
    f("ngpus_shared_jexcl_alloc", &["ngsjx"], 24, |o, _| int(o, 0)),
    f("ngpus_excl_avail", &["ngfx"], 16, |o, _| int(o, 0)),
    f("ngpus_shared_avail", &["ngfs"], 18, |o, _| int(o, 0)),
    f("attribute", &["attr"], 50, |_, _| {}),
    f("comments", &[], 50, |o, h| o.push_str(&h.admin_comment)),
    f("mig_alloc", &[], 9, |_, _| {}),
    f("total_mem", &[], 10, |o, h| words(o, total(h))),
    f("reserved_mem", &[], 12, |o, h| words(o, reserved(h))),
    f("available_mem", &[], 13, |o, h| words(o, available(h))),
]);

fn words(out: &mut String, kb: Option<u64>) {
    if let Some(kb) = kb {
        mem_words(out, kb);
    }
}

fn total(h: &HostInfo) -> Option<u64> {
    Some(h.load.as_ref()?.facts.as_ref()?.max_mem.saturating_mul(1024))
}

fn reserved(h: &HostInfo) -> Option<u64> {
    Some((h.reserved.get(10).copied().unwrap_or(0.0) * 1024.0) as u64)
}

fn available(h: &HostInfo) -> Option<u64> {
    Some((f64::from(*h.load.as_ref()?.index.get(10)?) * 1024.0) as u64)
}

/// Appends the value of a column; sizes in its unit, else in that of the site.
pub fn value(out: &mut String, c: &Column, h: &HostInfo, site: Option<char>) {
    let kb = match FIELDS.name(c.field) {
        "total_mem" => total(h),
        "reserved_mem" => reserved(h),
        "available_mem" => available(h),
        _ => None,
    };
    match (c.unit.or(site), kb) {
        (Some(unit), Some(kb)) => in_unit(out, kb, unit),
        _ => FIELDS.value(out, c.field, h),
    }
}
