//! The record of what a pending job keeps.

use super::*;

#[test]
fn a_reservation_has_the_documented_order_of_fields() {
    let at = JobRef { job: 11, idx: 3 };
    let hosts = vec![("hosta".into(), 4, 2), ("hostb".into(), 1, 1)];
    let (since, until, start, end) = (50, 350, 200, 260);
    let (memory, kept_memory) = (vec![300, 0], vec![120, 0]);
    let r = JobReserve { at, since, until, start, end, hosts, memory, kept_memory };
    let text = line(Event::JobReserve(Box::new(r)));
    let fields = "11 3 50 350 200 260 2 \"hosta\" 4 2 \"hostb\" 1 1 2 300 0 2 120 0";
    assert_eq!(text, format!("\"LSF_RESERVE\" \"10.1\" 1700000000 {fields}\n"));
    let older = text.replace(" 2 120 0\n", "\n");
    let Event::JobReserve(read) = read_record(older.as_bytes()).unwrap().event else { panic!() };
    assert_eq!((read.memory, read.kept_memory), (vec![300, 0], vec![]));
}
