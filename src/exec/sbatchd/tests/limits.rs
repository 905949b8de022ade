//! Results of sampling: reported usage, limits that end a job, warnings before that. Orders from
//! mbatchd are in orders.rs.

use super::*;
use crate::model::limits::MemoryOf;

#[test]
fn suspended_time_does_not_count_against_the_run_limit() {
    let mut r = Rig::new();
    let limits = Limits { run: Some(60), ..Limits::default() };
    r.template.ignores = vec![12];
    r.start(StartJob { limits, ..order(1) });
    let pid = r.pid();
    r.wait(20);
    r.act(1, 1, Act::Suspend);
    assert_eq!(r.last(), AttemptPhase::Suspended);
    r.wait(100);
    r.act(1, 2, Act::Resume);
    assert_eq!(r.last(), AttemptPhase::Running);
    assert_eq!(r.procs[&pid].signals, [SIGSTOP, SIGCONT]);
    r.wait(38);
    assert_eq!(r.procs[&pid].signals.len(), 2);
    r.wait(3);
    assert_eq!(r.procs[&pid].signals[2..], [12]);
    r.wait(10);
    assert_eq!(r.last(), ended(SIGINT, term::RUNLIMIT));
}

#[test]
fn run_limit_counts_the_seconds_that_pass_where_the_clock_is_set() {
    // back and forward; sbatchd runs, or is away meanwhile
    for (by, away) in [(-3600, false), (3600, false), (-3600, true), (3600, true)] {
        let mut r = Rig::new();
        let limits = Limits { run: Some(60), ..Limits::default() };
        r.template.ignores = vec![12];
        r.start(StartJob { limits, ..order(1) });
        let pid = r.pid();
        r.wait(20);
        if away {
            r.crash();
        }
        r.now.wall_us += by * US as i64;
        if away {
            r.boot(true);
            r.greet(1);
        }
        r.wait(10);
        // the time of a suspension over which it is set does not count either
        r.act(1, 1, Act::Suspend);
        r.wait(50);
        r.now.wall_us -= by * US as i64;
        r.wait(50);
        r.act(1, 2, Act::Resume);
        r.wait(27);
        assert_eq!(r.procs[&pid].signals, [SIGSTOP, SIGCONT], "{by} {away}");
        r.wait(5);
        assert_eq!(r.procs[&pid].signals[2..], [12], "{by} {away}");
    }
}

#[test]
fn a_warning_comes_before_the_run_limit_once() {
    for (time, limit, at) in [("20", 60, 40), ("25%", 80, 60)] {
        let mut r = Rig::new();
        let limits = Limits { run: Some(limit), ..Limits::default() };
        r.template.ignores = vec![10, 12];
        let further = [("wa", "USR1"), ("wt", time)].into_iter().collect();
        let spec = JobSpec { further, ..JobSpec::default() };
        r.start(StartJob { limits, spec: spec.into(), ..order(1) });
        let pid = r.pid();
        r.wait(at - 2);
        assert!(r.procs[&pid].signals.is_empty(), "{time}");
        r.wait(4);
        assert_eq!(r.procs[&pid].signals, [10], "{time}");
        // one that starts again knows that it was sent
        r.crash();
        r.boot(true);
        r.greet(1);
        r.wait(10);
        assert_eq!(r.procs[&pid].signals, [10], "{time}");
        r.wait(limit - at - 10);
        assert_eq!(r.procs[&pid].signals, [10, 12], "{time}");
    }
}

#[test]
fn a_command_warns_as_the_user_and_ends_nothing() {
    let mut r = Rig::new();
    let limits = Limits { run: Some(60), ..Limits::default() };
    r.template.usage = Usage { mem_kb: 1000, nprocs: 1, ..Usage::default() };
    let further = [("wa", "touch x; false"), ("wt", "20")].into_iter().collect();
    let spec = JobSpec { further, ..JobSpec::default() };
    let env = SpoolRef { spool: 1, at: 0, len: 6 };
    r.start(StartJob { limits, spec: spec.into(), env, user: "u".into(), ..order(1) });
    r.order(SbdMsg::Blob { at: env, data: b"MINE=1".to_vec().into() });
    let pid = r.pid();
    let warned = |r: &Rig| {
        let plans = r.plans.iter().filter(|p| p.0.step == TaskStep::Warn);
        plans.map(|p| p.1.clone()).collect::<Vec<_>>()
    };
    r.wait(38);
    assert!(warned(&r).is_empty());
    // one that starts again has to ask for the environment
    r.crash();
    r.boot(true);
    r.greet(1);
    r.wait(4);
    assert!(r.told.iter().any(|m| matches!(m, SbdMsg::NeedBlob { at } if *at == env)));
    assert!(warned(&r).is_empty());
    r.order(SbdMsg::Blob { at: env, data: b"MINE=1".to_vec().into() });
    r.wait(2);
    let plans = warned(&r);
    assert_eq!((plans.len(), plans[0].uid), (1, 9));
    let TaskPlan::Finish(what) = &plans[0].what else { panic!() };
    assert_eq!(what.post, [launch::Hook::new(launch::HookOf::Job, "touch x; false")]);
    let vars: Vec<_> = what.env.0.split(|b| *b == 0).map(String::from_utf8_lossy).collect();
    for want in ["MINE=1", "LSB_JOBID=1", &format!("LSB_JOBPGIDS={pid}")] {
        assert!(vars.iter().any(|v| v == want), "{want}: {vars:?}");
    }
    assert!(what.append_to.is_empty() && what.mail.is_none() && what.remove.is_empty());
    assert!(r.procs[&pid].signals.is_empty());
    r.crash();
    r.boot(true);
    r.greet(1);
    r.wait(8);
    assert_eq!(warned(&r).len(), 1, "once");
    r.wait(10);
    assert_eq!(r.procs.get(&pid).map(|p| p.signals.clone()), None, "the run limit ends it");
}

#[test]
fn limits_on_use_are_seen_by_sampling() {
    let run = |limits: Limits, usage: Usage| {
        let mut r = Rig::new();
        r.template.usage = usage;
        r.start(StartJob { limits, ..order(1) });
        r.wait(4);
        r.last()
    };
    let mem = Usage { mem_kb: 2000, ..Usage::default() };
    let limits = Limits { rss: Some(1999), ..Limits::default() };
    assert_eq!(run(limits, mem), ended(SIGINT, term::MEMLIMIT));
    assert_eq!(run(Limits { rss: Some(2000), ..Limits::default() }, mem), AttemptPhase::Running);
    let cpu = Usage { utime_us: 9 * US, ..Usage::default() };
    let limits = Limits { cpu: Some(8), ..Limits::default() };
    assert_eq!(run(limits, cpu), ended(24, term::CPULIMIT));
    let many = Usage { nprocs: 9, nthreads: 9, ..Usage::default() };
    let limits = Limits { process: Some(8), ..Limits::default() };
    assert_eq!(run(limits, many), ended(SIGINT, term::PROCESSLIMIT));
}

#[test]
fn usage_is_told_when_it_changes() {
    let mut r = Rig::new();
    r.template.usage = Usage { mem_kb: 1000, nprocs: 1, ..Usage::default() };
    r.start(order(1));
    let told = |r: &mut Rig| {
        let is = |m: &SbdMsg| matches!(m, SbdMsg::Usage { .. });
        std::mem::take(&mut r.told).iter().filter(|m| is(m)).count()
    };
    r.wait(60);
    assert_eq!(told(&mut r), 1);
    let pid = r.pid();
    r.procs.get_mut(&pid).unwrap().usage.mem_kb = 1050;
    r.wait(60);
    assert_eq!(told(&mut r), 0);
    r.procs.get_mut(&pid).unwrap().usage.mem_kb = 1200;
    r.wait(60);
    assert_eq!(told(&mut r), 1);
    // a process that is new is told of, one that has ended is not
    r.procs.get_mut(&pid).unwrap().usage.nprocs = 2;
    r.wait(60);
    assert_eq!(told(&mut r), 1);
    r.procs.get_mut(&pid).unwrap().usage.nprocs = 1;
    r.wait(60);
    assert_eq!(told(&mut r), 0);
}

#[test]
fn usage_is_told_as_often_and_at_such_a_change_as_the_parameters_say() {
    let told = |rusage_update_rate, rusage_update_percent, grows_by: u64| {
        let mut r = Rig::new();
        let params = SbdParams {
            sbd_sleep_time: 7,
            rusage_update_rate,
            rusage_update_percent,
            ..SbdParams::default()
        };
        r.order(SbdMsg::Params(params));
        r.template.usage = Usage { mem_kb: 1000, nprocs: 1, ..Usage::default() };
        r.start(order(1));
        r.wait(60);
        r.told.clear();
        let pid = r.pid();
        // every ten seconds for two minutes
        for _ in 0..12 {
            r.procs.get_mut(&pid).unwrap().usage.mem_kb += grows_by;
            r.wait(10);
        }
        r.told.iter().filter(|m| matches!(m, SbdMsg::Usage { .. })).count()
    };
    // the parameters of an older mbatchd are the defaults
    assert_eq!(told(0, 0, 300), told(1, 10, 300));
    assert!(told(1, 10, 300) >= 8, "{}", told(1, 10, 300));
    // 84 seconds pass between two reports
    assert!((1..=2).contains(&told(12, 10, 300)), "{}", told(12, 10, 300));
    // three hundred are less than half of what there was, from the second step on
    assert!((2..=4).contains(&told(1, 50, 300)), "{}", told(1, 50, 300));
    assert_eq!((told(1, 1, 20) >= 10, told(1, 10, 5)), (true, 0));
}

#[test]
fn job_in_a_control_group_is_measured_without_the_others() {
    let looked_at = |grouped: bool| {
        let mut r = Rig::new();
        r.grouped = grouped;
        r.start(order(1));
        r.wait(3);
        // the first look at the second job comes before the next one at the first
        r.start(order(2));
        r.wait(2);
        r.looked_at
    };
    assert_eq!((looked_at(true), looked_at(false)), (1, 2));
}

#[test]
fn limits_that_are_left_to_the_kernel_end_no_job_but_a_hard_memory_limit_does() {
    let run = |enforcement: LimitEnforcement, limits: Limits| {
        let mut r = Rig::new();
        r.enforcement = enforcement;
        r.boot(true);
        r.greet(2);
        r.template.usage = Usage { mem_kb: 2000, utime_us: 9 * US, ..Usage::default() };
        r.start(StartJob { limits, ..order(1) });
        r.wait(4);
        r.last()
    };
    let unset = LimitEnforcement::default();
    let memory = Limits { rss: Some(1000), ..Limits::default() };
    assert_eq!(run(unset, memory.clone()), AttemptPhase::Running);
    let hard = Limits { hard_memory: true, ..memory };
    assert_eq!(run(unset, hard), ended(SIGINT, term::MEMLIMIT));
    let cpu = Limits { cpu: Some(8), ..Limits::default() };
    assert_eq!(run(unset, cpu.clone()), ended(24, term::CPULIMIT));
    let of_process = LimitEnforcement { cpu_of_job: false, ..unset };
    assert_eq!(run(of_process, cpu), AttemptPhase::Running);
}

#[test]
fn memory_limit_held_by_the_kernel_is_not_measured_and_its_kill_gives_the_reason() {
    let begun = |memory_group: bool, out_of_memory: bool| {
        let mut r = Rig::new();
        r.enforcement = LimitEnforcement { memory_of_job: true, ..LimitEnforcement::default() };
        r.memory_group = memory_group;
        r.boot(true);
        r.greet(2);
        r.template.usage = Usage { mem_kb: 2000, ..Usage::default() };
        let limits = Limits { rss: Some(1000), ..Limits::default() };
        r.start(StartJob { limits, ..order(1) });
        let pid = r.pid();
        r.procs.get_mut(&pid).unwrap().out_of_memory = out_of_memory;
        (r, pid)
    };
    let looked_at = |memory_group: bool, out_of_memory: bool| {
        let (mut r, _) = begun(memory_group, out_of_memory);
        r.wait(4);
        r.last()
    };
    assert_eq!(looked_at(false, false), ended(SIGINT, term::MEMLIMIT));
    assert_eq!(looked_at(true, false), AttemptPhase::Running);
    assert_eq!(looked_at(true, true), ended(SIGINT, term::MEMLIMIT));
    // a job that ends by it before anybody has looked, and one that ends by itself
    for (out_of_memory, reason) in [(true, term::MEMLIMIT), (false, 0)] {
        let (mut r, pid) = begun(true, out_of_memory);
        r.exits(pid, SIGKILL);
        assert_eq!(r.last(), ended(SIGKILL, reason));
    }
}

#[test]
fn usage_is_measured_no_more_often_than_the_process_interval() {
    let looks = |pim_interval: u64| {
        let mut r = Rig::new();
        r.pim_interval = pim_interval;
        r.boot(false);
        r.greet(2);
        r.start(order(1));
        r.wait(10);
        let before = r.looks;
        r.wait(600);
        r.looks - before
    };
    assert_eq!((looks(0), looks(60), looks(300)), (86, 10, 2));
}

#[test]
fn process_groups_are_told_where_there_are_several() {
    let told = |nprocs| {
        let mut r = Rig::new();
        r.template.usage = Usage { mem_kb: 1000, nprocs, ..Usage::default() };
        r.start(order(1));
        r.wait(60);
        let pid = r.pid();
        let groups = r.told.iter().find_map(|m| match m {
            SbdMsg::Usage { groups, pids, .. } if pids.len() == nprocs as usize => Some(groups),
            _ => None,
        });
        groups.unwrap().iter().map(|group| group - pid).collect::<Vec<_>>()
    };
    assert_eq!(told(1), [0; 0]);
    assert_eq!(told(2), [0; 0]);
    assert_eq!(told(3), [0, 0, 2]);
}

#[test]
fn the_most_processors_used_between_two_looks() {
    let start = Now { mono_us: 7, wall_us: 1_000_000 * US as i64 };
    let at = |secs: u64| Now {
        mono_us: start.mono_us + secs * US,
        wall_us: start.wall_us + (secs * US) as i64,
    };
    let used = |secs: u64| Usage { utime_us: secs * US, mem_kb: 10, ..Usage::default() };
    let begun = || {
        let mut job = Attempt::new(order(1), start);
        job.started = start.secs();
        job
    };
    let mut job = begun();
    for (secs, cpu, want) in [
        // since its start, which is known by the second
        (9, 10, (100, 9)),
        (19, 35, (250, 19)),
        (29, 40, (250, 19)),
        // a look at once tells nothing
        (29, 90, (250, 19)),
        // less than before: a process that is gone took its time with it
        (39, 20, (250, 19)),
        (49, 50, (300, 49)),
    ] {
        let session = TaskProcesses { pid: 501, usage: used(cpu), ..TaskProcesses::default() };
        job.sampled(at(secs), &session, LimitEnforcement::default());
        assert_eq!((job.usage.cpu_peak, job.usage.cpu_peak_secs), want, "{secs} {cpu}");
        assert_eq!(job.usage.utime_us, cpu * US);
    }
    job.final_usage(at(59), used(55));
    assert_eq!((job.usage.cpu_peak, job.usage.cpu_peak_secs), (300, 49));
    // what was never looked at: what it used in all
    let mut job = begun();
    job.final_usage(at(6), used(7));
    assert_eq!((job.usage.cpu_peak, job.usage.cpu_peak_secs), (100, 6));
}

#[test]
fn jobs_beyond_their_memory_go_on_until_the_host_lacks_memory_and_then_the_worst_ends() {
    let run = |control: &str, percent: (u64, u64), hard: bool| {
        let mut r = Rig::new();
        let memory_control = MemoryControl::parse(control);
        assert!(memory_control.is_some());
        r.enforcement =
            LimitEnforcement { memory_of_job: true, memory_control, ..LimitEnforcement::default() };
        r.memory = HostMemory { memory_kb: (percent.0, 100), swap_kb: (percent.1, 100) };
        r.boot(true);
        r.greet(2);
        for (id, mem_kb) in [(1, 1500), (2, 3000), (3, 900)] {
            r.template.usage = Usage { mem_kb, ..Usage::default() };
            let limits = Limits { rss: Some(1000), hard_memory: hard, ..Limits::default() };
            r.start(StartJob { limits, ..order(id) });
        }
        r.wait(4);
        let ended =
            r.states().into_iter().filter(|s| matches!(s.phase, AttemptPhase::Ended { .. }));
        let ended: Vec<u32> = ended.map(|s| s.key.job).collect();
        [1, 2, 3].map(|id| ended.contains(&id))
    };
    let (none, worst, both) = ([false; 3], [false, true, false], [true, true, false]);
    for (control, percent, hard, ended) in [
        ("80:40:600", (79, 100), false, none),
        ("80:40:600", (100, 39), false, none),
        ("80:40:600:", (80, 40), false, worst),
        ("80:0:600", (80, 0), false, worst),
        ("80:40:600:all", (80, 40), false, both),
        ("80:40:1", (80, 40), false, both),
        ("80:40:600", (0, 0), true, both),
    ] {
        assert_eq!(run(control, percent, hard), ended, "{control} {percent:?} {hard}");
    }
}

#[test]
fn memory_limit_is_about_the_things_that_the_application_profile_names() {
    let run = |of: (bool, bool, bool), most: u64, by_job: bool| {
        let mut r = Rig::new();
        r.enforcement = LimitEnforcement { memory_of_job: by_job, ..LimitEnforcement::default() };
        r.boot(true);
        r.greet(2);
        // four processes of 500 KB in one task
        r.template.usage = Usage { mem_kb: 2000, nprocs: 4, ..Usage::default() };
        let memory_of = Some(MemoryOf { job: of.0, process: of.1, task: of.2 });
        let limits = Limits { rss: Some(most), memory_of, ..Limits::default() };
        r.start(StartJob { limits, ..order(1) });
        r.wait(4);
        r.last()
    };
    let over = ended(SIGINT, term::MEMLIMIT);
    for (of, most, want) in [
        ((true, false, false), 1999, &over),
        ((true, false, false), 2000, &AttemptPhase::Running),
        ((false, true, false), 499, &over),
        ((false, true, false), 500, &AttemptPhase::Running),
        ((false, false, true), 1999, &over),
        ((false, false, true), 2000, &AttemptPhase::Running),
        ((false, true, true), 1999, &over),
        ((true, true, false), 1999, &over),
    ] {
        for by_job in [false, true] {
            assert_eq!(run(of, most, by_job), *want, "{of:?} {most} {by_job}");
        }
    }
}
