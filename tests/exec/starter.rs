//! The environment of a job at its beginning, and the remains after its end.

use crate::rig::{NOBODY, Rig, is_root, skip};
use lsf::model::job::{End, Limits};
use lsf::proto::launch::{
    FinishPlan, Hook, HookOf, JobPlan, Setup, SetupStage, TaskId, TaskPlan, TaskStep,
};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;

/// Each test as the caller and, where that is root, as an ordinary user.
fn each(name: &str, test: impl Fn(&mut Rig)) {
    test(&mut Rig::new(name));
    if is_root() {
        test(&mut Rig::of(name, NOBODY));
    } else {
        skip(name, "as another user: needs root");
    }
}

#[test]
fn a_job_has_its_own_surroundings() {
    each("around", |r| {
        let show = "tr '\\0' '\\n' < /proc/$$/environ; echo cwd=$(pwd); echo fds=$(ls /proc/self/fd | tr '\\n' ' '); \
                    echo stat=$(cut -d' ' -f5,6 /proc/$$/stat) pid=$$; umask; \
                    grep SigIgn /proc/self/status; grep SigBlk /proc/self/status; \
                    grep Groups /proc/$$/status; ulimit -c; ulimit -f; exit 7";
        let limits = Limits { core: Some(4), fsize: Some(1024), ..Limits::default() };
        // of two of a name the later one counts
        let env = "PATH=/usr/bin:/bin\0A=x\0A=b c\0LSB_JOBID=1\0".into();
        let job = JobPlan { env, limits, umask: 0o027, ..r.plan(show) };
        let (ready, ended) = r.run(1, job);
        assert_eq!(ended.end, End::Status(7 << 8));
        assert!(ended.usage.max_mem_kb > 100);
        assert_eq!(ready.cwd, r.work().to_str().unwrap());
        assert_eq!((ready.user.as_str(), ready.home.as_str()), (&*r.user, &*r.home));
        let out = r.read("out");
        let has = |want: &str| assert!(out.lines().any(|l| l == want), "{want} not in:\n{out}");
        has("A=b c");
        assert!(!out.contains("A=x"), "{out}");
        has(&format!("HOME={}", r.home));
        has(&format!("USER={}", r.user));
        has(&format!("PWD={}", r.work().display()));
        has(&format!("cwd={}", r.work().display()));
        has("0027");
        // 3 is ls's own
        has("fds=0 1 2 3");
        assert!(!out.contains("SECRET") && !out.contains("LSF_ENVDIR"), "{out}");
        let line = |start: &str| out.lines().find(|l| l.starts_with(start)).unwrap().to_owned();
        let stat = line("stat=");
        let pid = stat.split("pid=").nth(1).unwrap();
        assert!(stat.starts_with(&format!("stat={pid} {pid} ")), "{stat}");
        has(&format!("LS_JOBPID={pid}"));
        // 32 and 33 are the C library's own and out of reach
        let ignored = u64::from_str_radix(line("SigIgn").split('\t').nth(1).unwrap(), 16).unwrap();
        assert_eq!(ignored & !0x1_8000_0000, 0, "{ignored:x}");
        assert!(line("SigBlk").ends_with("0000000000000000"), "{}", line("SigBlk"));
        let meta = std::fs::metadata(r.work().join("out")).unwrap();
        assert_eq!((meta.uid(), meta.mode() & 0o777), (r.uid, 0o640));
    });
}

#[test]
fn a_missing_directory_is_told_of() {
    each("cwd", |r| {
        let out_file = r.work().join("out").to_str().unwrap().into();
        let job = JobPlan { cwd: "/no/such/place".into(), out_file, ..r.plan("pwd") };
        let (ready, _) = r.run(1, job.clone());
        assert_eq!((ready.cwd.as_str(), r.read("out").as_str()), ("/tmp", "/tmp\n"));
        let want = "current working directory </no/such/place> is not accessible or does not exist \
                    on the execution host: No such file or directory; </tmp> is used";
        assert_eq!(ready.note, want);
        let id = r.start(2, JobPlan { need_cwd: true, ..job });
        assert!(matches!(r.setup(id), Setup::Failed { at: SetupStage::Cwd, .. }));
        assert_eq!(r.end(id).end, End::Status(2 << 8));
        assert_eq!(r.read("out"), "/tmp\n");
    });
}

#[test]
fn output_goes_where_it_is_asked_to() {
    each("output", |r| {
        let both = "echo one; echo two >&2";
        r.run(1, r.plan(both));
        r.run(2, r.plan(both));
        assert_eq!(r.read("out"), "one\ntwo\none\ntwo\n");
        r.run(3, JobPlan { out_over: true, ..r.plan(both) });
        assert_eq!(r.read("out"), "one\ntwo\n");
        let (ready, _) = r.run(4, JobPlan { err_file: "err".into(), ..r.plan(both) });
        assert_eq!((r.read("out").as_str(), r.read("err").as_str()), ("one\ntwo\none\n", "two\n"));
        assert_eq!(ready.out.lossy(), r.work().join("out").to_str().unwrap());
        // a directory gets a file of the job's name
        let dir = r.work().to_str().unwrap().into();
        r.run(5, JobPlan { job: 88, idx: 3, out_file: dir, ..r.plan("echo in") });
        assert_eq!(r.read("88.3.out"), "in\n");
        let (ready, _) = r.run(6, JobPlan { out_file: "/dev/null".into(), ..r.plan(both) });
        assert!(ready.out.is_empty());
    });
}

#[test]
fn an_input_path_that_names_a_descriptor_shows_no_plan() {
    each("descriptors", |r| {
        for n in 0..8u32 {
            let env = "PATH=/usr/bin:/bin\0MARK=of the plan\0".into();
            let in_file = format!("/proc/self/fd/{n}").as_str().into();
            let job = JobPlan {
                env,
                in_file,
                out_file: format!("out{n}").as_str().into(),
                ..r.plan("cat")
            };
            let id = r.start(n + 1, job);
            // a socket cannot be opened so, and what is no file is refused
            let setup = r.setup(id);
            r.end(id);
            let ready = matches!(setup, Setup::Ready(_));
            assert!(
                ready || matches!(setup, Setup::Failed { at: SetupStage::Input, .. }),
                "{setup:?}"
            );
            let said = if ready { r.read(&format!("out{n}")) } else { String::new() };
            assert!(!said.contains("of the plan") && !said.contains("cwd"), "{n}: {said}");
        }
    });
}

#[test]
fn output_that_cannot_be_opened_is_kept_elsewhere() {
    each("kept", |r| {
        let fifo = r.work().join("fifo");
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        for (n, name) in ["fifo", "/no/such/dir/out", ""].into_iter().enumerate() {
            let n = n as u32 + 1;
            let job = JobPlan { job: n, out_file: name.into(), ..r.plan("echo kept") };
            let unique = std::process::id().into();
            let (ready, ended) = r.run(n, JobPlan { submit_time: unique, ..job });
            assert_eq!(ended.end, End::Status(0));
            let path = ready.out.lossy().into_owned();
            assert!(ready.note.ends_with(&format!("output is kept in <{path}>")), "{}", ready.note);
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "kept\n");
            let meta = std::fs::metadata(&path).unwrap();
            assert_eq!((meta.uid(), meta.mode() & 0o777), (r.uid, 0o600));
            std::fs::remove_file(path).unwrap();
        }
    });
}

#[test]
fn a_job_without_an_input_file_reads_nothing() {
    each("input", |r| {
        std::fs::write(r.work().join("in"), "given\n").unwrap();
        r.run(1, JobPlan { in_file: "in".into(), ..r.plan("cat") });
        r.run(2, r.plan("cat; echo end"));
        assert_eq!(r.read("out"), "given\nend\n");
        let fifo = r.work().join("fifo");
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        for (n, name) in ["fifo", "missing", "."].into_iter().enumerate() {
            let id = r.start(10 + n as u32, JobPlan { in_file: name.into(), ..r.plan("cat") });
            assert!(matches!(r.setup(id), Setup::Failed { at: SetupStage::Input, .. }), "{name}");
            r.end(id);
        }
    });
}

#[test]
fn scripts_run_under_their_interpreter_and_go_afterwards() {
    each("script", |r| {
        let time = i64::from(std::process::id());
        let script = |n: u32, text: &str, r: &mut Rig| {
            let job = JobPlan { job: n, submit_time: time, script: text.into(), ..r.plan("") };
            r.run(n, job)
        };
        script(1, "echo \"$0\" = \"$LSB_JOBFILENAME\"", r);
        let out = r.read("out");
        let (file, var) = out.trim().split_once(" = ").unwrap();
        assert!(file.ends_with(&format!("/{time}.1")), "{out}");
        assert!(var.ends_with(&format!("/.lsbatch/{time}.1")), "{out}");
        let (ready, _) = script(2, "#!/bin/sed /^#/d\necho sed was here\n", r);
        assert!(r.read("out").ends_with("\necho sed was here\n"));
        let (_, ended) = script(3, "#!/no/such/interpreter\n", r);
        assert_eq!(ended.end, End::Status(127 << 8));
        // the finish step appends as the user and removes the job file
        let path = r.work().join("out");
        let meta = std::fs::metadata(ready.script.lossy().as_ref()).unwrap();
        assert_eq!((meta.uid(), meta.mode() & 0o777), (r.uid, 0o700));
        let id = TaskId {
            key: lsf::model::JobKey { job: 2, idx: 0, attempt: 1 },
            step: TaskStep::Finish,
        };
        let what = TaskPlan::Finish(Box::new(FinishPlan {
            append_to: path.to_str().unwrap().into(),
            text: "the report\n".into(),
            remove: ready.script.clone(),
            ..FinishPlan::default()
        }));
        r.start_as(id, r.uid, what);
        assert_eq!(r.end(id).end, End::Status(0));
        assert!(r.read("out").ends_with("\nthe report\n"));
        assert!(!std::path::Path::new(ready.script.lossy().as_ref()).exists());
    });
}

#[test]
fn end_of_a_job_is_reported_while_post_execution_runs() {
    each("after", |r| {
        let key = lsf::model::JobKey { job: 1, idx: 0, attempt: 1 };
        let id = TaskId { key, step: TaskStep::Finish };
        let cwd = r.work();
        let wait = "while [ ! -e go ]; do sleep 0.05; done; : > gone; exit 3";
        let what = TaskPlan::Finish(Box::new(FinishPlan {
            post: vec![Hook::new(HookOf::Job, wait)],
            env: "PATH=/usr/bin:/bin\0".into(),
            cwd: cwd.to_str().unwrap().into(),
            ..FinishPlan::default()
        }));
        r.start_as(id, r.uid, what);
        r.ready(id);
        assert!(!cwd.join("gone").exists());
        std::fs::write(cwd.join("go"), "").unwrap();
        assert_eq!(r.end(id).end, End::Status(3 << 8));
    });
}

#[test]
fn plain_words_are_the_job_itself_and_else_the_shell_says_why() {
    each("words", |r| {
        let words = |r: &Rig, all: &[&str]| JobPlan {
            words: all.iter().map(|w| (*w).into()).collect(),
            err_file: "err".into(),
            ..r.plan(&all.join(" "))
        };
        // the shell would be /bin/sh here, and the program its child
        let (_, ended) = r.run(1, words(r, &["/bin/cat", "/proc/self/cmdline", "/proc/self/stat"]));
        assert_eq!(ended.end, End::Status(0));
        let out = r.read("out");
        let (cmdline, stat) = out.rsplit_once('\0').unwrap();
        assert_eq!(cmdline, "/bin/cat\0/proc/self/cmdline\0/proc/self/stat");
        let mut stat = stat.split(' ');
        let (pid, session) = (stat.next().unwrap().to_owned(), stat.nth(4).unwrap());
        assert_eq!(pid, session, "{out}");
        // without #! the kernel refuses it: a shell's business
        let script = r.work().join("script");
        std::fs::write(&script, "echo \"ran $0\"\nexit 5\n").unwrap();
        std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
        let (_, ended) = r.run(2, words(r, &["./script"]));
        assert_eq!(ended.end, End::Status(5 << 8));
        assert!(r.read("out").ends_with("ran ./script\n"), "{}", r.read("out"));
        let (_, ended) = r.run(3, words(r, &["/no/such", "x"]));
        assert_eq!(ended.end, End::Status(127 << 8));
        assert!(r.read("err").contains("/no/such: not found"), "{}", r.read("err"));
        std::fs::set_permissions(&script, PermissionsExt::from_mode(0o644)).unwrap();
        let (_, ended) = r.run(4, words(r, &["./script"]));
        assert_eq!(ended.end, End::Status(126 << 8));
        // where there is a login shell or a script, they are it
        let (_, ended) =
            r.run(5, JobPlan { script: "exit 7\n".into(), ..words(r, &["/bin/true"]) });
        assert_eq!(ended.end, End::Status(7 << 8));
    });
}

#[test]
fn another_uid_than_the_names_is_refused() {
    let mut r = Rig::new("name");
    r.user = "no-such-user-here".into();
    if is_root() {
        // the owner of the cluster need not have a name, but a name has its uid
        r.user = "nobody".into();
    }
    let id = r.start(1, r.plan("echo ran"));
    let setup = r.setup(id);
    if is_root() {
        assert!(matches!(setup, Setup::Failed { at: SetupStage::User, .. }), "{setup:?}");
        assert!(!r.work().join("out").exists());
    } else {
        assert!(matches!(setup, Setup::Ready(_)));
    }
}
