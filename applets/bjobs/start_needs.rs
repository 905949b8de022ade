//! The end of `bjobs -l` of a pending job: the smallest changes after which it could start
//! (bjobs(1), TO START NOW). LSF prints nothing of the kind.

use super::reasons::reason_text;
use lsf::cli::job_rows::{Cell, JobRow};
use lsf::cli::long_format::push_clean;
use lsf::model::reason::PendReason;
use lsf::proto::client::Col;
use std::fmt::Write;

/// Resources whose amounts are in MB.
const SIZES: [&str; 3] = ["mem", "swp", "tmp"];

/// One line for each way, of which any one suffices.
pub fn push(out: &mut String, r: &JobRow) {
    let ways = r.list(Col::StartNeeds);
    if ways.is_empty() {
        return;
    }
    out.push_str("\n TO START NOW:\n");
    for (i, way) in ways.iter().enumerate() {
        out.push_str(if i == 0 { " " } else { " or " });
        for (n, part) in way.list().iter().enumerate() {
            out.push_str(if n == 0 { "" } else { "; and " });
            push_part(out, part);
        }
        out.push_str(";\n");
    }
}

/// `hosta: 1 slot, 20 MB of mem`.
fn push_part(out: &mut String, part: &Cell) {
    let [host, needs] = part.list() else { return };
    if !host.text().is_empty() {
        push_clean(out, &host.text());
        out.push_str(": ");
    }
    for (n, need) in needs.list().iter().enumerate() {
        out.push_str(if n == 0 { "" } else { ", " });
        let [number, name] = need.list() else { continue };
        push_need(out, number.num().unwrap_or(0.0), &name.text());
    }
}

fn push_need(out: &mut String, number: f64, name: &str) {
    let _ = match name {
        _ if number < 0.0 => {
            let why = PendReason::of_number(-number as u32);
            write!(out, "no longer \"{}\"", reason_text(why, name))
        }
        "" if number == 1.0 => write!(out, "1 free slot"),
        "" => write!(out, "{number} free slots"),
        _ if SIZES.contains(&name) => write!(out, "{:.0} MB more of {name}", number.ceil()),
        _ => {
            let _ = write!(out, "{} more of ", (number * 100.0).ceil() / 100.0);
            push_clean(out, name);
            Ok(())
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn need_is_told_by_its_amount_or_its_reason() {
        let told = |number: f64, name: &str| {
            let mut out = String::new();
            push_need(&mut out, number, name);
            out
        };
        assert_eq!(told(1.0, ""), "1 free slot");
        assert_eq!(told(4.0, ""), "4 free slots");
        assert_eq!(told(2047.2, "mem"), "2048 MB more of mem");
        assert_eq!(told(1.5, "lic"), "1.5 more of lic");
        assert_eq!(told(-1301.0, ""), "no longer \"Closed by LSF administrator\"");
    }
}
