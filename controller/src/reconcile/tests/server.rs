//! A stand-in for an API server: it keeps what is applied, and does to each request what the test says.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use flexinfer_testkit::api_server::refusal;
use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};

/// A request.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) method: Method,
    /// Without the namespace: `deployments/a`, `models/a/status`.
    pub(super) object: String,
    pub(super) query: String,
    pub(super) body: Value,
}

impl Call {
    /// Whether it changes this object.
    pub(super) fn writes(&self, object: &str) -> bool {
        self.method != Method::GET && self.object == object && !self.is_trial()
    }

    /// Whether it only asks what would become of it.
    pub(super) fn is_trial(&self) -> bool {
        self.query.contains("dryRun=All")
    }
}

/// What becomes of a request, where it is not simply done: the answer's code and body.
type Rule = Box<dyn FnMut(&Call) -> Option<(u16, Value)> + Send>;

pub(super) struct Server {
    rule: Mutex<Rule>,
    calls: Mutex<Vec<Call>>,
    objects: Mutex<BTreeMap<String, Value>>,
}

impl Server {
    pub(super) fn start() -> (Arc<Self>, Client) {
        let rule: Rule = Box::new(|_| None);
        let server =
            Self { rule: Mutex::new(rule), calls: Mutex::default(), objects: Mutex::default() };
        let server = Arc::new(server);
        let answering = Arc::clone(&server);
        let service = tower::service_fn(move |request| Arc::clone(&answering).answer(request));
        (server, Client::new(service, "default"))
    }

    /// From now on this says what becomes of requests.
    pub(super) fn rule(&self, rule: impl FnMut(&Call) -> Option<(u16, Value)> + Send + 'static) {
        *self.rule.lock() = Box::new(rule);
    }

    /// Keeps an object that somebody else has made.
    pub(super) fn put(&self, path: &str, object: Value) {
        self.objects.lock().insert(path.to_owned(), object);
    }

    /// Forgets an object that somebody deletes.
    pub(super) fn remove(&self, path: &str) {
        self.objects.lock().remove(path);
    }

    pub(super) fn object(&self, path: &str) -> Option<Value> {
        self.objects.lock().get(path).cloned()
    }

    /// How often this object was written, or that was tried.
    pub(super) fn writes(&self, object: &str) -> usize {
        self.calls.lock().iter().filter(|call| call.writes(object)).count()
    }

    /// How often it was asked what would become of this object.
    pub(super) fn trials(&self, object: &str) -> usize {
        let calls = self.calls.lock();
        calls.iter().filter(|call| call.is_trial() && call.object == object).count()
    }

    async fn answer(self: Arc<Self>, request: Request<Body>) -> Result<Response<Body>, Infallible> {
        let (head, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let path = head.uri.path();
        let call = Call {
            method: head.method,
            object: path.split("/namespaces/default/").nth(1).unwrap_or(path).to_owned(),
            query: head.uri.query().unwrap_or_default().to_owned(),
            body: serde_json::from_slice(&body).unwrap_or_default(),
        };
        let ruled = (self.rule.lock())(&call);
        self.calls.lock().push(call.clone());
        let (code, body) = ruled.unwrap_or_else(|| self.done(call));
        let response = Response::builder().status(code);
        Ok(response.body(Body::from(body.to_string().into_bytes())).unwrap())
    }

    fn done(&self, call: Call) -> (u16, Value) {
        let path = call.object.trim_end_matches("/status");
        let mut objects = self.objects.lock();
        if call.method == Method::GET {
            let found = objects.get(path).cloned();
            return found
                .map_or_else(|| refusal(404, "NotFound", "not found"), |found| (200, found));
        }
        if call.method == Method::POST {
            return (201, call.body);
        }
        let trial = call.is_trial();
        let mut object = objects.get(path).cloned().unwrap_or_else(|| json!({}));
        let version = object["metadata"]["resourceVersion"].as_str().unwrap_or("0");
        let version = version.parse::<u64>().unwrap() + 1;
        merge(&mut object, call.body);
        object["metadata"]["resourceVersion"] = json!(version.to_string());
        object["metadata"]["namespace"] = json!("default");
        if !trial {
            objects.insert(path.to_owned(), object.clone());
        }
        (200, object)
    }
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, of) in from {
                merge(into.entry(name).or_insert(Value::Null), of);
            }
        }
        (into, from) => *into = from,
    }
}
