//! ~/.lsfhosts: the account that a start order names.

use super::cluster::{Cluster, cluster};

/// The account of the only start order.
fn account(c: &mut Cluster, options: &str) -> String {
    let job = c.submit("ann", options);
    let orders = c.start_orders();
    assert_eq!(orders.len(), 1, "{options}");
    c.end(job, 0);
    format!("{} {}", orders[0].spec.from_host, orders[0].account)
}

#[test]
fn first_line_for_the_execution_host_names_the_account() {
    let mut c = cluster().hosts(3, 2).up();
    let lines = "-lsfhosts 'h2 bob h2 eve + zoe'";
    for (options, want) in [
        (format!("-m h1 {lines}"), "h1 "),
        (format!("-m h2 {lines}"), "h1 bob"),
        (format!("-m h3 {lines}"), "h1 zoe"),
        ("-m h3 -lsfhosts 'h2 bob'".to_string(), "h1 "),
        ("-m h2".to_string(), "h1 "),
        (format!("-I -m h2 {lines}"), "h1 "),
        (format!("-hostfile 'h2 1 h1 1' {lines}"), "h1 bob"),
    ] {
        assert_eq!(account(&mut c, &options), want, "{options}");
    }
}

#[test]
fn no_account_is_named_where_the_site_disables_it() {
    let mut c = cluster().hosts(2, 2).param("DISABLE_UACCT_MAP = Y").up();
    assert_eq!(account(&mut c, "-m h2 -lsfhosts 'h2 bob'"), "h1 ");
}
