//! The writer, turn by turn.

use super::super::simdisk::Faults;
use super::super::switch::SwitchOrder;
use super::super::writer::{Command, Due, PROBE_SECS, Writer, WriterNotice};
use super::*;
use crate::model::time::US;

fn order(writer: &mut Writer<SimDisk>, ticket: u64, mut batch: Batch) {
    batch.ticket = ticket;
    writer.order(Command::Batch(Box::new(batch)));
}

fn turn(writer: &mut Writer<SimDisk>, now: u64) -> Option<WriterNotice> {
    writer.turn(now, &mut |_| {})
}

fn spooled(job: u32, at: u64) -> Batch {
    let mut new = job_new(job);
    new.script = SpoolRef { spool: 1, at, len: 10 };
    let mut b = Batch::default();
    b.spool(new.script, b"#!/bin/sh\n");
    b.append(&Record { time: 1, event: Event::JobNew(Box::new(new)) });
    b
}

#[test]
fn a_switch_is_given_up_when_writing_fails() {
    let disk = SimDisk::new();
    let (_, store) = open(&disk, BOOT);
    let writer = &mut Writer::new(store);
    order(writer, 1, spooled(1, 0));
    assert_eq!(turn(writer, 0), Some(WriterNotice::Durable(1)));
    order(writer, 2, batch(&[start(1), done(1), clean(1)]));
    assert_eq!(turn(writer, 0), Some(WriterNotice::Durable(2)));
    // no job needs the spool file any more: it would go
    let head = vec![Record { time: 5, event: Event::Carried { next_job: 2, epoch: 1 } }];
    let switch = SwitchOrder { live: Vec::new(), head, spool: 2, oldest_spool: 2 };
    writer.order(Command::Switch(Box::new(switch)));
    assert_eq!(turn(writer, 0), None);
    disk.set_faults(Faults { fail_writes: Some(28), ..Faults::default() });
    order(writer, 3, batch(&[new(2)]));
    assert!(matches!(turn(writer, 0), Some(WriterNotice::WriteFailed { ticket: 3, .. })));
    disk.set_faults(Faults::default());
    assert!(matches!(turn(writer, 0), Some(WriterNotice::Switched { ok: false, .. })));
    writer.order(Command::Rebuilt);
    assert_eq!(turn(writer, 0), None);
    assert_eq!(writer.due(), Due::At(PROBE_SECS * US));
    assert_eq!(turn(writer, PROBE_SECS * US), Some(WriterNotice::Back));
    // the machine is back to what the log holds, and goes on in the spool file that is there
    let spool = look(&disk, BOOT).recovered;
    assert_eq!((spool.spool, spool.spool_end), (1, 10));
    order(writer, 4, spooled(3, 10));
    assert_eq!(turn(writer, PROBE_SECS * US), Some(WriterNotice::Durable(4)));
    while writer.due() == Due::Now {
        turn(writer, PROBE_SECS * US);
    }
    assert!(look(&disk, BOOT).recovered.damaged.is_empty());
}
