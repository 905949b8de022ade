//! lsid: version, cluster and master. See lsid(1).

use argh::{ArgsInfo, FromArgs};
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::{front, lim, version};
use lsf::{errln, outln};

/// Show the version and the names of the cluster and of its master host.
#[derive(FromArgs, ArgsInfo)]
struct Options {}

pub fn run(ctx: &mut Ctx) -> i32 {
    if let Err(exit) = front::parse_of::<Options>(ctx) {
        return exit.show(ctx);
    }
    outln!(ctx, "{}\n", version::line());
    let cluster = match lim::Cluster::open() {
        Ok(cluster) => cluster,
        Err(why) => {
            errln!(ctx, "ls_getclustername(): {why}");
            return FAIL;
        }
    };
    outln!(ctx, "My cluster name is {}", cluster.name());
    match cluster.master() {
        Ok(master) => {
            outln!(ctx, "My master name is {master}");
            0
        }
        Err(why) => {
            errln!(ctx, "ls_getmastername(): {why}");
            FAIL
        }
    }
}
