//! The program's command line.

use assert_cmd::Command;

fn gateway() -> Command {
    Command::new(env!("CARGO_BIN_EXE_flexinfer-gateway"))
}

#[test]
fn settings_in_force_are_printed_with_flags_before_variables() {
    let mut command = gateway();
    command.args(["local", ".", "--print-settings", "--queue-timeout", "2m"]);
    command.env("PROXY_QUEUE_TIMEOUT", "5s").env("PROXY_MAX_QUEUE_SIZE", "7");
    let output = command.assert().success().get_output().stdout.clone();
    let page = String::from_utf8(output).unwrap();
    assert!(page.contains("queue-timeout = 2m\n"), "{page}");
    assert!(page.contains("max-queue-size = 7\n"), "{page}");
}

#[test]
fn wrong_settings_are_all_told_and_nothing_starts() {
    let mut command = gateway();
    command.args(["local", ".", "--max-body", "much"]).env("PROXY_QUEUE_TIMEOUT", "soon");
    let output = command.assert().failure().get_output().stderr.clone();
    let said = String::from_utf8(output).unwrap();
    assert!(said.contains("--max-body") && said.contains("PROXY_QUEUE_TIMEOUT"), "{said}");
}

/// Without the environment of whoever runs the tests, and so without a cluster.
fn nowhere(arguments: &[&str]) -> Command {
    let home = tempfile::tempdir().unwrap();
    let mut command = gateway();
    command.env_clear().env("HOME", home.path()).arg("kubernetes").args(arguments);
    command
}

#[test]
fn without_a_cluster_it_is_told_what_to_do() {
    let mut command = nowhere(&["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]);
    let output = command.assert().code(1).get_output().stderr.clone();
    let said = String::from_utf8(output).unwrap();
    assert!(said.contains("run in a pod with a service account, or set KUBECONFIG"), "{said}");
    assert!(!said.contains("panicked"), "{said}");
}

#[test]
fn what_a_gateway_of_a_cluster_is_told_is_checked_without_one() {
    nowhere(&["--check"]).assert().success();
    let keys = "/no/such/keys.yaml";
    for wrong in [&["--keys-file", keys][..], &["--tls-cert", keys, "--tls-key", keys]] {
        let output = nowhere(&["--check"]).args(wrong).assert().code(1).get_output().stderr.clone();
        let said = String::from_utf8(output).unwrap();
        assert!(said.contains(keys), "{said}");
    }
}
