//! Account mapping: what a job and what runs after it are told, and who is reported.

use super::*;
use crate::proto::launch::{Account, SetupStage};

fn mapped() -> StartJob {
    let spec = JobSpec { from_host: "host1".into(), ..JobSpec::default() };
    StartJob { account: "bob".into(), spec: spec.into(), ..order(1) }
}

#[test]
fn job_and_what_follows_it_run_under_the_account_that_accepted() {
    let mut r = Rig::new();
    let (user, out) = ("bob".to_string(), ByteStr::from("/o"));
    let ready = Ready { user, uid: 77, out, ..Ready::default() };
    r.setup = Some(Setup::Ready(Box::new(ready)));
    r.start(mapped());
    let TaskPlan::Job(job) = &r.plans[0].1.what else { panic!() };
    let want = Account { user: "bob".into(), from: "u".into(), host: "host1".into() };
    assert_eq!(job.account.as_deref(), Some(&want));
    let told = r.states().pop().unwrap();
    assert_eq!((told.exec_user.as_str(), told.uid), ("bob", 77));
    r.setup = None;
    let pid = r.pid();
    r.exits(pid, 0);
    let TaskPlan::Finish(after) = &r.plans[1].1.what else { panic!() };
    assert_eq!(after.account, "bob");
}

#[test]
fn refused_account_sends_the_job_back_and_gets_no_mail() {
    let mut r = Rig::new();
    let why = "~bob/.lsfhosts on the execution host: not there".to_string();
    r.setup =
        Some(Setup::Failed { at: SetupStage::Account, why: why.clone(), exit: 0, begun: None });
    r.start(mapped());
    let told = r.states().pop().unwrap();
    let reason = PendReason::NoAccount.number();
    assert_eq!((told.phase, told.note), (AttemptPhase::Failed { reason }, why));
    assert_eq!(reason, 609);
    assert!(r.plans.iter().all(|(_, plan)| match &plan.what {
        TaskPlan::Finish(after) => after.account.is_empty(),
        _ => true,
    }));
}
