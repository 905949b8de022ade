//! lsadmin ckconfig: verdicts, places of mistakes, where they are printed.

use crate::common::*;

const RULE: &str = "\n---------------------------------------------------------\n";

#[test]
fn lsadmin_ckconfig_of_a_correct_configuration_finds_no_errors() {
    let said = run("lsadmin", &["ckconfig"]);
    let head = "\nChecking configuration files ...\n\n";
    let want = Said { code: 0, out: "No errors found.\n\n".into(), err: head.into() };
    assert_eq!(said, want);
    let long = run("lsadmin", &["ckconfig", "-v"]);
    assert_eq!((long.code, long.out.as_str()), (0, ""));
    assert!(long.err.starts_with(head), "{}", long.err);
    assert!(long.err.ends_with(&format!("{RULE}No errors found.\n\n")), "{}", long.err);
}

#[test]
fn lsadmin_ckconfig_names_a_mistake_with_its_place() {
    let dir = scratch("lsadmin");
    let Some(envdir) = other_envdir(&dir, "LSF_MASTER_LIST=nosuch\n") else { return };
    let said: Said =
        cmd("lsadmin").arg("ckconfig").env("LSF_ENVDIR", &envdir).output().unwrap().into();
    assert_eq!(said.code, 255);
    assert_eq!(said.out, "There are fatal errors.\n\n");
    let lines = std::fs::read_to_string(envdir.join("lsf.conf")).unwrap().lines().count();
    let place = format!("error: {}/lsf.conf:{lines}:", envdir.display());
    assert!(said.err.contains(&place), "{place} in {}", said.err);
    assert!(said.err.contains("nosuch"), "{}", said.err);
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn lsadmin_reads_commands_from_standard_input_and_refuses_unknown_ones() {
    let said = run("lsadmin", &["nosuch"]);
    assert_eq!((said.code, said.out.as_str()), (255, ""));
    assert!(said.err.starts_with("Invalid command <nosuch>\n\nUsage: lsadmin "), "{}", said.err);
    let typed = feed(cmd("lsadmin"), b"ckconfig\nquit\nnosuch\n");
    assert_eq!(typed.code, 0);
    assert_eq!(typed.out, "No errors found.\n\n");
}
