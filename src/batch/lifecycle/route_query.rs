//! The facts of a request for the load balancer: its attributes, and the hosts that it accepts.

use crate::batch::sched::split_host_word;
use crate::batch::site::Site;
use crate::model::job::JobSpec;
use crate::model::nqs::{RequestValue, attributes};
use crate::proto::nlb::{AttributeValue, MAX_QUERY_ATTRIBUTES};

/// The attribute with the name of a request.
const NAME: &str = "JOB_REQNAME";

/// The attributes of a request: those that were given, its limits, and its name. `used`: only those
/// that the policy looks at.
pub(crate) fn query_attributes(
    spec: &JobSpec,
    name: &str,
    used: Option<&[String]>,
) -> Vec<(String, AttributeValue)> {
    let mut all: Vec<(String, AttributeValue)> = Vec::new();
    let wanted = |name: &str| used.is_none_or(|u| u.iter().any(|w| w.eq_ignore_ascii_case(name)));
    for (name, value) in attributes(&spec.further.nlb_attributes) {
        let value = match value {
            RequestValue::Number(n) => AttributeValue::Number(n),
            RequestValue::Text(text) => AttributeValue::Text(text),
        };
        if wanted(&name) {
            all.push((name, value));
        }
    }
    let l = &spec.limits;
    let limits = [
        ("JOB_PRMEMSIZE", l.rss, 1_024.0),
        ("JOB_PRCPUTIME", l.cpu, 1.0),
        ("JOB_PPPFILESIZE", l.fsize, 1_024.0),
        ("JOB_PPDATASIZE", l.data, 1_024.0),
        ("JOB_PPSTACKSIZE", l.stack, 1_024.0),
        ("JOB_PPCORESIZE", l.core, 1_024.0),
    ];
    // a request of NQS has said which limits it asks for
    let limits = limits.into_iter().filter(|_| !spec.further.nqs.0);
    for (name, value, unit) in limits {
        let given = all.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
        if let Some(value) = value.filter(|_| wanted(name) && !given) {
            all.push((name.to_owned(), AttributeValue::Number(value as f64 * unit)));
        }
    }
    if wanted(NAME) {
        all.push((NAME.to_owned(), AttributeValue::Text(name.to_owned())));
    }
    all.truncate(MAX_QUERY_ATTRIBUTES);
    all
}

/// The hosts of -m; empty: all.
pub(crate) fn acceptable(site: &Site, spec: &JobSpec) -> Vec<String> {
    let words = spec.hosts.iter().map(|word| split_host_word(word).0);
    if words.clone().any(|word| word == "others" || word == "all") {
        return Vec::new();
    }
    words.flat_map(|word| site.expand_host(word)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::limits::Limits;

    #[test]
    fn attributes_of_limits_are_in_bytes_and_seconds() {
        let limits = Limits { rss: Some(4), cpu: Some(60), ..Limits::default() };
        let mut spec = JobSpec { limits, ..JobSpec::default() };
        spec.further.nlb_attributes = "JOB_NASTRAN=1 JOB_PRCPUTIME=30".into();
        let told = |spec: &JobSpec, used: Option<&[String]>| {
            let all = query_attributes(spec, "prod", used);
            let all = all.iter().map(|(name, value)| match value {
                AttributeValue::Number(n) => format!("{name} {n}"),
                AttributeValue::Text(text) => format!("{name} {text}"),
            });
            all.collect::<Vec<_>>().join(", ")
        };
        let all = "JOB_NASTRAN 1, JOB_PRCPUTIME 30, JOB_PRMEMSIZE 4096, JOB_REQNAME prod";
        assert_eq!(told(&spec, None), all);
        assert_eq!(told(&spec, Some(&["JOB_PRMEMSIZE".into()])), "JOB_PRMEMSIZE 4096");
        spec.further.nqs.0 = true;
        assert_eq!(told(&spec, None), "JOB_NASTRAN 1, JOB_PRCPUTIME 30, JOB_REQNAME prod");
    }
}
