//! Registries, by tables: what is asked, what their answers lead to, what artifacts are made of.

mod artifacts;
mod entering;
mod logins;
mod manifests;

use serde_json::{Value, json};

use super::manifest::digest_of;
use crate::activation::Failure;
use crate::sources::download::{
    Conversation, Head, Hub, Patience, Request, Selection, Step, Terms,
};

/// A digest that nothing here has.
const OTHER: &str = "sha256:00000000000000000000000000000000000000000000000000000000000000ff";

fn head(status: u16, headers: &[(&str, &str)]) -> Head {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    Head { status, headers: headers.iter().map(owned).collect() }
}

fn terms() -> Terms {
    let patience = Patience { attempts: 3, ..Patience::default() };
    Terms { patience, ..Terms::with(Hub::at("https://hub.test").unwrap()) }
}

fn talk(source: &str) -> Conversation {
    talk_about(source, &Selection::default())
}

fn talk_about(source: &str, selection: &Selection) -> Conversation {
    source
        .parse::<crate::sources::Source>()
        .unwrap()
        .conversation(selection, &terms())
        .unwrap()
        .unwrap()
}

fn asked(talk: &mut Conversation) -> Request {
    loop {
        match talk.next() {
            Step::Ask(request) => return request,
            Step::Wait(..) => {}
            step => panic!("{step:?}"),
        }
    }
}

fn failure(talk: &mut Conversation) -> Failure {
    match talk.next() {
        Step::Failed(failure) => failure,
        step => panic!("{step:?}"),
    }
}

/// A manifest with these layers.
fn manifest(layers: &Value) -> Vec<u8> {
    json!({ "schemaVersion": 2, "layers": layers }).to_string().into_bytes()
}

/// A layer of ten bytes whose digest ends in these two digits.
fn layer(digits: &str, kind: &str, annotations: &Value) -> Value {
    let digest = format!("sha256:{}{digits}", "0".repeat(62));
    json!({ "mediaType": kind, "digest": digest, "size": 10, "annotations": annotations })
}

fn titled(digits: &str, title: &str) -> Value {
    let annotations = json!({ "org.opencontainers.image.title": title });
    layer(digits, "application/vnd.oci.image.layer.v1.tar", &annotations)
}
