//! A collector's connection to one server: it asks for the name map, then reports, and asks for
//! the map again whenever the server says that it has another one.

use super::custom::Meanings;
use crate::conf::diag::Diags;
use crate::conf::nlb_map::NameMaps;
use crate::model::nlb::NlbAddress;
use crate::proto::machine::ConnId;
use std::sync::Arc;

/// First pause before a server is called again, microseconds.
const FIRST: u64 = 100_000;
/// Longest pause, microseconds.
const MOST: u64 = 5_000_000;
/// Largest text of all name maps, bytes.
const MAX_MAPS: usize = 64 << 20;

/// The request that is under way.
#[derive(Debug, PartialEq)]
enum Asked {
    Nothing,
    Maps(String),
    Report,
}

#[derive(Debug, PartialEq)]
enum Line {
    /// Called again at this time.
    Down(u64),
    Dialing(ConnId),
    Up(ConnId),
}

/// The next step over the connection.
#[derive(Debug, PartialEq)]
pub(super) enum Next {
    AskMaps(ConnId),
    Report(ConnId),
}

pub(super) struct Link {
    pub(super) to: NlbAddress,
    line: Line,
    pause: u64,
    asked: Asked,
    asked_at: u64,
    /// A report is to be sent.
    due: bool,
    /// The failure was logged.
    told: bool,
    pub(super) maps: Option<NameMaps>,
    /// The number of `maps` at the least.
    map: Option<u64>,
    /// The maps are asked for, since the server has those of this number.
    wanted: Option<u64>,
    /// The maps were asked for since the last report of an interval.
    refreshed: bool,
    pub(super) meanings: Meanings,
    /// The last words of a refusal.
    refused: String,
}

impl Link {
    pub(super) fn new(to: NlbAddress) -> Link {
        Link {
            to,
            line: Line::Down(0),
            pause: FIRST,
            asked: Asked::Nothing,
            asked_at: 0,
            due: false,
            told: false,
            maps: None,
            map: None,
            wanted: None,
            refreshed: false,
            meanings: Meanings::default(),
            refused: String::new(),
        }
    }

    pub(super) fn conn(&self) -> Option<ConnId> {
        match self.line {
            Line::Dialing(conn) | Line::Up(conn) => Some(conn),
            Line::Down(_) => None,
        }
    }

    /// When the server is to be called.
    pub(super) fn call_at(&self) -> Option<u64> {
        match self.line {
            Line::Down(at) => Some(at),
            _ => None,
        }
    }

    pub(super) fn dialed(&mut self, conn: ConnId) {
        self.line = Line::Dialing(conn);
    }

    pub(super) fn opened(&mut self, conn: ConnId) {
        self.line = Line::Up(conn);
        (self.asked, self.pause) = (Asked::Nothing, FIRST);
        // another server may have come up there, with other maps
        (self.maps, self.map, self.wanted) = (None, None, None);
        (self.due, self.refreshed) = (true, false);
    }

    /// The connection is gone; `random` spreads the calls of many collectors. The line for the log.
    pub(super) fn closed(&mut self, now: u64, random: u64, why: &str) -> Option<String> {
        let half = self.pause / 2;
        self.line = Line::Down(now + half + random % half.max(1));
        self.pause = (2 * self.pause).min(MOST);
        self.asked = Asked::Nothing;
        let news = !std::mem::replace(&mut self.told, true);
        news.then(|| format!("no NLB server answers at {}:{} ({why})", self.to.host, self.to.port))
    }

    /// A report is to be sent. True: the server has not answered for an interval, and the
    /// connection should be closed.
    pub(super) fn report_due(&mut self, now: u64, interval: u64) -> bool {
        (self.due, self.refreshed) = (true, false);
        self.asked != Asked::Nothing && now.saturating_sub(self.asked_at) >= interval
    }

    /// The next message, which the caller then sends.
    pub(super) fn next(&mut self, now: u64, ready: bool) -> Option<Next> {
        let Line::Up(conn) = self.line else { return None };
        if self.asked != Asked::Nothing {
            return None;
        }
        if self.maps.is_none() || self.wanted.is_some() && !self.refreshed {
            self.refreshed = self.maps.is_some();
            (self.asked, self.asked_at) = (Asked::Maps(String::new()), now);
            return Some(Next::AskMaps(conn));
        }
        if !self.due || !ready {
            return None;
        }
        self.due = false;
        (self.asked, self.asked_at) = (Asked::Report, now);
        Some(Next::Report(conn))
    }

    /// A piece of the maps. False: it is none.
    pub(super) fn text(&mut self, text: &str, more: bool) -> bool {
        let Asked::Maps(all) = &mut self.asked else { return false };
        if all.len() + text.len() > MAX_MAPS {
            return false;
        }
        all.push_str(text);
        if more {
            return true;
        }
        let text = std::mem::take(all);
        self.asked = Asked::Nothing;
        let file = Arc::from("name_map");
        match NameMaps::default().put(&file, text.as_bytes(), &mut Diags::new()) {
            Some(maps) => {
                self.maps = Some(maps);
                self.map = self.wanted.take();
                self.meanings.other_map();
                self.due = true;
                true
            }
            None => false,
        }
    }

    /// The server has taken the report; its maps have this number. The line for the log.
    pub(super) fn reported(&mut self, map: u64) -> Option<String> {
        if self.asked == Asked::Report {
            self.asked = Asked::Nothing;
        }
        if self.map != Some(map) {
            self.wanted = Some(map);
        }
        self.refused.clear();
        let back = std::mem::replace(&mut self.told, false);
        back.then(|| format!("the NLB server at {}:{} answers", self.to.host, self.to.port))
    }

    /// The server refuses; the next interval tries again. The line for the log.
    pub(super) fn refused(&mut self, words: &str) -> Option<String> {
        (self.asked, self.due) = (Asked::Nothing, false);
        let news = self.refused != words;
        self.refused = words.to_owned();
        news.then(|| {
            format!("the NLB server at {}:{} refuses: {words}", self.to.host, self.to.port)
        })
    }
}
