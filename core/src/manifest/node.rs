//! A YAML document as a tree that remembers where everything stood.

use serde_json::Value;

use super::complaint::Place;
use super::scalar;

/// A value and where it stood.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) place: Place,
    pub(crate) content: Content,
    /// How many nodes this is, itself included.
    pub(crate) size: usize,
}

/// What a node holds.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    Scalar(Scalar),
    List(Vec<Node>),
    Object(Vec<Field>),
}

/// A text as it was written. What is plain may mean a number, a truth or nothing.
#[derive(Clone, Debug)]
pub(crate) struct Scalar {
    pub(crate) text: String,
    pub(crate) plain: bool,
}

/// One entry of an object.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) node: Node,
}

impl Node {
    pub(crate) fn new(place: Place, content: Content) -> Self {
        let inner = match &content {
            Content::Scalar(_) => 0,
            Content::List(items) => items.iter().map(|item| item.size).sum(),
            Content::Object(fields) => fields.iter().map(|field| field.node.size).sum(),
        };
        Self { place, content, size: inner.saturating_add(1) }
    }

    /// Whether it is an empty or null scalar, which is as good as absent.
    pub(crate) fn absent(&self) -> bool {
        matches!(&self.content, Content::Scalar(scalar) if scalar.means() == scalar::Meaning::Null)
    }

    /// The entries of an object; none of anything else.
    pub(crate) fn fields(&self) -> &[Field] {
        match &self.content {
            Content::Object(fields) => fields,
            Content::Scalar(_) | Content::List(_) => &[],
        }
    }

    /// The items of a list; none of anything else.
    pub(crate) fn items(&self) -> &[Node] {
        match &self.content {
            Content::List(items) => items,
            Content::Scalar(_) | Content::Object(_) => &[],
        }
    }

    /// The entry `name`, unless it is absent.
    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        self.fields().iter().find(|field| field.name == name && !field.node.absent())
    }

    /// The text of the entry `name`, quoted or not.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        match &self.field(name)?.node.content {
            Content::Scalar(scalar) => Some(&scalar.text),
            Content::List(_) | Content::Object(_) => None,
        }
    }

    /// The place of the deepest entry that exists along `path`.
    pub(crate) fn place_of<'p>(&self, path: impl IntoIterator<Item = &'p str>) -> Place {
        let mut node = self;
        let mut place = self.place;
        for name in path {
            let Some(field) = node.field(name) else { break };
            place = field.place;
            node = &field.node;
        }
        place
    }

    /// The same as JSON. Absent entries of objects are left out where `keep_nulls` is false.
    pub(crate) fn to_json(&self, keep_nulls: bool) -> Value {
        match &self.content {
            Content::Scalar(scalar) => scalar.to_json(),
            Content::List(items) => items.iter().map(|item| item.to_json(keep_nulls)).collect(),
            Content::Object(fields) => fields
                .iter()
                .filter(|field| keep_nulls || !field.node.absent())
                .map(|field| (field.name.clone(), field.node.to_json(keep_nulls)))
                .collect(),
        }
    }
}
