//! The numbers of tasks that a queue or an application profile allows: JOB_SIZE_LIST, else
//! TASKLIMIT.

use crate::batch::site::Queue;
use crate::batch::site::applications::Application;
use crate::conf::types::TaskLimit;
use crate::model::job::JobSpec;
use crate::model::reason::err;
use crate::proto::Refusal;

/// The rule of one level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskRule<'a> {
    Any,
    /// TASKLIMIT.
    Limit(TaskLimit),
    /// JOB_SIZE_LIST, which is not empty.
    Sizes(&'a [u32]),
}

impl<'a> TaskRule<'a> {
    pub fn of_application(application: Option<&'a Application>) -> TaskRule<'a> {
        let own = application.map(|a| TaskRule::of(&a.conf.job_sizes, a.conf.task_limit));
        own.unwrap_or(TaskRule::Any)
    }

    pub fn of_queue(queue: &'a Queue) -> TaskRule<'a> {
        TaskRule::of(&queue.conf.tasks.sizes, queue.conf.tasks.limit)
    }

    fn of(sizes: &'a [u32], limit: Option<TaskLimit>) -> TaskRule<'a> {
        match (sizes, limit) {
            ([], None) => TaskRule::Any,
            ([], Some(limit)) => TaskRule::Limit(limit),
            (sizes, _) => TaskRule::Sizes(sizes),
        }
    }

    /// The tasks of a job that asks for no number of them.
    pub fn default(self) -> Option<u32> {
        match self {
            TaskRule::Any => None,
            TaskRule::Limit(limit) => Some(limit.default),
            TaskRule::Sizes(sizes) => sizes.first().copied(),
        }
    }

    /// The most tasks.
    pub fn most(self) -> u32 {
        match self {
            TaskRule::Any => u32::MAX,
            TaskRule::Limit(limit) => limit.max,
            TaskRule::Sizes(sizes) => sizes.iter().copied().max().unwrap_or(u32::MAX),
        }
    }

    /// May a job with these least and most tasks be started?
    pub fn has_size(self, min: u32, max: u32) -> bool {
        match self {
            TaskRule::Any | TaskRule::Limit(_) => true,
            TaskRule::Sizes(sizes) => min == max && sizes.contains(&min),
        }
    }

    /// Checks a submission, and keeps its most tasks within a limit; `errors` are for a number
    /// above and below the limit, `level` and `name` for the text about a list.
    pub fn check(
        self,
        spec: &mut JobSpec,
        (level, name): (&str, &str),
        [above, below]: [i32; 2],
    ) -> Result<(), Refusal> {
        let (min, max) = (spec.min_slots.max(1), spec.max_slots.max(spec.min_slots).max(1));
        match self {
            TaskRule::Any => {}
            TaskRule::Limit(limit) if min > limit.max => return Err(Refusal::new(above)),
            TaskRule::Limit(limit) if max < limit.min => return Err(Refusal::new(below)),
            TaskRule::Limit(limit) => spec.max_slots = spec.max_slots.min(limit.max),
            TaskRule::Sizes(_) if self.has_size(min, max) => {}
            TaskRule::Sizes(sizes) => {
                let asked = if min == max { min.to_string() } else { format!("{min},{max}") };
                let text = format!(
                    "Number of tasks {asked} is not in JOB_SIZE_LIST of {level} <{name}>: {}",
                    shown(sizes)
                );
                return Err(Refusal::text(err::JOB_SIZE, text));
            }
        }
        Ok(())
    }
}

/// The sizes; of many the first.
fn shown(sizes: &[u32]) -> String {
    const MOST: usize = 20;
    let mut words: Vec<String> = sizes.iter().take(MOST).map(u32::to_string).collect();
    if sizes.len() > MOST {
        words.push("...".into());
    }
    words.join(" ")
}
