//! The geometry of the tasks of a job (LSB_PJL_TASK_GEOMETRY): `{(2,5)(0,1,3)(4)}` puts tasks 2 and
//! 5 on the first host of the job, 0, 1 and 3 on the second, 4 on the third. See mpirun.lsf(1).

use crate::proto::pam::TASKS_MAX;

/// The host of each task, in the order of the tasks. `hosts`: those of the job with their slots.
///
/// # Errors
/// The text is no geometry, or the job has too few hosts or slots for it.
pub fn hosts_of_tasks(text: &str, hosts: &[(String, u32)]) -> Result<Vec<String>, String> {
    let groups = groups(text)?;
    if groups.len() > hosts.len() {
        let (groups, hosts) = (groups.len(), hosts.len());
        return Err(format!("{groups} groups of tasks, and the job has {hosts} hosts"));
    }
    let slots: usize = hosts.iter().map(|(_, slots)| *slots as usize).sum();
    let tasks: usize = groups.iter().map(Vec::len).sum();
    if tasks > slots {
        return Err(format!("{tasks} tasks, and the job has {slots} slots"));
    }
    let mut all: Vec<Option<&String>> = vec![None; tasks];
    for (group, (host, _)) in groups.iter().zip(hosts) {
        for &task in group {
            match all.get_mut(task) {
                None => {
                    let last = tasks - 1;
                    return Err(format!("task {task} of {tasks} tasks, which are 0 to {last}"));
                }
                Some(Some(_)) => return Err(format!("task {task} is there twice")),
                Some(place) => *place = Some(host),
            }
        }
    }
    Ok(all.into_iter().flatten().cloned().collect())
}

/// The task numbers of each parenthesis.
fn groups(text: &str) -> Result<Vec<Vec<usize>>, String> {
    let bad = || "{(task,...)(task,...)...} is wanted".to_owned();
    let plain: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let inner = plain.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).ok_or_else(bad)?;
    let mut rest = inner;
    let mut groups = Vec::new();
    while !rest.is_empty() {
        let (group, behind) =
            rest.strip_prefix('(').and_then(|rest| rest.split_once(')')).ok_or_else(bad)?;
        let number = |word: &str| {
            let task = word.parse::<usize>().ok().filter(|task| *task < TASKS_MAX);
            task.ok_or_else(|| format!("<{}> is no task number", crate::model::cut(word, 32)))
        };
        groups.push(group.split(',').map(number).collect::<Result<Vec<usize>, String>>()?);
        rest = behind;
    }
    match groups.is_empty() {
        true => Err(bad()),
        false => Ok(groups),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts() -> Vec<(String, u32)> {
        [("ha", 2), ("hb", 3), ("hc", 1)].map(|(host, slots)| (host.to_owned(), slots)).to_vec()
    }

    #[test]
    fn tasks_are_on_the_host_of_their_parenthesis() {
        let all = hosts_of_tasks("{(2,5)(0,1,3)(4)}", &hosts()).unwrap();
        assert_eq!(all, ["hb", "hb", "ha", "hb", "hc", "ha"]);
        let some = hosts_of_tasks(" { (1) ( 0 ) } ", &hosts()).unwrap();
        assert_eq!(some, ["hb", "ha"]);
    }

    #[test]
    fn geometry_that_fits_no_job_is_refused_with_the_reason() {
        let why = |text: &str| hosts_of_tasks(text, &hosts()).unwrap_err();
        assert_eq!(why("{(0)(2)}"), "task 2 of 2 tasks, which are 0 to 1");
        assert_eq!(why("{(0,1)(1)}"), "task 1 is there twice");
        assert_eq!(why("{(0)(1)(2)(3)}"), "4 groups of tasks, and the job has 3 hosts");
        assert_eq!(why("{(0,1,2,3,4,5,6)}"), "7 tasks, and the job has 6 slots");
        assert_eq!(why("{(0,x)}"), "<x> is no task number");
        assert_eq!(why("{()}"), "<> is no task number");
        assert_eq!(why("{(99999999999999999999)}"), "<99999999999999999999> is no task number");
        for text in ["", "{}", "(0)", "{(0)", "{0}", "{(0}", "{(0)x}"] {
            assert_eq!(why(text), "{(task,...)(task,...)...} is wanted", "{text}");
        }
    }
}
