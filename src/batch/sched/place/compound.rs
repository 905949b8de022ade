//! Compound requirements, `n1*{..} + n2*{..}`: the parts get their hosts one after the other, in
//! the order written; what one takes is not there for the next ([`Draft`]). Where a part finds
//! none, all is tried again with that part first.

use crate::batch::sched::place::affinity::{UnitsFor, drafted_units};
use crate::batch::sched::place::host_match::{Draft, HostMatch, Placed, Tasks};
use crate::batch::sched::place::requirement::{Alternative, Part};
use crate::batch::site::reservation_methods::ReservationMethod;
use crate::batch::state::names::{HostId, Id};
use std::cell::{Cell, OnceCell};

impl Draft {
    /// A part of the job takes these slots.
    fn add(&mut self, look: &HostMatch, hosts: &[(HostId, u32)]) {
        let (site, reserve) = (look.view.site, look.view.reserve);
        let rusage = look.simple.and_then(|simple| simple.rusage.as_ref());
        for term in rusage.map_or(&[][..], |rusage| rusage.terms()) {
            let Some(resource) = site.names.reserved(term) else { continue };
            let method = site.reservation_method(term);
            let mut held: Vec<usize> = Vec::new();
            for (n, &(host, slots)) in hosts.iter().enumerate() {
                let place = reserve.instance(host, resource).unwrap_or(host.index());
                let times = match method {
                    ReservationMethod::PerTask => f64::from(slots),
                    ReservationMethod::PerJob if n > 0 => continue,
                    ReservationMethod::PerInstance if held.contains(&place) => continue,
                    _ => 1.0,
                };
                held.push(place);
                self.reserved.push((place, resource, times * term.amount()));
            }
        }
        let by = UnitsFor { queue: look.queue, leaving: Some(&[]) };
        self.units = drafted_units((&look.view, by), look.simple, hosts, &self.units);
        self.slots.extend(hosts);
    }
}

impl<'a> HostMatch<'a> {
    /// The look for the tasks of one part.
    fn part<'b>(&self, part: &'b Part, tasks: Tasks, first: bool, draft: &'b Draft) -> HostMatch<'b>
    where
        'a: 'b,
    {
        HostMatch {
            simple: Some(&part.simple),
            fixed: part.fixed.as_ref(),
            tasks,
            first,
            draft: Some(draft),
            unit_steps: Cell::new(0),
            local: OnceCell::new(),
            view: self.view,
            queue: self.queue,
            kind: self.kind,
            limits: self.limits,
            asked: self.asked,
            span_of_queue: self.span_of_queue,
            nlb: self.nlb,
            nlb_order: self.nlb_order,
            room: self.room,
            run: self.run,
            own: self.own,
            follows: self.follows,
            misfit: self.misfit,
        }
    }

    /// Hosts for all parts of a compound requirement, in the order written; `find` looks for
    /// those of one. The error is that of the first part that finds none.
    pub(in crate::batch::sched) fn compound<E>(
        &self,
        alternative: &Alternative,
        mut find: impl FnMut(&HostMatch) -> Result<Placed, E>,
    ) -> Result<Placed, E> {
        let mut order: Vec<usize> = (0..alternative.parts.len()).collect();
        let mut first_error = None;
        for _ in 0..alternative.parts.len().max(1) {
            match self.in_order(alternative, &order, &mut find) {
                Ok(placed) => return Ok(placed),
                Err((failed, error)) => {
                    first_error = first_error.or(Some(error));
                    if order.first() == Some(&failed) {
                        break;
                    }
                    order.retain(|part| *part != failed);
                    order.insert(0, failed);
                }
            }
        }
        match first_error {
            Some(error) => Err(error),
            None => Ok(Placed::new()),
        }
    }

    fn in_order<E>(
        &self,
        alternative: &Alternative,
        order: &[usize],
        find: &mut impl FnMut(&HostMatch) -> Result<Placed, E>,
    ) -> Result<Placed, (usize, E)> {
        let parts = &alternative.parts;
        let given: u32 = parts.iter().filter_map(|part| part.tasks).fold(0, u32::saturating_add);
        let rest = Tasks {
            min: self.tasks.min.saturating_sub(given),
            max: self.max().saturating_sub(given),
        };
        let mut draft = Draft::default();
        let mut placed: Vec<Placed> = vec![Placed::new(); parts.len()];
        for &number in order {
            let part = &parts[number];
            let tasks = part.tasks.map_or(rest, |tasks| Tasks { min: tasks, max: tasks });
            if tasks.max == 0 {
                continue;
            }
            let look = self.part(part, tasks, number == 0, &draft);
            let hosts = match find(&look) {
                Ok(hosts) => hosts,
                Err(_) if tasks.min == 0 => Placed::new(),
                Err(error) => return Err((number, error)),
            };
            let mut next = draft.clone();
            next.add(&look, &hosts);
            draft = next;
            placed[number] = hosts;
        }
        Ok(placed.concat())
    }
}
