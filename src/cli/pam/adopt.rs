//! TaskStarter and the RES of its host: a TaskStarter that is no process of its job yet is taken
//! into it, with all that it starts, before it starts anything.

use crate::cli::client::{self, Client, ClientError};
use crate::cli::job_launcher::{is_within_job, launcher};
use crate::cli::site::LocalSite;
use crate::model::JobRef;
use crate::model::reason::err;
use crate::proto::Msg;
use crate::proto::res::{AdoptProcess, ResMsg};
use crate::sys::process_table::see;
use std::time::Duration;

/// Longest wait for RES: it waits for sbatchd, some seconds at most.
const ADOPTED: Duration = Duration::from_secs(10);
/// Longest wait for the measurement at the end.
const MEASURED: Duration = Duration::from_secs(10);

/// The place of this process in the job.
#[derive(Debug, Default)]
pub(super) struct Place {
    /// The process whose signals all processes of the job have; none where we are not in it.
    pub(super) launcher: Option<u32>,
    /// Why we are not in the job; empty: we are.
    pub(super) outside: String,
    /// RES has taken us into the job.
    adopted: Option<AdoptProcess>,
}

/// Has this process taken into the job.
///
/// # Errors
/// Why no task of the job may be here, in words.
pub(super) fn take_in(site: &LocalSite, job: JobRef, pam_ms: Option<u32>) -> Result<Place, String> {
    if is_within_job() {
        return Ok(Place { launcher: launcher(), ..Place::default() });
    }
    let pid = std::process::id();
    let ticks = see(pid).map_or(0, |seen| seen.start);
    let process = AdoptProcess { job, pid, ticks, pam_ms };
    match asked(site, ResMsg::Adopt(process), ADOPTED) {
        Ok(ResMsg::Adopted { within, launcher }) => {
            let adopted = (!within).then_some(process);
            let launcher = (launcher != 0).then_some(launcher);
            Ok(Place { launcher, outside: String::new(), adopted })
        }
        Ok(_) => Ok(outside(&ClientError::Unexpected)),
        // RES is there and says no, unless it cannot know
        Err(ClientError::Refused(why))
            if ![err::BUSY, err::DJOB_RES_TIMEOUT].contains(&why.code) =>
        {
            Err(why.words())
        }
        Err(why) => Ok(outside(&why)),
    }
}

fn outside(why: &ClientError) -> Place {
    Place { outside: format!("RES: {}", super::shown(why)), ..Place::default() }
}

impl Place {
    /// The task has ended and we are about to: RES measures us once more, so that what was used
    /// since its last look counts.
    pub(super) fn measure(&self, site: &LocalSite) {
        if let Some(process) = self.adopted {
            // what was measured before counts in any case
            let _ = asked(site, ResMsg::Ending(process), MEASURED);
        }
    }
}

fn asked(site: &LocalSite, msg: ResMsg, wait: Duration) -> Result<ResMsg, ClientError> {
    let mut client: Client = client::res_of(site, &site.host)?;
    client.send(&Msg::Res(msg))?;
    match client.next(Some(wait))? {
        Msg::Res(answer) => Ok(answer),
        _ => Err(ClientError::Unexpected),
    }
}
