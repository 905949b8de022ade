//! NLB_POLICY of lsb.queues, and NLB_RANK_AGE.

use super::{BATCH, ENVDIR, MapFiles, load, placed, site};
use crate::conf::types::NlbPolicy;

/// The example site with further lines of queue `normal` and a parameter.
fn with(normal: &str, param: &str) -> MapFiles {
    let mut files = site();
    let name = "QUEUE_NAME     = normal";
    files.edit(&format!("{BATCH}/lsb.queues"), name, &format!("{name}\n{normal}"));
    let begin = "Begin Parameters";
    files.edit(&format!("{BATCH}/lsb.params"), begin, &format!("{begin}\n{param}"));
    files
}

#[test]
fn policy_that_is_no_name_is_an_error_at_its_place() {
    for (normal, param, want) in [
        ("NLB_POLICY = a b", "", "error lsb.queues NLB_POLICY:14 bad value <a b> of NLB_POLICY"),
        ("NLB_POLICY = a hold now", "", "the name of a policy is wanted, and behind it `hold`"),
        ("NLB_POLICY = a/b", "", "bad value <a/b> of NLB_POLICY"),
        ("", "NLB_RANK_AGE = 0", "error lsb.params NLB_RANK_AGE:16 bad value <0>"),
        ("", "NLB_RANK_AGE = 301", "a number from 1 to 300 is wanted"),
        (
            "NLB_POLICY = a",
            "",
            "warning lsb.queues NLB_POLICY:14 NLB_POLICY: NLB_SERVER is not set",
        ),
    ] {
        let files = with(normal, param);
        let (_, diags) = load(&files, ENVDIR);
        let told: Vec<String> = diags.iter().map(|d| placed(&files, d)).collect();
        assert!(told.iter().any(|line| line.contains(want)), "{normal} {param}: {told:?}");
    }
}

#[test]
fn policy_and_servers_are_read() {
    for (value, hold) in [("cad", false), ("cad  HOLD", true)] {
        let mut files = with(&format!("NLB_POLICY = {value}"), "NLB_RANK_AGE = 3");
        files.put(&format!("{ENVDIR}/nqeinfo"), "NLB_SERVER = alpha:7000\n");
        let (conf, diags) = load(&files, ENVDIR);
        assert!(!diags.iter().any(|diag| diag.to_string().contains("NLB")), "{diags:?}");
        let conf = conf.unwrap();
        let queue = conf.queue("normal").unwrap();
        assert_eq!(queue.nqs.nlb_policy, Some(NlbPolicy { name: "cad".into(), hold }));
        assert_eq!(conf.batch.params.nlb_rank_age, 3);
        let servers = &conf.batch.nlb_servers;
        assert_eq!(
            servers.iter().map(|s| (&*s.host, s.port)).collect::<Vec<_>>(),
            [("alpha", 7000)]
        );
    }
}
