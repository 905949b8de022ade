//! `bresources -gl` of a pool of packages: slots and memory apart, by who uses them.

use super::cluster::{Cluster, cluster};
use crate::proto::limit_rows::{LimitQuery, PackageUse, SlotsAndMb};

fn of(slots: u64, mb: u64) -> SlotsAndMb {
    SlotsAndMb { slots, mb }
}

fn package_use(c: &mut Cluster) -> PackageUse {
    let mut pools = c.limit_listing(LimitQuery::default()).pools;
    pools.remove(0).package.unwrap()
}

#[test]
fn slots_and_memory_of_a_pool_of_packages_are_those_of_owners_borrowers_and_others() {
    let pool = "Begin GuaranteedResourcePool\nNAME = pool\nTYPE = package[slots=2:mem=10000]\n\
        HOSTS = h1 h2\nDISTRIBUTION = [gold, 2] [silver, 1]\nLOAN_POLICIES = QUEUES[short]\n\
        End GuaranteedResourcePool\n";
    let class = |name| {
        format!("Begin ServiceClass\nNAME = {name}\nGOALS = [GUARANTEE]\nEnd ServiceClass\n")
    };
    let classes = class("gold") + &class("silver");
    let site = cluster().hosts(3, 8).queue("normal", "PRIORITY = 30");
    let site = site.queue("short", "PRIORITY = 20").file("lsb.resources", pool);
    let mut c = site.file("lsb.serviceclasses", &classes).up();
    let empty = package_use(&mut c);
    let free = empty.free;
    assert_eq!((empty.size, empty.total, free.slots), (of(2, 10_000), of(16, 128_000), 16));
    assert_eq!((empty.members, empty.loans), (vec![of(0, 0); 2], of(0, 0)));
    c.submit("ann", "-q normal -sla gold -m h1 -n 2 -R 'rusage[mem=10000]'");
    c.submit("bob", "-q short -m h2 -R 'rusage[mem=3000]'");
    c.submit("eve", "-q normal -m h2 -n 3 -R 'rusage[mem=500]'");
    // a host beside the pool
    c.submit("eve", "-q normal -m h3 -n 4");
    let now = package_use(&mut c);
    assert_eq!(now.members, [of(2, 10_000), of(0, 0)]);
    assert_eq!((now.loans, now.others), (of(1, 3_000), of(3, 500)));
    assert_eq!(now.free, of(free.slots - 6, free.mb - 13_500));
}
