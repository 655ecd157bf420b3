//! Which characters of a file became which characters of a text.
//!
//! A scalar can be written plain, in quotes of two kinds, or as a block of two kinds. Which one it is need not be known: the
//! way of reading that gives the text is the right one.

/// A character of the text, and where it was written.
type Written = (char, usize);

/// The bytes of `raw` that became the bytes from `start` to `end` of `text`; `None` where that cannot be told.
///
/// `indent` is the column at which `raw` begins, counted from zero.
pub(super) fn part(raw: &str, text: &str, indent: usize, start: usize, end: usize) -> Option<(usize, usize)> {
    let readings: [fn(&str, usize) -> Vec<Written>; 5] = [plain, single_quoted, double_quoted, literal, folded];
    let written = readings.iter().map(|read| read(raw, indent)).find(|written| says(written, text))?;
    let from = written_at(raw, &written, start);
    Some((from, written_at(raw, &written, end).max(from)))
}

/// Line ends at the end of a block are kept or not, which makes no difference here.
fn says(written: &[Written], text: &str) -> bool {
    let read: String = written.iter().map(|(character, _)| character).collect();
    read.trim_end_matches('\n') == text.trim_end_matches('\n')
}

/// Where a byte of the text was written; past the end, the place after what was written last.
fn written_at(raw: &str, written: &[Written], byte: usize) -> usize {
    let mut length = 0;
    for (character, at) in written {
        if length >= byte {
            return *at;
        }
        length += character.len_utf8();
    }
    // Of a quoted text that is the closing quote.
    raw.len() - usize::from(raw.starts_with(['\'', '"']))
}

fn plain(raw: &str, _: usize) -> Vec<Written> {
    join_lines(raw.char_indices().map(|(at, character)| ((character, at), false)))
}

fn single_quoted(raw: &str, _: usize) -> Vec<Written> {
    let Some(inner) = inside(raw, '\'') else { return Vec::new() };
    let mut written = Vec::new();
    let mut characters = inner.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        written.push(((character, at + 1), false));
        if character == '\'' {
            characters.next_if(|(_, next)| *next == '\'');
        }
    }
    join_lines(written)
}

fn double_quoted(raw: &str, _: usize) -> Vec<Written> {
    let Some(inner) = inside(raw, '"') else { return Vec::new() };
    let mut written = Vec::new();
    let mut at = 0;
    while let Some(character) = inner[at..].chars().next() {
        if character == '\\' {
            let (character, length) = escaped(&inner[at + 1..]);
            written.extend(character.map(|character| ((character, at + 1), true)));
            at += 1 + length;
        } else {
            written.push(((character, at + 1), false));
            at += character.len_utf8();
        }
    }
    join_lines(written)
}

/// What stands for a character after a backslash, and how many bytes that takes.
fn escaped(rest: &str) -> (Option<char>, usize) {
    let hexadecimal = |digits: usize| {
        let code = rest.get(1..=digits).and_then(|digits| u32::from_str_radix(digits, 16).ok());
        (code.and_then(char::from_u32), 1 + digits)
    };
    let Some(first) = rest.chars().next() else { return (None, 0) };
    match first {
        'x' => hexadecimal(2),
        'u' => hexadecimal(4),
        'U' => hexadecimal(8),
        // The line goes on below.
        '\n' | '\r' => (None, rest.len() - rest.trim_start().len()),
        'n' => (Some('\n'), 1),
        't' => (Some('\t'), 1),
        'r' => (Some('\r'), 1),
        '0' => (Some('\0'), 1),
        other => (Some(other), other.len_utf8()),
    }
}

fn inside(raw: &str, quote: char) -> Option<&str> {
    raw.strip_prefix(quote)?.strip_suffix(quote)
}

/// Outside of blocks the end of a line is a space, and each empty line after it a line end. Blanks around it do not count.
/// What was escaped, which each character says of itself, is none of these.
fn join_lines(characters: impl IntoIterator<Item = (Written, bool)>) -> Vec<Written> {
    let mut written: Vec<(Written, bool)> = Vec::new();
    let is = |((character, _), escaped): &(Written, bool), wanted: fn(char) -> bool| !escaped && wanted(*character);
    let mut characters = characters.into_iter().filter(|it| !is(it, |it| it == '\r')).peekable();
    while let Some(character) = characters.next() {
        if !is(&character, |it| it == '\n') {
            written.push(character);
            continue;
        }
        while written.pop_if(|last| is(last, is_blank)).is_some() {}
        let mut ends = Vec::new();
        while let Some(next) = characters.next_if(|next| is(next, |it| is_blank(it) || it == '\n')) {
            ends.extend(is(&next, |it| it == '\n').then_some(next));
        }
        if ends.is_empty() {
            let ((_, at), _) = character;
            ends.push(((' ', at), true));
        }
        written.append(&mut ends);
    }
    written.into_iter().map(|(character, _)| character).collect()
}

fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t')
}

/// The lines of a block without their indentation; the first has lost it already.
fn block_lines(raw: &str, indent: usize) -> Vec<Vec<Written>> {
    let mut lines = Vec::new();
    let mut start = 0;
    for line in raw.split_inclusive('\n') {
        let lost = if start == 0 { 0 } else { line.bytes().take(indent).take_while(|byte| *byte == b' ').count() };
        let text = line[lost..].char_indices().map(|(at, character)| (character, start + lost + at));
        lines.push(text.filter(|(character, _)| *character != '\r').collect());
        start += line.len();
    }
    lines
}

fn literal(raw: &str, indent: usize) -> Vec<Written> {
    block_lines(raw, indent).concat()
}

/// A line end between two lines is a space, unless a line is empty or further in.
fn folded(raw: &str, indent: usize) -> Vec<Written> {
    let lines = block_lines(raw, indent);
    let mut written: Vec<Written> = Vec::new();
    let is_text = |line: &Vec<Written>| line.first().is_some_and(|(first, _)| !is_blank(*first) && *first != '\n');
    for (number, line) in lines.iter().enumerate() {
        let next = lines.get(number + 1);
        let folds = is_text(line) && next.is_some_and(is_text);
        let swallowed = is_text(line) && next.is_some_and(|next| next.first().is_some_and(|(first, _)| *first == '\n'));
        for (character, at) in line {
            match character {
                '\n' if folds => written.push((' ', *at)),
                '\n' if swallowed => {}
                _ => written.push((*character, *at)),
            }
        }
    }
    written
}
