//! Random records: each is read back as it was written, and no text of a user forges one.

use super::*;
use crate::model::checkpoint::{CheckpointEnd, CheckpointOrder};
use crate::model::job_state::LoggedStatus;
use crate::model::nqs::{NlbPlacement, Route};
use crate::model::reason::PendReason;
use crate::model::reservation::{
    Reservation, ReservationKind, ReservationScripts, ReservationTime,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::{option, sample::select};

fn kept() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{0,6}",
        "[ -~é√\u{1f600}]{0,12}",
        select(&["\"", "\\\"\\"][..]).prop_map(str::to_string),
        Just("lsf.gid".to_string()),
    ]
}

/// Anything at all.
fn hostile() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        vec(any::<u8>(), 0..20),
        kept().prop_map(String::into_bytes),
        Just(b"\"JOB_CLEAN\" \"10.1\" 1 1 0\n\"JOB_CLEAN\" \"10.1\" 1 2 0\n".to_vec()),
    ]
}

fn at() -> impl Strategy<Value = JobRef> {
    (any::<u32>(), any::<u32>()).prop_map(|(job, idx)| JobRef { job, idx })
}

fn limits() -> impl Strategy<Value = Limits> {
    vec(option::of(any::<u64>()), 10).prop_map(|v| Limits {
        cpu: v[0],
        fsize: v[1],
        data: v[2],
        stack: v[3],
        core: v[4],
        rss: v[5],
        swap: v[6],
        run: v[7],
        process: v[8],
        thread: v[9],
        ..Limits::default()
    })
}

fn spec() -> impl Strategy<Value = JobSpec> {
    let numbers = (any::<[u32; 5]>(), any::<[i64; 2]>(), limits());
    let lists = (vec(kept(), 0..4), vec((kept(), kept()), 0..4));
    (vec(kept(), 10), vec(kept(), 9), numbers, lists).prop_map(
        |(t, b, ([min_slots, max_slots, umask, options, options2], times, limits), lists)| {
            let b: Vec<ByteStr> = b.into_iter().map(ByteStr::from).collect();
            JobSpec {
                name: t[0].clone(),
                queue: t[1].clone(),
                project: t[2].clone(),
                user_group: t[3].clone(),
                description: t[4].clone(),
                res_req: t[5].clone(),
                depend: t[6].clone(),
                limit_spec: t[7].clone(),
                from_host: t[8].clone(),
                mail_user: t[9].clone(),
                command: b[0].clone(),
                in_file: b[1].clone(),
                out_file: b[2].clone(),
                err_file: b[3].clone(),
                cwd: b[4].clone(),
                home: b[5].clone(),
                login_shell: b[6].clone(),
                pre_exec: b[7].clone(),
                post_exec: b[8].clone(),
                begin_time: times[0],
                term_time: times[1],
                min_slots,
                max_slots,
                umask,
                options,
                options2,
                limits,
                priority: min_slots % 7,
                hosts: lists.0,
                further: lists.1.into_iter().collect(),
            }
        },
    )
}

fn place() -> impl Strategy<Value = SpoolRef> {
    (any::<u32>(), any::<u64>(), any::<u32>()).prop_map(|(spool, at, len)| SpoolRef {
        spool,
        at,
        len,
    })
}

fn job_new() -> impl Strategy<Value = JobNew> {
    (any::<[u32; 3]>(), any::<i64>(), spec(), [kept(), kept()], [place(), place(), place()])
        .prop_map(|([job, uid, gid], submit_time, spec, [user, request], [env, script, exact])| {
            let spec = Arc::new(spec);
            JobNew { job, uid, gid, user, submit_time, spec, request, env, script, exact }
        })
}

/// Up to 2^40 microseconds, KB or counts.
fn usage() -> impl Strategy<Value = Usage> {
    (vec(0u64..1 << 40, 13), any::<[u32; 4]>()).prop_map(|(v, [nthreads, nprocs, peak, secs])| {
        Usage {
            utime_us: v[0],
            stime_us: v[1],
            mem_kb: v[2],
            swap_kb: v[3],
            max_mem_kb: v[4],
            avg_mem_kb: v[5],
            max_swap_kb: v[6],
            minflt: v[7],
            majflt: v[8],
            inblock: v[9],
            oublock: v[10],
            nvcsw: v[11],
            nivcsw: v[12],
            nthreads,
            nprocs,
            cpu_peak: peak,
            // when it was is of a peak alone
            cpu_peak_secs: if peak > 0 { secs } else { 0 },
        }
    })
}

fn slots() -> impl Strategy<Value = Vec<(String, u32)>> {
    vec(1u32..5, 0..4).prop_map(|counts| {
        counts.into_iter().enumerate().map(|(i, n)| (format!("host{i}"), n)).collect()
    })
}

fn retry() -> impl Strategy<Value = Box<Retry>> {
    ([kept(), kept()], any::<[u32; 2]>(), any::<(u8, bool)>()).prop_map(
        |([host, note], [until, host_until], (pre_exit, excluded))| {
            let (until, host_until) = (i64::from(until), i64::from(host_until));
            Box::new(Retry { host, host_until, until, note, pre_exit, excluded })
        },
    )
}

fn hosts_used() -> impl Strategy<Value = Box<[HostUsage]>> {
    vec(any::<[u32; 4]>(), 0..4).prop_map(|figures| {
        let host = |(i, [mem, swap, utime, stime]): (usize, [u32; 4])| HostUsage {
            host: format!("host{i}").into(),
            mem_kb: mem.into(),
            swap_kb: swap.into(),
            utime_us: utime.into(),
            stime_us: stime.into(),
        };
        figures.into_iter().enumerate().map(host).collect()
    })
}

fn job_status() -> impl Strategy<Value = JobStatus> {
    let times = (any::<(i64, i32, bool, bool)>(), kept());
    let more = (0u64..1 << 40, option::of(usage()), option::of(retry()), hosts_used());
    (at(), any::<[u32; 5]>(), times, more).prop_map(
        |(
            at,
            [status, reason, subreason, exit_info, attempt],
            ((end_time, exit, end, post), after),
            (us, usage, retry, hosts),
        )| {
            let status = LoggedStatus::of_bits(status);
            JobStatus {
                at,
                hosts: if status.is_finished() { hosts } else { Box::default() },
                status,
                reason,
                subreason,
                end_time,
                cpu: us as f64 / 1e6,
                usage,
                exit_status: exit,
                exit_info,
                attempt,
                unknown_end: end,
                post,
                retry,
                after,
            }
        },
    )
}

fn job_start() -> impl Strategy<Value = Event> {
    let forced = select(vec![Forced::No, Forced::Yes, Forced::NeverSuspended]);
    (at(), any::<u32>(), slots(), 0.0..1e6, [kept(), kept()], forced).prop_map(
        |(at, attempt, hosts, host_factor, [eff_res_req, boot], forced)| {
            let hosts: NamedHosts = hosts.into_iter().map(|(host, n)| (host.into(), n)).collect();
            let (eff_res_req, boot) = (eff_res_req.into(), boot.into());
            let account = Arc::clone(&boot);
            let slice = u64::from(attempt % 3) * 60;
            let units = "core,-,socket,localonly h1:/0/0/0:0-1::0=5 | thread,numa,-,- h:/0:3:1:0=0";
            let start = JobStart {
                at,
                attempt,
                short_hosts: attempt % 2 == 1 && hosts.iter().any(|(_, slots)| *slots > 1),
                hosts,
                host_factor,
                eff_res_req,
                boot,
                slice,
                forced,
                account,
                affinity: if attempt % 2 == 1 { units.into() } else { Arc::default() },
                placed: (attempt % 5 == 1).then(|| {
                    let (policy, value) = ("CPU".to_owned(), "-inf".to_owned());
                    Arc::new(NlbPlacement { policy, value, choice: 1, of: attempt })
                }),
            };
            Event::JobStart(Box::new(start))
        },
    )
}

fn job_signal() -> impl Strategy<Value = Event> {
    let texts = [kept(), kept(), kept(), kept(), kept()];
    (at(), any::<[u32; 2]>(), any::<[bool; 3]>(), texts).prop_map(
        |(at, [uid, run_count], [by_admin, done, bulk], texts)| {
            let [user, word, host, reason, request] = texts;
            let action = JobAction::of_word(&word);
            let s = JobSignal {
                at,
                uid,
                user,
                action,
                run_count,
                by_admin,
                host,
                reason,
                done,
                bulk,
                request,
            };
            Event::JobSignal(Box::new(s))
        },
    )
}

fn range() -> impl Strategy<Value = ElementRange> {
    (1..=u32::MAX, 0..1000u32, 1..=3u32).prop_map(|(first, more, step)| {
        match first.saturating_add(more) {
            last if last == first => (first, first, 1),
            last => (first, last, step),
        }
    })
}

fn array_switch() -> impl Strategy<Value = Event> {
    (any::<[u32; 2]>(), vec(range(), 0..4), [kept(), kept()]).prop_map(
        |([job, uid], elems, [queue, user])| Event::ArraySwitch { job, elems, queue, uid, user },
    )
}

fn array_move() -> impl Strategy<Value = Event> {
    let place = any::<(u64, u32)>();
    (any::<[u32; 3]>(), vec(range(), 0..4), any::<bool>(), kept(), place).prop_map(
        |([job, uid, position], elems, top, user, (base, between))| {
            let place = QueuePosition { base, between };
            Event::ArrayMove(Box::new(ArrayMove { job, elems, position, top, uid, user, place }))
        },
    )
}

fn array_signal() -> impl Strategy<Value = Event> {
    let numbers = any::<[u32; 3]>();
    (job_signal(), vec(range(), 0..4), numbers, any::<i64>()).prop_map(
        |(event, elems, [status, reason, exit_info], end_time)| {
            let Event::JobSignal(signal) = event else { unreachable!() };
            let (signal, status) = (*signal, LoggedStatus::of_bits(status));
            let s = ArraySignal { elems, signal, status, reason, end_time, exit_info };
            Event::ArraySignal(Box::new(s))
        },
    )
}

fn job_requeue() -> impl Strategy<Value = Event> {
    let exit = option::of(any::<i32>());
    let held = option::of(1..=u32::MAX);
    (at(), held, any::<bool>(), slots(), any::<u32>(), exit, kept()).prop_map(
        |(at, held, uncounted, on, until, exit, request)| {
            let held = held.map(PendReason::of_number);
            let passed = on.into_iter().map(|h| h.0).collect();
            let until = i64::from(until);
            Event::JobRequeue { at, held, uncounted, passed, until, exit, request }
        },
    )
}

fn job_modify() -> impl Strategy<Value = Event> {
    (job_new(), any::<[u32; 2]>(), vec(1u32..9, 0..3)).prop_map(|(new, [job, uid], starts)| {
        let spec = JobSpec { further: Further::default(), ..(*new.spec).clone() };
        let exact = SpoolRef { spool: 1, at: 2, len: 3 };
        let fields = vec![SpecField::Name, SpecField::ResReq];
        let (user, submit_time) = (new.user, new.submit_time);
        // as they are written: ascending, a step only where there is more than one
        let elem = |(i, n): (usize, &u32)| (i as u32 * 100 + 1, i as u32 * 100 + n, 1);
        let elems = starts.iter().enumerate().map(elem).collect();
        let eff_res_req = if starts.len() > 1 { "rusage[mem=1.00]".into() } else { String::new() };
        let (script, env) = match uid % 2 {
            0 => (new.script, new.env),
            _ => <_>::default(),
        };
        let m = JobModify {
            job,
            alike: uid % 3 == 0,
            elems,
            uid,
            user,
            submit_time,
            spec,
            fields,
            exact,
            eff_res_req,
            script,
            env,
        };
        Event::JobModify(Box::new(m))
    })
}

fn job_force() -> impl Strategy<Value = Event> {
    (at(), any::<[u32; 2]>(), slots(), [kept(), kept(), kept()]).prop_map(
        |(at, [uid, options], hosts, [user, queue, request])| {
            let hosts = hosts.into_iter().map(|(host, n)| (host.into(), n)).collect();
            let force = JobForce { at, uid, user, options, hosts, queue, request };
            Event::JobForce(Box::new(force))
        },
    )
}

fn job_resize() -> impl Strategy<Value = Event> {
    let step = (any::<[u32; 4]>(), slots(), kept(), any::<[bool; 2]>(), 0..6).prop_map(
        |([number, pid, total, least], hosts, command, [cancels, given], kind)| {
            let hosts: NamedHosts = hosts.into_iter().map(|(host, n)| (host.into(), n)).collect();
            match kind {
                0 => ResizeStep::Released { number, cancels, hosts, command },
                1 => ResizeStep::Asked { total, least, command: given.then_some(command) },
                2 => ResizeStep::Cancelled,
                3 => ResizeStep::Begun { number, grows: cancels, hosts, command },
                4 => ResizeStep::Accepted { number, pid },
                _ => ResizeStep::Done { number, status: pid as i32 },
            }
        },
    );
    (at(), any::<[u32; 2]>(), step, [kept(), kept()]).prop_map(
        |(at, [attempt, uid], step, [user, request])| {
            let asked = matches!(
                step,
                ResizeStep::Released { .. } | ResizeStep::Asked { .. } | ResizeStep::Cancelled
            );
            let (uid, user) = if asked { (uid, user) } else { (0, String::new()) };
            Event::JobResize(Box::new(JobResize { at, step, attempt, uid, user, request }))
        },
    )
}

fn job_migrate() -> impl Strategy<Value = Event> {
    (at(), any::<[u32; 2]>(), vec(kept(), 0..3), [kept(), kept()], any::<[bool; 3]>()).prop_map(
        |(at, [uid, attempt], hosts, [user, request], [by_admin, checkpoints, force])| {
            let order = CheckpointOrder { kill: true, force, period: None };
            let checkpoint = checkpoints.then_some(order);
            let m = JobMigrate { at, uid, user, hosts, attempt, by_admin, checkpoint, request };
            Event::JobMigrate(Box::new(m))
        },
    )
}

fn job_checkpoint() -> impl Strategy<Value = Event> {
    let period = option::of(0..9_000_000_u32);
    (at(), any::<[u32; 4]>(), [kept(), kept()], any::<[bool; 3]>(), period, any::<bool>()).prop_map(
        |(at, [pid, attempt, uid, number], [user, request], [a, b, c], period, ended)| {
            let order = CheckpointOrder { kill: a, force: b, period };
            let end = CheckpointEnd { number, succeeded: a, kill: b, asked: c, period };
            let (step, uid) = match ended {
                true => (CheckpointStep::Ended(end), 0),
                false => (CheckpointStep::Asked(order), uid),
            };
            let c = JobCheckpoint { at, pid, step, attempt, uid, user, request };
            Event::JobCheckpoint(Box::new(c))
        },
    )
}

fn route() -> impl Strategy<Value = Box<Route>> {
    let word = || "[a-z0-9.@+-]{2,8}";
    let asked = vec(word(), 0..3);
    ([word(), word(), word()], any::<[u32; 2]>(), asked, any::<u64>()).prop_map(
        |([host, policy, from], [rank, of], asked, generation)| {
            let value = "5.000000".to_owned();
            Box::new(Route { host, policy, value, rank, of, from, asked, generation })
        },
    )
}

fn job_move() -> impl Strategy<Value = Event> {
    let place = option::of(any::<(u64, u32)>());
    (at(), any::<[u32; 2]>(), any::<bool>(), kept(), place).prop_map(
        |(at, [position, uid], top, user, place)| {
            let place = place.map(|(base, between)| QueuePosition { base, between });
            Event::JobMove { at, position, top, uid, user, place }
        },
    )
}

fn job_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        job_start(),
        (at(), any::<[u32; 3]>()).prop_map(|(at, [attempt, pid, pgid])| {
            Event::JobStartAccept { at, attempt, pid, pgid }
        }),
        (at(), any::<[u32; 3]>(), [kept(), kept(), kept(), kept()]).prop_map(
            |(at, [uid, pid, pgid], [cwd, home, user, note])| {
                Event::JobExecute { at, uid, pid, pgid, cwd, home, user, note }
            }
        ),
        job_status().prop_map(|s| Event::JobStatus(Box::new(s))),
        job_signal(),
        array_signal(),
        array_switch(),
        array_move(),
        job_requeue(),
        at().prop_map(|at| Event::JobClean { at }),
        job_modify(),
        (at(), any::<u32>(), [kept(), kept()], option::of(route())).prop_map(
            |(at, uid, [queue, user], route)| { Event::JobSwitch { at, queue, uid, user, route } }
        ),
        job_move(),
        job_force(),
        job_migrate(),
        job_resize(),
        job_reserve(),
        job_chunk(),
        job_checkpoint(),
        (at(), kept()).prop_map(|(at, why)| Event::Hold { at, why }),
        (at(), any::<u32>(), kept()).prop_map(|(at, uid, user)| Event::Release { at, uid, user }),
        (at(), any::<bool>()).prop_map(|(at, on)| Event::Eligible { at, on }),
        run_limits::any_change(),
        (any::<u32>(), any::<i64>(), kept()).prop_map(|(job, submit_time, request)| {
            Event::Submitted { job, submit_time, request }
        }),
        job_message(),
        job_attachment(),
    ]
}

fn job_chunk() -> impl Strategy<Value = Event> {
    (vec(at(), 0..4), slots(), any::<bool>()).prop_map(|(members, hosts, short)| {
        let hosts: NamedHosts = hosts.into_iter().map(|(host, n)| (host.into(), n)).collect();
        let short_hosts = short && hosts.iter().any(|(_, slots)| *slots > 1);
        Event::JobChunk(Box::new(JobChunk { members, hosts, short_hosts }))
    })
}

fn job_reserve() -> impl Strategy<Value = Event> {
    let hosts = vec((kept().prop_map(Into::into), any::<u32>(), any::<u32>()), 0..4);
    let all = (at(), any::<[i64; 4]>(), hosts, vec(any::<u64>(), 1..4), vec(any::<u64>(), 1..4));
    all.prop_map(|(at, [since, until, start, end], hosts, memory, kept_memory)| {
        let reserve = JobReserve { at, since, until, start, end, hosts, memory, kept_memory };
        Event::JobReserve(Box::new(reserve))
    })
}

fn job_message() -> impl Strategy<Value = Event> {
    let numbers = (any::<[u32; 3]>(), any::<u64>(), any::<i64>());
    (at(), numbers, [kept(), kept()], prop_oneof![Just(""), Just("ERROR")]).prop_map(
        |(at, ([index, uid, status], size, post_time), [text, user], level)| {
            let level = level.into();
            let m = JobMessage { at, index, uid, size, post_time, status, text, user, level };
            Event::JobMessage(Box::new(m))
        },
    )
}

fn job_attachment() -> impl Strategy<Value = Event> {
    (at(), any::<[u32; 3]>(), any::<u64>(), kept(), option::of(place())).prop_map(
        |(at, [index, status, crc], size, file, data)| {
            let data = data.filter(|data| data.len > 0).unwrap_or_default();
            let crc = if data.len > 0 { crc } else { 0 };
            let a = JobAttachment { at, index, size, status, file, data, crc };
            Event::JobAttachment(Box::new(a))
        },
    )
}

fn job_group() -> impl Strategy<Value = JobGroupRecord> {
    let numbers = (any::<u32>(), any::<i64>(), option::of(any::<u32>()), any::<bool>());
    (numbers, [kept(), kept(), kept()]).prop_map(|((uid, time, limit, explicit), texts)| {
        let [owner, path, sla] = texts;
        JobGroupRecord { uid, time, owner, path, sla, limit, explicit }
    })
}

fn reservation() -> impl Strategy<Value = Reservation> {
    let kind = prop_oneof![
        Just(ReservationKind::User),
        Just(ReservationKind::Group),
        Just(ReservationKind::System)
    ];
    let once = any::<(i64, i64)>().prop_map(|(begin, end)| ReservationTime::Once { begin, end });
    let time = prop_oneof![once, kept().prop_map(ReservationTime::Weekly)];
    let texts = [kept(), kept(), kept(), kept(), kept()];
    let lists = (vec(kept(), 0..3), vec(kept(), 0..3), vec((kept(), any::<u32>()), 0..3));
    let numbers = (any::<i64>(), any::<[u32; 3]>(), any::<[bool; 3]>());
    let disabled = vec(any::<(i64, i64)>(), 0..3);
    (kind, time, texts, lists, numbers, disabled).prop_map(
        |(kind, time, texts, (users, queues, hosts), numbers, disabled)| {
            let [id, creator, description, pre, post] = texts;
            let (created, [creator_uid, pre_minutes, post_minutes], marks) = numbers;
            let [open, by_host, no_suspension] = marks;
            let scripts = ReservationScripts { pre, pre_minutes, post, post_minutes };
            Reservation {
                id,
                created,
                creator,
                creator_uid,
                kind,
                users,
                hosts,
                time,
                open,
                by_host,
                no_suspension,
                queues,
                description,
                scripts,
                disabled,
            }
        },
    )
}

fn other_event() -> impl Strategy<Value = Event> {
    let op = prop_oneof![Just(Ctrl::Open), Just(Ctrl::Close)];
    let qop = prop_oneof![Just(Ctrl::Activate), Just(Ctrl::Inactivate), Just(Ctrl::Open)];
    let three = || [kept(), kept(), kept()];
    prop_oneof![
        (qop, any::<u32>(), three()).prop_map(|(op, uid, [queue, user, message])| {
            Event::QueueCtrl { op, queue, uid, user, message }
        }),
        (op, any::<u32>(), three(), "[a-z0-9_-]{0,9}").prop_map(|(op, uid, texts, lock)| {
            let [host, user, message] = texts;
            Event::HostCtrl { op, host, uid, user, message, lock }
        }),
        (any::<[u32; 2]>(), [kept(), kept()]).prop_map(|([hosts, queues], [master, cluster])| {
            Event::MbdStart { master, cluster, hosts, queues }
        }),
        (any::<(u32, i32)>(), [kept(), kept()]).prop_map(|((removed, code), [master, message])| {
            Event::MbdDie { master, removed, code, message }
        }),
        (any::<bool>(), any::<u32>(), [kept(), kept(), kept(), kept()]).prop_map(
            |(add, uid, [group, host, user, message])| {
                Event::GroupHost { add, group, host, uid, user, message }
            }
        ),
        (job_group(), any::<bool>()).prop_map(|(group, add)| match add {
            true => Event::JobGroupAdd(Box::new(group)),
            false => Event::JobGroupModify(Box::new(group)),
        }),
        (any::<u32>(), [kept(), kept()]).prop_map(|(uid, [user, path])| Event::JobGroupDelete {
            uid,
            user,
            path
        }),
        reservation().prop_map(|r| Event::Reservation(Box::new(r))),
        (any::<u32>(), [kept(), kept()]).prop_map(|(uid, [id, user])| Event::ReservationEnd {
            id,
            uid,
            user
        }),
        (kept(), any::<u32>()).prop_map(|(owner, next)| Event::ReservationNext { owner, next }),
        any::<u32>().prop_map(|last_job| Event::LogSwitch { last_job }),
        vec(kept(), 0..5).prop_map(|names| Event::LoadIndex { names }),
        vec(kept(), 0..5).prop_map(|hosts| Event::HostStarts { hosts }),
        ([0.0..1e12f64, 0.0..1e-3f64], [kept(), kept(), kept()]).prop_map(
            |([cpu, run], [queue, user, group])| {
                Event::ShareUsed(Box::new(ShareUsed { queue, user, group, cpu, run }))
            }
        ),
        any::<(u32, u64)>().prop_map(|(next_job, epoch)| Event::Carried { next_job, epoch }),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![job_new().prop_map(|n| Event::JobNew(Box::new(n))), job_event(), other_event(),]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_event_comes_back(time in any::<i64>(), event in event()) {
        let record = Record { time, event };
        let mut out = Vec::new();
        write_record(&record, &mut out);
        prop_assert_eq!(out.iter().filter(|b| **b == b'\n').count(), 1);
        prop_assert_eq!(out.last(), Some(&b'\n'));
        prop_assert!(!matches!(&record.event, Event::JobNew(n) if n.spec.text_loses()));
        prop_assert_eq!(read_record(&out).unwrap(), record.clone());
        // cut anywhere it is no record or, of the same type, one with less in its tail
        let cut = out.len() / 2;
        if let Ok(got) = read_record(&out[..cut]) {
            prop_assert_eq!(name_of(&got.event), name_of(&record.event));
        }
    }

    #[test]
    fn no_bytes_forge_a_record(texts in vec(hostile(), 12), job in job_new()) {
        let mut job = job;
        let s = Arc::make_mut(&mut job.spec);
        s.command = ByteStr(texts[0].clone());
        s.cwd = ByteStr(texts[1].clone());
        s.out_file = ByteStr(texts[2].clone());
        s.pre_exec = ByteStr(texts[3].clone());
        s.home = ByteStr(texts[4].clone());
        s.name = String::from_utf8_lossy(&texts[5]).into_owned();
        s.project = String::from_utf8_lossy(&texts[6]).into_owned();
        s.hosts = vec![String::from_utf8_lossy(&texts[7]).into_owned()];
        s.further.put_text(&String::from_utf8_lossy(&texts[8]),
                           &String::from_utf8_lossy(&texts[9]));
        job.user = String::from_utf8_lossy(&texts[10]).into_owned();
        job.request = String::from_utf8_lossy(&texts[11]).into_owned();
        let mut out = Vec::new();
        let event = Event::JobNew(Box::new(job.clone()));
        write_record(&Record { time: 1, event }, &mut out);
        prop_assert_eq!(out.iter().filter(|b| **b == b'\n').count(), 1);
        let Event::JobNew(got) = read_record(&out).unwrap().event else { panic!() };
        prop_assert_eq!((got.job, got.gid, got.env, got.exact),
                        (job.job, job.gid, job.env, job.exact));
        prop_assert_eq!(got.spec == job.spec, !job.spec.text_loses());
        prop_assert_eq!(read_exact_spec(&exact(&job.spec)).unwrap(), (*job.spec).clone());
    }

    #[test]
    fn a_finish_comes_back(spec in spec(), at in at(), times in any::<[i64; 3]>(),
                           resized in 0..i64::MAX,
                           usage in option::of(usage()), hosts in slots(),
                           hosts_used in hosts_used(),
                           n in any::<(u32, u32, u32, i32, bool)>(), run in 1u64..1 << 40) {
        let mut spec = spec;
        // not in a JOB_FINISH
        spec.limits = Limits { run: Some(run), ..Limits::default() };
        spec.home = ByteStr::default();
        spec.limit_spec.clear();
        spec.user_group.clear();
        let kept =
            [further::SLA, further::LICENSE, further::APP, further::GROUP, further::RESIZE_COMMAND];
        spec.further = kept.map(|key| (key, format!("of {key}"))).into_iter().collect();
        (spec.umask, spec.priority) = (0, 0);
        let fin = Finish {
            event_time: times[0],
            at,
            uid: n.0,
            user: "alice".into(),
            submit_time: times[1],
            start_time: times[2],
            last_resize: if resized == times[2] { 0 } else { resized },
            spec,
            short_hosts: n.4 && hosts.iter().any(|(_, slots)| *slots > 1),
            exec_hosts: hosts,
            status: LoggedStatus::of_bits(n.1 | 0x40),
            host_factor: 7.25,
            usage,
            hosts_used,
            exit_status: n.3,
            exit_info: n.2,
            exceptions: n.2,
            eff_res_req: "select[x]".into(),
            attempt: n.0,
            unknown_end: n.4,
            charged: "/alice".into(),
            ineligible_secs: n.4.then_some(i64::from(n.2)),
        };
        let mut out = Vec::new();
        write_finish(&fin, &mut out);
        prop_assert_eq!(out.iter().filter(|b| **b == b'\n').count(), 1);
        prop_assert_eq!(read_finish(&out).unwrap(), fin);
    }

    #[test]
    fn any_line_is_read_without_panic(line in vec(any::<u8>(), 0..200)) {
        let _ = read_record(&line);
        let _ = read_finish(&line);
        let mut f = Fields::new(&line);
        while let Ok(Some(_)) = f.field() {}
    }
}
