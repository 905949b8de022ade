//! When lsb.acct is archived: ACCT_ARCHIVE_AGE, ACCT_ARCHIVE_SIZE and ACCT_ARCHIVE_TIME of
//! lsb.params(5). Once a minute the log is told what is too large or too old; whether lsb.acct is,
//! the log knows (`log::acct_archive`). Nothing of it need be remembered across a restart: a file
//! is due at a time of the day if its first record is from before that time.

use crate::batch::{Mbatchd, StepContext};
use crate::lang::civil;
use crate::proto::machine::{AcctArchive, Effect};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

/// Seconds between two looks.
const PAUSE: u64 = 60;

impl Mbatchd {
    /// Has lsb.acct archived, where the site wants that and a look is due.
    pub(crate) fn acct_archive_due(&mut self, context: &mut StepContext) {
        let rules = self.site.params().log.archives;
        // the copy in LSB_SHAREDIR has no archives
        let duplicated = self.site.conf.base.lsf.localdir().is_some();
        let wanted = rules.is_on() && !duplicated;
        if !self.acct_archive_checks.begin(context.now, PAUSE, wanted) {
            return;
        }
        let now = context.now.secs();
        let begun_before = match rules.minute {
            Some(minute) => last_time_of_day(now, minute, self.windows.zone()),
            None => rules.age.map(|age| now.saturating_sub(age)),
        };
        let order = AcctArchive { larger_than: rules.size, begun_before, keep: rules.keep };
        context.out.push(Effect::ArchiveAcct(order));
    }
}

/// The last instant until `now` at which it was this minute of the day.
fn last_time_of_day(now: i64, minute: u16, zone: &TimeZone) -> Option<i64> {
    let today = zone.to_datetime(Timestamp::from_second(now).ok()?).date();
    let (hour, minute) = ((minute / 60) as i8, (minute % 60) as i8);
    let days = [today, today.checked_sub(1.day()).ok()?];
    let times = days.into_iter().map(|day| civil::instant(day.at(hour, minute, 0, 0), zone));
    times.into_iter().find(|time| *time <= now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::tests::cluster::{Cluster, cluster};

    fn order(c: &mut Cluster) -> Vec<AcctArchive> {
        std::mem::take(&mut c.archived)
    }

    #[test]
    fn log_is_told_each_minute_of_size_and_age_until_neither_is_configured() {
        let site = cluster().hosts(1, 1).param("ACCT_ARCHIVE_AGE = 2");
        let site = site.param("ACCT_ARCHIVE_SIZE = 3").param("MAX_ACCT_ARCHIVE_FILE = 7");
        let mut c = site.up();
        order(&mut c);
        c.advance(60);
        let [told] = order(&mut c)[..] else { panic!() };
        assert_eq!((told.larger_than, told.keep), (Some(3072), Some(7)));
        let age = c.secs() - told.begun_before.unwrap();
        assert!((2 * 86_400..2 * 86_400 + 60).contains(&age), "{age}");
        c.advance(180);
        assert_eq!(order(&mut c).len(), 3);
        let mut c = cluster().hosts(1, 1).param("MAX_ACCT_ARCHIVE_FILE = 7").up();
        c.advance(180);
        assert_eq!(order(&mut c), []);
    }

    #[test]
    fn time_of_day_is_that_of_today_or_yesterday_in_the_zone() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        // 1970-01-02 01:00 there
        let now = 86_400 - 3600;
        let of = |minute| last_time_of_day(now, minute, &zone).unwrap() - now;
        assert_eq!([of(60), of(59), of(0)], [0, -60, -3600]);
        assert_eq!([of(61), of(23 * 60 + 59)], [60 - 86_400, -3660]);
    }
}
