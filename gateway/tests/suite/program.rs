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
