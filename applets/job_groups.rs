//! Common code of bgadd, bgmod and bgdel: the group meant, and the words about each.

use lsf::cli::client::{self, ClientError};
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::front::Exit;
use lsf::cli::long_format::clean;
use lsf::model::reason::{err, err_text};
use lsf::proto::client::ClientMsg;
use lsf::proto::job_group::JobGroupRequest;
use lsf::{errln, outln};
use std::ffi::OsString;

/// The words for having named no group, or several.
pub const ONE_GROUP: &str = "One job group must be specified, by its full path.";

/// The group of the command line; `None`: none, or several.
pub fn one(operands: &[OsString]) -> Option<String> {
    match operands {
        [path] => Some(path.to_string_lossy().into_owned()),
        _ => None,
    }
}

/// The number of -L.
pub fn limit(text: &str) -> Result<u32, Exit> {
    let bad = |_| Exit::fail(format_args!("{}: Bad argument for option -L.", clean(text)));
    text.trim().parse().map_err(bad)
}

/// The seconds of bgdel -d: `[hours:]minutes`.
pub fn idle(text: &str) -> Result<u64, Exit> {
    let (hours, minutes) = text.trim().split_once(':').unwrap_or(("0", text.trim()));
    let number = |part: &str| part.parse::<u32>().ok().map(u64::from);
    let secs = number(hours).zip(number(minutes)).map(|(h, m)| (h * 60 + m) * 60);
    secs.ok_or_else(|| Exit::fail(format_args!("{}: Bad argument for option -d.", clean(text))))
}

/// Why a request about a group has failed.
pub fn refused(path: &str, why: &ClientError) -> Exit {
    match why {
        ClientError::Refused(r) if !path.is_empty() && path != "0" => {
            Exit::fail(format_args!("Job group <{}>: {}", clean(path), clean(&r.words())))
        }
        other => Exit::fail(clean(&other.words())),
    }
}

/// Has mbatchd change groups, and says which were.
pub fn change(ctx: &mut Ctx, path: &str, request: JobGroupRequest, did: &str) -> Result<i32, Exit> {
    match client::ask(ctx, ClientMsg::JobGroup(Box::new(request))) {
        Ok(ClientMsg::AdminDone { lines }) if lines.is_empty() => {
            errln!(ctx, "No job group is deleted");
            Ok(FAIL)
        }
        Ok(ClientMsg::AdminDone { lines }) => {
            for line in &lines {
                outln!(ctx, "Job group <{}> was {did}.", clean(&line.about));
            }
            Ok(0)
        }
        Ok(_) => Err(Exit::fail(err_text(err::MBATCHD))),
        Err(e) => Err(refused(path, &e)),
    }
}
