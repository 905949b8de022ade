//! bjobs --watch: the jobs, and again whenever one of them changes. The master tells of changes
//! over one connection that stays open, and is not asked in between; where it is lost (mbatchd
//! restarts), another is made and everything asked again.
//!
//! On a terminal the listing takes the screen's place; elsewhere only lines that are new are
//! written, so that a pipe gets a line for each change of a job.

use super::listing::Listing;
use super::opts;
use lsf::cli::client::{self, Client, ClientError};
use lsf::cli::clock::Clock;
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::lim;
use lsf::cli::long_format::clean;
use lsf::cli::site::LocalSite;
use lsf::cli::wait_connection::{self, Losses, hear};
use lsf::errln;
use lsf::model::JobRef;
use lsf::proto::Msg;
use lsf::proto::client::{ClientMsg, JobQuery, Wait};
use std::collections::{BTreeSet, HashSet};
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Pause after a change, so that a storm of them is one.
const PAUSE: Duration = Duration::from_millis(200);

type MakeListing<'a> = &'a dyn Fn() -> Result<Listing, ClientError>;

/// All of bjobs --watch.
pub fn run(
    ctx: &mut Ctx,
    params: &opts::ListingParams,
    site: Result<LocalSite, ClientError>,
) -> i32 {
    let args = std::mem::take(&mut ctx.args);
    let plan = || {
        let now = lsf::sys::now().secs();
        opts::plan(&args, params, Clock::system(), now, lim::cpu_factor)
            .map_err(|_| ClientError::Unexpected)
    };
    match site.and_then(|site| follow(ctx, &site, &plan)) {
        Ok(last) => {
            let (words, code) = last.verdict(params.consistent);
            ctx.flush();
            let _ = ctx.err.write_all(words.as_bytes());
            code
        }
        Err(e) => {
            errln!(ctx, "{}", clean(&e.words()));
            FAIL
        }
    }
}

/// Follows the jobs until they are over, and returns the last listing.
fn follow(ctx: &mut Ctx, site: &LocalSite, plan: MakeListing) -> Result<Listing, ClientError> {
    let terminal = std::io::stdout().is_terminal();
    let mut screen = Screen { terminal, ..Screen::default() };
    let mut losses = Losses::default();
    loop {
        let mut client = client::mbatchd(site, ctx.err)?;
        let since = Instant::now();
        match connected(ctx, &mut client, plan, &mut screen) {
            Err(e) if wait_connection::passing(&e) && losses.again(since) => {}
            done => return done,
        }
    }
}

/// Watches over one connection until it ends. Changes are requested before the jobs, so that no
/// change is missed between the two requests.
fn connected(
    ctx: &mut Ctx,
    client: &mut Client,
    plan: MakeListing,
    screen: &mut Screen,
) -> Result<Listing, ClientError> {
    loop {
        let mut listing = plan()?;
        let query = listing.query();
        let watch = Some(Box::new(query.select.clone()));
        client.send(&Msg::Client(ClientMsg::Wait(Wait { watch, ..Wait::default() })))?;
        let (mut text, mut changed) = (String::new(), false);
        rows(client, query, &mut listing, &mut text, &mut changed)?;
        let members = listing.members.clone();
        // how those ended that are not among the jobs asked for any more
        if let Some(left) = listing.left(&screen.members) {
            rows(client, left, &mut listing, &mut text, &mut changed)?;
        }
        screen.members = members;
        text.push_str(&listing.end());
        let gone = screen.show(ctx.out, text, listing.by_line()).is_err();
        if gone || listing.over() {
            return Ok(listing);
        }
        while !changed {
            changed = matches!(hear(client)?, ClientMsg::Waited(_));
        }
        std::thread::sleep(PAUSE);
    }
}

/// Adds the rows that answer a query. `changed`: the master has told of a change meanwhile.
fn rows(
    client: &mut Client,
    query: JobQuery,
    listing: &mut Listing,
    text: &mut String,
    changed: &mut bool,
) -> Result<(), ClientError> {
    client.send(&Msg::Client(ClientMsg::Jobs(Box::new(query))))?;
    loop {
        match hear(client)? {
            ClientMsg::Waited(_) => *changed = true,
            ClientMsg::Rows { rows, more } => {
                let rows = listing.slice(rows.get()).map_err(|_| ClientError::Unexpected)?;
                text.push_str(rows);
                if !more {
                    return Ok(());
                }
            }
            _ => return Err(ClientError::Unexpected),
        }
    }
}

/// The listing that was shown last.
#[derive(Default)]
struct Screen {
    terminal: bool,
    whole: String,
    lines: HashSet<String>,
    /// The jobs asked for, without those that had left.
    members: BTreeSet<JobRef>,
}

impl Screen {
    /// `by_line`: lines stand for themselves.
    fn show(&mut self, out: &mut dyn Write, text: String, by_line: bool) -> std::io::Result<()> {
        if text == self.whole {
            return Ok(());
        }
        match (self.terminal, by_line) {
            // home, then clear what is below
            (true, _) => write!(out, "[H[J{text}")?,
            (false, false) => out.write_all(text.as_bytes())?,
            (false, true) => {
                let mut new = text.lines().filter(|l| !self.lines.contains(*l));
                new.try_for_each(|l| writeln!(out, "{l}"))?;
                self.lines = text.lines().map(str::to_string).collect();
            }
        }
        self.whole = text;
        out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(terminal: bool, by_line: bool, texts: &[&str]) -> String {
        let mut screen = Screen { terminal, ..Screen::default() };
        let mut out = Vec::new();
        for text in texts {
            screen.show(&mut out, text.to_string(), by_line).unwrap();
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_pipe_gets_what_is_new_and_a_terminal_the_whole() {
        let texts = [
            "HEAD
1 PEND
2 PEND
",
            "HEAD
1 RUN
2 PEND
",
            "HEAD
1 RUN
2 PEND
",
        ];
        assert_eq!(
            shown(false, true, &texts),
            "HEAD
1 PEND
2 PEND
1 RUN
"
        );
        assert_eq!(
            shown(
                false,
                false,
                &[
                    "a
", "a
", "b
"
                ]
            ),
            "a
b
"
        );
        let want = "[H[Ja
[H[Jb
";
        assert_eq!(
            shown(
                true,
                true,
                &[
                    "a
", "a
", "b
"
                ]
            ),
            want
        );
    }
}
