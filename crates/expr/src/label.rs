//! What the errors of a compiled expression name.

use std::sync::Arc;

use arrow_schema::DataType;

/// The part of the expression that an error names, and the type it computes in.
#[derive(Debug)]
pub(crate) struct Label {
    pub(crate) text: String,
    pub(crate) type_name: String,
}

/// The label of a map for its errors, and the type of its input.
#[derive(Debug)]
pub(crate) struct MapLabel {
    pub(crate) label: Arc<Label>,
    pub(crate) from: DataType,
}
