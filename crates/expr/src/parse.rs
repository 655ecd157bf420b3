//! From tokens to nodes: a Pratt parser.

use pillion_quantity::Resource;

use crate::lex::{Kind, Lexer, Token};
use crate::literal::short;
use crate::syntax::{Index, Node, Operation};
use crate::{Error, ErrorCode, Field, MAX_DEPTH, MAX_NODES, Ratio, Span};

const SUM: u8 = 1;
const PRODUCT: u8 = 2;
const SIGN: u8 = 3;

/// The nodes of the expression; the last is its root.
pub(crate) fn parse(source: &str, field: Field) -> Result<Vec<Node>, Error> {
    let mut lexer = Lexer::new(source, field);
    let next = lexer.next()?;
    if next.kind == Kind::End {
        return Err(Error::new(
            ErrorCode::Empty,
            next.span,
            "the expression is empty",
            "write one such as `max(cpu*50%, 50m)`, or leave the field out",
        ));
    }
    let mut parser = Parser { source, field, lexer, next, nodes: Vec::with_capacity(32) };
    parser.expression(SUM, 0)?;
    match parser.next.kind {
        Kind::End => Ok(parser.nodes),
        _ => Err(parser.expected_operator()),
    }
}

struct Parser<'a> {
    source: &'a str,
    field: Field,
    lexer: Lexer<'a>,
    next: Token,
    nodes: Vec<Node>,
}

impl Parser<'_> {
    /// Reads an expression whose operators bind at least as tightly as `binding`.
    fn expression(&mut self, binding: u8, depth: usize) -> Result<Index, Error> {
        let mut left = self.operand(depth)?;
        loop {
            let (operation, strength) = match self.next.kind {
                Kind::Plus => (Operation::Add, SUM),
                Kind::Minus => (Operation::Subtract, SUM),
                Kind::Star => (Operation::Multiply, PRODUCT),
                Kind::Slash => (Operation::Divide, PRODUCT),
                _ => return Ok(left),
            };
            if strength < binding {
                return Ok(left);
            }
            self.advance()?;
            let right = self.expression(strength + 1, depth)?;
            let span = self.outer_span(left).to(self.outer_span(right));
            left = self.push(operation, span, vec![left, right])?;
        }
    }

    fn operand(&mut self, depth: usize) -> Result<Index, Error> {
        let token = self.next;
        if depth > MAX_DEPTH {
            return Err(Error::new(
                ErrorCode::TooDeep,
                token.span,
                format!("the expression is nested more than {MAX_DEPTH} deep here"),
                "remove parentheses, or split the expression",
            ));
        }
        match token.kind {
            Kind::Number(value) => self.literal(Operation::Number, value),
            Kind::Quantity(value) => self.literal(Operation::Quantity, value),
            Kind::Name => self.name(depth),
            Kind::Minus => {
                self.advance()?;
                let inner = self.expression(SIGN, depth + 1)?;
                let span = token.span.to(self.outer_span(inner));
                self.push(Operation::Negate, span, vec![inner])
            }
            Kind::Open => {
                self.advance()?;
                let inner = self.expression(SUM, depth + 1)?;
                let close = self.close(token.span)?;
                // The node stays the same; only what it covers grows.
                self.nodes[inner].span = token.span.to(close);
                Ok(inner)
            }
            _ => Err(self.expected_operand()),
        }
    }

    fn literal(&mut self, operation: Operation, value: Ratio) -> Result<Index, Error> {
        let index = self.push(operation, self.next.span, Vec::new())?;
        self.nodes[index].literal = value;
        self.advance()?;
        Ok(index)
    }

    fn name(&mut self, depth: usize) -> Result<Index, Error> {
        let name = self.next.span;
        let text = name.of(self.source);
        self.advance()?;
        let called = self.next.kind == Kind::Open;
        if let Some(resource) = ["cpu", "memory"]
            .into_iter()
            .find(|variable| text.eq_ignore_ascii_case(variable))
            .and_then(|variable| variable.parse::<Resource>().ok())
        {
            if called {
                return Err(self.expected_operator());
            }
            return self.variable(resource, name);
        }
        let operation = if text.eq_ignore_ascii_case("max") {
            Operation::Max
        } else if text.eq_ignore_ascii_case("min") {
            Operation::Min
        } else {
            return Err(self.unknown_name(name, called));
        };
        if !called {
            return Err(Error::new(
                ErrorCode::ArgumentCount,
                name,
                format!("`{text}` has no arguments"),
                format!("write `{text}(x, y)` with two or more arguments"),
            ));
        }
        self.call(operation, name, depth)
    }

    fn variable(&mut self, resource: Resource, span: Span) -> Result<Index, Error> {
        if resource != self.field.resource {
            return Err(Error::new(
                ErrorCode::OtherVariable,
                span,
                format!("`{}` cannot be used in an expression for {}", span.of(self.source), self.field),
                format!("the variable here is `{}`", self.field.resource),
            ));
        }
        self.push(Operation::Variable, span, Vec::new())
    }

    fn call(&mut self, operation: Operation, name: Span, depth: usize) -> Result<Index, Error> {
        let open = self.next.span;
        self.advance()?;
        let mut arguments = Vec::with_capacity(2);
        if self.next.kind != Kind::Close {
            arguments.push(self.expression(SUM, depth + 1)?);
            while self.next.kind == Kind::Comma {
                self.advance()?;
                arguments.push(self.expression(SUM, depth + 1)?);
            }
        }
        let span = name.to(self.close(open)?);
        if arguments.len() < 2 {
            return Err(Error::new(
                ErrorCode::ArgumentCount,
                span,
                format!("`{}` has {} of at least 2 arguments", operation.symbol(), arguments.len()),
                format!("write `{}(x, y)`", operation.symbol()),
            ));
        }
        self.push(operation, span, arguments)
    }

    fn close(&mut self, open: Span) -> Result<Span, Error> {
        let token = self.next;
        match token.kind {
            Kind::Close => {
                self.advance()?;
                Ok(token.span)
            }
            Kind::End => Err(Error::new(ErrorCode::UnclosedParenthesis, open, "this `(` is never closed", "add a `)`")),
            _ => Err(self.expected_operator()),
        }
    }

    fn push(&mut self, operation: Operation, span: Span, children: Vec<Index>) -> Result<Index, Error> {
        if self.nodes.len() >= MAX_NODES {
            return Err(Error::new(
                ErrorCode::TooManyParts,
                span,
                format!("the expression has more than {MAX_NODES} numbers, variables and operators"),
                "write a shorter expression",
            ));
        }
        self.nodes.push(Node { operation, span, literal: Ratio::ZERO, children });
        Ok(self.nodes.len() - 1)
    }

    fn outer_span(&self, index: Index) -> Span {
        self.nodes[index].span
    }

    fn advance(&mut self) -> Result<(), Error> {
        self.next = self.lexer.next()?;
        Ok(())
    }

    fn expected_operand(&self) -> Error {
        let found = self.next.span.of(self.source);
        let (message, help) = match self.next.kind {
            Kind::End => {
                ("the expression ends where an operand is missing".to_owned(), "add a number, a quantity or a variable")
            }
            Kind::Plus => ("`+` has nothing on its left".to_owned(), "numbers take no `+` sign: leave it out"),
            _ => (
                format!("`{found}` stands where an operand is missing"),
                "add a number, a quantity or a variable before it",
            ),
        };
        Error::new(ErrorCode::ExpectedOperand, self.next.span, message, help)
    }

    fn expected_operator(&self) -> Error {
        let token = self.next;
        let found = short(token.span.of(self.source));
        match token.kind {
            Kind::Close => Error::new(
                ErrorCode::UnopenedParenthesis,
                token.span,
                "this `)` was never opened",
                "remove it, or add a `(` before",
            ),
            Kind::Comma => Error::new(
                ErrorCode::ExpectedOperator,
                token.span,
                "unexpected `,`",
                "commas separate the arguments of `max` and `min`; a decimal point is `.`",
            ),
            _ => Error::new(
                ErrorCode::ExpectedOperator,
                token.span,
                format!("an operator is missing before `{found}`"),
                "write `*` to multiply",
            ),
        }
    }

    fn unknown_name(&self, name: Span, called: bool) -> Error {
        let text = short(name.of(self.source));
        let (message, help) = if called {
            (format!("there is no function `{text}`"), "the functions are `max` and `min`".to_owned())
        } else {
            (format!("there is no variable `{text}`"), format!("the variable here is `{}`", self.field.resource))
        };
        Error::new(ErrorCode::UnknownName, name, message, help)
    }
}
