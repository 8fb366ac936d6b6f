//! From bytes to documents. Whatever a file holds, reading it takes bounded time and memory, and one
//! broken document does not hide the others.

use std::collections::HashMap;

use serde_saphyr::granit_parser::{
    ErrorKind, Event, Options, Parser, ScalarStyle, ScanError, Span, StrInput, Tag, options,
};

use super::complaint::{Notes, Place};
use super::node::{Content, Field, Node, Scalar};

/// The most nodes of a file, copies by aliases included.
const MAX_NODES: usize = 100_000;

/// How deep lists and objects may lie in one another.
const MAX_DEPTH: usize = 64;

/// The documents of `text` that could be read; what could not is told in `notes`.
pub(crate) fn documents(text: &str, notes: &mut Notes) -> Vec<Node> {
    let parser = Parser::new_from_str_with_options(text, options());
    let anchors = HashMap::new();
    let mut reader =
        Reader { parser, notes, anchors, nodes_left: MAX_NODES, documents: Vec::new() };
    loop {
        let more = match reader.next_document() {
            Ok(more) => more,
            Err(stop) => {
                reader.tell(&stop);
                reader.parser.proceed_next_document().unwrap_or_else(|error| {
                    reader.tell(&Stop::NotYaml(error));
                    false
                })
            }
        };
        if !more {
            return reader.documents;
        }
    }
}

fn options() -> Options {
    options! { emit_comments: false, flow_nesting_limit: MAX_DEPTH, block_nesting_limit: MAX_DEPTH }
}

/// Why a document cannot be read to its end.
enum Stop {
    NotYaml(ScanError),
    TooLarge(Place),
    TooDeep(Place),
    EndedEarly,
}

struct Reader<'t, 'n> {
    parser: Parser<'t, StrInput<'t>>,
    notes: &'n mut Notes,
    anchors: HashMap<usize, Node>,
    nodes_left: usize,
    documents: Vec<Node>,
}

type Read<T> = Result<T, Stop>;

impl<'t> Reader<'t, '_> {
    fn next(&mut self) -> Read<(Event<'t>, Place)> {
        let (event, span) = self.parser.next().ok_or(Stop::EndedEarly)?.map_err(Stop::NotYaml)?;
        Ok((event, place(&span)))
    }

    /// Reads one document, if there is one more. One that is faulty but could be read to its end is
    /// told of and left out.
    fn next_document(&mut self) -> Read<bool> {
        loop {
            match self.parser.next() {
                None | Some(Ok((Event::StreamEnd, _))) => return Ok(false),
                Some(Err(error)) => return Err(Stop::NotYaml(error)),
                Some(Ok((Event::DocumentStart(..), _))) => break,
                Some(Ok(_)) => {}
            }
        }
        self.anchors.clear();
        let known = self.notes.errors.len();
        let (event, place) = self.next()?;
        let node = self.node(event, place, 0)?;
        if self.notes.errors.len() == known && !node.absent() {
            self.documents.push(node);
        }
        Ok(true)
    }

    fn node(&mut self, event: Event<'t>, place: Place, depth: usize) -> Read<Node> {
        if depth > MAX_DEPTH {
            return Err(Stop::TooDeep(place));
        }
        let (content, anchor) = match event {
            Event::Alias(anchor) => return self.copy(anchor, place),
            Event::Scalar(text, style, anchor, tag) => {
                let plain = style == ScalarStyle::Plain && self.may_be_typed(tag.as_deref(), place);
                (Content::Scalar(Scalar { text: text.into_owned(), plain }), anchor)
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.may_be_typed(tag.as_deref(), place);
                (Content::List(self.list(depth)?), anchor)
            }
            Event::MappingStart(_, anchor, tag) => {
                self.may_be_typed(tag.as_deref(), place);
                (Content::Object(self.object(depth)?), anchor)
            }
            _ => return Err(Stop::EndedEarly),
        };
        self.spend(1, place)?;
        let node = Node::new(place, content);
        if anchor != 0 {
            self.spend(node.size, place)?;
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn copy(&mut self, anchor: usize, place: Place) -> Read<Node> {
        let Some(node) = self.anchors.get(&anchor) else {
            let message = "an alias cannot stand inside of what it stands for; write it out";
            self.notes.error(place, message);
            let nothing = Scalar { text: String::new(), plain: true };
            return Ok(Node::new(place, Content::Scalar(nothing)));
        };
        // Counted before it is copied: a bomb never exists.
        let size = node.size;
        let copy = if size <= self.nodes_left { Some(node.clone()) } else { None };
        self.spend(size, place)?;
        copy.ok_or(Stop::TooLarge(place))
    }

    fn spend(&mut self, nodes: usize, place: Place) -> Read<()> {
        self.nodes_left = self.nodes_left.checked_sub(nodes).ok_or(Stop::TooLarge(place))?;
        Ok(())
    }

    fn list(&mut self, depth: usize) -> Read<Vec<Node>> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(items),
                (event, place) => items.push(self.node(event, place, depth + 1)?),
            }
        }
    }

    fn object(&mut self, depth: usize) -> Read<Vec<Field>> {
        let mut fields = Vec::new();
        let mut merged = Vec::new();
        loop {
            let (event, place) = self.next()?;
            if matches!(event, Event::MappingEnd) {
                break;
            }
            let key = self.node(event, place, depth + 1)?;
            let (event, value_place) = self.next()?;
            let node = self.node(event, value_place, depth + 1)?;
            let Content::Scalar(Scalar { text: name, plain }) = key.content else {
                self.notes.error(place, "the name of a field must be a text");
                continue;
            };
            if plain && name == "<<" {
                merged.push(node);
                continue;
            }
            self.add(&mut fields, Field { name, place, node });
        }
        for node in merged {
            self.merge(&mut fields, &node)?;
        }
        Ok(fields)
    }

    fn add(&mut self, fields: &mut Vec<Field>, field: Field) {
        let Some(first) = fields.iter().find(|known| known.name == field.name) else {
            return fields.push(field);
        };
        let message = format!(
            "`{}` is written twice, first on line {}; leave one out",
            field.name, first.place.line
        );
        self.notes.error(field.place, message);
    }

    /// `<<: *other` takes over what the object does not say itself.
    fn merge(&mut self, fields: &mut Vec<Field>, other: &Node) -> Read<()> {
        let others = match &other.content {
            Content::List(items) => items.as_slice(),
            Content::Object(_) | Content::Scalar(_) => std::slice::from_ref(other),
        };
        for other in others {
            if !matches!(other.content, Content::Object(_)) {
                self.notes.error(other.place, "`<<` takes an object, or a list of objects");
            }
            for field in other.fields() {
                if fields.iter().all(|known| known.name != field.name) {
                    self.spend(field.node.size, other.place)?;
                    fields.push(field.clone());
                }
            }
        }
        Ok(())
    }

    /// Whether a plain scalar may mean something else than its text. Only YAML's own tags are known.
    fn may_be_typed(&mut self, tag: Option<&Tag>, place: Place) -> bool {
        match tag.map(|tag| (tag.core_suffix(), tag)) {
            Some((Some("str"), _)) => false,
            None | Some((Some(_), _)) => true,
            Some((None, tag)) => {
                self.notes
                    .error(place, format!("the tag {} is not known; leave it out", tag.original()));
                true
            }
        }
    }

    fn tell(&mut self, stop: &Stop) {
        match stop {
            Stop::NotYaml(error) => {
                let marker = error.marker();
                let place = Place { line: marker.line().max(1), column: marker.col() + 1 };
                if *error.kind() == ErrorKind::RecursionLimitExceeded {
                    return self.tell(&Stop::TooDeep(place));
                }
                self.notes.error(place, format!("this is not YAML: {}", error.info()));
            }
            Stop::TooLarge(place) => self.notes.error(
                *place,
                format!("more than {MAX_NODES} values, with what aliases repeat; write fewer"),
            ),
            Stop::TooDeep(place) => {
                self.notes
                    .error(*place, format!("more than {MAX_DEPTH} levels deep; write it flatter"));
            }
            Stop::EndedEarly => self.notes.error(Place::START, "the file ends in the middle"),
        }
    }
}

fn place(span: &Span) -> Place {
    Place { line: span.start.line().max(1), column: span.start.col() + 1 }
}
