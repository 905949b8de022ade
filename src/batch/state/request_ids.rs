//! Request ids of clients as the state keeps them, and the jobs that submissions with such ids
//! made: a retry of a submission whose answer was lost is told of its job.

use crate::model::time::REQUEST_WINDOW;
use std::collections::{HashMap, VecDeque};

/// Request ids that are kept however old they seem: the clock of the master may be set forward.
const KEPT_AT_LEAST: usize = 10_000;

/// A request id as it is kept: what `bsub` makes, 32 digits, by its value, any other by its
/// SHA-256, cut to the same length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestId([u64; 2]);

impl RequestId {
    pub fn of(text: &str) -> RequestId {
        let digit = |b: u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
        let value = match text.len() == 32 && text.bytes().all(digit) {
            true => u128::from_str_radix(text, 16).unwrap_or_default().to_be_bytes(),
            false => {
                use sha2::Digest;
                let mut cut = [0; 16];
                cut.copy_from_slice(&sha2::Sha256::digest(text)[..16]);
                cut
            }
        };
        let half = |at: usize| value[at..at + 8].iter().fold(0, |n, b| n << 8 | u64::from(*b));
        RequestId([half(0), half(8)])
    }
}

/// The jobs that were submitted lately, by request id.
#[derive(Debug, Default)]
pub struct SubmitRequests {
    jobs: HashMap<RequestId, u32>,
    ages: VecDeque<(i64, RequestId)>,
}

impl SubmitRequests {
    /// The job that a request made, if that was lately.
    pub fn job_of(&self, request: &str) -> Option<u32> {
        self.jobs.get(&RequestId::of(request)).copied()
    }

    /// A job was submitted, by a request if it is not empty; ids older than the window go, where
    /// there are many.
    pub(super) fn note(&mut self, submit_time: i64, request: &str, job: u32) {
        if !request.is_empty() {
            let id = RequestId::of(request);
            self.jobs.insert(id, job);
            self.ages.push_back((submit_time, id));
        }
        while let Some((time, id)) = self.ages.front() {
            if self.ages.len() <= KEPT_AT_LEAST || *time + REQUEST_WINDOW > submit_time {
                break;
            }
            self.jobs.remove(id);
            self.ages.pop_front();
        }
    }

    pub(super) fn get(&self, request: &RequestId) -> Option<u32> {
        self.jobs.get(request).copied()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&RequestId, u32)> {
        self.jobs.iter().map(|(request, job)| (request, *job))
    }
}
