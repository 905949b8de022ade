//! A job as a request to the load balancer: the policy that is asked for it, and its attributes.

use crate::batch::site::{Queue, Site};
use crate::model::job::JobSpec;
use crate::model::nqs::{RequestValue, attributes, put_attribute};

/// The attribute with the name of a request.
pub const NAME: &str = "JOB_REQNAME";

/// Jobs of one key share a list of hosts.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NlbKey {
    /// The policy, as it is written.
    pub policy: Box<str>,
    /// The attributes that the policy looks at, as [`put_attribute`] writes them.
    pub attributes: Box<str>,
}

impl Site {
    /// The policy that chooses hosts for a submission to a queue: its own, or that of the queue. A
    /// request has a host by the policy of its destination-selection queue, in place of its own.
    pub(crate) fn nlb_policy<'a>(
        &self,
        spec: &'a JobSpec,
        queue: Option<&'a Queue>,
    ) -> Option<&'a str> {
        let routed = spec.further.route.as_ref().is_some_and(|route| !route.policy.is_empty());
        match &*spec.further.nlb_policy {
            own if own.is_empty() || routed => Some(&*queue?.conf.nqs.nlb_policy.as_ref()?.name),
            own => Some(own),
        }
    }
}

/// The key of a submission that a policy chooses hosts for. `used`: the attributes that the policy
/// looks at; `None`: not known yet, none is in the key.
pub(crate) fn key_of(policy: &str, spec: &JobSpec, used: Option<&[String]>) -> NlbKey {
    let mut text = String::new();
    for (name, value) in request_attributes(spec, &spec.name, Some(used.unwrap_or_default())) {
        put_attribute(&mut text, &name, &value);
    }
    NlbKey { policy: policy.into(), attributes: text.into() }
}

/// The attributes of a request: those that were given, its limits, and its name. `used`: only those
/// that the policy looks at.
pub(crate) fn request_attributes(
    spec: &JobSpec,
    name: &str,
    used: Option<&[String]>,
) -> Vec<(String, RequestValue)> {
    let wanted = |name: &str| used.is_none_or(|u| u.iter().any(|w| w.eq_ignore_ascii_case(name)));
    let mut all = attributes(&spec.further.nlb_attributes);
    all.retain(|(name, _)| wanted(name));
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
            all.push((name.to_owned(), RequestValue::Number(value as f64 * unit)));
        }
    }
    if wanted(NAME) {
        all.push((NAME.to_owned(), RequestValue::Text(name.to_owned())));
    }
    all
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
            let mut text = String::new();
            for (name, value) in request_attributes(spec, "prod", used) {
                put_attribute(&mut text, &name, &value);
            }
            text
        };
        let all = "JOB_NASTRAN=1 JOB_PRCPUTIME=30 JOB_PRMEMSIZE=4096 JOB_REQNAME=\"prod\"";
        assert_eq!(told(&spec, None), all);
        assert_eq!(told(&spec, Some(&["job_prmemsize".into()])), "JOB_PRMEMSIZE=4096");
        let named = JobSpec { name: "prod".into(), ..spec.clone() };
        let key = |used: Option<&[String]>| key_of("cad", &named, used).attributes.to_string();
        assert_eq!(key(None), "");
        assert_eq!(key(Some(&["JOB_NASTRAN".into()])), "JOB_NASTRAN=1");
        spec.further.nqs.0 = true;
        assert_eq!(told(&spec, None), "JOB_NASTRAN=1 JOB_PRCPUTIME=30 JOB_REQNAME=\"prod\"");
    }
}
