//! Cutting an expression into tokens.

use crate::literal::{Literal, Meaning};
use crate::{Error, ErrorCode, Field, Ratio, Span};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Plus,
    Minus,
    Star,
    Slash,
    Open,
    Close,
    Comma,
    Number(Ratio),
    Quantity(Ratio),
    Name,
    End,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) span: Span,
}

pub(crate) struct Lexer<'a> {
    source: &'a str,
    field: Field,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(source: &'a str, field: Field) -> Self {
        Self { source, field, at: 0 }
    }

    pub(crate) fn next(&mut self) -> Result<Token, Error> {
        self.skip(|c| c.is_ascii_whitespace());
        let start = self.at;
        let Some(first) = self.peek() else {
            return Ok(self.token(Kind::End, start));
        };
        let simple = match first {
            '+' => Kind::Plus,
            '-' => Kind::Minus,
            '*' => Kind::Star,
            '/' => Kind::Slash,
            '(' => Kind::Open,
            ')' => Kind::Close,
            ',' => Kind::Comma,
            '0'..='9' | '.' => return self.number(),
            c if c.is_ascii_alphabetic() => {
                self.skip(is_word);
                return Ok(self.token(Kind::Name, start));
            }
            other => return Err(self.unexpected(other)),
        };
        self.at += 1;
        Ok(self.token(simple, start))
    }

    fn number(&mut self) -> Result<Token, Error> {
        let start = self.at;
        self.skip(|c| c.is_ascii_digit());
        let mut places = 0;
        if self.peek() == Some('.') {
            self.at += 1;
            let point = self.at;
            self.skip(|c| c.is_ascii_digit());
            places = self.at - point;
        }
        let digits = &self.source[start..self.at];
        if digits == "." {
            return Err(Error::new(
                ErrorCode::MalformedNumber,
                Span::new(start, self.at),
                "`.` is not a number",
                "write a digit before or after the point",
            ));
        }
        let exponent = self.exponent();
        let percent = self.peek() == Some('%');
        if percent {
            self.at += 1;
        }
        let tail_start = self.at;
        // Whatever touches a number belongs to it, so that `200MB` is one wrong token and
        // never a right one followed by something else.
        self.skip(|c| is_word(c) || c.is_alphanumeric() || matches!(c, '.' | '%'));
        let literal = Literal {
            digits,
            places,
            exponent,
            percent,
            tail: &self.source[tail_start..self.at],
            span: Span::new(start, self.at),
        };
        let kind = match literal.read(self.source, self.field)? {
            Meaning::Number(value) => Kind::Number(value),
            Meaning::Quantity(value) => Kind::Quantity(value),
        };
        Ok(self.token(kind, start))
    }

    /// `e` counts as an exponent only with a digit behind it: `5E` is five exabytes.
    fn exponent(&mut self) -> &'a str {
        let rest = &self.source[self.at..];
        let Some(after) = rest.strip_prefix(['e', 'E']) else {
            return "";
        };
        let unsigned = after.strip_prefix(['+', '-']).unwrap_or(after);
        let digits = unsigned.len() - unsigned.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if digits == 0 {
            return "";
        }
        let length = after.len() - unsigned.len() + digits;
        self.at += 1 + length;
        &after[..length]
    }

    fn unexpected(&self, character: char) -> Error {
        let span = Span::new(self.at, self.at + character.len_utf8());
        let help = match character {
            '%' => "put the percent sign directly after a number: `50%`",
            '[' | ']' | '{' | '}' => "use parentheses `(` and `)`",
            '^' => "there are no powers: use `*`",
            '×' => "multiply with `*`",
            '÷' | ':' => "divide with `/`",
            '−' | '–' => "subtract with `-`",
            _ => "use numbers, quantities, `cpu` or `memory`, `+ - * /`, `max`, `min` and parentheses",
        };
        Error::new(ErrorCode::UnexpectedCharacter, span, format!("unexpected {character:?}"), help)
    }

    fn token(&self, kind: Kind, start: usize) -> Token {
        Token { kind, span: Span::new(start, self.at) }
    }

    fn peek(&self) -> Option<char> {
        self.source[self.at..].chars().next()
    }

    fn skip(&mut self, wanted: impl Fn(char) -> bool) {
        let rest = &self.source[self.at..];
        self.at += rest.find(|c| !wanted(c)).unwrap_or(rest.len());
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}
