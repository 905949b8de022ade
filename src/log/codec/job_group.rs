//! JGRP_ADD, JGRP_MOD and JGRP_CTRL: job groups (lsb.events(5)).

use super::record_error::RecordError;
use super::text::{Fields, put_int, put_str};
use crate::model::event::{Event, JobGroupRecord};

/// Options: how the group was made (lsbatch numbering).
const EXPLICIT: u32 = 1;
const IMPLICIT: u32 = 2;
/// The operation of JGRP_CTRL that deletes a group.
const DELETE: u32 = 3;

/// userId submitTime userName depCond timeEvent groupSpec destSpec delOptions fromPlatform sla
/// maxJLimit options.
pub(super) fn put_group(out: &mut Vec<u8>, r: &JobGroupRecord) {
    put_int(out, r.uid);
    put_int(out, r.time);
    put_str(out, r.owner.as_bytes());
    out.extend_from_slice(b" \"\" \"\"");
    put_str(out, r.path.as_bytes());
    out.extend_from_slice(b" \"\" 0 0");
    put_str(out, r.sla.as_bytes());
    put_int(out, r.limit.map_or(-1, i64::from));
    put_int(out, if r.explicit { EXPLICIT } else { IMPLICIT });
}

pub(super) fn get_group(f: &mut Fields<'_>) -> Result<JobGroupRecord, RecordError> {
    let (uid, time, owner) = (f.num()?, f.num()?, f.text()?);
    // depCond timeEvent
    f.skip(2)?;
    let path = f.text()?;
    // destSpec delOptions fromPlatform
    f.skip(3)?;
    let (sla, limit): (String, i64) = (f.text()?, f.num()?);
    let options: u32 = f.num()?;
    let (limit, explicit) = (u32::try_from(limit).ok(), options & EXPLICIT != 0);
    Ok(JobGroupRecord { uid, time, owner, path, sla, limit, explicit })
}

/// userId userName groupSpec options ctrlOp.
pub(super) fn put_delete(out: &mut Vec<u8>, uid: u32, user: &str, path: &str) {
    put_int(out, uid);
    put_str(out, user.as_bytes());
    put_str(out, path.as_bytes());
    put_int(out, 0);
    put_int(out, DELETE);
}

pub(super) fn get_control(f: &mut Fields<'_>) -> Result<Event, RecordError> {
    let (uid, user, path) = (f.num()?, f.text()?, f.text()?);
    f.skip(1)?;
    Ok(match f.num::<u32>()? {
        DELETE => Event::JobGroupDelete { uid, user, path },
        _ => Event::Foreign { name: "JGRP_CTRL".to_string() },
    })
}
