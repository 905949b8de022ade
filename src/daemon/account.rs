//! Account mapping (lsfhosts(5)): a job that runs under another account than its user's.
//!
//! Invariant: the starter reads ~/.lsfhosts of the account as that account, never as root, and
//! before anything of the job runs; root is nobody's account.

use super::change_user::USER_WAIT;
use super::step::{Failed, SetupResult};
use crate::lang::lsfhosts::{MAX_BYTES, NAME, accepts};
use crate::proto::launch::{Account, SetupStage};
use crate::sys::files::read_own;
use crate::sys::users::{User, UserDatabase};
use std::path::Path;

/// The account on this host.
pub fn found(name: &str) -> SetupResult<User> {
    match UserDatabase::default().find_name(name, USER_WAIT) {
        Some(user) if user.uid != 0 => Ok(user),
        Some(_) => {
            let why = format!("account <{name}> of .lsfhosts is root's");
            Err(Failed::new(SetupStage::Account, why))
        }
        None => {
            let why = format!("account <{name}> of .lsfhosts is not known here");
            Err(Failed::new(SetupStage::User, why))
        }
    }
}

/// Whether the account, which this process has become, accepts the user of the job.
pub fn accepted(account: &Account, user: &User) -> SetupResult<()> {
    let Account { user: name, from, host } = account;
    let refused = |why: String| {
        Failed::new(SetupStage::Account, format!("~{name}/{NAME} on the execution host: {why}"))
    };
    match read_own(&Path::new(&user.home).join(NAME), user.uid, MAX_BYTES) {
        Ok(Some(text)) if accepts(&text, host, from) => Ok(()),
        Ok(Some(_)) => Err(refused(format!("does not accept {from} at {host}"))),
        Ok(None) => Err(refused("not there".into())),
        Err(why) => Err(refused(why)),
    }
}
