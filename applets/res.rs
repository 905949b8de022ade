//! res: remote execution on this host, and reskeeper: hidden; keeps the descriptors of its tasks
//! for the next res. The applets around `daemon::res` and `daemon::res_keeper`.

use lsf::cli::ctx::{Ctx, FAIL};
use lsf::daemon::res_keeper;
use lsf::errln;
use std::os::fd::AsFd;
use std::path::Path;

pub fn run(ctx: &mut Ctx) -> i32 {
    super::daemon::run(ctx, lsf::proto::Daemon::Res, lsf::daemon::res::run)
}

pub fn keep(ctx: &mut Ctx) -> i32 {
    let [path] = ctx.args.as_slice() else {
        errln!(ctx, "{}: started by res alone", res_keeper::NAME);
        return FAIL;
    };
    let res = std::io::stdin().as_fd().try_clone_to_owned();
    match res.and_then(|res| res_keeper::serve(res, Path::new(path))) {
        Ok(()) => 0,
        Err(e) => {
            errln!(ctx, "{}: {e}", res_keeper::NAME);
            FAIL
        }
    }
}
