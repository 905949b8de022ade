//! The steps of changes of the slots of a started element, as the log tells them.

use crate::batch::state::State;
use crate::batch::state::change::Applied;
use crate::batch::state::element::{ElemState, Run};
use crate::batch::state::job_hosts::JobHosts;
use crate::batch::state::names::HostId;
use crate::batch::state::resize::{AskedSlots, ResizeUnderWay};
use crate::model::event::{JobResize, ResizeStep};
use crate::model::resize::{NOTIFY_OK, with, without};

impl Run {
    /// The allocation when the change that is under way has ended well.
    pub fn allocation_after(&self) -> Option<JobHosts> {
        let change = self.resize.as_ref()?.under_way.as_ref()?;
        Some(match change.grows {
            true => self.hosts.clone(),
            false => without(&self.hosts, &change.hosts).into(),
        })
    }

    /// Takes over a step that concerns no slots, or those of the change that ends.
    fn resized(&mut self, t: i64, step: &ResizeStep, hosts: Vec<(HostId, u32)>) {
        let resize = self.resize.get_or_insert_default();
        match step {
            ResizeStep::Released { cancels, .. } => {
                // released slots do not come back by themselves
                resize.cancelled = true;
                if *cancels {
                    resize.asked = None;
                }
            }
            ResizeStep::Asked { total, least, command } => {
                let (total, least, command) = (*total, *least, command.clone());
                (resize.cancelled, resize.failed_at) = (true, 0);
                resize.asked = Some(AskedSlots { total, least, command });
            }
            ResizeStep::Cancelled => (resize.cancelled, resize.asked) = (true, None),
            ResizeStep::Begun { number, grows, command, .. } => {
                let (number, grows, command) = (*number, *grows, command.clone());
                if grows {
                    (self.hosts, self.task_order) = (with(&self.hosts, &hosts).into(), None);
                }
                let accepted = false;
                let change = ResizeUnderWay { number, grows, hosts, command, accepted };
                (resize.number, resize.under_way) = (number, Some(change));
            }
            ResizeStep::Accepted { number, .. } => {
                let of = |change: &&mut ResizeUnderWay| change.number == *number;
                if let Some(change) = resize.under_way.as_mut().filter(of) {
                    change.accepted = true;
                }
            }
            ResizeStep::Done { number, status } => {
                let Some(change) = resize.under_way.take_if(|of| of.number == *number) else {
                    return;
                };
                let well = *status == NOTIFY_OK;
                if well != change.grows {
                    self.hosts = without(&self.hosts, &change.hosts).into();
                    self.task_order = None;
                }
                let slots: u32 = self.hosts.iter().map(|host| host.1).sum();
                match well {
                    true => resize.changed_at = t,
                    false if change.grows => resize.failed_at = t,
                    false => {}
                }
                if well && change.grows {
                    resize.asked.take_if(|asked| asked.total <= slots);
                    resize.asked.iter_mut().for_each(|asked| asked.least = 1);
                }
            }
        }
    }
}

impl State {
    /// A step of a change of the slots of an element.
    pub(super) fn resize(&mut self, t: i64, r: &JobResize) -> Applied {
        let of = |run: &Run| run.key.attempt == r.attempt;
        if !self.elem(r.at).and_then(|e| e.run()).is_some_and(of) || !self.running_at(r.at) {
            return match r.attempt {
                // another LSF's record, of which is not known what it does
                0 => Applied::noted(r.at),
                _ => Applied::Rejected("a resize of an attempt that does not run"),
            };
        }
        let hosts: Vec<(HostId, u32)> = match &r.step {
            ResizeStep::Begun { hosts, .. } => {
                hosts.iter().map(|(host, n)| (self.names.host_id(host), *n)).collect()
            }
            _ => Vec::new(),
        };
        if matches!(r.step, ResizeStep::Begun { grows: true, .. }) {
            hosts.iter().for_each(|(host, _)| self.last_starts.note(*host, t));
        }
        match &r.step {
            ResizeStep::Begun { .. } | ResizeStep::Done { .. } => self.set(r.at, |e| {
                if let ElemState::Run(run) = &mut e.state {
                    run.resized(t, &r.step, hosts);
                }
            }),
            step => self.with_run(r.at, |run| run.resized(t, step, hosts)),
        }
    }
}
