//! Checks of what requirements rest on, across files: the types of compute units, those that
//! queues name, and the resources of the default order.

use super::diag::{Diags, Severity};
use super::expressions::ResourceNames;
use super::lexer::shown;
use super::names::nearest;
use super::types::{ClusterConf, ExclusiveUnitType};
use crate::lang::resreq::{HostOrder, Syntax};

/// Tells of a DEFAULT_RESREQ_ORDER that cannot be read: r15s:pg is used then.
pub(super) fn default_order(conf: &ClusterConf, diags: &mut Diags) {
    let Some(value) = conf.batch.params.raw.get("DEFAULT_RESREQ_ORDER") else { return };
    let names = ResourceNames(&conf.base.shared);
    if let Err(error) = HostOrder::read(&value.text, &Syntax::new(&names)) {
        let (text, reason) = (shown(&value.text), shown(&error.reason));
        let text = format!("bad value <{text}> of DEFAULT_RESREQ_ORDER: {reason}");
        diags.error(&value.pos_at(error.offset), text);
    }
}

/// Tells of units whose type COMPUTE_UNIT_TYPES does not have, and of queues that name such a type.
pub(super) fn unit_types(conf: &ClusterConf, diags: &mut Diags) {
    let types = &conf.batch.params.compute_unit_types.names;
    let known = |name: &str| types.iter().any(|known| known == name);
    let near = |name: &str| nearest(name, types.iter().map(String::as_str));
    for unit in conf.batch.hosts.units.iter().filter(|unit| !known(&unit.kind)) {
        let text = format!(
            "TYPE <{}> of compute unit <{}> is not in COMPUTE_UNIT_TYPES of lsb.params",
            shown(&unit.kind),
            shown(&unit.name)
        );
        diags.add_near(Severity::Warning, &unit.pos, text, near(&unit.kind));
    }
    for queue in &conf.batch.queues {
        let Some(value) = queue.raw.get("EXCLUSIVE") else { continue };
        match &queue.exclusive_units {
            ExclusiveUnitType::DefaultType if types.is_empty() => {
                let text = "EXCLUSIVE = CU[] needs COMPUTE_UNIT_TYPES in lsb.params";
                diags.warning(&value.pos, text);
            }
            ExclusiveUnitType::Type(name) if !known(name) => {
                let name = name.as_str();
                let text = format!(
                    "<{}> of EXCLUSIVE is not in COMPUTE_UNIT_TYPES of lsb.params",
                    shown(name)
                );
                diags.add_near(Severity::Warning, &value.pos, text, near(name));
            }
            _ => {}
        }
    }
}
