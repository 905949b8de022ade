//! The slots and the memory of the hosts of a pool of packages, as `bresources -gl` shows them:
//! added up when they are asked for.

use crate::batch::site::Site;
use crate::batch::site::guarantees::{Pool, PoolId};
use crate::batch::site::rules::parts;
use crate::batch::usage::guarantees::Guarantees;
use crate::batch::usage::pool_holdings::{Holding, memory_of};
use crate::batch::usage::pool_room::SlotsAndMemory;
use crate::batch::usage::reserve::ledger::Reserve;
use crate::model::JobRef;
use crate::proto::limit_rows::{PackageUse, SlotsAndMb};

impl Guarantees {
    /// The slots and memory of the hosts of a pool of packages, and who uses them; `None`: it is of
    /// something else.
    pub fn package_use(&self, site: &Site, reserve: &Reserve, id: PoolId) -> Option<PackageUse> {
        let pool = site.pools.get(id);
        let size = pool.package()?;
        let none: SlotsAndMemory = (0, 0);
        let mut members = vec![none; pool.members.len()];
        let (mut total, mut free, mut loans) = (none, none, none);
        for host in self.hosts_of(site, id) {
            let Some(facts) = self.facts(host) else { continue };
            add(&mut total, (facts.max, facts.mem));
            add(&mut free, (facts.free(), facts.mem_free));
        }
        for (at, holding) in self.holdings() {
            match pool.member(holding.holder.class) {
                Some(member) => {
                    add(&mut members[member], self.used_by((at, holding), reserve, (id, pool)));
                }
                None => {
                    let lent = holding.aside.iter().filter(|aside| aside.0 == id);
                    lent.for_each(|aside| add(&mut loans, aside.2.lent));
                }
            }
        }
        let known = members.iter().fold(loans, |sum, of| (sum.0 + of.0, sum.1 + of.1));
        let rest = |all: u64, free: u64, known: u64| all.saturating_sub(free).saturating_sub(known);
        let others = (rest(total.0, free.0, known.0), rest(total.1, free.1, known.1));
        Some(PackageUse {
            size: shown((size.slots, size.mem)),
            total: shown(total),
            free: shown(free),
            members: members.into_iter().map(shown).collect(),
            loans: shown(loans),
            others: shown(others),
        })
    }

    /// The slots and the memory that an element has on hosts of a pool.
    fn used_by(
        &self,
        (at, holding): (JobRef, &Holding),
        reserve: &Reserve,
        (id, pool): (PoolId, &Pool),
    ) -> SlotsAndMemory {
        let mut sum = (0, 0);
        for (host, slots) in &holding.hosts {
            if self.facts(*host).is_some_and(|facts| facts.pools.contains(&id)) {
                add(&mut sum, (*slots, memory_of(reserve, (at, *host), pool)));
            }
        }
        sum
    }
}

fn add(sum: &mut SlotsAndMemory, more: SlotsAndMemory) {
    *sum = (sum.0.saturating_add(more.0), sum.1.saturating_add(more.1));
}

/// Memory in MB.
fn shown((slots, mem): SlotsAndMemory) -> SlotsAndMb {
    SlotsAndMb { slots, mb: mem / parts(1.0) }
}
