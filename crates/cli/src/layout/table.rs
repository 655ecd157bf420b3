//! A table that fits its terminal: names give way, numbers do not.

use std::fmt::Write as _;

use super::shortened;

/// Between two columns.
const GAP: usize = 2;
/// No column of names becomes narrower than this; the table is wider instead.
const NARROWEST: usize = 12;

/// A column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    title: &'static str,
    is_number: bool,
}

impl Column {
    /// Of names: to the left, and shortened where there is no room.
    pub(crate) const fn of_names(title: &'static str) -> Self {
        Self { title, is_number: false }
    }

    /// Of numbers: to the right, and always whole.
    pub(crate) const fn of_numbers(title: &'static str) -> Self {
        Self { title, is_number: true }
    }
}

/// The lines of a table in so many columns of a terminal, its head first.
pub(crate) fn table(columns: &[Column], rows: &[Vec<String>], room: usize) -> String {
    let head: Vec<String> = columns.iter().map(|column| column.title.to_owned()).collect();
    let lines = || [&head].into_iter().chain(rows);
    let widths = (0..columns.len()).map(|at| lines().map(|cells| cells[at].chars().count()).max().unwrap_or(0));
    let mut widths: Vec<usize> = widths.collect();
    while widths.iter().sum::<usize>() + GAP * columns.len().saturating_sub(1) > room {
        let shrinks = |at: &usize| !columns[*at].is_number && widths[*at] > NARROWEST.max(head[*at].chars().count());
        let Some(widest) = (0..columns.len()).filter(shrinks).max_by_key(|at| widths[*at]) else { break };
        widths[widest] -= 1;
    }
    let mut text = String::new();
    for cells in lines() {
        let mut line = String::new();
        for ((cell, column), width) in cells.iter().zip(columns).zip(&widths) {
            let cell = shortened(cell, *width);
            // Writing to a String cannot fail.
            let _ = if column.is_number { write!(line, "{cell:>width$}  ") } else { write!(line, "{cell:width$}  ") };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 3] = [Column::of_names("NAME"), Column::of_names("IMAGE"), Column::of_numbers("PODS")];

    fn rows() -> Vec<Vec<String>> {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        vec![row(["proxy", "registry.example/mesh/proxy", "1200"]), row(["log", "registry.example/log-agent", "7"])]
    }

    #[test]
    fn names_give_way_and_numbers_do_not() {
        assert_eq!(
            table(&COLUMNS, &rows(), 80),
            "NAME   IMAGE                        PODS\n\
             proxy  registry.example/mesh/proxy  1200\n\
             log    registry.example/log-agent      7\n"
        );
        assert_eq!(
            table(&COLUMNS, &rows(), 30),
            "NAME   IMAGE              PODS\n\
             proxy  registry…sh/proxy  1200\n\
             log    registry…og-agent     7\n"
        );
    }

    #[test]
    fn a_long_number_stays_whole() {
        let row = ["letter.com/long/name", "12345678901234"].map(str::to_owned).to_vec();
        let columns = [Column::of_names("NAME"), Column::of_numbers("BYTES")];
        assert_eq!(table(&columns, &[row], 20).lines().nth(1), Some("letter…/name  12345678901234"));
    }

    #[test]
    fn a_table_without_room_is_wider_than_the_room() {
        let text = table(&COLUMNS, &rows(), 10);
        assert_eq!(text.lines().map(|line| line.chars().count()).collect::<Vec<_>>(), [25, 25, 25]);
    }
}
