//! The command lines and variables of echkpnt and erestart for one job (echkpnt(8), erestart(8)).

use crate::exec::job_starter::quoted;
use crate::model::checkpoint::CheckpointOrder;
use crate::model::job::opt;
use crate::proto::sbd::StartJob;

/// The variable with the submission, which echkpnt keeps beside the checkpoint for brestart.
pub const SUBMISSION: &str = "LSB_CHKPNT_SUBMISSION";
/// Longest submission that is handed over so, bytes; the kernel takes 128 KiB in one variable.
pub const MAX_SUBMISSION: usize = 120 * 1024;

/// The directory of a job in its checkpoint directory; `None`: it is not checkpointable.
pub fn directory(o: &StartJob) -> Option<String> {
    let checkpoint = o.spec.further.checkpoint.as_deref()?;
    Some(format!("{}/{}", checkpoint.dir.trim_end_matches('/'), o.key.job_ref()))
}

/// Shell text that becomes a program of LSF_SERVERDIR.
fn program(name: &str, arguments: &str) -> String {
    format!(
        "for d in \"$LSF_ECHKPNTDIR\" \"$LSF_SERVERDIR\" \"$LSF_BINDIR\"; do\n\
         test -n \"$d\" -a -x \"$d/{name}\" && exec \"$d/{name}\" {arguments}\n\
         done\nexec {name} {arguments}"
    )
}

fn word(text: &str) -> String {
    String::from_utf8_lossy(&quoted(text.as_bytes())).into_owned()
}

/// The command that makes a checkpoint of the process group of a job.
pub fn command(o: &StartJob, group: u32, order: CheckpointOrder) -> String {
    let force = if order.force { "-f " } else { "" };
    let kill = if order.kill { "-k " } else { "" };
    let dir = word(&directory(o).unwrap_or_default());
    program("echkpnt", &format!("{force}{kill}-d {dir} {group}"))
}

/// The options and the directory of erestart; `None`: the job begins anew.
fn restart_arguments(o: &StartJob) -> Option<String> {
    let checkpoint = o.spec.further.checkpoint.as_deref().filter(|_| !o.restart.is_empty())?;
    let from = format!("{}/{}", checkpoint.dir.trim_end_matches('/'), o.restart);
    let force = if o.spec.options & opt::RESTART_FORCE != 0 { "-f " } else { "" };
    Some(format!("{force}{}", word(&from)))
}

/// The program erestart of a site, which knows one step only.
const ERESTART_OF_SITE: &str = "test -n \"$LSF_ECHKPNTDIR\" -a -x \"$LSF_ECHKPNTDIR/erestart\"";

/// The command before the job: the method prepares the restart on this host, and its failure is
/// one of pre-execution, after which the job may be tried elsewhere. `None`: the job begins anew.
pub fn prepare_restart_command(o: &StartJob) -> Option<String> {
    let arguments = format!("-p {}", restart_arguments(o)?);
    Some(format!("{ERESTART_OF_SITE} && exit 0\n{}", program("erestart", &arguments)))
}

/// The command in place of that of the job; `None`: the job begins anew.
pub fn restart_command(o: &StartJob) -> Option<String> {
    let arguments = restart_arguments(o)?;
    let prepared = program("erestart", &format!("-r {arguments}"));
    let of_site = format!("{ERESTART_OF_SITE} && exec \"$LSF_ECHKPNTDIR/erestart\" {arguments}");
    Some(format!("{of_site}\n{prepared}"))
}

/// Puts the variables of echkpnt, beside those of the job.
pub fn variables(o: &StartJob, put: &mut dyn FnMut(&str, &str)) {
    put("LS_EXEC_T", "CHKPNT");
    let Some(checkpoint) = o.spec.further.checkpoint.as_deref() else { return };
    if !checkpoint.method.is_empty() {
        put("LSB_ECHKPNT_METHOD", &checkpoint.method);
    }
    match serde_json::to_string(&*o.spec) {
        Ok(json) if json.len() <= MAX_SUBMISSION => put(SUBMISSION, &json),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::JobKey;
    use crate::model::checkpoint::Checkpoint;
    use crate::model::job::JobSpec;
    use std::sync::Arc;

    fn order(dir: &str, restart: &str) -> StartJob {
        let mut spec = JobSpec::default();
        spec.further.checkpoint = Some(Box::new(Checkpoint::parse(dir).unwrap()));
        let key = JobKey { job: 7, idx: 2, attempt: 1 };
        let restart = restart.into();
        StartJob { key, spec: Arc::new(spec), restart, ..StartJob::default() }
    }

    #[test]
    fn the_directory_of_an_element_is_one_word_and_the_options_are_those_of_the_order() {
        let o = order("/c/it's/", "");
        let asked = CheckpointOrder { kill: true, force: true, period: None };
        let text = command(&o, 99, asked);
        assert!(text.ends_with("exec echkpnt -f -k -d '/c/it'\\''s/7[2]' 99"), "{text}");
        let plain = command(&o, 99, CheckpointOrder::default());
        assert!(plain.ends_with("exec echkpnt -d '/c/it'\\''s/7[2]' 99"), "{plain}");
        assert_eq!(restart_command(&o), None);
        let again = restart_command(&order("/c", "5[2]")).unwrap();
        assert!(again.contains("exec \"$LSF_ECHKPNTDIR/erestart\" '/c/5[2]'\n"), "{again}");
        assert!(again.ends_with("exec erestart -r '/c/5[2]'"), "{again}");
        let before = prepare_restart_command(&order("/c", "5[2]")).unwrap();
        assert!(before.contains("/erestart\" && exit 0\n"), "{before}");
        assert!(before.ends_with("exec erestart -p '/c/5[2]'"), "{before}");
        assert_eq!(prepare_restart_command(&o), None);
    }

    #[test]
    fn the_method_of_the_job_and_its_submission_are_handed_over() {
        let mut all = Vec::new();
        variables(&order("/c method=m", ""), &mut |name, value| {
            all.push((name.to_string(), value.to_string()));
        });
        let of = |name: &str| all.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str());
        assert_eq!((of("LS_EXEC_T"), of("LSB_ECHKPNT_METHOD")), (Some("CHKPNT"), Some("m")));
        let spec: JobSpec = serde_json::from_str(of(SUBMISSION).unwrap()).unwrap();
        assert_eq!(spec.further.checkpoint.as_ref().unwrap().to_string(), "/c method=m");
    }
}
