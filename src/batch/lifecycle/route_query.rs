//! The facts of a request for the load balancer: its attributes, and the hosts that it accepts.

use crate::batch::sched::split_host_word;
use crate::batch::site::Site;
use crate::batch::site::nlb_request::request_attributes;
use crate::model::job::JobSpec;
use crate::proto::nlb::{AttributeValue, MAX_QUERY_ATTRIBUTES};

/// The attributes of a request as a query has them. `used`: only those that the policy looks at.
pub(crate) fn query_attributes(
    spec: &JobSpec,
    name: &str,
    used: Option<&[String]>,
) -> Vec<(String, AttributeValue)> {
    let all = request_attributes(spec, name, used).into_iter();
    all.map(|(name, value)| (name, value.into())).take(MAX_QUERY_ATTRIBUTES).collect()
}

/// The hosts of -m; empty: all.
pub(crate) fn acceptable(site: &Site, spec: &JobSpec) -> Vec<String> {
    let words = spec.hosts.iter().map(|word| split_host_word(word).0);
    if words.clone().any(|word| word == "others" || word == "all") {
        return Vec::new();
    }
    words.flat_map(|word| site.expand_host(word)).collect()
}
