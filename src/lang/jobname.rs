//! Job names with array lists (`-J "name[1-9:2,20]%3"`) and job-ID operands (`123[4]`, `0`).
//!
//! A list is kept as ranges and never expanded, so `[1-1000000]` costs what `[1]` costs. A
//! malformed list is refused, never shortened to a valid one.

use super::scan::Scan;
use std::fmt;

/// Longest job name, in bytes (LSF 10.1: 4094 characters).
pub const MAX_JOB_NAME: usize = 4094;
/// Most ranges one list may hold: a bound on the work that a hostile list can cause.
pub const MAX_RANGES: usize = 1000;
/// Largest array index, and largest job ID, that LSF's logs can carry.
pub const MAX_INDEX: u32 = 2_147_483_646;

/// One part of a list: `start`, `start-end` or `start-end:step`. `start <= end`, `step >= 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IndexRange {
    /// First index.
    pub start: u32,
    /// Last index allowed; the last one met may be smaller when `step` does not divide.
    pub end: u32,
    /// Distance between two indices.
    pub step: u32,
}

impl IndexRange {
    /// How many indices there are.
    pub fn len(&self) -> u64 {
        u64::from((self.end - self.start) / self.step) + 1
    }

    /// A range is never empty; here for the sake of convention.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Whether `index` is one of them.
    pub fn contains(&self, index: u32) -> bool {
        index >= self.start && index <= self.end && (index - self.start).is_multiple_of(self.step)
    }

    /// The largest index that is really met.
    pub fn last(&self) -> u32 {
        self.start + (self.end - self.start) / self.step * self.step
    }

    /// Whether the two have an index in common (Chinese remainders, no expansion).
    fn overlaps(&self, other: &IndexRange) -> bool {
        let (a, b) = (i128::from(self.start), i128::from(other.start));
        let (s, t) = (i128::from(self.step), i128::from(other.step));
        let low = a.max(b);
        let high = i128::from(self.last().min(other.last()));
        if low > high {
            return false;
        }
        let (gcd, inverse) = gcd_inverse(s, t);
        if (b - a) % gcd != 0 {
            return false;
        }
        // x = a + s*k with s*k = b - a (mod t); the common members repeat every s*t/gcd.
        let period = s / gcd * t;
        let k = ((b - a) / gcd * inverse).rem_euclid(t / gcd);
        let first = a + s * k;
        first + (low - first).div_euclid(period) * period == low
            || first + ((low - first).div_euclid(period) + 1) * period <= high
    }
}

/// Greatest common divisor of `s` and `t`, and the inverse of s/gcd modulo t/gcd.
fn gcd_inverse(s: i128, t: i128) -> (i128, i128) {
    let (mut r0, mut r1, mut x0, mut x1) = (s, t, 1i128, 0i128);
    while r1 != 0 {
        let q = r0 / r1;
        (r0, r1) = (r1, r0 - q * r1);
        (x0, x1) = (x1, x0 - q * x1);
    }
    (r0, x0)
}

impl fmt::Display for IndexRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.start)?;
        if self.end != self.start {
            write!(f, "-{}", self.end)?;
        }
        if self.step != 1 {
            write!(f, ":{}", self.step)?;
        }
        Ok(())
    }
}

/// A list of indices, in the order typed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct IndexList {
    /// The parts; never empty after parsing.
    pub ranges: Vec<IndexRange>,
}

impl IndexList {
    /// Parses what stands between the brackets; parts of a job ID may overlap, those of a job
    /// name may not (`unique`).
    pub fn parse(text: &str, unique: bool) -> Result<IndexList, JobNameError> {
        let mut scan = Scan::new(text);
        let mut ranges: Vec<IndexRange> = Vec::new();
        loop {
            let range = parse_range(&mut scan)?;
            if ranges.len() >= MAX_RANGES || (unique && ranges.iter().any(|r| r.overlaps(&range))) {
                return Err(JobNameError::ArrayIndex);
            }
            ranges.push(range);
            scan.blanks();
            if scan.at_end() {
                return Ok(IndexList { ranges });
            }
            if !scan.eat(",") {
                return Err(JobNameError::ArrayIndex);
            }
        }
    }

    /// How many indices there are (overlapping ones counted twice).
    pub fn len(&self) -> u64 {
        self.ranges.iter().map(IndexRange::len).sum()
    }

    /// True for a list without parts, which parsing never makes.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Whether `index` is in the list.
    pub fn contains(&self, index: u32) -> bool {
        self.ranges.iter().any(|r| r.contains(index))
    }

    /// The largest index.
    pub fn max(&self) -> u32 {
        self.ranges.iter().map(IndexRange::last).max().unwrap_or(0)
    }

    /// Every index in the order typed.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.ranges.iter().flat_map(|r| (r.start..=r.end).step_by(r.step as usize))
    }
}

/// Whether a job's name fits what is asked for: each `*` stands for any text, as in LSF's -J.
pub fn name_fits(pattern: &str, name: &str) -> bool {
    let Some((first, more)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let (middle, last) = more.rsplit_once('*').unwrap_or(("", more));
    for part in middle.split('*') {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// `n`, `n-m` or `n-m:step`, blanks allowed around the numbers.
fn parse_range(scan: &mut Scan<'_>) -> Result<IndexRange, JobNameError> {
    let start = index(scan)?;
    let (mut end, mut step) = (start, 1);
    if scan.eat_after_blanks("-") {
        end = index(scan)?;
    }
    if scan.eat_after_blanks(":") {
        step = index(scan)?;
    }
    if end < start {
        return Err(JobNameError::ArrayIndex);
    }
    Ok(IndexRange { start, end, step })
}

fn index(scan: &mut Scan<'_>) -> Result<u32, JobNameError> {
    scan.blanks();
    let value = scan.integer().ok_or(JobNameError::ArrayIndex)?;
    match u32::try_from(value) {
        Ok(i) if (1..=MAX_INDEX).contains(&i) => Ok(i),
        _ => Err(JobNameError::ArrayIndex),
    }
}

impl fmt::Display for IndexList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, range) in self.ranges.iter().enumerate() {
            write!(f, "{}{range}", if i == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

/// The array part of a job name: `[list]%limit`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ArraySpec {
    /// The indices.
    pub list: IndexList,
    /// How many elements may be started at once; None without `%n` and for `%0`.
    pub limit: Option<u32>,
}

impl ArraySpec {
    /// How many elements the array has.
    pub fn len(&self) -> u64 {
        self.list.len()
    }

    /// True for an array without elements, which parsing never makes.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether `index` is an element.
    pub fn contains(&self, index: u32) -> bool {
        self.list.contains(index)
    }

    /// Every element's index in the order typed.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.list.iter()
    }

    /// Refuses an array beyond MAX_JOB_ARRAY_SIZE, which bounds the largest index and the count.
    pub fn check_size(&self, max_job_array_size: u32) -> Result<(), JobNameError> {
        let max = u64::from(max_job_array_size);
        if self.len() > max || u64::from(self.list.max()) > max {
            return Err(JobNameError::ArrayTooLarge);
        }
        Ok(())
    }
}

impl fmt::Display for ArraySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}]", self.list)?;
        match self.limit {
            Some(n) => write!(f, "%{n}"),
            None => Ok(()),
        }
    }
}

/// A job name taken apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct JobName {
    /// The name without list and limit; empty for `-J "[1-3]"`.
    pub name: String,
    /// The array, if the name holds a list.
    /// Boxed: most jobs have none, and there are very many.
    pub array: Option<Box<ArraySpec>>,
}

impl JobName {
    /// Parses the value of `-J`.
    pub fn parse(text: &str) -> Result<JobName, JobNameError> {
        let text = text.trim();
        if text.is_empty() || text.len() > MAX_JOB_NAME || text.chars().any(char::is_control) {
            return Err(JobNameError::BadName);
        }
        let Some((name, rest)) = text.split_once('[') else {
            return match text.contains(']') {
                true => Err(JobNameError::BadName),
                false => Ok(JobName { name: text.to_string(), array: None }),
            };
        };
        let (list, tail) = rest.split_once(']').ok_or(JobNameError::BadName)?;
        let list = IndexList::parse(list, true)?;
        let limit = parse_limit(tail.trim())?;
        let array = Some(Box::new(ArraySpec { list, limit }));
        Ok(JobName { name: name.trim_end().to_string(), array })
    }

    /// The name of one element, as bjobs shows it: `name[4]`.
    pub fn element(&self, index: u32) -> String {
        format!("{}[{index}]", self.name)
    }
}

/// The text after the list: nothing or `%n`.
fn parse_limit(text: &str) -> Result<Option<u32>, JobNameError> {
    if text.is_empty() {
        return Ok(None);
    }
    let digits = text.strip_prefix('%').ok_or(JobNameError::BadName)?.trim();
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(JobNameError::ArrayIndex);
    }
    match digits.parse::<u32>() {
        Ok(0) => Ok(None),
        Ok(n) if n <= MAX_INDEX => Ok(Some(n)),
        _ => Err(JobNameError::ArrayIndex),
    }
}

impl fmt::Display for JobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        match &self.array {
            Some(array) => array.fmt(f),
            None => Ok(()),
        }
    }
}

/// Why a job name was refused, in LSF's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobNameError {
    /// The text is no name: empty, too long, with control characters or a stray bracket.
    BadName,
    /// The list or the limit is not one.
    ArrayIndex,
    /// More elements, or a larger index, than MAX_JOB_ARRAY_SIZE.
    ArrayTooLarge,
}

impl fmt::Display for JobNameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            JobNameError::BadName => "Bad job name",
            JobNameError::ArrayIndex => "Job array index error",
            JobNameError::ArrayTooLarge => "Job array index too large",
        })
    }
}

impl std::error::Error for JobNameError {}

/// A job-ID operand.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum JobIdSpec {
    /// `0`: every job that the other filters let through.
    All,
    /// `123`: a job, or every element of an array.
    Job(u64),
    /// `123[1-4,6]`: some elements.
    Elements(u64, IndexList),
}

impl JobIdSpec {
    /// Parses one operand.
    pub fn parse(text: &str) -> Result<JobIdSpec, BadJobId> {
        Self::read(text.trim()).ok_or_else(|| BadJobId { text: text.to_string() })
    }

    fn read(text: &str) -> Option<JobIdSpec> {
        let (id, list) = match text.split_once('[') {
            Some((id, rest)) => (id.trim_end(), Some(rest.strip_suffix(']')?)),
            None => (text, None),
        };
        if id.is_empty() || !id.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let id: u64 = id.parse().ok().filter(|&id| id <= u64::from(MAX_INDEX))?;
        match list {
            None if id == 0 => Some(JobIdSpec::All),
            None => Some(JobIdSpec::Job(id)),
            Some(_) if id == 0 => None,
            Some(list) => Some(JobIdSpec::Elements(id, IndexList::parse(list, false).ok()?)),
        }
    }
}

impl fmt::Display for JobIdSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JobIdSpec::All => f.write_str("0"),
            JobIdSpec::Job(id) => write!(f, "{id}"),
            JobIdSpec::Elements(id, list) => write!(f, "{id}[{list}]"),
        }
    }
}

/// An operand that is no job ID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadJobId {
    /// The operand as typed.
    pub text: String,
}

impl fmt::Display for BadJobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: Illegal job ID.", self.text)
    }
}

impl std::error::Error for BadJobId {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_star_stands_for_any_text_anywhere() {
        for pattern in ["a_b_c", "*", "a*", "*c", "*b*", "a*c", "a*b*c", "a_b_c*", "**", "*_*_*"] {
            assert!(name_fits(pattern, "a_b_c"), "{pattern}");
        }
        for pattern in ["", "a_b", "b*", "*b", "*x*", "a*x*c", "a_b_c*c", "c*a", "*_*_*_*"] {
            assert!(!name_fits(pattern, "a_b_c"), "{pattern}");
        }
        assert!(name_fits("*", "") && name_fits("*ab*ab", "abab") && !name_fits("*ab*ab", "ab"));
        assert!(!name_fits("a*a", "a") && !name_fits("", "a"));
    }

    fn array(text: &str) -> ArraySpec {
        JobName::parse(text).unwrap().array.map(|a| *a).unwrap()
    }

    #[test]
    fn a_plain_name_has_no_array() {
        let n = JobName::parse(" my job%5 ").unwrap();
        assert_eq!((n.name.as_str(), n.array), ("my job%5", None));
    }

    #[test]
    fn lists_are_counted_and_walked_without_expansion() {
        let a = array("x[1-9:2, 20,30 - 31]%3");
        assert_eq!(a.iter().collect::<Vec<_>>(), [1, 3, 5, 7, 9, 20, 30, 31]);
        assert_eq!((a.len(), a.limit), (8, Some(3)));
        assert!(a.contains(7) && !a.contains(8) && !a.contains(32));
        assert_eq!(a.to_string(), "[1-9:2,20,30-31]%3");
        assert_eq!(array("x[1-2000000000]").len(), 2_000_000_000);
        assert_eq!(JobName::parse("x[1-3]").unwrap().element(2), "x[2]");
        assert_eq!(array("[1]%0").limit, None);
    }

    #[test]
    fn broken_lists_are_refused_in_lsf_words() {
        for bad in ["", "x[1-", "x1]", "x[1]y", "a\nb", "x[1][2]"] {
            assert_eq!(JobName::parse(bad).unwrap_err().to_string(), "Bad job name", "{bad}");
        }
        for bad in [
            "x[]",
            "x[0-3]",
            "x[3-1]",
            "x[a]",
            "x[1,]",
            "x[1-5:0]",
            "x[1-5,3]",
            "x[1]%",
            "x[1]%a",
            "x[-1]",
            "x[1--2]",
            "x[99999999999]",
            "x[1-9:2,2-8:3]",
        ] {
            let e = JobName::parse(bad).unwrap_err().to_string();
            assert_eq!(e, "Job array index error", "{bad}");
        }
        let e = array("x[1-2000]").check_size(1000).unwrap_err();
        assert_eq!(e.to_string(), "Job array index too large");
        assert!(array("x[1001]").check_size(1000).is_err());
        assert!(array("x[1-1000]").check_size(1000).is_ok());
    }

    #[test]
    fn job_ids_are_read_with_their_elements() {
        assert_eq!(JobIdSpec::parse("0").unwrap(), JobIdSpec::All);
        assert_eq!(JobIdSpec::parse("123").unwrap(), JobIdSpec::Job(123));
        let JobIdSpec::Elements(123, l) = JobIdSpec::parse("123[1-4,6,8-20:2]").unwrap() else {
            panic!("not elements");
        };
        assert_eq!(l.len(), 12);
        for bad in ["abc", "", "-1", "12x", "123[", "123[]", "0[1]", "123[0]", "99999999999", "+1"]
        {
            let e = JobIdSpec::parse(bad).unwrap_err();
            assert_eq!(e.to_string(), format!("{bad}: Illegal job ID."));
        }
    }

    proptest! {
        #[test]
        fn any_job_name_is_read_without_panic(text in "\\PC{0,40}|[x0-9\\[\\],:%-]{0,30}") {
            if let Ok(n) = JobName::parse(&text) {
                prop_assert_eq!(JobName::parse(&n.to_string()).unwrap(), n);
            }
            if let Ok(n) = JobIdSpec::parse(&text) {
                prop_assert_eq!(JobIdSpec::parse(&n.to_string()).unwrap(), n);
            }
        }

        #[test]
        fn overlap_agrees_with_expansion(
            a in 1u32..40, la in 0u32..40, s in 1u32..12,
            b in 1u32..40, lb in 0u32..40, t in 1u32..12,
        ) {
            let x = IndexRange { start: a, end: a + la, step: s };
            let y = IndexRange { start: b, end: b + lb, step: t };
            let real = (1..90).any(|i| x.contains(i) && y.contains(i));
            prop_assert_eq!(x.overlaps(&y), real, "{} {}", x, y);
            prop_assert_eq!(x.len(), (1..90).filter(|&i| x.contains(i)).count() as u64);
        }
    }
}
