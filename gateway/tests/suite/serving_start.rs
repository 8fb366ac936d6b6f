//! How a gateway starts, or why it does not: said in a line, with a status that scripts can go by.

use std::net::TcpListener;
use std::process::Command;

use flexinfer_testkit::Program;

use serde_json::json;

use crate::https_engines::Engine;
use crate::local_world::PROGRAM;
use crate::serving_models::{model, simulated};
use crate::serving_world::{BOUND, Home, Serving, assert_ok, get};

/// How the command ended, and what it said on standard error.
fn outcome(command: &mut Command) -> (Option<i32>, String) {
    let output = command.output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[tokio::test]
async fn a_log_for_machines_says_where_requests_and_pages_go() {
    let home = Home::new(&[]);
    let mut program = Program::start(&mut home.command(&["--log-format", "json"])).unwrap();
    let line = program.line("serving", BOUND).await.unwrap();
    let event: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&event["message"], &event["models"]), (&"serving".into(), &0.into()));
    for (field, path) in [("address", "/v1/models"), ("admin", "/metrics")] {
        let address = event[field].as_str().unwrap().parse().unwrap();
        assert_eq!(get(address, path).await.status(), 200);
    }
}

#[tokio::test]
async fn a_second_gateway_on_a_folder_is_refused_and_names_the_first() {
    let gateway = Serving::start(&[]).await;
    let (status, said) = outcome(&mut gateway.home.command(&[]));
    assert_eq!(status, Some(1), "{said}");
    let holder = format!("in use by another gateway (process {})", gateway.program.id());
    assert!(said.contains(&holder), "{said}");
    assert_eq!(gateway.get("/healthz").await.status(), 200);
}

#[test]
fn a_check_says_what_is_wrong_and_serves_nothing() {
    let good = simulated("good", &json!({}), "");
    let check = |files: &[(&str, &str)], flags: &[&str]| {
        let home = Home::new(files);
        let all: Vec<&str> = ["--check"].into_iter().chain(flags.iter().copied()).collect();
        let output = home.command(&all).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        assert!(!home.data().exists(), "nothing was begun");
        (output.status.code(), String::from_utf8(said).unwrap())
    };
    let (status, said) = check(&[("good.yaml", &good)], &[]);
    assert_eq!((status, said.contains("1 served from")), (Some(0), true), "{said}");
    let bad = good.replace("backend: simulator", "backend: simulater").replace("good", "bad");
    let (status, said) = check(&[("good.yaml", &good), ("bad.yaml", &bad)], &[]);
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("bad.yaml") && said.contains("simulator"), "{said}");
    let (status, said) = check(&[], &["--keys-file", "/no/such/keys.yaml"]);
    assert_eq!((status, said.contains("/no/such/keys.yaml")), (Some(1), true), "{said}");
}

#[test]
fn a_file_of_authorities_that_cannot_be_used_is_named() {
    let home = Home::new(&[("empty.crt", ""), ("key.crt", "-----BEGIN CERTIFICATE-----\nMA==")]);
    for (file, problem) in [
        ("missing.crt", "cannot read the certificates"),
        ("empty.crt", "holds no certificate"),
        ("key.crt", "cannot read the certificates"),
    ] {
        let path = home.models().join(file).to_string_lossy().into_owned();
        for more in [&[][..], &["--check"]] {
            let flags = [&["--engine-ca", &path], more].concat();
            let (status, said) = outcome(&mut home.command(&flags));
            assert_eq!(status, Some(1), "{said}");
            assert!(said.contains(&path) && said.contains(problem), "{said}");
        }
    }
}

#[tokio::test]
async fn one_unreadable_authority_of_the_system_is_told_and_keeps_no_engine_away() {
    let engine = Engine::speaking(&["http/1.1"]).await;
    let mut authorities = std::fs::read_to_string(&engine.authority).unwrap();
    authorities += "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n";
    let config = json!({ "url": format!("https://localhost:{}", engine.address.port()) });
    let home = Home::new(&[("ours.yaml", &model("ours", "external", &config, ""))]);
    home.write("system.crt", &authorities);
    let mut command = home.command(&[]);
    command.env("SSL_CERT_FILE", home.models().join("system.crt")).env_remove("SSL_CERT_DIR");
    let mut gateway = Serving::run(home, command).await;
    for _ in 0..2 {
        assert_ok(&gateway.chat("ours").await);
    }
    let text = "some of the system's authorities cannot be read";
    gateway.program.line(text, BOUND).await.unwrap();
    let told = gateway.program.lines().join("\n");
    assert_eq!(told.matches(text).count(), 1, "{told}");
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    let (status, said) = outcome(Command::new(PROGRAM).args(["local", "/no/such/models"]));
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("cannot open the folder of Models /no/such/models"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn an_address_that_is_taken_is_named_with_the_flag_to_change_it() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for (flag, other) in [("--listen", "--admin-listen"), ("--admin-listen", "--listen")] {
        let home = Home::new(&[]);
        let mut command = Command::new(PROGRAM);
        command.arg("local").arg(home.models()).arg("--data-dir").arg(home.data());
        let (status, said) = outcome(command.args([flag, &address, other, "127.0.0.1:0"]));
        assert_eq!(status, Some(1), "{said}");
        assert!(said.contains(&format!("cannot listen on {address}")), "{said}");
        assert!(said.contains(&format!("name another address with {flag}")), "{said}");
    }
}

#[test]
fn a_data_folder_that_cannot_be_made_is_named_with_the_flag_to_change_it() {
    let home = Home::new(&[("file", "")]);
    let mut command = Command::new(PROGRAM);
    command.arg("local").arg(home.models()).args(["--listen", "127.0.0.1:0"]);
    command.args(["--admin-listen", "127.0.0.1:0", "--data-dir"]);
    let (status, said) = outcome(command.arg(home.models().join("file/data")));
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("cannot make the data folder"), "{said}");
    assert!(said.contains("--data-dir"), "{said}");
}

#[test]
fn a_flag_that_does_not_exist_is_a_mistake_in_usage() {
    let (status, said) = outcome(Command::new(PROGRAM).args(["local", ".", "--lisen", "1"]));
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains("--listen"), "{said}");
}
