//! Resource requirements as users see them: what is refused and where, what bjobs -l shows as
//! Combined and Effective, and the order of hosts that a compound requirement hands to the job.

use super::Col;
use super::cluster::cluster;
use crate::model::reason::err;
use crate::model::specfield::SpecField::ResReq;

fn text(c: &mut super::cluster::Cluster, job: super::JobRef, column: Col) -> String {
    c.column(job, column).as_str().unwrap_or_default().to_owned()
}

#[test]
fn requirement_that_cannot_be_met_by_its_form_is_refused_with_the_place() {
    let mut c = cluster().hosts(2, 4).param("COMPUTE_UNIT_TYPES = rack! row").up();
    let mut wrong = Vec::new();
    for (req, words) in [
        ("span[hosts=2]", "hosts is 1 or -1 at column 13"),
        ("span[ptile=0]", "a positive number is needed at column 13"),
        ("span[ptile=2:block=2]", "hosts, ptile, block and stripe exclude each other at column 21"),
        ("span[block]", "missing = at column 11"),
        ("span[tile=2]", "unknown keyword in span at column 10"),
        ("same[rack]", "rack: unknown resource at column 6"),
        ("same[]", ": unknown resource at column 6"),
        ("cu[pref=best]", "unknown preference at column 13"),
        ("cu[maxcus=0]", "a positive number is needed at column 12"),
        ("cu[type=]", "missing type at column 9"),
        ("cu[balance:usablepercu=2]", "balance and usablepercu exclude each other at column 25"),
        ("cu[type=rak]", "rak: unknown type of compute units; the types are rack, row"),
        ("rusage[mem=(1 2)]", "amounts, durations and decays do not match at column 17"),
        ("rusage[mem=5/slot]", "expected host, task or job at column 18"),
        ("rusage[mem=5:duration=0]", "bad duration at column 24"),
        ("rusage[type=5]", "type: only numeric resources can be reserved at column 8"),
        ("rusage[mem=1,mem=2]", "mem: reserved twice at column 14"),
        ("order[-]", "missing operand"),
        ("2*{mem>1} + 3*{}", "empty part at column 16"),
        ("2*{mem>1} + {mem>2} + 1*{mem>3}", "only the last part may lack its number of tasks"),
        ("0*{mem>1}", "bad number of tasks at column 1"),
        ("2*{mem>1", "missing } at column 4"),
        ("{mem>1} || 2*{mem>2}", "compound parts within alternatives need their own braces"),
        ("{mem>1}@x || {mem>2}", "bad delay at column 9"),
        ("{cu[excl]} || {mem>1}", "excl of cu[] is not supported in compound and alternative"),
    ] {
        let refused = c.try_submit("ann", &format!("-R '{req}'")).map_err(|e| e.words());
        let told = refused.map_or_else(|told| told, |job| format!("accepted as {job}"));
        if !told.contains(words) || !told.contains("Bad resource requirement syntax") {
            wrong.push(format!("{req}: {told}"));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(c.listing(&[Col::Job]).is_empty());
}

#[test]
fn combined_and_effective_requirement_show_all_parts_and_the_chosen_alternative() {
    let mut c = cluster().hosts(2, 4).up();
    let job = c.submit("ann", "-R '1*{rusage[mem=10]} + 2*{select[type==any] span[hosts=1]}'");
    let parts = "1*{select[type == local] order[r15s:pg] rusage[mem=10.00]} + \
                 2*{select[type==any] order[r15s:pg] span[hosts=1]}";
    assert_eq!(text(&mut c, job, Col::CombinedResReq), parts);
    assert_eq!(text(&mut c, job, Col::EffectiveResReq), parts);
    let job =
        c.submit("ann", "-n 2 -R '{select[mem>9999999]} || {select[type==any] same[model]}@0'");
    let combined = "{select[(mem>9999999) && (type == local)] order[r15s:pg]} || \
                    {select[type==any] order[r15s:pg] same[model]}";
    assert_eq!(text(&mut c, job, Col::CombinedResReq), combined);
    let effective = "select[type==any] order[r15s:pg] same[model]";
    assert_eq!(text(&mut c, job, Col::EffectiveResReq), effective);
}

#[test]
fn job_learns_the_order_of_its_tasks_where_a_host_comes_back() {
    let resources = |site: super::cluster::ClusterBuilder| {
        site.resource("big Boolean () ()").host_resources("h2", "big")
    };
    let mut c = resources(cluster().hosts(2, 4)).up();
    let job = c.submit("ann", "-R '2*{!big} + 1*{big} + 1*{!big}'");
    let orders = c.start_orders();
    let order = orders.last().unwrap();
    let named = |all: &[(&str, u32)]| -> Vec<(String, u32)> {
        all.iter().map(|(host, n)| (host.to_string(), *n)).collect()
    };
    let hosts: Vec<(String, u32)> = order.hosts.iter().map(|(h, n)| (h.to_string(), *n)).collect();
    assert_eq!(hosts, named(&[("h1", 3), ("h2", 1)]));
    assert_eq!(order.ranks, named(&[("h1", 2), ("h2", 1), ("h1", 1)]));
    // and it is the same for a master that reads it in the log
    let mut again = c.recovered();
    assert_eq!(again.running_on(job), ["h1", "h1", "h1", "h2"]);
}

#[test]
fn change_of_a_pending_job_is_held_against_the_same_rules() {
    let queue = "PRIORITY = 30; RESRSV_LIMIT = [mem=100]";
    let mut c = cluster().hosts(1, 1).queue("normal", queue).up();
    c.submit("ann", "");
    let job = c.submit("ann", "-R 'rusage[mem=50]'");
    let refused = c.try_modify("ann", job, &[ResReq], "-R 'rusage[mem=101]'");
    let code = refused.unwrap_or_else(|refusal| refusal.code);
    assert_eq!(code, err::QUEUE_RESERVATION);
    assert_eq!(text(&mut c, job, Col::ResReq), "rusage[mem=50]");
}

#[test]
fn levels_of_a_requirement_are_told_as_the_cluster_wants_them_shown() {
    let levels = |display: &str| {
        let site = cluster().hosts(1, 4).queue("normal", "RES_REQ = select[mem>1]");
        let site = site.application("sim", "RES_REQ = rusage[mem=2]").application("x", "");
        let site = match display {
            "" => site,
            word => site.param(&format!("BJOBS_RES_REQ_DISPLAY = {word}")),
        };
        let mut c = site.up();
        let jobs = ["-app sim", "-app x", ""].map(|options| c.submit("ann", options));
        jobs.map(|job| c.column(job, Col::ResReqLevels).to_string())
    };
    assert_eq!(levels(""), ["null"; 3]);
    assert_eq!(levels("brief"), ["null"; 3]);
    assert_eq!(levels("none"), ["[\"none\"]"; 3]);
    let of = |profile: &str| format!("[\"full\",\"{profile}\",\"select[mem>1]\"]");
    assert_eq!(levels("full"), [of("rusage[mem=2]"), of(""), of("")]);
}
