//! rusage and what it leaves; loadStop: suspending and resuming by load. External indices like
//! built-in ones.

use super::cluster::{Cluster, ClusterBuilder, cluster, element};
use super::{Act, Col, JobRef};
use crate::model::reason::{PendReason, err, susp, term};
use crate::model::specfield::SpecField::ResReq;

/// The place of MEM among the built-in load indices.
const MEM: usize = 10;

/// Two hosts that share three `lic` and an elim's `tok`; each has a `scr` of its own.
fn sharing() -> ClusterBuilder {
    sharing_among(2)
}

/// A site of so many hosts that share these resources.
fn sharing_among(hosts: usize) -> ClusterBuilder {
    let resources = ["lic Numeric () N", "tok Numeric 15 N", "scr Numeric 15 N"];
    let maps = ["lic (3@[all])", "tok [all]", "scr [default]"];
    let site = resources.into_iter().fold(cluster().hosts(hosts, 9), ClusterBuilder::resource);
    maps.into_iter().fold(site, ClusterBuilder::resource_map).param("SBD_SLEEP_TIME = 15")
}

/// [`sharing`] with these lines in both of its queues.
fn queues(lines: &str) -> ClusterBuilder {
    let of = |priority: u32| format!("PRIORITY = {priority}; {lines}");
    sharing().queue("high", &of(40)).queue("normal", &of(30))
}

fn codes(c: &mut Cluster, at: JobRef) -> Vec<PendReason> {
    c.reasons(at).into_iter().map(|reason| reason.0).collect()
}

/// The values of a host's external indices as bhosts shows them.
fn external(c: &mut Cluster, host: &str) -> Vec<(String, String)> {
    c.host(host).load.unwrap().external
}

/// The reserved memory of a host, and its available memory as bhosts shows it.
fn memory(c: &mut Cluster, host: &str) -> (f64, f64) {
    let row = c.host(host);
    (row.reserved[MEM], f64::from(row.load.unwrap().index[MEM]))
}

fn pairs(all: &[(&str, &str)]) -> Vec<(String, String)> {
    all.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

fn both(c: &mut Cluster, first: JobRef, second: JobRef) -> [String; 2] {
    [c.state(first), c.state(second)]
}

#[test]
fn branch_of_the_configuration_that_begins_to_hold_has_it_read_again() {
    let changes = |secs: Option<i64>| {
        let mut conf = cluster().hosts(2, 2).read();
        conf.changes = secs;
        conf
    };
    let mut c = cluster().hosts(2, 2).up();
    let asked = |c: &mut Cluster, secs: u64| {
        c.advance(secs);
        c.configuration_asked()
    };
    c.configured(changes(Some(c.secs() + 90)));
    assert_eq!((asked(&mut c, 89), asked(&mut c, 1)), (0, 1));
    // what is refused is tried again after a while
    c.configuration_refused();
    assert_eq!((asked(&mut c, 500), asked(&mut c, 100)), (0, 1));
    c.configured(changes(Some(c.secs() + 5)));
    assert_eq!((asked(&mut c, 4), asked(&mut c, 1)), (0, 1));
    c.configured(changes(None));
    assert_eq!(asked(&mut c, 2000), 0);
}

#[test]
fn resource_that_hosts_share_is_reserved_once_and_on_all_of_them() {
    let mut c = sharing().up();
    c.loads("mem=1000 tok=5 scr=10");
    let one = c.submit("ann", "-m h1 -R 'rusage[lic=2]'");
    let two = c.submit("ann", "-m h2 -R 'rusage[lic=2]'");
    assert_eq!(c.started(), [one]);
    assert!(c.reasons(two).contains(&(PendReason::ReserveExternal(None), vec!["h2".into()])));
    assert_eq!(c.reason_about(two, PendReason::ReserveExternal(None)).as_deref(), Some("lic"));
    for host in ["h1", "h2"] {
        let row = c.host(host);
        assert_eq!(row.reserved_external, pairs(&[("lic", "2.0")]));
        assert_eq!(row.load.unwrap().facts.unwrap().shared, pairs(&[("lic", "1")]));
    }
    // what is left is what select and thresholds see
    let no = c.submit("ann", "-R 'select[lic>1]'");
    let yes = c.submit("ann", "-R 'select[lic==1]'");
    assert_eq!(c.started(), [yes]);
    c.end(one, 0);
    // the reservation of `two` leaves one again
    assert_eq!((c.started(), c.state(no)), (vec![two], "PEND".into()));
}

#[test]
fn measured_values_are_reserved_by_host_or_by_what_is_shared() {
    let mut c = sharing().up();
    c.loads("mem=1000 tok=5 scr=10");
    let first = c.submit("ann", "-m h1 -R 'rusage[scr=6:tok=3]'");
    // scr is the host's own, tok is everybody's
    let own = c.submit("ann", "-m h2 -R 'rusage[scr=6]'");
    let same = c.submit("ann", "-m h1 -R 'rusage[scr=6]'");
    let other = c.submit("ann", "-m h2 -R 'rusage[tok=3]'");
    assert_eq!(c.started(), [first, own]);
    assert!(c.waits_for(same, PendReason::ReserveExternal(None)));
    assert_eq!(external(&mut c, "h1"), pairs(&[("tok", "2"), ("scr", "4")]));
    // a stopped job gives back what RELEASE says
    c.stop("ann", first);
    assert_eq!(c.started(), [same, other]);
}

#[test]
fn memory_is_reserved_until_it_is_used_or_the_time_is_over() {
    let mut c = sharing().up();
    c.loads("mem=1000");
    let first = c.submit("ann", "-m h1 -R 'rusage[mem=600:duration=1]'");
    let second = c.submit("ann", "-m h1 -R 'rusage[mem=600]'");
    assert_eq!(c.started(), [first]);
    assert!(c.waits_for(second, PendReason::Reserve(MEM as u8)));
    assert_eq!(memory(&mut c, "h1"), (600.0, 400.0));
    // memory in use is in the measured value already
    c.uses(first, 500);
    c.loads("mem=500");
    assert_eq!(memory(&mut c, "h1"), (600.0, 400.0));
    // a stopped job keeps its memory
    c.stop("ann", first);
    assert_eq!(memory(&mut c, "h1").0, 600.0);
    c.advance(61);
    c.loads("mem=1000");
    assert_eq!(memory(&mut c, "h1").0, 600.0, "the second's");
    assert_eq!(c.started(), [second]);
}

#[test]
fn tasks_reserve_each_where_they_are_asked_to() {
    let mut c = sharing().up();
    c.loads("mem=1000 scr=10");
    // two fit on a host, the third goes to the other
    let by_task = c.submit("ann", "-n 3 -R 'rusage[scr=5/task]'");
    assert_eq!(c.running_on(by_task), ["h1", "h1", "h2"]);
    let left = ["h1", "h2"].map(|host| external(&mut c, host));
    assert_eq!(left, [pairs(&[("scr", "0")]), pairs(&[("scr", "5")])]);
    // by host: once on each
    let by_host = c.submit("ann", "-n 3 -R 'rusage[mem=700]'");
    assert_eq!(c.state(by_host), "RUN");
    assert_eq!(memory(&mut c, "h1").0, 700.0);
}

#[test]
fn load_stop_suspends_one_after_the_other_and_load_sched_lets_go_on() {
    let mut c = queues("tok = 4/2").up();
    c.loads("mem=1000 it=0 tok=5");
    let high = c.submit("ann", "-q high -m h1");
    let low = c.submit("ann", "-q normal -m h1");
    // beyond loadSched nothing starts, and what runs goes on
    c.loads("tok=3");
    let waits = c.submit("ann", "-m h1");
    assert_eq!(c.orders(), []);
    assert!(c.reasons(waits).contains(&(PendReason::LoadExternal(None), vec!["h1".into()])));
    assert_eq!(c.reason_about(waits, PendReason::LoadExternal(None)).as_deref(), Some("tok"));
    // beyond loadStop the lower queue's goes first; the other one is alone then, and goes on where
    // nobody sits at the host
    c.loads("it=5 tok=1");
    assert_eq!(c.orders(), [(low, Act::Suspend)]);
    assert_eq!(both(&mut c, high, low), ["RUN", "SSUSP"]);
    assert_eq!(c.suspended_for(low), susp::of_external(0));
    assert_eq!(c.column(low, Col::SuspIndex), "tok");
    c.advance(20);
    assert_eq!(c.orders(), []);
    assert_eq!(both(&mut c, high, low), ["RUN", "SSUSP"]);
    // the log says the same
    assert_eq!(c.recovered().state(low), "SSUSP");
    // between the two it stays; within loadSched it goes on
    c.loads("it=0 tok=3");
    assert_eq!(c.orders(), []);
    c.loads("tok=5");
    assert_eq!(c.orders(), [(low, Act::Resume)]);
    assert_eq!(c.state(low), "RUN");
}

#[test]
fn jobs_of_a_host_are_looked_at_only_while_a_threshold_is_crossed_or_one_may_resume() {
    let mut c = queues("tok = 4/2").up();
    c.loads("mem=1000 it=0 tok=5");
    let jobs: Vec<JobRef> = (0..3).map(|_| c.submit("ann", "-q normal -m h1")).collect();
    let looks = |c: &Cluster| c.looks_for_load();
    let before = looks(&c);
    // within all thresholds, and between loadSched and loadStop
    ["tok=5", "tok=3", "mem=900"].iter().for_each(|load| c.loads(load));
    assert_eq!((looks(&c) - before, c.orders()), (0, vec![]));
    c.loads("tok=1");
    assert!(looks(&c) - before >= jobs.len());
    let suspended = jobs[0];
    assert_eq!(c.orders(), [(suspended, Act::Suspend)]);
    // a suspended job that may not go on yet is not looked at; nor are the others once it may
    c.loads("tok=3");
    c.advance(20);
    let before = looks(&c);
    c.loads("tok=3");
    assert_eq!(looks(&c) - before, 0);
    c.loads("tok=5");
    assert_eq!((looks(&c) - before, c.orders()), (1, vec![(suspended, Act::Resume)]));
}

#[test]
fn load_of_one_host_within_thresholds_has_no_other_host_looked_at() {
    let mut c = sharing_among(100).queue("normal", "scr = 4/2").up();
    c.loads("mem=1000 it=0 scr=5");
    let job = c.submit("ann", "-q normal -m h7");
    let looks = |c: &Cluster| c.hosts_looked_at_for_load();
    let before = looks(&c);
    c.load("h3", "scr=5");
    assert_eq!(looks(&c) - before, 1);
    // beyond loadStop a host is looked at whenever any load is heard of: its jobs may be others
    c.load("h7", "scr=1");
    assert_eq!(c.orders(), [(job, Act::Suspend)]);
    c.load("h8", "scr=1");
    let before = looks(&c);
    c.load("h3", "scr=5");
    assert_eq!(looks(&c) - before, 3);
    // within loadSched of the host with the suspended job alone
    c.load("h8", "scr=5");
    c.advance(20);
    c.load("h7", "scr=5");
    assert_eq!(c.orders(), [(job, Act::Resume)]);
    let before = looks(&c);
    c.load("h3", "scr=5");
    assert_eq!(looks(&c) - before, 1);
}

#[test]
fn job_that_comes_to_an_overloaded_host_is_suspended_with_the_next_load_of_any_host() {
    let mut c = sharing_among(3).queue("normal", "scr = -/2").up();
    c.loads("mem=1000 it=0 scr=1");
    let job = c.submit("ann", "-q normal -m h2");
    assert_eq!((c.state(job).as_str(), c.orders()), ("RUN", vec![]));
    c.load("h3", "scr=1");
    assert_eq!((c.state(job).as_str(), c.orders()), ("SSUSP", vec![(job, Act::Suspend)]));
}

#[test]
fn hosts_suspend_by_their_own_thresholds_no_faster_than_the_load_follows() {
    let hosts = "Begin Host\nHOST_NAME MXJ mem\ndefault 9 -/500\nEnd Host\n";
    let mut c = sharing().lsb_hosts(hosts).up();
    c.loads("mem=1000");
    let jobs: Vec<JobRef> = (0..3).map(|_| c.submit("ann", "-m h1")).collect();
    let suspended = |c: &mut Cluster| -> Vec<JobRef> {
        jobs.iter().copied().filter(|job| c.state(*job) == "SSUSP").collect()
    };
    c.loads("mem=100");
    let first = suspended(&mut c);
    assert_eq!((c.orders(), first.len()), (vec![(first[0], Act::Suspend)], 1));
    assert_eq!(c.suspended_for(first[0]), susp::LOAD + MEM as u32);
    c.loads("mem=90");
    assert_eq!((c.orders(), suspended(&mut c)), (vec![], first.clone()), "within SBD_SLEEP_TIME");
    c.advance(16);
    assert_eq!((c.orders().len(), suspended(&mut c).len()), (1, 2));
    // a host that comes back and says that it runs is told again
    c.hosts_wait();
    c.runs(first[0]);
    c.orders();
    c.lose("h1");
    c.advance(5);
    c.find("h1");
    c.advance(10);
    assert!(c.orders().contains(&(first[0], Act::Suspend)));
    assert_eq!(c.state(first[0]), "SSUSP");
}

#[test]
fn stop_cond_suspends_and_resume_cond_lets_go_on() {
    let lines = "STOP_COND = select[tok<2]; RESUME_COND = scr>=10; tok = 3/-";
    let mut c = queues(lines).up();
    c.loads("mem=1000 it=0 tok=5 scr=10");
    let high = c.submit("ann", "-q high -m h1");
    let low = c.submit("ann", "-q normal -m h1");
    assert_eq!(c.orders(), []);
    c.loads("tok=1");
    assert_eq!(c.orders(), [(low, Act::Suspend)]);
    assert_eq!((c.state(low), c.suspended_for(low)), ("SSUSP".into(), susp::STOP_COND));
    // the other one is alone at a host that somebody sits at
    c.advance(16);
    assert_eq!((c.orders(), c.state(high)), (vec![(high, Act::Suspend)], "SSUSP".into()));
    // it does not hold any more, but loadSched does not let go on
    c.advance(16);
    c.loads("tok=2");
    assert_eq!(c.orders(), []);
    // nor does RESUME_COND, which is told then
    c.loads("tok=5 scr=9");
    assert_eq!((c.orders(), c.suspended_for(low)), (vec![], susp::RESUME_COND));
    assert_eq!(c.recovered().state(low), "SSUSP");
    c.loads("scr=10");
    assert_eq!(c.orders(), [(high, Act::Resume)], "the higher queue's first");
    assert_eq!(both(&mut c, high, low), ["RUN", "SSUSP"]);
}

#[test]
fn job_alone_on_an_idle_host_is_not_suspended_by_stop_cond() {
    let mut c = queues("STOP_COND = select[tok<2]").up();
    c.loads("mem=1000 it=0 tok=5");
    let job = c.submit("ann", "-m h1");
    c.loads("it=5 tok=1");
    assert_eq!((c.orders(), c.state(job)), (vec![], "RUN".into()));
    c.loads("it=0");
    assert_eq!((c.orders(), c.state(job)), (vec![(job, Act::Suspend)], "SSUSP".into()));
}

#[test]
fn jobs_that_page_are_suspended_only_where_somebody_was_at_the_host_within_pg_susp_it() {
    let mut c = queues("pg = -/50").param("PG_SUSP_IT = 300").up();
    c.loads("mem=1000 it=0 pg=0");
    let jobs = [c.submit("ann", "-m h1"), c.submit("ann", "-m h1")];
    // idle for longer: paging disturbs nobody
    c.loads("it=6 pg=99");
    assert_eq!(c.orders(), []);
    c.loads("it=4");
    let suspended = c.orders();
    assert!(matches!(suspended[..], [(_, Act::Suspend)]), "{suspended:?}");
    assert_eq!(jobs.map(|job| c.state(job) == "SSUSP").iter().filter(|is| **is).count(), 1);
}

#[test]
fn job_alone_on_a_host_in_use_is_suspended_for_any_index() {
    // a queue's threshold; loads where nobody is at the host, and where somebody is
    for (line, start, away, there) in [
        ("mem = -/500", "mem=1000 it=5", "mem=100", "it=0.5"),
        // what counts is that the host is in use, not the bound of `it`
        ("it = -/10", "mem=1000 it=15", "it=5", "it=0"),
    ] {
        let mut c = queues(line).up();
        c.loads(start);
        let job = c.submit("ann", "-m h1");
        c.loads(away);
        assert_eq!((c.orders(), c.state(job)), (vec![], "RUN".into()), "{line}");
        c.loads(there);
        let suspended = (vec![(job, Act::Suspend)], "SSUSP".to_owned());
        assert_eq!((c.orders(), c.state(job)), suspended, "{line}");
    }
}

#[test]
fn terminate_when_ends_jobs_that_would_be_suspended() {
    let lines = "tok = -/2; TERMINATE_WHEN = WINDOW LOAD";
    let high = format!("PRIORITY = 40; {lines}");
    let normal = format!("PRIORITY = 30; {lines}; RUN_WINDOW = {}", super::SHUT_SOON);
    let mut c = sharing().queue("high", &high).queue("normal", &normal).up();
    c.loads("mem=1000 tok=5");
    let jobs: Vec<JobRef> = (0..3).map(|_| c.submit("ann", "-m h1")).collect();
    c.hosts_wait();
    c.loads("tok=1");
    let by_load = Act::Terminate { exit_info: term::LOAD };
    let orders = c.orders();
    assert_eq!((orders.len(), &orders[0].1), (1, &by_load));
    let ends = orders[0].0;
    c.loads("tok=5");
    assert_eq!(c.orders(), []);
    // the host is told again by the next mbatchd
    c.restart();
    assert_eq!(c.orders(), [(ends, by_load)]);
    c.ends_by(ends, 15, term::LOAD);
    assert_eq!((c.state(ends), c.orders()), ("EXIT".into(), vec![]));
    // the run window closes
    c.advance(40);
    let left = jobs.iter().filter(|job| **job != ends);
    let windows: Vec<_> =
        left.map(|job| (*job, Act::Terminate { exit_info: term::WINDOW })).collect();
    assert_eq!(c.orders(), windows);
    c.advance(40);
    assert_eq!(c.orders(), [], "told once");
}

#[test]
fn first_alternative_that_fits_is_reserved() {
    let mut c = sharing().up();
    c.loads("mem=1000 tok=5 scr=10");
    let options = "-R 'rusage[lic=2:tok=1 || scr=6]'";
    let jobs: Vec<JobRef> = (0..4).map(|_| c.submit("ann", options)).collect();
    let effective = |c: &mut Cluster, at: JobRef| {
        c.column(at, Col::EffectiveResReq).as_str().unwrap_or_default().to_owned()
    };
    // two of three lic are gone with the first; the next two take a host's own scr each
    let rusage = ["rusage[lic=2.00,tok=1.00]", "rusage[scr=6.00]", "rusage[scr=6.00]"];
    for (job, want) in jobs.iter().zip(rusage) {
        let text = effective(&mut c, *job);
        assert!(text.contains(want), "{text}");
    }
    assert_eq!(c.state(jobs[3]), "PEND");
    assert!(codes(&mut c, jobs[3]).contains(&PendReason::ReserveExternal(None)));
    for host in ["h1", "h2"] {
        assert_eq!(external(&mut c, host), pairs(&[("tok", "4"), ("scr", "4")]));
    }
    // as soon as the first gives back, the first alternative is the one again
    c.end(jobs[0], 0);
    let text = effective(&mut c, jobs[3]);
    assert!(text.contains(rusage[0]), "{text}");
}

#[test]
fn reservation_of_a_running_job_that_is_changed_holds_from_then_on() {
    let mut c = cluster().hosts(2, 2).lsf_conf("LSB_MOD_ALL_JOBS=Y").up();
    c.loads("mem=1000");
    let job = c.submit("ann", "-R 'select[mem>1] rusage[mem=100]'");
    let asked = |c: &mut Cluster| {
        let text = |column| column;
        c.columns(job, &[text(Col::ResReq), text(Col::EffectiveResReq)])
            .iter()
            .map(|value| value.as_str().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    };
    let before = asked(&mut c);
    for bad in
        ["select[mem>2] rusage[mem=50]", "span[hosts=1]", "{rusage[mem=1]} || {rusage[mem=2]}"]
    {
        let options = format!("-R '{bad}'");
        assert_eq!(c.modify("ann", job, &[ResReq], &options), err::MOD_RUNNING, "{bad}");
    }
    assert_eq!(c.modify("ann", job, &[ResReq], "-R 'rusage[nosuch'"), err::BAD_RESREQ);
    assert_eq!(asked(&mut c), before);
    assert_eq!(c.modify("ann", job, &[ResReq], "-R 'rusage[mem=40]'"), 0);
    for (asked, effective) in
        [asked(&mut c), asked(&mut c.recovered())].map(|all| (all[0].clone(), all[1].clone()))
    {
        assert!(asked.contains("select[mem>1]") && asked.contains("rusage[mem=40"), "{asked}");
        let new = effective.contains("rusage[mem=40") && !effective.contains("100");
        assert!(new, "{effective}");
    }
    // it reserves that much from now on, and nothing once it is told so
    let reserved = |c: &mut Cluster| ["h1", "h2"].map(|host| memory(c, host).0).iter().sum::<f64>();
    assert_eq!(reserved(&mut c), 40.0);
    assert_eq!(c.modify("ann", job, &[ResReq], ""), 0);
    assert_eq!(reserved(&mut c), 0.0);
}

/// Two queues that reserve 100 and 300 MB.
fn reserving(modify: &str) -> ClusterBuilder {
    let of = |mem: u32| format!("RES_REQ = rusage[mem={mem}]");
    let site = cluster().hosts(1, 9).param(&format!("BSWITCH_MODIFY_RUSAGE = {modify}"));
    site.queue("normal", &of(100)).queue("large", &of(300)).queue("bare", "")
}

#[test]
fn switched_job_reserves_as_in_its_new_queue_where_the_parameter_says_so() {
    for (modify, [large, none]) in [("Y", [300.0, 0.0]), ("N", [100.0, 100.0])] {
        let mut c = reserving(modify).up();
        c.loads("mem=1000");
        let job = c.submit("ann", "-R 'select[mem>1]'");
        assert_eq!(memory(&mut c, "h1").0, 100.0);
        c.switch("ann", job, "large");
        assert_eq!(memory(&mut c, "h1").0, large, "{modify}");
        let effective = |c: &mut Cluster| c.column(job, Col::EffectiveResReq).to_string();
        let shown = effective(&mut c);
        let want = format!("rusage[mem={large:.2}]");
        assert!(shown.contains(&want) && shown.contains("select[(mem>1)"), "{shown}");
        assert_eq!(effective(&mut c.recovered()), shown);
        c.switch("ann", job, "bare");
        assert_eq!(memory(&mut c, "h1").0, none, "{modify}");
        c.switch("ann", job, "normal");
        // of a job that asks for itself nothing changes
        let own = c.submit("ann", "-R 'rusage[mem=40]'");
        assert_eq!(memory(&mut c, "h1").0, 140.0);
        c.switch("ann", own, "large");
        assert_eq!(memory(&mut c, "h1").0, 140.0);
    }
}

#[test]
fn started_elements_that_are_switched_reserve_as_in_their_new_queue() {
    let mut c = reserving("Y").up();
    c.loads("mem=1000");
    let array = c.submit("ann", "-J 'a[1-12]'");
    let reserved = |c: &mut Cluster| memory(c, "h1").0;
    assert_eq!(reserved(&mut c), 900.0);
    c.switch("ann", element(array, 2), "bare");
    c.switch("ann", element(array, 3), "bare");
    assert_eq!(reserved(&mut c), 700.0);
    // all of it: the part of those two, too
    c.switch("ann", element(array, 4), "large");
    assert_eq!(reserved(&mut c), 900.0);
    c.switch("ann", array, "bare");
    assert_eq!(reserved(&mut c), 0.0);
}

#[test]
fn host_with_an_exclusive_resource_takes_only_jobs_that_ask_for_it() {
    let site = sharing().resource("big Boolean () ()").resource("cs Boolean () ()");
    let mut c = site.host_resources("h1", "!big cs").up();
    c.loads("mem=1000");
    let plain = c.submit("ann", "-m h1");
    let other = c.submit("ann", "-m h1 -R 'select[cs]'");
    let asks = c.submit("ann", "-R 'select[big]'");
    assert_eq!((c.running_on(plain), c.running_on(other)), (vec![], vec![]));
    assert_eq!(c.running_on(asks), ["h1"]);
    assert!(c.waits_for(plain, PendReason::Requirement));
    let free = c.submit("ann", "");
    assert_eq!(c.running_on(free), ["h2"]);
}
