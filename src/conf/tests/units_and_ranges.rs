//! Mistakes in COMPUTE_UNIT_TYPES, section ComputeUnit, EXCLUSIVE=CU[] and RESRSV_LIMIT.

use super::*;

const TYPES: &str = "MAX_JOBID = 9999999";

#[test]
fn mistakes_in_types_of_compute_units_are_told_with_their_place() {
    for (value, place) in [
        ("enclosure! rack", None),
        ("rack rack", Some("27 COMPUTE_UNIT_TYPES names <rack> twice")),
        ("a! b!", Some("25 COMPUTE_UNIT_TYPES marks a second type with `!`: <b>")),
        ("!", Some("22 <!> of COMPUTE_UNIT_TYPES is not the name of a type")),
        ("a b,c", Some("24 <b,c> of COMPUTE_UNIT_TYPES is not the name of a type")),
    ] {
        let told = said("lsb.params", TYPES, &format!("{TYPES}\nCOMPUTE_UNIT_TYPES = {value}"));
        let want = place.map(|place| format!("error lsb.params COMPUTE_UNIT_TYPES:{place}"));
        assert_eq!(told, want.into_iter().collect::<Vec<_>>(), "{value}");
    }
}

#[test]
fn mistakes_in_exclusive_units_and_reservation_limits_are_told_with_their_place() {
    let q = |line: &str| said("lsb.queues", "NICE           = 20", line);
    for (line, told) in [
        (
            "EXCLUSIVE = CU[rack",
            "error lsb.queues EXCLUSIVE:13 bad value <CU[rack> of EXCLUSIVE: \
          Y, N, CU[] or CU[type] is needed",
        ),
        (
            "EXCLUSIVE = CU[a b]",
            "error lsb.queues EXCLUSIVE:13 bad value <CU[a b]> of EXCLUSIVE: \
          Y, N, CU[] or CU[type] is needed",
        ),
        (
            "EXCLUSIVE = CU[]",
            "warning lsb.queues EXCLUSIVE:13 EXCLUSIVE = CU[] needs \
          COMPUTE_UNIT_TYPES in lsb.params",
        ),
        (
            "EXCLUSIVE = CU[rack]",
            "warning lsb.queues EXCLUSIVE:13 <rack> of EXCLUSIVE is not in \
          COMPUTE_UNIT_TYPES of lsb.params",
        ),
        (
            "RESRSV_LIMIT = mem=5",
            "error lsb.queues RESRSV_LIMIT:16 bad value <mem=5> of \
          RESRSV_LIMIT: expected [res=max] or [res=min,max]",
        ),
        (
            "RESRSV_LIMIT = [mem=5] [mme=6]",
            "error lsb.queues RESRSV_LIMIT:25 bad value \
          <[mem=5] [mme=6]> of RESRSV_LIMIT: mme: unknown resource",
        ),
        (
            "RESRSV_LIMIT = [mem=9,5]",
            "error lsb.queues RESRSV_LIMIT:17 bad value <[mem=9,5]> of \
          RESRSV_LIMIT: mem: the least amount is above the most",
        ),
        (
            "RESRSV_LIMIT = [mem=5",
            "error lsb.queues RESRSV_LIMIT:22 bad value <[mem=5> of \
          RESRSV_LIMIT: missing ]",
        ),
    ] {
        assert_eq!(q(line), [told], "{line}");
    }
    assert!(q("RESRSV_LIMIT = [mem=100,4GB] [licence=2]").is_empty());
}
