//! bapp: the application profiles with the slots of their jobs.

use crate::batch::site::applications::Application;
use crate::batch::{Mbatchd, StepContext};
use crate::model::reason::err;
use crate::proto::Refusal;
use crate::proto::client::{ApplicationInfo, ClientMsg};
use crate::proto::machine::ConnId;
use std::collections::BTreeSet;

impl Mbatchd {
    pub(crate) fn list_applications(
        &mut self,
        context: &mut StepContext,
        conn: ConnId,
        names: &[String],
    ) {
        let all = &self.site.applications;
        if let Some(bad) = names.iter().find(|name| all.get(name).is_none()) {
            return context.refuse(conn, Refusal::about(err::NO_APP, bad));
        }
        let asked: BTreeSet<&String> = names.iter().collect();
        let meant = |a: &&Application| names.is_empty() || asked.contains(&a.conf.name);
        let rows = all.iter().filter(meant).map(|a| self.application_info(a)).collect();
        context.reply(conn, ClientMsg::ApplicationRows { rows });
    }

    fn application_info(&self, a: &Application) -> ApplicationInfo {
        let slots = self.application_counts.slots(&a.conf.name);
        let by_default = self.site.params().default_application.as_ref();
        ApplicationInfo {
            name: a.conf.name.clone(),
            description: a.conf.description.clone(),
            is_default: by_default == Some(&a.conf.name),
            pend: slots.pend,
            run: slots.run,
            ssusp: slots.ssusp,
            ususp: slots.ususp,
            params: a.conf.raw.iter().map(|(k, v)| (k.clone(), v.text.clone())).collect(),
        }
    }
}
