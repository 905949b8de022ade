//! Becoming another user, for good: the one place where a process of root's gives root up.
//!
//! Invariant: a set*id call is believed only when read back.

use super::step::{Failed, SetupResult};
use crate::proto::launch::SetupStage;
use crate::sys::users::{User, UserDatabase};
use crate::sys::{raw, words};
use std::io;
use std::time::Duration;

/// Longest wait for the name service.
pub const USER_WAIT: Duration = Duration::from_secs(5);

/// Becomes the user for good, or fails.
pub fn become_user(user: &User) -> SetupResult<()> {
    let own = crate::sys::euid();
    if own == user.uid {
        return Ok(());
    }
    let fail =
        |why: &str| Failed::new(SetupStage::User, format!("cannot become {}: {why}", user.name));
    let call =
        |what: &str, r: io::Result<()>| r.map_err(|e| fail(&format!("{what}: {}", words(&e))));
    if own != 0 || user.uid == 0 {
        return Err(fail("not permitted"));
    }
    let mut groups = UserDatabase::default().find_groups(user, USER_WAIT);
    call("setgroups", raw::setgroups(&groups))?;
    call("setgid", raw::setresgid(user.gid))?;
    call("setuid", raw::setresuid(user.uid))?;
    let mut now = raw::getgroups().map_err(|e| fail(&words(&e)))?;
    now.sort_unstable();
    groups.sort_unstable();
    let same = |ids: io::Result<(u32, u32, u32)>, id: u32| ids.is_ok_and(|i| i == (id, id, id));
    if now != groups || !same(raw::getresgid(), user.gid) || !same(raw::getresuid(), user.uid) {
        return Err(fail("user and groups are not as set"));
    }
    if raw::setresuid(0).is_ok() {
        return Err(fail("root could be had back"));
    }
    Ok(())
}
