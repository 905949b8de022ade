//! CONDENSE_PENDING_REASONS of lsb.params(5): one reason in place of those of hosts.

use crate::batch::state::names::HostId;
use crate::conf::types::CondensedReasons;
use crate::model::reason::PendReason;
use std::borrow::Cow;

/// A reason with the hosts for which it holds; none: it is about the job as a whole.
type Found = (PendReason, Vec<HostId>);

/// The reasons as they are told. Reasons about the job as a whole stay; reasons of hosts are told
/// as one, which is left out beside these. `shared`: is a reason about a resource that hosts share?
pub(super) fn condense(
    how: CondensedReasons,
    found: &[Found],
    shared: impl Fn(PendReason) -> bool,
) -> Cow<'_, [Found]> {
    let stays = |reason: &Found| match how {
        CondensedReasons::No => true,
        CondensedReasons::Partial => reason.1.is_empty() || shared(reason.0),
        CondensedReasons::All => reason.1.is_empty(),
    };
    if found.iter().all(stays) {
        return Cow::Borrowed(found);
    }
    let mut told: Vec<Found> = found.iter().filter(|reason| stays(reason)).cloned().collect();
    if told.iter().all(|reason| !reason.1.is_empty()) {
        told.insert(0, (PendReason::HostBased, Vec::new()));
    }
    Cow::Owned(told)
}

#[cfg(test)]
mod tests {
    use crate::batch::tests::cluster::{Cluster, cluster};
    use crate::model::reason::PendReason;
    use crate::proto::client::Col;

    /// h1 is full, h2 is closed, and all of the licenses that both share are taken.
    fn site(how: &str) -> Cluster {
        let site = cluster().hosts(2, 1).resource("lic Numeric () N").resource_map("lic (1@[all])");
        let mut c = site.param(&format!("CONDENSE_PENDING_REASONS = {how}")).up();
        c.submit("ann", "-m h1 -R rusage[lic=1]");
        c.badmin("hclose h2");
        c
    }

    fn told(c: &mut Cluster, options: &str) -> Vec<PendReason> {
        let job = c.submit("bob", options);
        c.reasons(job).into_iter().map(|reason| reason.0).collect()
    }

    #[test]
    fn reasons_of_hosts_are_told_as_one_where_the_site_says_so() {
        for (how, plain, of_license) in [
            ("N", vec![PendReason::HostClosed, PendReason::HostFull], None),
            ("ALL", vec![PendReason::HostBased], Some(vec![PendReason::HostBased])),
            ("y", vec![PendReason::HostBased], Some(vec![PendReason::HostBased])),
        ] {
            let mut c = site(how);
            assert_eq!(told(&mut c, ""), plain, "{how}");
            if let Some(want) = of_license {
                assert_eq!(told(&mut c, "-R rusage[lic=1]"), want, "{how}");
            }
        }
    }

    #[test]
    fn reasons_about_shared_resources_stay_where_condensing_is_partial() {
        assert_eq!(told(&mut site("PARTIAL"), ""), [PendReason::HostBased]);
        let mut c = site("PARTIAL");
        c.badmin("hopen h2");
        let told = told(&mut c, "-R rusage[lic=1]");
        let about_license = |why: &PendReason| matches!(why, PendReason::ReserveExternal(_));
        assert!(told.iter().any(about_license), "{told:?}");
        let mut others = told.iter().filter(|why| !about_license(why));
        assert!(others.all(|why| *why == PendReason::HostBased), "{told:?}");
    }

    #[test]
    fn reasons_about_a_job_as_a_whole_stand_alone() {
        let mut c = site("ALL");
        let job = c.submit("ann", "-b +60");
        assert_eq!(c.reason(job), PendReason::StartTime);
    }

    #[test]
    fn every_reason_is_there_for_those_who_ask_for_all() {
        let mut c = site("ALL");
        let job = c.submit("bob", "");
        let all = c.column(job, Col::AllPendReasons).to_string();
        assert!(all.contains("1301") && all.contains("1305") && all.contains("h2"), "{all}");
    }
}
