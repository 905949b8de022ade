//! lsid: version, cluster and master. See lsid(1).

use argh::{ArgsInfo, FromArgs};
use lsf::cli::columns::Json;
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::{front, lim, version};
use lsf::{errln, outln};

/// Show the version and the names of the cluster and of its master host.
#[derive(FromArgs, ArgsInfo)]
struct Options {
    /// output as JSON
    #[argh(switch, long = "json")]
    json: bool,
}

pub fn run(ctx: &mut Ctx) -> i32 {
    let json = match front::parse_of::<Options>(ctx) {
        Ok(parsed) => parsed.options.json,
        Err(exit) => return exit.show(ctx),
    };
    if !json {
        outln!(ctx, "{}\n", version::line());
    }
    let cluster = match lim::Cluster::open() {
        Ok(cluster) => cluster,
        Err(why) => {
            errln!(ctx, "ls_getclustername(): {why}");
            return FAIL;
        }
    };
    if !json {
        outln!(ctx, "My cluster name is {}", cluster.name());
    }
    match cluster.master() {
        Ok(master) if json => {
            let mut text = Json::new("lsid", "CLUSTERS");
            text.pairs(&[
                ("VERSION", &version::line()),
                ("CLUSTER_NAME", cluster.name()),
                ("MASTER_NAME", master),
            ]);
            let _ = ctx.out.write_all(text.finish().as_bytes());
            0
        }
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
