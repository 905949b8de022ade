//! The load balancer's server as mbatchd sees it: what it answers, a test says.

use super::Cluster;
use crate::proto::machine::{ConnId, Input, Peer};
use crate::proto::nlb::{NlbMsg, NlbQuery, NlbRanking, NlbRow, SortValue};
use crate::proto::{Daemon, Endpoint, Msg};
use std::sync::Arc;

/// The knowledge of a server.
#[derive(Default)]
pub struct Balancer {
    /// The connection, while there is one.
    link: Option<ConnId>,
    /// Calls are not answered.
    down: bool,
    /// Queries are taken and not answered.
    silent: bool,
    rows: Vec<NlbRow>,
    /// The rows of queries with an attribute.
    rows_where: Option<(String, Vec<NlbRow>)>,
    used: Vec<String>,
    asked: Vec<NlbQuery>,
}

impl Cluster {
    /// The server's list for every policy: hosts with their NLB_QUEUE_NAME, best first.
    pub fn ranks(&mut self, hosts: &[(&str, &str)]) {
        self.balancer.rows = rows(hosts);
    }

    /// The list for queries with an attribute.
    pub fn ranks_where(&mut self, attribute: &str, hosts: &[(&str, &str)]) {
        self.balancer.rows_where = Some((attribute.to_owned(), rows(hosts)));
    }

    /// The request attributes that its policies look at.
    pub fn policies_use(&mut self, names: &[&str]) {
        self.balancer.used = names.iter().map(|n| (*n).to_owned()).collect();
    }

    /// Other policies are in force.
    pub fn policies_change(&mut self) {
        let Some(conn) = self.balancer.link else { return };
        let policies = ["nqs", "CPU", "FAST"].map(str::to_owned).to_vec();
        let attributes = ["job_nastran", "JOB_REQNAME"].map(str::to_owned).to_vec();
        let msg = NlbMsg::Watched { generation: 2, policies, attributes };
        self.tell(Input::Msg { conn, msg: Msg::Nlb(msg) });
    }

    /// The server is down from now on, or back.
    pub fn balancer_down(&mut self, down: bool) {
        self.balancer.down = down;
        if let Some(conn) = self.balancer.link.take().filter(|_| down) {
            self.tell(Input::Closed { conn });
        }
    }

    /// The server answers no query from now on, or does again.
    pub fn balancer_silent(&mut self, silent: bool) {
        self.balancer.silent = silent;
    }

    /// The queries since this was asked last.
    pub fn queries(&mut self) -> Vec<NlbQuery> {
        std::mem::take(&mut self.balancer.asked)
    }

    pub(super) fn dialled_balancer(&mut self, conn: ConnId, to: &Endpoint) {
        let Endpoint::Nlb { host, .. } = to else { return };
        if self.balancer.down {
            let why = "Connection refused".to_owned();
            return self.inputs.push_back(Input::ConnectFailed { conn, why, refused: true });
        }
        self.balancer.link = Some(conn);
        let peer = Peer::Daemon { daemon: Daemon::NlbServer, host: host.clone() };
        self.inputs.push_back(Input::Opened { conn, peer });
    }

    pub(super) fn tell_balancer(&mut self, conn: ConnId, msg: NlbMsg) {
        let NlbMsg::Query(query) = msg else { return };
        let policy = query.policy.clone();
        let has = |name: &str| query.attributes.iter().any(|a| a.0 == name);
        let of = self.balancer.rows_where.as_ref().filter(|of| has(&of.0)).map(|of| &of.1);
        let rows = of.unwrap_or(&self.balancer.rows).clone();
        self.balancer.asked.push(query);
        if self.balancer.silent {
            return;
        }
        let ranking = NlbRanking {
            policy,
            generation: 1,
            used: self.balancer.used.clone(),
            rows,
            ..NlbRanking::default()
        };
        self.inputs.push_back(Input::Msg { conn, msg: Msg::Nlb(NlbMsg::Ranked(ranking)) });
    }
}

fn rows(hosts: &[(&str, &str)]) -> Vec<NlbRow> {
    let row = |(n, (host, queue)): (usize, &(&str, &str))| NlbRow {
        host: (*host).into(),
        value: SortValue::Number((hosts.len() - n) as f64),
        queue: Some((*queue).into()).filter(|q: &Arc<str>| !q.is_empty()),
    };
    hosts.iter().enumerate().map(row).collect()
}
