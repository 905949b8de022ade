//! JOB_CONTROLS of lsb.queues(5): the actions that take the place of the signals by which jobs of a
//! queue are suspended, resumed and terminated.

use super::signals;
use serde::{Deserialize, Serialize};

/// The request that an action carries out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ControlVerb {
    Suspend,
    Resume,
    Terminate,
    /// bchkpnt and periodic checkpoints, which no action takes the place of.
    Checkpoint,
    /// The resize notification command, which no action takes the place of.
    Resize,
}

/// An action of JOB_CONTROLS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ControlAction {
    /// The signal that the job is sent.
    Signal(i32),
    /// Shell text, run as the user of the job.
    Command(Box<str>),
    /// A checkpoint, and then the usual signals.
    Checkpoint,
}

/// The actions of a queue; none: the usual signals.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobControls {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend: Option<ControlAction>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume: Option<ControlAction>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminate: Option<ControlAction>,
}

impl JobControls {
    pub fn is_none(&self) -> bool {
        *self == JobControls::default()
    }

    pub fn action(&self, verb: ControlVerb) -> Option<&ControlAction> {
        match verb {
            ControlVerb::Suspend => self.suspend.as_ref(),
            ControlVerb::Resume => self.resume.as_ref(),
            ControlVerb::Terminate => self.terminate.as_ref(),
            ControlVerb::Checkpoint | ControlVerb::Resize => None,
        }
    }

    /// Reads `SUSPEND[action] RESUME[action] TERMINATE[action]`, each at most once. An action may
    /// hold brackets in pairs; an empty one and NULL stand for the usual signals.
    pub fn parse(text: &str) -> Result<JobControls, String> {
        const SHAPE: &str = "SUSPEND[action] RESUME[action] TERMINATE[action] is wanted";
        let mut controls = JobControls::default();
        let (mut rest, mut seen) = (text.trim(), Vec::new());
        while !rest.is_empty() {
            let (name, after) = rest.split_once('[').ok_or(SHAPE)?;
            let end = closing(after).ok_or("a bracket is not closed")?;
            let (what, tail) = (after.get(..end).unwrap_or("").trim(), after.get(end + 1..));
            rest = tail.unwrap_or("").trim_start();
            let (place, name) = match name.trim() {
                "SUSPEND" => (&mut controls.suspend, "SUSPEND"),
                "RESUME" => (&mut controls.resume, "RESUME"),
                "TERMINATE" => (&mut controls.terminate, "TERMINATE"),
                _ => return Err(SHAPE.into()),
            };
            if seen.contains(&name) {
                return Err(format!("{name} is there twice"));
            }
            seen.push(name);
            *place = match what {
                "" | "NULL" => None,
                "CHKPNT" if name == "RESUME" => {
                    return Err("a job cannot be resumed by CHKPNT".into());
                }
                "CHKPNT" => Some(ControlAction::Checkpoint),
                _ => Some(action(what)),
            };
        }
        Ok(controls)
    }
}

/// The position of the bracket that closes what stands before it.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 1;
    let end = text.char_indices().find(|(_, c)| {
        depth += i32::from(*c == '[') - i32::from(*c == ']');
        depth == 0
    });
    end.map(|(at, _)| at)
}

/// A signal where the text is the name of one, in capital letters; else a command.
fn action(text: &str) -> ControlAction {
    let name = text.starts_with(|c: char| c.is_ascii_uppercase())
        && text.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit());
    match signals::number(text).filter(|_| name) {
        Some(number) => ControlAction::Signal(number),
        None => ControlAction::Command(text.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(text: &str) -> Option<ControlAction> {
        Some(ControlAction::Command(text.into()))
    }

    #[test]
    fn actions_are_signals_or_commands_which_may_hold_brackets() {
        let text = "SUSPEND[SIGTSTP] RESUME[kill -CONT $LSB_JOBPIDS]\tTERMINATE[[ -e x ] && a[1]]";
        let controls = JobControls::parse(text).unwrap();
        assert_eq!(controls.suspend, Some(ControlAction::Signal(20)));
        assert_eq!(controls.resume, command("kill -CONT $LSB_JOBPIDS"));
        assert_eq!(controls.terminate, command("[ -e x ] && a[1]"));
        let controls = JobControls::parse("TERMINATE[USR2] SUSPEND[stop]").unwrap();
        assert_eq!(controls.terminate, Some(ControlAction::Signal(12)));
        assert_eq!((controls.suspend, controls.resume), (command("stop"), None));
    }

    #[test]
    fn empty_actions_are_the_usual_ones_and_chkpnt_is_a_checkpoint() {
        let controls = JobControls::parse("SUSPEND[] RESUME[NULL] TERMINATE[CHKPNT]").unwrap();
        let terminate = Some(ControlAction::Checkpoint);
        assert_eq!(controls, JobControls { terminate, ..JobControls::default() });
        assert!(JobControls::parse("").unwrap().is_none());
    }

    #[test]
    fn text_of_another_shape_is_refused_with_the_reason() {
        for (text, want) in [
            ("SUSPEND", "is wanted"),
            ("STOP[x]", "is wanted"),
            ("SUSPEND[x", "not closed"),
            ("SUSPEND[a] SUSPEND[b]", "SUSPEND is there twice"),
            ("RESUME[CHKPNT]", "cannot be resumed by CHKPNT"),
            ("SUSPEND[a] x", "is wanted"),
        ] {
            let why = JobControls::parse(text).unwrap_err();
            assert!(why.contains(want), "{text}: {why}");
        }
    }
}
