//! LSF_HOST_ADDR_RANGE: the addresses from which a host may join by itself. See lsf.cluster(5).

use core::net::IpAddr;

/// LSF_HOST_ADDR_RANGE: addresses, each part of which may be `*` or `low-high`, either of which may
/// be `*` too, and of which the last parts may be missing. In one of v6, `::` stands for zeros.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddrRanges(Vec<AddrRange>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum AddrRange {
    V4([(u8, u8); 4]),
    V6([(u16, u16); 8]),
}

impl AddrRanges {
    /// Reads the ranges; `None`: the text is malformed.
    pub fn parse(text: &str) -> Option<Self> {
        text.split_whitespace().map(range).collect::<Option<_>>().map(AddrRanges)
    }

    /// No host may join.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn contains(&self, addr: IpAddr) -> bool {
        let addr = addr.to_canonical();
        self.0.iter().any(|range| match (range, addr) {
            (AddrRange::V4(parts), IpAddr::V4(a)) => within(parts, &a.octets()),
            (AddrRange::V6(parts), IpAddr::V6(a)) => within(parts, &a.segments()),
            _ => false,
        })
    }
}

fn range(word: &str) -> Option<AddrRange> {
    if !word.contains(':') {
        let mut parts = [(0, u8::MAX); 4];
        fill(&mut parts, word.split('.'), u8::MAX, |n| n.parse().ok())?;
        return Some(AddrRange::V4(parts));
    }
    if let Ok(IpAddr::V4(a)) = word.parse::<IpAddr>().map(|a| a.to_canonical()) {
        return Some(AddrRange::V4(a.octets().map(|n| (n, n))));
    }
    let mut parts = [(0, u16::MAX); 8];
    let group = |n: &str| u16::from_str_radix(n, 16).ok().filter(|_| n.len() <= 4);
    let Some((head, tail)) = word.split_once("::") else {
        fill(&mut parts, word.split(':'), u16::MAX, group)?;
        return Some(AddrRange::V6(parts));
    };
    let count = |text: &str| if text.is_empty() { 0 } else { text.split(':').count() };
    let (first, last) = (count(head), count(tail));
    if first + last > 7 {
        return None;
    }
    parts = [(0, 0); 8];
    if first > 0 {
        fill(&mut parts[..first], head.split(':'), u16::MAX, group)?;
    }
    if last > 0 {
        fill(&mut parts[8 - last..], tail.split(':'), u16::MAX, group)?;
    }
    Some(AddrRange::V6(parts))
}

/// Reads the bounds of parts.
fn fill<'a, T: Copy + Default + PartialOrd>(
    parts: &mut [(T, T)],
    words: impl Iterator<Item = &'a str>,
    most: T,
    number: impl Fn(&str) -> Option<T>,
) -> Option<()> {
    for (n, part) in words.enumerate() {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let low = if low == "*" { T::default() } else { number(low)? };
        let high = if high == "*" { most } else { number(high)? };
        *parts.get_mut(n)? = (low, high);
    }
    Some(())
}

fn within<T: PartialOrd>(parts: &[(T, T)], addr: &[T]) -> bool {
    parts.iter().zip(addr).all(|((low, high), n)| low <= n && n <= high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn address_range_contains_its_addresses_alone() {
        let has = |ranges: &str, addr: &str| AddrRanges::parse(ranges).unwrap().contains(ip(addr));
        assert!(has("10.1.2.3", "10.1.2.3") && !has("10.1.2.3", "10.1.2.4"));
        assert!(has("100", "100.9.8.7") && !has("100", "101.9.8.7"));
        assert!(has("100-110.34.1-10.4-56", "105.34.10.4"));
        assert!(!has("100-110.34.1-10.4-56", "105.34.11.4"));
        assert!(has("*.*.*.*", "1.2.3.4") && has("9.9 10.*.0", "10.200.0.7"));
        assert!(has("124.24-*.1.*-34", "124.99.1.34") && !has("124.24-*.1.*-34", "124.23.1.1"));
        assert!(has("fe80::1", "fe80::1") && !has("*", "fe80::1") && has("1.2", "::ffff:1.2.3.4"));
        assert!(has("::ffff:1.2.3.4", "1.2.3.4") && !has("::ffff:1.2.3.4", "1.2.3.5"));
        // the parts of v6 are hexadecimal
        let lan = "3ffe:1956:*:a-1f:0:0:0:10-*";
        assert!(has(lan, "3ffe:1956:77:10::ffff") && !has(lan, "3ffe:1956:77:20::ffff"));
        assert!(!has(lan, "3ffe:1956:77:10::f") && !has(lan, "3ffe:1957:77:10::ffff"));
        assert!(has("fe80::1-9:*", "fe80::5:77") && !has("fe80::1-9:*", "fe80:0:1::5:77"));
        assert!(has("3ffe:1956", "3ffe:1956:1::2") && !has("3ffe:1956", "3ffe:1957:1::2"));
        assert!(has("::", "::") && has("::*", "::9") && has("fe80::", "fe80::"));
        assert!(!has("", "1.2.3.4") && AddrRanges::default().is_empty());
        for bad in [
            "1.2.3.4.5",
            "1.x",
            "300",
            "1-",
            "fe80::1::2",
            "1..2",
            "fe80::x",
            "1:2:3:4:5:6:7:8:9",
            "1:2:3:4::5:6:7:8",
            "12345::",
        ] {
            assert_eq!(AddrRanges::parse(bad), None, "{bad}");
        }
    }
}
