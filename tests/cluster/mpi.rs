//! The MPIs that jobs of these tests run, and an MPI program: MPICH, Intel MPI and Open MPI, each
//! where it is installed. A test of one that is not there is skipped.

use super::rig::{Rig, skipped, wait_for};
use std::path::PathBuf;
use std::process::Command;

#[derive(Clone, Copy, PartialEq)]
pub enum Mpi {
    /// PATH finds the programs.
    Mpich,
    /// In the directory that LSF_TEST_IMPI names. The wheel has no compiler; the library has the
    /// binary interface of MPICH's, by whose compiler the program is made.
    Intel,
    /// In the directory that LSF_TEST_OPENMPI names.
    Open,
}

/// Prints the host of each rank, as its proxy knows it, and a sum over all ranks. With `exit N` the
/// last rank ends with N, with `kill N` by that signal while the others wait, with `abort N` by
/// MPI_Abort; with `beat DIR` all write to a file of theirs for ever; with `eat N` each holds N
/// megabytes for ever.
const PROGRAM: &str = r#"
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static const char *host(void) {
    static char text[1 << 20];
    char path[64];
    int pid = getppid(), parent = 0;
    /* pam's TaskStarter stands between the proxy and the rank */
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *s = fopen(path, "r");
    if (s && fscanf(s, "%*d (TaskStarter) %*c %d", &parent) == 1) pid = parent;
    snprintf(path, sizeof path, "/proc/%d/environ", pid);
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    for (char *at = text; at < text + n; at += strlen(at) + 1)
        if (!strncmp(at, "LSF_LOCAL_HOST=", 15)) return at + 15;
    return "?";
}
int main(int argc, char **argv) {
    int rank, size, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    const char *what = argc > 2 ? argv[1] : "";
    int number = argc > 2 ? atoi(argv[2]) : 0;
    if (!strcmp(what, "beat")) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%d", argv[2], rank);
        for (long n = 0;; n++, usleep(50000)) {
            FILE *f = fopen(path, "w");
            fprintf(f, "%ld\n", n);
            fclose(f);
        }
    }
    if (!strcmp(what, "eat")) {
        size_t n = (size_t)number << 20;
        memset(malloc(n), 1, n);
        for (;;) pause();
    }
    printf("%d %d %s %d\n", rank, size, host(), sum);
    fflush(stdout);
    if (!strcmp(what, "kill")) {
        /* Open MPI may hang for ever, also without LSF, where another rank sees the loss as well:
           the others are to wait by then */
        if (rank == size - 1) sleep(2);
        if (rank == size - 1) kill(getpid(), number);
        for (;;) pause();
    }
    if (rank == size - 1 && !strcmp(what, "abort")) MPI_Abort(MPI_COMM_WORLD, number);
    MPI_Finalize();
    return rank == size - 1 && !strcmp(what, "exit") ? number : 0;
}
"#;

impl Mpi {
    /// The word of `bsub -a`, which is a name for a test as well.
    pub fn kind(self) -> &'static str {
        match self {
            Mpi::Mpich => "mpich",
            Mpi::Intel => "intelmpi",
            Mpi::Open => "openmpi",
        }
    }

    /// A cluster of so many hosts with the compiled program, `ranks`, if this MPI is installed.
    pub fn up(self, name: &str, hosts: usize) -> Option<Rig> {
        let name = format!("{}-{name}", self.kind());
        let compiler = self.compiler(&name)?;
        let rig = Rig::up(&name, hosts);
        std::fs::write(rig.path("ranks.c"), PROGRAM).unwrap();
        let mut c = Command::new(compiler);
        let out = c.current_dir(&rig.dir).args(["-o", "ranks", "ranks.c"]).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let name_of_library = &b"libmpi.so.12\0"[..];
        let text = std::fs::read(rig.path("ranks")).unwrap();
        if self == Mpi::Intel
            && !text.windows(name_of_library.len()).any(|at| at == name_of_library)
        {
            skipped(&format!("{name}: this MPICH has another name for its library"));
            return None;
        }
        Some(rig)
    }

    fn compiler(self, name: &str) -> Option<String> {
        let has = |words: [&str; 2], says: &str| {
            let out = Command::new(words[0]).arg(words[1]).output();
            out.is_ok_and(|out| String::from_utf8_lossy(&out.stdout).contains(says))
        };
        let mpich =
            has(["mpiexec", "--version"], "HYDRA") && has(["mpichversion", "--version"], "MPICH");
        if self != Mpi::Open && !mpich {
            skipped(&format!("{name}: mpicc, mpiexec and mpichversion of MPICH are wanted"));
            return None;
        }
        match self {
            Mpi::Mpich => Some("mpicc".to_owned()),
            Mpi::Intel => prefix("LSF_TEST_IMPI", name).map(|_| "mpicc".to_owned()),
            Mpi::Open => prefix("LSF_TEST_OPENMPI", name).map(|dir| format!("{dir}/bin/mpicc")),
        }
    }

    /// Shell text by which a job finds this MPI.
    pub fn environment(self) -> String {
        let dir = |variable| std::env::var(variable).unwrap();
        match self {
            Mpi::Mpich => String::new(),
            Mpi::Intel => {
                let dir = dir("LSF_TEST_IMPI");
                let libraries = format!("{dir}/lib:{dir}/lib/libfabric");
                format!(
                    "export PATH={dir}/bin:$PATH I_MPI_ROOT={dir} LD_LIBRARY_PATH={libraries}; "
                )
            }
            Mpi::Open => {
                let root = "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
                            PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1";
                // the hosts are one machine, and would take each other's memory for their own
                let tcp = "OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,tcp OMPI_MCA_coll=^han";
                // a daemon of Open MPI that finds the directory of a killed one of the same process
                // number ends with 213 and says nothing: the tests before leave theirs in /tmp
                let own = "mkdir -p mpitmp; export TMPDIR=$PWD/mpitmp";
                let bin = format!("{}/bin", dir("LSF_TEST_OPENMPI"));
                format!("{own}; export PATH={bin}:$PATH {root} {tcp}; ")
            }
        }
    }

    /// The launcher of this MPI with the words by which it starts its processes through blaunch.
    /// MPICH and Intel MPI need none: they see that they are in a job.
    pub fn launcher(self) -> &'static str {
        match self {
            Mpi::Mpich | Mpi::Intel => "mpiexec",
            Mpi::Open => "mpirun --prtemca plm_ssh_agent blaunch --hostfile $LSB_DJOB_HOSTFILE",
        }
    }

    /// The codes with which this launcher may end: a code for a rank that said so, a signal that
    /// killed one. Hydra says 255 where the end of a proxy on another host comes before the end of
    /// the rank, Intel's also for an ordinary exit, and without LSF as with it. Intel's mpiexec
    /// dies of SIGPIPE (141) where it tells such a proxy to kill its ranks.
    pub fn codes(self, how: &str) -> Vec<&'static str> {
        match (self, how) {
            (Mpi::Mpich | Mpi::Open, "exit 7") => vec!["7"],
            (Mpi::Mpich | Mpi::Open, "abort 5") => vec!["5"],
            (Mpi::Intel, "exit 7") => vec!["7", "255", "141"],
            (Mpi::Intel, "abort 5") => vec!["5", "255", "141"],
            (Mpi::Open, "kill 9") => vec!["9", "137", "255"],
            (Mpi::Intel, "kill 9") => vec!["9", "137", "255", "141"],
            (Mpi::Mpich, "kill 9") => vec!["9", "137", "255"],
            _ => unreachable!(),
        }
    }
}

/// The directory of an installed MPI, which the variable names.
fn prefix(variable: &str, name: &str) -> Option<String> {
    let dir = std::env::var(variable).ok().filter(|dir| !dir.is_empty());
    if dir.is_none() {
        skipped(&format!("{name}: {variable}, the prefix of an installed MPI, is wanted"));
    }
    dir
}

/// The files that the ranks of a job write for ever.
pub struct Beats {
    dir: PathBuf,
    ranks: usize,
}

impl Beats {
    /// For so many ranks.
    pub fn new(rig: &Rig, ranks: usize) -> Beats {
        let dir = rig.path("beats");
        std::fs::create_dir(&dir).unwrap();
        Beats { dir, ranks }
    }

    /// The arguments of the program.
    pub fn args(&self) -> String {
        format!("beat {}", self.dir.display())
    }

    /// The contents of the file of each rank; empty where it has not begun.
    pub fn now(&self) -> Vec<String> {
        let of = |rank: usize| std::fs::read_to_string(self.dir.join(rank.to_string()));
        (0..self.ranks).map(|rank| of(rank).unwrap_or_default()).collect()
    }

    pub fn wait_for_all(&self) {
        wait_for("all ranks", || self.now().iter().all(|beat| !beat.is_empty()));
    }
}

/// Processes of the program and of what the launchers start.
pub fn running(rig: &Rig) -> usize {
    let names = [
        "ranks",
        "hydra_pmi_proxy",
        "hydra_bstrap_pr",
        "mpiexec",
        "mpiexec.hydra",
        "prted",
        "prterun",
        "mpirun",
        "TaskStarter",
    ];
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let here = all.filter(|entry| {
        let cwd = std::fs::read_link(entry.path().join("cwd")).unwrap_or_default();
        let name = std::fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        cwd == rig.dir && names.contains(&name.trim())
    });
    here.count()
}

pub fn sorted(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// The lines that the program prints, sorted, when rank N runs on the Nth host of this list.
pub fn expected(hosts: &str) -> Vec<String> {
    let hosts: Vec<&str> = hosts.split_whitespace().collect();
    let n = hosts.len();
    let line = |(rank, host)| format!("{rank} {n} {host} {}", n * (n - 1) / 2);
    let mut lines: Vec<String> = hosts.into_iter().enumerate().map(line).collect();
    lines.sort();
    lines
}
