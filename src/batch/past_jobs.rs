//! Rows of jobs that only the log knows: a machine is made of their records, and asked.

use crate::batch::query::job_columns::RowForm;
use crate::batch::site::permissions::Caller;
use crate::batch::{Mbatchd, Recovered};
use crate::conf::ClusterConf;
use crate::model::event::Record;
use crate::proto::client::JobQuery;

/// Rows of finished jobs that only the log knows any more, as one slice: what mbatchd answered
/// while it still had them. `records` are those of the jobs, without their cleaning.
pub fn past_rows(
    conf: ClusterConf,
    me: &str,
    records: Vec<Record>,
    q: &JobQuery,
    now: i64,
) -> String {
    let mbd = Mbatchd::new(conf, me, Recovered { records, ..Recovered::default() });
    let nobody = String::new;
    let who = Caller { uid: 0, gid: 0, user: nobody(), host: nobody() };
    let mut listing = mbd.new_listing(&who, q.clone());
    while !mbd.find_on(&mut listing) {}
    let mut out = vec![b'['];
    let JobQuery { ref cols, arrays, reason_counts, .. } = *q;
    let form = RowForm { cols, whole: true, arrays, reason_counts };
    while let Some(at) = listing.next() {
        if out.len() > 1 {
            out.push(b',');
        }
        mbd.write_row(&mut out, at, &form, now);
    }
    out.push(b']');
    String::from_utf8(out).unwrap_or_else(|_| "[]".to_string())
}
