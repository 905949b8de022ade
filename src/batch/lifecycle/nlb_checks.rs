//! Checks of bsub -nlb: the policies and attributes of a submission are held against those that a
//! server of the load balancer has told of.

use crate::batch::Mbatchd;
use crate::conf::lexer::shown;
use crate::conf::names::nearest;
use crate::lang::qmgr::policy_name;
use crate::model::job::JobSpec;
use crate::model::nqs::{attribute_name, attribute_word, attributes, put_asked};
use crate::model::reason::err;
use crate::proto::Refusal;
use crate::proto::nlb::MAX_QUERY_ATTRIBUTES;

impl Mbatchd {
    /// Is it not known whether the policy and the attributes of a submission exist?
    pub(crate) fn is_nlb_unchecked(&self, spec: &JobSpec) -> bool {
        asks(spec) && self.nlb_lists.known().is_none()
    }

    /// Checks the policy and the attributes of a submission. A word that names no policy may be an
    /// attribute.
    pub(crate) fn check_nlb(&self, spec: &mut JobSpec) -> Result<(), Refusal> {
        check_form(spec)?;
        let Some(known) = self.nlb_lists.known().filter(|_| asks(spec)) else { return Ok(()) };
        let is_attribute = |name: &str| known.attributes.contains(&name.to_ascii_uppercase());
        let policy = spec.further.nlb_policy.clone();
        if !policy.is_empty() && !known.policies.iter().any(|known| **known == *policy) {
            let mut all = spec.further.nlb_attributes.to_string();
            if !is_attribute(&attribute_name(&policy)) || put_asked(&mut all, &policy).is_err() {
                let words = format!("<{policy}>: No such NLB policy");
                return Err(Refusal::text(err::BAD_ARG, words));
            }
            spec.further.nlb_policy = "".into();
            spec.further.nlb_attributes = all.into();
        }
        for (name, _) in attributes(&spec.further.nlb_attributes) {
            if !is_attribute(&name) {
                let word = attribute_word(&name);
                let words: Vec<_> = known.attributes.iter().map(|a| attribute_word(a)).collect();
                // attributes are named without the JOB_ of policies here
                let bare = word.strip_prefix("job_").unwrap_or(&word);
                let near = nearest(bare, words.iter().map(String::as_str));
                let near = near.map_or(String::new(), |near| format!("; did you mean <{near}>?"));
                let words = format!("<{word}>: no such attribute{near}");
                return Err(Refusal::text(err::BAD_ARG, words));
            }
        }
        Ok(())
    }
}

/// Checks what holds whether a server is heard or not: the policy goes to the log by its name, and
/// each attribute is held against those of the server.
fn check_form(spec: &JobSpec) -> Result<(), Refusal> {
    let further = &spec.further;
    if !further.nlb_policy.is_empty() && !policy_name(&further.nlb_policy) {
        let words = format!("<{}>: No such NLB policy", shown(&further.nlb_policy));
        return Err(Refusal::text(err::BAD_ARG, words));
    }
    if attributes(&further.nlb_attributes).len() > MAX_QUERY_ATTRIBUTES {
        let words = format!("more than {MAX_QUERY_ATTRIBUTES} attributes for the load balancer");
        return Err(Refusal::text(err::BAD_ARG, words));
    }
    Ok(())
}

/// Does a submission ask for a policy or have attributes, and is no request of NQS?
fn asks(spec: &JobSpec) -> bool {
    let further = &spec.further;
    let any = !further.nlb_policy.is_empty() || !further.nlb_attributes.is_empty();
    any && !further.nqs.0
}
