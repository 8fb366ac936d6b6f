//! Fake metadata servers, each as strict as the real one: none answers another's question with an error that
//! could be told from its own refusals.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::json;

use super::api_server::{Answered, Asked, Server};

/// The metadata server of one machine.
pub(super) struct Metadata {
    pub(super) server: Server,
    switches: Arc<Switches>,
}

#[derive(Default)]
struct Switches {
    going: AtomicBool,
    away: AtomicBool,
    tokens: AtomicUsize,
    asked: Mutex<Vec<String>>,
}

impl Metadata {
    fn of(answer: fn(&Asked, &Switches) -> Answered) -> Self {
        let switches = Arc::new(Switches::default());
        let shared = Arc::clone(&switches);
        let server = Server::answering(move |asked| {
            shared.asked.lock().unwrap().push(format!("{} {}", asked.method, asked.path));
            if shared.away.load(Ordering::SeqCst) {
                return plain(503, "");
            }
            answer(asked, &shared)
        });
        Self { server, switches }
    }

    /// EC2, whose tokens are good for three answers.
    pub(super) fn aws() -> Self {
        Self::of(aws)
    }

    pub(super) fn azure() -> Self {
        Self::of(azure)
    }

    pub(super) fn gcp() -> Self {
        Self::of(gcp)
    }

    /// A server that answers every question, as a captive portal or a proxy does.
    pub(super) fn stranger() -> Self {
        Self::of(|_, _| (200, None, "<!doctype html><title>Welcome</title>".to_owned()))
    }

    /// Whether the machine is going away.
    pub(super) fn going(&self, going: bool) {
        self.switches.going.store(going, Ordering::SeqCst);
    }

    /// Whether it answers; otherwise somebody before it says that it cannot.
    pub(super) fn within_reach(&self, within: bool) {
        self.switches.away.store(!within, Ordering::SeqCst);
    }

    /// How many tokens were given out.
    pub(super) fn tokens(&self) -> usize {
        self.switches.tokens.load(Ordering::SeqCst) / TOKEN_USES
    }

    /// How often something below `path` was asked.
    pub(super) fn asked(&self, path: &str) -> usize {
        self.switches.asked.lock().unwrap().iter().filter(|asked| asked.contains(path)).count()
    }
}

const TOKEN_USES: usize = 4;

fn plain(status: u16, body: &str) -> Answered {
    (status, None, body.to_owned())
}

fn aws(asked: &Asked, switches: &Switches) -> Answered {
    let uses = &switches.tokens;
    let token = |number: usize| format!("AQAEALH5Vn3QmMbkT2WHJKJ8mX0s{number:08}==");
    if (asked.method.as_str(), asked.path.as_str()) == ("PUT", "/latest/api/token") {
        assert!(!asked.header("x-aws-ec2-metadata-token-ttl-seconds").is_empty());
        let next = (uses.load(Ordering::SeqCst) / TOKEN_USES + 1) * TOKEN_USES;
        uses.store(next, Ordering::SeqCst);
        return plain(200, &token(next / TOKEN_USES));
    }
    let now = uses.load(Ordering::SeqCst);
    let given = asked.header("x-aws-ec2-metadata-token");
    if given != token(now / TOKEN_USES) || now % TOKEN_USES == TOKEN_USES - 1 {
        return plain(401, "");
    }
    uses.fetch_add(1, Ordering::SeqCst);
    match asked.path.as_str() {
        "/latest/meta-data/instance-id" => plain(200, "i-0123456789abcdef0"),
        "/latest/meta-data/spot/instance-action" if switches.going.load(Ordering::SeqCst) => {
            plain(200, r#"{"action": "terminate", "time": "2031-01-02T03:04:05Z"}"#)
        }
        _ => plain(404, "<?xml version=\"1.0\"?><html>404 - Not Found</html>"),
    }
}

fn azure(asked: &Asked, switches: &Switches) -> Answered {
    if asked.header("metadata") != "true" {
        return plain(400, r#"{"error": "Bad request. Required metadata header not specified"}"#);
    }
    let page = match asked.path.split('?').next().unwrap() {
        "/metadata/instance" => {
            json!({"compute": {"name": "gpu-1", "azEnvironment": "AzurePublicCloud"}})
        }
        "/metadata/scheduledevents" => {
            let event = |machine: &str| {
                json!({"EventId": "1", "EventType": "Preempt", "Resources": [machine],
                "EventStatus": "Scheduled", "NotBefore": "Thu, 02 Jan 2031 03:04:05 GMT"})
            };
            // The neighbour goes away all the time.
            let mut events = vec![event("gpu-2")];
            if switches.going.load(Ordering::SeqCst) {
                events.push(event("gpu-1"));
            }
            json!({"DocumentIncarnation": 1, "Events": events})
        }
        _ => return plain(404, ""),
    };
    plain(200, &page.to_string())
}

fn gcp(asked: &Asked, switches: &Switches) -> Answered {
    let flavor = Some(("metadata-flavor", "Google"));
    if asked.header("metadata-flavor") != "Google" {
        return (403, flavor, "Missing Metadata-Flavor:Google header.".to_owned());
    }
    let going = switches.going.load(Ordering::SeqCst);
    match asked.path.as_str() {
        "/computeMetadata/v1/instance/id" => (200, flavor, "4520031799277581759".to_owned()),
        "/computeMetadata/v1/instance/preempted" => {
            (200, flavor, if going { "TRUE" } else { "FALSE" }.to_owned())
        }
        _ => (404, flavor, String::new()),
    }
}
