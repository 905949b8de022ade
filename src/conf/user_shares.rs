//! Share assignments: `[user, number] [group@, number] [default, number] ...`, in FAIRSHARE of
//! lsb.queues(5), USER_SHARES of lsb.users(5) and of lsb.hosts(5).

use super::lexer::shown;
use super::names::nearest;
use super::section::{Values, name_fault};
use super::types::{RawParam, ShareAssignment};

/// Largest number of shares of one assignment.
pub const MAX_SHARES: u32 = 100_000_000;
/// Most assignments in one list.
pub const MAX_ASSIGNMENTS: usize = 10_000;
/// The word before the list in FAIRSHARE.
const LIST: &str = "USER_SHARES";
const WANTED: &str = "[user, number of shares] is wanted";

/// FAIRSHARE: `USER_SHARES[[user, number] ...]`. `None`: it is not given, or cannot be read.
pub(super) fn fairshare(v: &mut Values<'_>) -> Option<Vec<ShareAssignment>> {
    let value = v.raw.get("FAIRSHARE")?;
    let word = value.text.split('[').next().unwrap_or_default().trim();
    if !word.eq_ignore_ascii_case(LIST) {
        let near = nearest(word, [LIST]).map_or("", |_| "; did you mean USER_SHARES?");
        v.bad("FAIRSHARE", value, &format!("USER_SHARES[[user, number] ...] is wanted{near}"));
        return None;
    }
    let list = value.text[word.len()..].trim();
    let Some(list) = list.strip_prefix('[').and_then(|list| list.strip_suffix(']')) else {
        v.bad("FAIRSHARE", value, "USER_SHARES[[user, number] ...] is wanted");
        return None;
    };
    let all = assignments(v, "FAIRSHARE", value, list);
    if all.is_empty() {
        v.bad("FAIRSHARE", value, "at least one [user, number] is wanted");
        return None;
    }
    Some(all)
}

/// USER_SHARES of a user group or a host partition: `[user, number] ...`.
pub(super) fn user_shares(v: &mut Values<'_>) -> Vec<ShareAssignment> {
    let Some(value) = v.raw.get(LIST) else { return Vec::new() };
    let text = value.text.trim();
    let inner = text.strip_prefix('(').and_then(|text| text.strip_suffix(')'));
    assignments(v, LIST, value, inner.unwrap_or(text))
}

/// The assignments of a list; `text` is a piece of the value. Wrong ones are told and left out.
fn assignments(
    v: &mut Values<'_>,
    name: &str,
    value: &RawParam,
    text: &str,
) -> Vec<ShareAssignment> {
    let mut all: Vec<ShareAssignment> = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let end = rest.find(']');
        let pair = end.and_then(|end| rest.strip_prefix('[').map(|r| r[..end - 1].trim()));
        let piece = |piece: &str| RawParam {
            text: piece.trim().to_owned(),
            pos: value.pos_of(piece),
            ..RawParam::default()
        };
        let Some(pair) = pair.filter(|pair| !pair.contains('[')) else {
            v.bad(name, &piece(rest), WANTED);
            return all;
        };
        match assignment(pair) {
            Err(want) => v.bad(name, &piece(pair), want),
            Ok((who, each_member, shares)) => {
                let known = all.iter().any(|a| a.name == who && a.each_member == each_member);
                if known {
                    v.bad(name, &piece(pair), &format!("<{}> has shares already", shown(who)));
                } else if all.len() == MAX_ASSIGNMENTS {
                    v.bad(name, &piece(pair), "there are too many assignments (10000)");
                    return all;
                } else {
                    let (who, pos) = (who.to_owned(), value.pos_of(pair));
                    all.push(ShareAssignment { name: who, each_member, shares, pos });
                }
            }
        }
        rest = rest[end.map_or(rest.len(), |end| end + 1)..].trim_start();
    }
    all
}

/// Name, `group@`, shares.
fn assignment(pair: &str) -> Result<(&str, bool, u32), &'static str> {
    let (who, number) = pair.rsplit_once(',').ok_or(WANTED)?;
    let number = number.trim().parse().ok().filter(|n| (1..=MAX_SHARES).contains(n));
    let shares = number.ok_or("a number of shares from 1 to 100000000 is wanted")?;
    let who = who.trim();
    let (name, each_member) = match who.strip_suffix('@') {
        Some(group) => (group, true),
        None => (who.strip_suffix('/').unwrap_or(who), false),
    };
    match name {
        "default" | "others" if !each_member => {}
        "all" => return Err("all has no shares; default gives them to each other user"),
        _ if name_fault(name).is_some() => return Err("a user or a user group is wanted"),
        _ => {}
    }
    Ok((name, each_member, shares))
}

#[cfg(test)]
mod tests {
    use super::super::diag::Diags;
    use super::super::testing::MapFiles;
    use super::super::types::{QueueConf, Shared, UserGroup};
    use super::super::units::SizeUnit;
    use super::super::{lsb_queues, lsb_users};

    fn queue(line: &str) -> (Option<QueueConf>, Vec<String>) {
        let text = format!("Begin Queue\nQUEUE_NAME = q\n{line}\nEnd Queue\n");
        let (mut diags, files) = (Diags::new(), MapFiles::one("f", text));
        let all = lsb_queues::parse(&files, "f", &Shared::default(), SizeUnit::KB, &mut diags);
        let told = diags.into_list();
        let told = told.iter().map(|d| format!("{} {d}", d.severity.word())).collect();
        (all.and_then(|mut all| all.pop()), told)
    }

    fn group(cell: &str) -> (UserGroup, Vec<String>) {
        let text = format!(
            "Begin UserGroup\nGROUP_NAME GROUP_MEMBER USER_SHARES\n\
             g (ann bob) {cell}\nEnd UserGroup\n"
        );
        let mut diags = Diags::new();
        let users = lsb_users::parse(&MapFiles::one("f", text), "f", &mut diags).unwrap();
        let told = diags.into_list();
        let told = told.iter().map(|d| format!("{} {d}", d.severity.word())).collect();
        (users.groups[0].clone(), told)
    }

    fn shown(list: &[super::ShareAssignment]) -> Vec<String> {
        let of = |a: &super::ShareAssignment| {
            let at = if a.each_member { "@" } else { "" };
            format!("{}{at}={}", a.name, a.shares)
        };
        list.iter().map(of).collect()
    }

    #[test]
    fn share_assignments_are_read_in_every_spelling() {
        let rows = [
            (
                "USER_SHARES[[ann, 10] [chip@,3] [default,1]]",
                &["ann=10", "chip@=3", "default=1"][..],
            ),
            ("user_shares [ [ann,1][bob , 2] ]", &["ann=1", "bob=2"]),
            ("USER_SHARES[[chip/, 4] [others, 100000000]]", &["chip=4", "others=100000000"]),
        ];
        for (text, want) in rows {
            let (q, told) = queue(&format!("FAIRSHARE = {text}"));
            assert!(told.is_empty(), "{told:?}");
            assert_eq!(shown(&q.unwrap().fairshare.unwrap()), want, "{text}");
        }
        let (g, told) = group("([ann,3] [default, 1])");
        assert!(told.is_empty(), "{told:?}");
        assert_eq!(shown(&g.share_list), ["ann=3", "default=1"]);
        assert_eq!(queue("").0.unwrap().fairshare, None);
    }

    /// Each wrong list is an error with its place, and what was meant.
    #[test]
    fn wrong_share_assignments_are_errors_with_their_place() {
        let rows = [
            ("[ann, 1]", "f:3:13", "<[ann, 1]> of FAIRSHARE: USER_SHARES[[user, number] ...]"),
            ("USER_SHARE[[ann, 1]]", "f:3:13", "did you mean USER_SHARES?"),
            ("USER_SHARES[ann, 1]", "f:3:25", "<ann, 1> of FAIRSHARE: [user, number of shares]"),
            ("USER_SHARES[[ann, 1]", "f:3:25", "<[ann, 1> of FAIRSHARE: [user, number"),
            ("USER_SHARES", "f:3:13", "USER_SHARES[[user, number] ...] is wanted"),
            ("USER_SHARES[]", "f:3:13", "at least one [user, number] is wanted"),
            ("USER_SHARES[[ann 1]]", "f:3:26", "<ann 1> of FAIRSHARE: [user, number of shares]"),
            ("USER_SHARES[[ann, 0]]", "f:3:26", "a number of shares from 1 to 100000000"),
            ("USER_SHARES[[ann, 1.5]]", "f:3:26", "a number of shares from 1 to 100000000"),
            ("USER_SHARES[[ann, -3]]", "f:3:26", "a number of shares from 1 to 100000000"),
            ("USER_SHARES[[ann, 1] [ann, 2]]", "f:3:35", "<ann> has shares already"),
            ("USER_SHARES[[all, 1]]", "f:3:26", "default gives them to each other user"),
            ("USER_SHARES[[default@, 1]]", "f:3:26", "a user or a user group is wanted"),
            ("USER_SHARES[[a b, 1]]", "f:3:26", "a user or a user group is wanted"),
            ("USER_SHARES[[ann, 1] x [bob, 1]]", "f:3:34", "<x [bob, 1]> of FAIRSHARE"),
        ];
        for (text, place, words) in rows {
            let (_, told) = queue(&format!("FAIRSHARE = {text}"));
            let fits = |line: &String| {
                line.contains(&format!("{place}:"))
                    && line.contains(words)
                    && line.contains("error")
            };
            assert!(told.iter().any(fits), "{text}: {told:?}");
        }
        let (_, told) = group("([ann,x] [bob,2])");
        assert!(told[0].contains("f:3:15") && told[0].contains("of USER_SHARES"), "{told:?}");
    }

    #[test]
    fn factors_of_a_queue_are_numbers_and_flags() {
        let lines = "FAIRSHARE = USER_SHARES[[default, 1]]\nHIST_HOURS = 0\nRUN_JOB_FACTOR = 1.5\n\
                     RUN_TIME_DECAY = Y\nENABLE_HIST_RUN_TIME = n\nCPU_TIME_FACTOR = 0.1";
        let (q, told) = queue(lines);
        assert!(told.is_empty(), "{told:?}");
        let f = q.unwrap().factors;
        assert_eq!((f.hist_hours, f.run_job, f.cpu_time), (Some(0.0), Some(1.5), Some(0.1)));
        assert_eq!((f.run_time_decay, f.hist_run_time), (Some(true), Some(false)));
        assert_eq!((f.run_time, f.committed), (None, None));
        for (line, words) in [
            ("HIST_HOURS = -1", "a number from 0 to 1000000000 is wanted"),
            ("CPU_TIME_FACTOR = much", "a number from 0 to 1000000000 is wanted"),
            ("RUN_TIME_DECAY = 7", "Y or N is wanted"),
        ] {
            let (_, told) = queue(line);
            assert!(told.len() == 1 && told[0].contains(words), "{told:?}");
        }
    }
}
