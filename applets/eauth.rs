//! eauth: the documented way to prove who one is (eauth(8)). Asks authd for both: what `-c` prints,
//! and whether to believe it.

use argh::{ArgsInfo, FromArgs};
use lsf::auth::HostLookup;
use lsf::auth::shake::{Ask, Grant, Hex32, MAX_DATA, Target};
use lsf::cli::ctx::{Ctx, FAIL};
use lsf::cli::{front, prove, site};
use lsf::conf::load::load_base_lenient;
use lsf::errln;
use lsf::proto::Daemon;
use lsf::sys::files::RealFiles;
use std::io::BufRead;
use std::net::IpAddr;

/// Proves who one is to a daemon (-c), or judges such a proof (-s).
#[derive(FromArgs, ArgsInfo)]
struct Opts {
    /// print a credential for the daemons of a host
    #[argh(option, short = 'c', arg_name = "host_name")]
    client: Option<String>,
    /// verify credentials: reads lines `uid gid user addr port len data`, writes 1 or 0
    #[argh(switch, short = 's')]
    server: bool,
}

/// Longest line before the data, bytes.
const MAX_LINE: usize = 1024;

pub fn run(ctx: &mut Ctx) -> i32 {
    let opts: Opts = match front::parse_of(ctx) {
        Ok(parsed) => parsed.options,
        Err(exit) => return exit.show(ctx),
    };
    let done = site::find().map_err(|e| e.to_string()).and_then(|site| match opts {
        Opts { client: Some(host), server: false } => client(&site, &host, ctx),
        Opts { client: None, server: true } => server(&site, ctx),
        _ => Err("-c host_name or -s must be specified".into()),
    });
    match done {
        Ok(()) => 0,
        Err(why) => {
            errln!(ctx, "{}: {why}", ctx.name);
            FAIL
        }
    }
}

fn ask(site: &site::LocalSite, host: &str, eauth: &str) -> Result<Grant, String> {
    let (daemon, host, ways) = (Daemon::Mbatchd, host.to_owned(), String::new());
    let target = Target { daemon, host, nonce: Hex32([0; 32]), lo: 0, hi: 0, ways };
    let ask = Ask { target, keys: Vec::new(), eauth: eauth.to_owned(), user_server: None };
    match prove::ask_authd(site, &ask) {
        Ok(Grant::No { why }) => Err(why),
        done => done.map_err(|e| format!("{e:#}")),
    }
}

fn client(site: &site::LocalSite, host: &str, ctx: &mut Ctx) -> Result<(), String> {
    let (base, _) = load_base_lenient(&RealFiles, &site.envdir, Some(&site.host));
    let known = base.as_ref().and_then(|b| b.hosts.canonical(host));
    let host = known.ok_or_else(|| format!("{}: No such host", host.escape_debug()))?;
    match ask(site, host, "-c")? {
        Grant::Eauth { text } => writeln!(ctx.out, "{text}").map_err(|e| e.to_string()),
        _ => Err("unexpected answer of authd".into()),
    }
}

/// Answers until its input ends.
fn server(site: &site::LocalSite, ctx: &mut Ctx) -> Result<(), String> {
    let mut input = std::io::stdin().lock();
    while let Some((words, data)) = question(&mut input)? {
        let good = believed(site, &words, &data);
        if let Err(why) = &good {
            errln!(ctx, "{}: user {}: {}", ctx.name, words[2].escape_debug(), why.escape_debug());
        }
        let answer: &[u8] = if good.is_ok() { b"1" } else { b"0" };
        ctx.out.write_all(answer).and_then(|()| ctx.out.flush()).map_err(|e| e.to_string())?;
    }
    Ok(())
}

/// The six words and the data of the next line; `None` at the end.
fn question(input: &mut impl BufRead) -> Result<Option<([String; 6], String)>, String> {
    let mut words: [String; 6] = Default::default();
    for word in &mut words {
        loop {
            let mut byte = [0];
            if input.read(&mut byte).map_err(|e| e.to_string())? == 0 {
                return Ok(None);
            }
            match byte[0] {
                b' ' | b'\n' if word.is_empty() => {}
                b' ' => break,
                c if word.len() < MAX_LINE => word.push(c as char),
                _ => return Err("a line that is too long".into()),
            }
        }
    }
    let len = words[5].parse().ok().filter(|len| *len <= MAX_DATA).ok_or("a wrong length")?;
    let mut data = vec![0; len];
    input.read_exact(&mut data).map_err(|_| "half a line")?;
    Ok(Some((words, String::from_utf8_lossy(&data).into_owned())))
}

fn believed(site: &site::LocalSite, words: &[String; 6], data: &str) -> Result<(), String> {
    let [uid, gid, user, addr, ..] = words;
    // Anything else would be another question to authd.
    if !data.starts_with("LSF1:") {
        return Err("not a credential of eauth".into());
    }
    let Grant::Yes { claims, .. } = ask(site, "", data)? else {
        return Err("not a credential of eauth".into());
    };
    let told = (claims.uid.to_string(), claims.gid.to_string());
    if (&told.0, &told.1, &claims.user) != (uid, gid, user) {
        return Err(format!("the credential is that of user {} (uid {})", claims.user, claims.uid));
    }
    let addr: IpAddr = addr.parse().map_err(|_| "no address")?;
    let table = site.addresses(&[&claims.host]);
    let known = if table.addrs(&claims.host).is_empty() {
        let own = addr.is_loopback() && claims.host.eq_ignore_ascii_case(&site.host);
        own || lsf::sys::site::resolve(&claims.host).contains(&addr)
    } else {
        table.host_of_addr(addr) == Some(claims.host.as_str())
    };
    if known { Ok(()) } else { Err(format!("{addr} is not an address of host {}", claims.host)) }
}
