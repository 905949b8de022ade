//! The group `nlb`: the load balancer and its pipe queues, each beside a plain loop, or the same
//! work without it. The machines of nlbserver and mbatchd are values here, without network and log,
//! but for the commands, which run in a cluster of real processes.
//!
//! Before a policy is timed it is shown that the plain loop over the same values has the same list.

mod plain;
mod router;
mod server;
mod shell;

use super::RUNS;
use super::table::{Figure, FigureTable, Unit, ms};
use plain::Mirror;
use server::{HOSTS, MEASURED, Server};
use std::time::Instant;

/// Time between two reports of a collector, seconds.
const INTERVAL: f64 = 30.0;

pub fn measure(table: &mut FigureTable) {
    let all = memory(table)
        .and_then(|()| policies(table, false))
        .and_then(|()| policies(table, true))
        .and_then(|()| reports(table))
        .and_then(|()| loading(table))
        .and_then(|()| expression(table))
        .and_then(|()| shell::measure(table));
    if let Err(why) = all {
        panic!("nlb: {why}");
    }
    router::measure(table);
}

/// A measurement as often as a figure has runs, milliseconds each.
fn timed(mut one: impl FnMut()) -> Vec<f64> {
    let run = |_| {
        let from = Instant::now();
        one();
        ms(from.elapsed())
    };
    (0..RUNS).map(run).collect()
}

/// A policy over all hosts: the whole answer of the server, the policy alone, and a plain loop.
fn policies(table: &mut FigureTable, differs: bool) -> Result<(), String> {
    let mut server = Server::up()?;
    for host in 0..HOSTS {
        let conn = server.collector(host);
        let report = Server::made(host, server::measured(host, differs), server::added(host));
        if !server.report(conn, report) {
            return Err(format!("the report of host {host} is not taken"));
        }
    }
    let mirror = Mirror::new(differs)?;
    let plain = mirror.plain();
    let names = |all: &[usize]| all.iter().map(|host| server::host_name(*host)).collect::<Vec<_>>();
    let told: Vec<String> = server.query().into_iter().map(|row| row.host.to_string()).collect();
    if plain.len() < HOSTS / 2 || told != names(&plain) || mirror.policy() != plain {
        return Err("the policy and the plain loop have different lists".to_owned());
    }
    let what = if differs { ", each string another" } else { "" };
    let of = |words: &str| format!("{HOSTS} hosts x 200{what}: {words}");
    let loops = timed(|| assert_eq!(mirror.plain().len(), plain.len()));
    let limit = table.limit(Figure::new(of("a plain loop"), Unit::Ms, loops));
    let policy = timed(|| assert_eq!(mirror.policy().len(), plain.len()));
    table.add(Figure::new(of("the policy"), Unit::Ms, policy), Some(limit.clone()));
    // an answer younger than a second may be used again
    let whole = timed(|| {
        server.pass(2);
        assert_eq!(server.query().len(), plain.len());
    });
    table.add(Figure::new(of("query to answer"), Unit::Ms, whole), Some(limit));
    Ok(())
}

/// A regular expression that others need exponential time for; beside a loop over the bytes.
fn expression(table: &mut FigureTable) -> Result<(), String> {
    let (text, expression) = ("a".repeat(1 << 20), lsf::lang::bre::Bre::new("\\(a*\\)*b")?);
    let bytes = || std::hint::black_box(text.as_bytes()).iter().filter(|b| **b == b'b').count();
    let loops = timed(|| assert_eq!(bytes(), 0));
    let limit = table.limit(Figure::new("1 MB of a: its bytes compared", Unit::Ms, loops));
    let matches = timed(|| assert!(!expression.matches(std::hint::black_box(&text))));
    table.add(Figure::new("1 MB of a against \\(a*\\)*b", Unit::Ms, matches), Some(limit));
    Ok(())
}

/// Policies of a file, and constraints of each.
const POLICIES: usize = 1_000;
const CONSTRAINTS: usize = 5;

/// A file of many policies is taken; beside a loop that finds each of its words in a table.
fn loading(table: &mut FigureTable) -> Result<(), String> {
    let constraint = |n: usize| match n % CONSTRAINTS {
        0 => "constraint: age < 300 && exists(NLB_QUEUE_NAME)\n".to_owned(),
        1 => "constraint: [NLB_HARDWARE == \"cray\"] => NLB_SYSCPU / NLB_NCPUS < 10.0\n".to_owned(),
        2 => format!("constraint: NLB_FREEMEM > {n} || NLB_SITE_{:03} > 5\n", n % 200),
        3 => "constraint: exists(JOB_PRMEMSIZE) => NLB_PHYSMEM * 1024 >= JOB_PRMEMSIZE\n".into(),
        _ => format!("constraint: NLB_A_IDLECPU * NLB_SITE_{:03} > {n}\n", n % 200),
    };
    let policy = |n: usize| {
        let all: String = (0..CONSTRAINTS).map(|c| constraint(n * CONSTRAINTS + c)).collect();
        format!("policy: p{n}\n{all}sort: NLB_IDLECPU * NLB_SITE_{:03}\n", n % 200)
    };
    let text: String = (0..POLICIES).map(policy).collect();
    let mut server = Server::up()?;
    let known: std::collections::HashMap<String, usize> =
        server.attributes().into_iter().zip(0..).collect();
    let words = || {
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        words.filter(|word| known.contains_key(*word)).count()
    };
    let all = words();
    let loops = timed(|| assert_eq!(words(), all));
    let name = format!("{POLICIES} policies of {CONSTRAINTS}: their attributes found");
    let limit = table.limit(Figure::new(name, Unit::Ms, loops));
    let mut taken = Ok(());
    let loads = timed(|| taken = taken.clone().and(server.reload(&text)));
    let name = format!("{POLICIES} policies of {CONSTRAINTS} constraints loaded");
    table.add(Figure::new(name, Unit::Ms, loads), Some(limit));
    taken
}

/// The memory of a server in which every host has all attributes: the process grows by it, so that
/// this comes before all else.
fn memory(table: &mut FigureTable) -> Result<(), String> {
    let before = super::sched::resident();
    let mut server = Server::up()?;
    for host in 0..HOSTS {
        let conn = server.collector(host);
        let report = Server::made(host, server::measured(host, false), server::added(host));
        if !server.report(conn, report) {
            return Err(format!("the report of host {host} is not taken"));
        }
    }
    let grown = super::sched::resident() - before;
    let name = format!("memory of a host of {HOSTS} x 200");
    table.add(Figure::new(name, Unit::Bytes, vec![grown / HOSTS as f64]), None);
    Ok(())
}

/// Reports of all hosts: the share of a processor.
fn reports(table: &mut FigureTable) -> Result<(), String> {
    let mut server = Server::up()?;
    let conns: Vec<_> = (0..HOSTS).map(|host| server.collector(host)).collect();
    let mut all = true;
    let mut round = |server: &mut Server| {
        let made = |host| Server::made(host, server::measured(host, false), Vec::new());
        let reports: Vec<_> = (0..HOSTS).map(made).collect();
        server.pass(30);
        let from = Instant::now();
        for (conn, report) in conns.iter().zip(reports) {
            all &= server.report(*conn, report);
        }
        100.0 * from.elapsed().as_secs_f64() / INTERVAL
    };
    round(&mut server);
    let shares = (0..RUNS).map(|_| round(&mut server)).collect();
    let name = format!("reports of {HOSTS} hosts x {MEASURED} every 30 s, of a core");
    table.add(Figure::new(name, Unit::Percent, shares), None);
    if all { Ok(()) } else { Err("a report is not taken".to_owned()) }
}
