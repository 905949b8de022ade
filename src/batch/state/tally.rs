//! How many elements of a job are in which state.

use crate::batch::state::element::{Elem, ElemState, Phase};
use crate::lang::depend::PostState;

/// Elements of a job by state; a plain job has one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub total: u32,
    pub pend: u32,
    pub psusp: u32,
    pub run: u32,
    pub ssusp: u32,
    pub ususp: u32,
    pub done: u32,
    pub exit: u32,
    pub exit_unstarted: u32,
    pub cleaned: u32,
    /// Ended elements whose post-execution commands have succeeded; in `post_err`: have failed.
    pub post_done: u32,
    pub post_err: u32,
}

impl Tally {
    pub fn started(&self) -> u32 {
        self.run + self.ssusp + self.ususp
    }
    pub fn unfinished(&self) -> u32 {
        self.pend + self.psusp + self.started()
    }

    /// Counts an element in (`up`) or out, as it stands.
    pub(super) fn note(&mut self, e: &Elem, up: bool) {
        if let ElemState::End(end) = &e.state {
            let post = match end.post_state() {
                PostState::Done => Some(&mut self.post_done),
                PostState::Err => Some(&mut self.post_err),
                PostState::None => None,
            };
            if let Some(n) = post {
                *n = if up { *n + 1 } else { *n - 1 };
            }
        }
        let n = match &e.state {
            ElemState::Pend(p) if p.held.is_some() => &mut self.psusp,
            ElemState::Pend(_) => &mut self.pend,
            ElemState::Run(r) => match r.phase {
                Phase::Starting | Phase::Running => &mut self.run,
                Phase::Ssusp(_) => &mut self.ssusp,
                Phase::Ususp(_) => &mut self.ususp,
            },
            ElemState::End(e) if e.done => &mut self.done,
            ElemState::End(e) => {
                if e.run.is_none() {
                    if up {
                        self.exit_unstarted += 1;
                    } else {
                        self.exit_unstarted -= 1;
                    }
                }
                &mut self.exit
            }
        };
        if up {
            *n += 1;
        } else {
            *n -= 1;
        }
    }
}
