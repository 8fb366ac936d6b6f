//! When the answer is a call of a tool or JSON of a given shape, and what is in it.

use serde_json::{Map, Value, json};

use crate::generation::Content;

/// What kind of answer fits: a tool call when one is forced or the topic says `call tool NAME`.
/// `tools` are objects with `name` and a JSON schema, whichever API they come from.
pub(crate) fn content(tools: &[Tool], choice: Option<&Value>, topic: &str) -> Content {
    let wanted = match choice {
        Some(Value::String(word)) if word == "none" => None,
        Some(Value::String(word)) if word == "required" || word == "any" => tools.first(),
        Some(Value::Object(_)) => forced(tools, choice),
        _ => asked_for(tools, topic),
    };
    match wanted {
        Some(tool) => Content::ToolCall {
            name: tool.name.clone(),
            arguments: example(&tool.schema, topic, 0),
        },
        None => Content::Words,
    }
}

/// A tool the client offers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tool {
    pub(crate) name: String,
    pub(crate) schema: Value,
}

impl Tool {
    /// Reads the shapes of chat completions (`function`), responses (flat) and Anthropic
    /// (`input_schema`); what has no name is left out.
    pub(crate) fn list(tools: Option<&Vec<Value>>) -> Vec<Self> {
        let read = |tool: &Value| {
            let function = tool.get("function").unwrap_or(tool);
            let name = function.get("name")?.as_str()?.to_owned();
            let schema = function.get("parameters").or(function.get("input_schema"));
            Some(Self { name, schema: schema.cloned().unwrap_or_else(|| json!({})) })
        };
        tools.into_iter().flatten().filter_map(read).collect()
    }
}

fn forced<'a>(tools: &'a [Tool], choice: Option<&Value>) -> Option<&'a Tool> {
    let choice = choice?;
    if choice.get("type").and_then(Value::as_str) == Some("any") {
        return tools.first();
    }
    let name = choice.pointer("/function/name").or(choice.get("name"))?.as_str()?;
    tools.iter().find(|tool| tool.name == name)
}

fn asked_for<'a>(tools: &'a [Tool], topic: &str) -> Option<&'a Tool> {
    let after = topic.split("call tool ").nth(1)?;
    let name: &str = after.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-').next()?;
    tools.iter().find(|tool| tool.name == name)
}

/// A value that fits the plain parts of a JSON schema; `words` fill its strings.
pub(crate) fn example(schema: &Value, words: &str, depth: usize) -> Value {
    if let Some(first) = schema.get("enum").and_then(|choices| choices.get(0)) {
        return first.clone();
    }
    if depth > 8 {
        return Value::Null;
    }
    let kind = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.first().and_then(Value::as_str),
        Some(kind) => kind.as_str(),
        None => None,
    };
    match kind {
        Some("string") => words.chars().take(40).collect::<String>().into(),
        Some("integer") => schema.get("minimum").cloned().unwrap_or_else(|| json!(1)),
        Some("number") => schema.get("minimum").cloned().unwrap_or_else(|| json!(1.5)),
        Some("boolean") => json!(true),
        Some("null") => Value::Null,
        Some("array") => {
            json!([example(schema.get("items").unwrap_or(&Value::Null), words, depth + 1)])
        }
        _ => {
            let properties = schema.get("properties").and_then(Value::as_object);
            let fields: Map<String, Value> = properties
                .into_iter()
                .flatten()
                .map(|(name, schema)| (name.clone(), example(schema, words, depth + 1)))
                .collect();
            Value::Object(fields)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weather() -> Vec<Tool> {
        let schema = json!({"type": "object", "properties": {
            "city": {"type": "string"}, "unit": {"enum": ["c", "f"]}, "days": {"type": "integer"}}});
        Tool::list(Some(&vec![
            json!({"type": "function", "function": {"name": "weather", "parameters": schema}}),
        ]))
    }

    #[test]
    fn a_tool_is_called_when_the_prompt_asks_or_the_choice_forces() {
        let tools = weather();
        let called = |choice: Option<Value>, topic: &str| {
            matches!(content(&tools, choice.as_ref(), topic), Content::ToolCall { .. })
        };
        assert!(called(None, "please call tool weather, now"));
        assert!(called(Some(json!("required")), "hi"));
        assert!(called(Some(json!({"type": "function", "function": {"name": "weather"}})), "hi"));
        assert!(!called(None, "hi"));
        assert!(!called(Some(json!("none")), "call tool weather"));
        assert!(!called(None, "call tool rockets"));
    }

    #[test]
    fn arguments_fit_the_schema() {
        let Content::ToolCall { arguments, .. } = content(&weather(), None, "call tool weather")
        else {
            panic!("a tool call was asked for");
        };
        assert_eq!(arguments, json!({"city": "call tool weather", "unit": "c", "days": 1}));
    }
}
