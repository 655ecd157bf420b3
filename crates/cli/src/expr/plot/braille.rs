//! A canvas of dots, two across and four down in each character.

/// The first braille character: no dots.
const BLANK: u32 = 0x2800;
/// The bit of each dot, by row and column.
const BITS: [[u32; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];

pub(super) struct Canvas {
    columns: usize,
    cells: Vec<u32>,
}

impl Canvas {
    pub(super) fn new(columns: usize, rows: usize) -> Self {
        Self { columns, cells: vec![0; columns * rows] }
    }

    /// Dots across.
    pub(super) fn width(&self) -> usize {
        self.columns * 2
    }

    /// Dots down.
    pub(super) fn height(&self) -> usize {
        self.cells.len() / self.columns * 4
    }

    /// Sets a dot; `y` counts from the bottom.
    pub(super) fn set(&mut self, x: usize, y: usize) {
        let Some(from_top) = self.height().checked_sub(y + 1) else { return };
        if let Some(cell) = self.cells.get_mut(from_top / 4 * self.columns + x / 2) {
            *cell |= BITS[from_top % 4][x % 2];
        }
    }

    /// The rows from the top, without trailing blanks.
    pub(super) fn rows(&self) -> impl Iterator<Item = String> {
        self.cells.chunks(self.columns).map(|cells| {
            let row: String = cells
                .iter()
                .map(|cell| if *cell == 0 { ' ' } else { char::from_u32(BLANK + cell).unwrap_or(' ') })
                .collect();
            row.trim_end().to_owned()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_are_where_they_were_put() {
        let mut canvas = Canvas::new(2, 1);
        assert_eq!((canvas.width(), canvas.height()), (4, 4));
        for (x, y) in [(0, 0), (1, 1), (2, 2), (3, 3)] {
            canvas.set(x, y);
        }
        assert_eq!(canvas.rows().collect::<Vec<_>>(), ["⡠⠊"]);
    }

    #[test]
    fn dots_outside_are_left_out() {
        let mut canvas = Canvas::new(1, 1);
        canvas.set(0, 4);
        canvas.set(9, 0);
        assert_eq!(canvas.rows().collect::<Vec<_>>(), [""]);
    }
}
