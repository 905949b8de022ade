//! The network between mbatchd and the sbatchd of a host is cut while both live: jobs there are
//! UNKWN and go on, and nothing of them is lost or run twice when the network is back.

use super::failover::cuttable;
use super::nodes::Nodes;
use super::rig::{job_id, wait_for};
use super::site::ADMIN;

const MASTER: &str = "hostb";

struct Cut {
    nodes: Nodes,
}

impl Cut {
    /// The link of hostc; hosta has the hub of the net.
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

    /// A job of hostc that writes a line into `name` as often as it is started.
    fn job(&self, name: &str, more: &str, rest: &str) -> u32 {
        let line = format!("bsub {more} -m hostc -o /dev/null 'echo $$ >> {name}; {rest}'");
        let job = job_id(&self.nodes.ok("ann", MASTER, &line)).unwrap();
        self.until(job, "RUN");
        wait_for("its first line", || self.starts(name).len() == 1);
        job
    }

    fn starts(&self, name: &str) -> Vec<String> {
        let path = self.nodes.path(&format!("home/ann/{name}"));
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn alive(&self, pid: &str) -> bool {
        let said = self.nodes.run("root", "hostc", &format!("kill -0 {pid} || ps -ef"));
        print!("{}{}", said.out, said.err);
        said.code == 0 && said.out.is_empty()
    }

    /// Starts of a job that the log tells of.
    fn logged_starts(&self, job: u32) -> usize {
        let log = self.nodes.path("top").join("work/c1/logdir/lsb.events");
        let log = std::fs::read_to_string(log).unwrap();
        let of = |l: &&str| {
            let mut words = l.split(' ');
            words.next() == Some("\"JOB_START\"") && words.nth(2) == Some(&job.to_string())
        };
        log.lines().filter(of).count()
    }
}

#[test]
fn jobs_behind_a_cut_network_go_on_and_are_told_of_when_it_is_back() {
    if !Nodes::possible("jobs_behind_a_cut_network_go_on_and_are_told_of_when_it_is_back") {
        return;
    }
    let cut = Cut { nodes: cuttable("cutjobs") };
    let slots = "Begin Host\nHOST_NAME MXJ\ndefault 4\nEnd Host\n";
    let config = "top/conf/lsbatch/c1/configdir";
    cut.nodes.write(&format!("{config}/lsb.hosts"), slots);
    // a silent host is out of reach after 20 s
    let params = format!("{config}/lsb.params");
    let text = std::fs::read_to_string(cut.nodes.path(&params)).unwrap();
    let old = text.lines().filter(|l| !l.starts_with("MBD_SLEEP_TIME"));
    let old: String = old.flat_map(|l| [l, "\n"]).collect();
    let tries = "MAX_SBD_FAIL = 1\nMBD_SLEEP_TIME = 1\nEnd Parameters";
    cut.nodes.write(&params, &old.replace("End Parameters", tries));
    let ready = || cut.nodes.run(ADMIN, MASTER, "bhosts -w").out.matches(" ok ").count() == 3;
    wait_for("the hosts to be ready", ready);
    cut.nodes.ok(ADMIN, MASTER, "badmin reconfig -f");
    wait_for("the hosts to be ready again", ready);
    let goes_on = cut.job("goes_on", "", "exec sleep 600");
    let ends = cut.job("ends", "", "while [ ! -e go ]; do sleep 0.1; done; touch ended; exit 5");
    let again = cut.job("again", "-r", "exec sleep 600");
    cut.link("down");
    for job in [goes_on, ends] {
        cut.until(job, "UNKWN");
    }
    // a rerunnable job waits for another run, but not beside the first one
    cut.until(again, "PEND");
    cut.nodes.ok("ann", MASTER, "touch go");
    wait_for("the end behind the cut", || cut.nodes.path("home/ann/ended").exists());
    assert_eq!(cut.field(ends, "stat"), "UNKWN");
    for name in ["goes_on", "again"] {
        assert!(cut.alive(&cut.starts(name)[0]), "{name} was disturbed");
    }
    cut.link("up");
    cut.until(goes_on, "RUN");
    assert_eq!(cut.nodes.end_of(MASTER, ends), "EXIT");
    assert_eq!(cut.field(ends, "exit_code"), "5");
    cut.until(again, "RUN");
    wait_for("its second run", || cut.starts("again").len() == 2);
    let [first, second] = [0, 1].map(|run: usize| cut.starts("again")[run].clone());
    assert!(!cut.alive(&first) && cut.alive(&second));
    assert!(cut.alive(&cut.starts("goes_on")[0]));
    for (name, job, runs) in [("goes_on", goes_on, 1), ("ends", ends, 1), ("again", again, 2)] {
        assert_eq!((cut.starts(name).len(), cut.logged_starts(job)), (runs, runs), "{name}");
    }
    cut.nodes.ok("ann", MASTER, &format!("bkill {goes_on} {again}"));
    for job in [goes_on, again] {
        assert_eq!(cut.nodes.end_of(MASTER, job), "EXIT");
    }
}
