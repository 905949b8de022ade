//! The network of a host is cut while parallel jobs have slots there: as first host and as another
//! one. Each host ends what it cannot be told of any more, no two runs of a job are on a host at a
//! time, and nothing is left when the network is back (lsf-parallel(7)).

use super::failover::cuttable_with;
use super::nodes::Nodes;
use super::rig::{job_id, wait_for};
use super::site::ADMIN;
use std::time::{Duration, Instant};

const MASTER: &str = "hostb";
/// A task that holds a lock of its job and host as long as it lives.
const TASK: &str = r#"name=$1
host=$(hostname)
exec 9> lock.$name.$host
flock -n 9 || echo $name $host >> overlap
echo $$ >> pid.$name.$host
while ! test -e end.$name; do sleep 0.2 9>&-; done
"#;
/// A script that runs the task on all of its hosts, and then goes on.
const JOB: &str = r#"name=$1
export LSB_DJOB_HB_INTERVAL=2
echo $(hostname) $$ >> run.$name
blaunch -z "$LSB_HOSTS" sh task.sh $name >> said.$name 2>&1
echo code $? >> said.$name
while ! test -e go.$name; do sleep 0.2; done
blaunch -z "$LSB_HOSTS" 'echo again on $(hostname)' > again.$name 2>&1
exit 6
"#;

struct Cut {
    nodes: Nodes,
}

impl Cut {
    fn new(name: &str) -> Cut {
        let lines = "LSF_RES_ALIVE_TIMEOUT=4\nLSF_RES_TIMEOUT=2\n";
        let cut = Cut { nodes: cuttable_with(name, lines) };
        let slots = "Begin Host\nHOST_NAME MXJ\ndefault 8\nEnd Host\n";
        let config = "top/conf/lsbatch/c1/configdir";
        cut.nodes.write(&format!("{config}/lsb.hosts"), slots);
        // a silent host is out of reach after 20 s
        let params = format!("{config}/lsb.params");
        let text = std::fs::read_to_string(cut.nodes.path(&params)).unwrap();
        let old = text.lines().filter(|l| !l.starts_with("MBD_SLEEP_TIME"));
        let old: String = old.flat_map(|l| [l, "\n"]).collect();
        let tries = "MAX_SBD_FAIL = 1\nMBD_SLEEP_TIME = 1\nEnd Parameters";
        cut.nodes.write(&params, &old.replace("End Parameters", tries));
        cut.ready();
        cut.nodes.ok(ADMIN, MASTER, "badmin reconfig -f");
        cut.ready();
        cut.nodes.write("home/ann/task.sh", TASK);
        cut.nodes.write("home/ann/job.sh", JOB);
        cut
    }

    fn ready(&self) {
        wait_for("the hosts to be ready", || {
            self.nodes.run(ADMIN, MASTER, "bhosts -w").out.matches(" ok ").count() == 3
        });
    }

    /// The link of hostc.
    fn link(&self, way: &str) {
        self.nodes.ok("root", "hosta", &format!("ip link set v3 {way}"));
    }

    fn field(&self, job: u32, name: &str) -> String {
        let line = format!("bjobs -a -noheader -o {name} {job}");
        self.nodes.run(ADMIN, MASTER, &line).out.trim().to_owned()
    }

    fn until(&self, job: u32, stat: &str) {
        wait_for(&format!("job {job} to be {stat}"), || self.field(job, "stat") == stat);
    }

    fn read(&self, name: &str) -> String {
        let path = self.nodes.path(&format!("home/ann/{name}"));
        std::fs::read_to_string(path).unwrap_or_default()
    }

    /// A job on these two hosts whose tasks run.
    fn job(&self, name: &str, env: &str, options: &str, hosts: [&str; 2]) -> u32 {
        let line =
            format!("{env} bsub {options} -n 2 -R 'span[ptile=1]' -o /dev/null sh job.sh {name}");
        let job = job_id(&self.nodes.ok("ann", MASTER, &line)).unwrap();
        wait_for(&format!("the tasks of {name}"), || {
            hosts.iter().all(|host| self.pids(name, host).len() == 1)
        });
        job
    }

    /// The tasks of a job that have been on a host.
    fn pids(&self, name: &str, host: &str) -> Vec<u32> {
        self.read(&format!("pid.{name}.{host}")).lines().map(|l| l.parse().unwrap()).collect()
    }

    fn alive(&self, host: &str, pid: u32) -> bool {
        self.nodes.run("root", host, &format!("kill -0 {pid}")).code == 0
    }

    fn gone(&self, name: &str, host: &str) {
        for pid in self.pids(name, host) {
            wait_for(&format!("the task of {name} on {host} to go"), || !self.alive(host, pid));
        }
    }
}

#[test]
fn parallel_jobs_over_a_cut_network_end_on_each_side_and_never_run_twice_on_a_host() {
    let name = "parallel_jobs_over_a_cut_network_end_on_each_side_and_never_run_twice_on_a_host";
    if !Nodes::possible(name) {
        return;
    }
    let cut = Cut::new("cutpar");
    let member = cut.job("member", "", "-m 'hostb! hostc'", ["hostb", "hostc"]);
    let ignores = "LSB_DJOB_COMMFAIL_ACTION=IGNORE_COMMFAIL";
    let ignored = cut.job("ignored", ignores, "-m 'hostb! hostc'", ["hostb", "hostc"]);
    let first = cut.job("first", "", "-m 'hostc! hosta'", ["hostc", "hosta"]);
    let again = cut.job("again", "", "-r -m 'hostc+2 hosta+1 hostb'", ["hostc", "hosta"]);
    let script = cut.read("run.first").split_whitespace().nth(1).unwrap().parse().unwrap();
    cut.link("down");
    let began = Instant::now();
    // the host that is cut off is another one: blaunch on the first host says so, and has the job
    // ended, which does not wait for that host
    let waiting = "lsb_launch(): Failed while waiting for tasks to finish.\n";
    wait_for("the end of its blaunch", || cut.read("said.member").contains(waiting));
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    let said = cut.read("said.member");
    assert!(said.starts_with("blaunch: hostc: "), "{said}");
    cut.until(member, "EXIT");
    assert!(cut.field(member, "exit_reason").starts_with("TERM_OTHER"), "{said}");
    cut.gone("member", "hostb");
    // on the other side of the cut res ends the tasks
    for name in ["member", "ignored"] {
        cut.gone(name, "hostc");
    }
    // the first host is cut off: res of the other one ends the tasks
    for job in ["first", "again"] {
        cut.gone(job, "hosta");
    }
    cut.until(first, "UNKWN");
    assert!(cut.alive("hostc", script), "the script of a job that is UNKWN goes on");
    // another run begins where no task of the last one is
    wait_for("another run", || cut.read("run.again").lines().count() == 2);
    wait_for("its tasks", || cut.pids("again", "hosta").len() == 2);
    let task = cut.pids("ignored", "hostb")[0];
    assert_eq!((cut.field(ignored, "stat").as_str(), cut.alive("hostb", task)), ("RUN", true));
    cut.link("up");
    cut.ready();
    // its blaunch has had the job ended, once mbatchd could be told
    cut.until(first, "EXIT");
    cut.gone("first", "hostc");
    wait_for("its script to go", || !cut.alive("hostc", script));
    wait_for("the first run to go", || !cut.alive("hostc", cut.pids("again", "hostc")[0]));
    assert_eq!(cut.field(again, "stat"), "RUN");
    let runs = cut.read("run.again");
    let hosts: Vec<&str> = runs.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(hosts.len() == 2 && hosts[0] == "hostc" && hosts[1] != "hostc", "{runs}");
    // the job that ignores the loss has that host again
    cut.nodes.ok("ann", MASTER, "touch end.ignored go.ignored");
    assert_eq!(cut.nodes.end_of(MASTER, ignored), "EXIT");
    let told = (cut.field(ignored, "exit_code"), cut.read("again.ignored"));
    let mut lines: Vec<&str> = told.1.lines().collect();
    lines.sort_unstable();
    assert_eq!((told.0.as_str(), &lines[..]), ("6", &["again on hostb", "again on hostc"][..]));
    let said = cut.read("said.ignored");
    assert!(said.starts_with("blaunch: hostc: ") && said.ends_with("code 255\n"), "{said}");
    cut.nodes.ok("ann", MASTER, &format!("bkill {again}"));
    assert_eq!(cut.nodes.end_of(MASTER, again), "EXIT");
    for host in ["hosta", "hostb", "hostc"] {
        cut.gone("again", host);
        let njobs = || cut.nodes.run(ADMIN, MASTER, &format!("bhosts -noheader -o njobs {host}"));
        wait_for("no slot in use", || njobs().out.trim() == "0");
    }
    assert_eq!(cut.read("overlap"), "");
}
