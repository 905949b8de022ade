//! bjobs: what became of jobs (bjobs(1)).

mod affinity;
mod fields;
mod figures;
mod listing;
mod long;
mod opts;
mod past;
mod processes;
pub mod reasons;
mod show;
mod start_needs;
mod stored;
mod table;
mod watch;

#[cfg(test)]
mod field_tests;
#[cfg(test)]
mod layout_tests;
#[cfg(test)]
mod tests;

use listing::Listing;
use lsf::cli::client::{self, ClientError};
use lsf::cli::clock::Clock;
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::front;
use lsf::cli::long_format::clean;
use lsf::cli::{lim, site};
use lsf::conf::load::load_base_lenient;
use lsf::errln;
use lsf::proto::Msg;
use lsf::proto::client::ClientMsg;
use lsf::sys::files::RealFiles;

pub fn run(ctx: &mut Ctx) -> i32 {
    let found = site::find();
    let params = opts::ListingParams::new(|name| site::param(found.as_ref().ok(), name));
    match (opts::stored(&ctx.args), &found) {
        (Ok(None), _) => {}
        (Ok(Some(wanted)), Ok(site)) => return stored::show(ctx, site, wanted),
        (Ok(Some(_)), Err(e)) => {
            errln!(ctx, "{e}");
            return FAIL;
        }
        (Err(exit), _) => return exit.show(ctx),
    }
    let now = lsf::sys::now().secs();
    ctx.readings = Some(front::readings::<opts::Opts>);
    let planned = opts::plan(&ctx.args, &params, Clock::system(), now, lim::cpu_factor);
    let mut listing = match planned {
        Ok(l) => l,
        Err(exit) => return exit.show(ctx),
    };
    let mut notices = String::new();
    if listing.watch {
        let site = found.map_err(|e| ClientError::Conf(e.to_string()));
        return watch::run(ctx, &params, site);
    }
    let done = match found {
        Ok(site) => fetch(ctx, &site, &mut listing).map(|()| {
            notices = past::fill(ctx.out, &site, &mut listing, lsf::sys::now().secs());
        }),
        Err(e) => Err(ClientError::Conf(e.to_string())),
    };
    if let Err(e) = done {
        errln!(ctx, "{}", clean(&e.words()));
        return FAIL;
    }
    let rest = listing.end();
    let _ = ctx.out.write_all(rest.as_bytes());
    let (words, code) = listing.verdict(params.consistent);
    ctx.flush();
    let _ = ctx.err.write_all(notices.as_bytes());
    let _ = ctx.err.write_all(words.as_bytes());
    code
}

/// Asks mbatchd and prints each slice as it comes.
fn fetch(ctx: &mut Ctx, site: &site::LocalSite, listing: &mut Listing) -> Result<(), ClientError> {
    if let Some(name) = listing.cluster() {
        let base = load_base_lenient(&RealFiles, &site.envdir, Some(&site.host)).0;
        *name = base.map_or(String::new(), |b| b.name);
    }
    let question = Msg::Client(ClientMsg::Jobs(Box::new(listing.query())));
    let (mut client, mut answer) = client::ask_at(site, &question, ctx.err)?;
    loop {
        let Msg::Client(ClientMsg::Rows { rows, more }) = answer else {
            return Err(ClientError::Unexpected);
        };
        let text = listing.slice(rows.get()).map_err(|_| ClientError::Unexpected)?;
        let _ = ctx.out.write_all(text.as_bytes());
        if !more {
            return Ok(());
        }
        answer = client.answer(ctx.err)?;
    }
}
