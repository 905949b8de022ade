//! The values that absolute priorities are made of: priorities of profiles, users and groups, and
//! amounts that jobs ask for. See APS_PRIORITY in lsb.queues(5).

use crate::batch::site::Site;
use crate::batch::site::requirements::Req;
use crate::batch::site::reservation_methods::ReservationMethod;

impl Site {
    /// PRIORITY of an application profile; 0 without one.
    pub fn application_priority(&self, name: &str) -> u32 {
        self.applications.get(name).map_or(0, |application| application.conf.priority)
    }

    /// PRIORITY of a user in lsb.users; 0 without one.
    pub fn user_priority(&self, user: &str) -> u32 {
        self.user_row(user).and_then(|row| row.priority).unwrap_or(0)
    }

    /// PRIORITY of a user group in lsb.users; 0 without one.
    pub fn group_priority(&self, group: &str) -> u32 {
        if group.is_empty() {
            return 0;
        }
        let groups = &self.conf.batch.users.groups;
        groups.iter().find(|of| of.name == group).map_or(0, |of| of.priority)
    }

    /// Memory and swap space that a job of so many tasks asks for at its start, by the first
    /// alternative of its requirement: for each task where it is reserved for tasks, else once.
    pub fn amounts_asked(&self, req: &Req, tasks: u32) -> (f64, f64) {
        let of = |name: &str| {
            let simple = req.0.first()?;
            let terms = simple.rusage.as_ref()?.terms();
            let term = terms.iter().find(|term| term.res == name)?;
            let times = match self.reservation_method(term) {
                ReservationMethod::PerTask => f64::from(tasks),
                _ => 1.0,
            };
            Some(term.amount() * times)
        };
        (of("mem").unwrap_or(0.0), of("swp").unwrap_or(0.0))
    }
}
