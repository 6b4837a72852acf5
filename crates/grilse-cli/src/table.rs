//! Tables for people.

use comfy_table::{CellAlignment, Table, presets};

/// A table with a heading and without lines; the columns named are aligned to the right.
pub(crate) fn plain<const N: usize>(heading: [&str; N], right: &[usize]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(heading);
    for (at, column) in table.column_iter_mut().enumerate() {
        // The left edge of a table is that of the text around it.
        column.set_padding((if at == 0 { 0 } else { 1 }, 1));
        if right.contains(&at) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// Appends a table to `text`, and an empty line.
pub(crate) fn push(text: &mut String, table: &Table) {
    for line in table.lines() {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text.push('\n');
}
