//! The messages of a sbatchd, each to the file that deals with it.

use crate::batch::lifecycle::report_standing::Standing;
use crate::batch::{Mbatchd, StepContext};
use crate::proto::machine::ConnId;
use crate::proto::sbd::SbdMsg;

impl Mbatchd {
    pub(crate) fn take_sbatchd_message(
        &mut self,
        context: &mut StepContext,
        conn: ConnId,
        msg: SbdMsg,
    ) {
        let Some(i) = self.host_of(context, conn) else { return self.refuse_caller(context, conn) };
        if self.log_failed.is_some() {
            return;
        }
        match msg {
            SbdMsg::Inventory {
                boot_id,
                tasks,
                more,
                members,
                validates,
                unjoined,
                member_slots,
            } => {
                self.links.set_validates(i, validates);
                self.inventory_piece(context, (i, conn), boot_id, &tasks, more);
                if !more {
                    self.members_told(context, i, members, (unjoined, member_slots));
                }
            }
            SbdMsg::Joined { key } => self.join_told(context, i, key),
            SbdMsg::JoinRefused { key, why } => self.join_refused(context, i, key, &why),
            SbdMsg::Left { key, usage } => {
                if let Some(held) = self.leave_told(context, i, (key, *usage)) {
                    self.end_held(context, held);
                }
                self.tell_usage_of_others(context, key);
            }
            SbdMsg::AskUsage { key } => self.usage_of_others_asked(context, i, key),
            SbdMsg::HostUsage { key, usage, pids, groups, over_memory } => {
                self.host_usage(context, i, key, (*usage, pids, groups), over_memory);
            }
            SbdMsg::TaskGone { key, status } => self.task_gone(context, i, key, status),
            SbdMsg::State(t) => self.task_state(context, i, &t),
            SbdMsg::AskHosts { key, work } => self.hosts_asked(context, i, key, work),
            SbdMsg::HostCommandTold { key, work, state } => {
                self.host_command_told(context, i, key, (work, state));
            }
            SbdMsg::Validated { number, verdict } => self.validated(context, i, number, verdict),
            SbdMsg::NeedBlob { at } => self.need_blob(context, i, conn, at),
            SbdMsg::Usage { key, usage, pids, groups, .. } => {
                if self.standing(i, key) == Standing::Foreign {
                    self.refuse_report(context, i, "usage", key.job_ref());
                } else {
                    self.first_usage(context, key, (*usage, pids, groups));
                }
            }
            _ => self.refuse(context, i, "an order, which hosts do not give"),
        }
    }
}
