//! The changes to a form.

use std::ops::Range;

use super::Splice;
use crate::openai::form::Form;

/// What makes a form name `model`: the value of its `model` part replaced where it is another, or a
/// part put first where it has none. Every other part keeps its bytes, order and headers.
pub fn form_model(form: &Form, model: &str) -> Vec<Splice> {
    match &form.model {
        Some(parts) if parts.name == model => Vec::new(),
        Some(parts) => {
            let replaced = |span: &Range<usize>| Splice::new(span.clone(), model.to_owned());
            parts.spans.iter().map(replaced).collect()
        }
        None => {
            let part = format!(
                "--{}\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\n{model}\r\n",
                form.boundary.as_str()
            );
            vec![Splice::new(form.opens_at..form.opens_at, part)]
        }
    }
}
