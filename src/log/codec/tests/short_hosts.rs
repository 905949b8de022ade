//! Hosts of several slots that stand once in a record (SHORT_EVENTFILE, lsf.conf(5)).

use super::*;

/// The count is that of the strings.
#[test]
fn hosts_of_short_records_stand_once_and_are_read_again() {
    let hosts: NamedHosts = [("hosta".into(), 4), ("hostb".into(), 1), ("hostc".into(), 2)].into();
    let words = "3 \"4*hosta\" \"hostb\" \"2*hostc\"";
    let at = JobRef { job: 11, idx: 3 };
    let start = JobStart { at, attempt: 1, hosts, short_hosts: true, ..<_>::default() };
    let text = line(Event::JobStart(Box::new(start.clone())));
    assert_eq!(text.matches(words).count(), 2, "{text}");
    let Event::JobStart(read) = read_record(text.as_bytes()).unwrap().event else { panic!() };
    assert_eq!((&read.hosts, read.short_hosts), (&start.hosts, true));
    // written anew as it was
    assert_eq!(line(Event::JobStart(read)), text);
    let named = start.hosts.iter().map(|(host, slots)| (host.to_string(), *slots));
    let exec_hosts: Vec<(String, u32)> = named.collect();
    let fin = Finish { at, exec_hosts, short_hosts: true, ..Finish::default() };
    let mut out = Vec::new();
    write_finish(&fin, &mut out);
    let text = String::from_utf8(out).unwrap();
    assert_eq!(text.matches(words).count(), 2, "{text}");
    let read = read_finish(text.as_bytes()).unwrap();
    assert_eq!((&read.exec_hosts, read.short_hosts), (&fin.exec_hosts, true));
}
