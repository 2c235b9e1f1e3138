//! The files made of the table.

use std::fmt::Write;

use super::{Change, Parameters, Range, kinds::show};

/// The content of `config/mapping.yaml`.
pub fn as_yaml() -> String {
    let mut text = String::from(
        "# All parameters of the mapping node with their defaults, made by: mapping_node --parameters-yaml\n\
         /**:\n  ros__parameters:\n",
    );
    for row in Parameters::table() {
        let range = match row.range {
            Range::Any => String::new(),
            range => format!(" [{range}]"),
        };
        let change = match row.change {
            Change::Start => "",
            Change::Live => " (may change while the node runs)",
        };
        let _ = writeln!(
            text,
            "    # {}{range}{change}\n    {}: {}",
            row.description,
            row.name,
            show(&row.default)
        );
    }
    text
}

/// The content of `docs/parameters.md`.
pub fn as_markdown() -> String {
    let mut text = String::from(
        "# Parameters of the mapping node\n\n\
         Made by `mapping_node --parameters-markdown`. Those marked *live* may change while the node runs, with\n`ros2 param set`; the others are read at the start, and a change is refused.\n\n\
         | name | type | default | range | meaning |\n|---|---|---|---|---|\n",
    );
    for row in Parameters::table() {
        let range = row.range.to_string().replace('|', "\\|");
        let live = match row.change {
            Change::Start => "",
            Change::Live => " *live*",
        };
        let _ = writeln!(
            text,
            "| `{}`{live} | {} | `{}` | {range} | {} |",
            row.name,
            row.type_name,
            show(&row.default),
            row.description
        );
    }
    text
}
