//! Refusals: a code, a place, a message, and the way out.

use std::fmt;

/// A stretch of the expression, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// Where it begins.
    pub start: usize,
    /// Where it ends; not part of it.
    pub end: usize,
}

impl Span {
    /// The bytes from `start` up to `end`.
    pub const fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// From the beginning of `self` to the end of `other`.
    #[must_use]
    pub const fn to(self, other: Self) -> Self {
        Self::new(self.start, other.end)
    }

    /// The text it covers.
    pub fn of(self, source: &str) -> &str {
        source.get(self.start..self.end).unwrap_or_default()
    }
}

macro_rules! codes {
    ($($name:ident $code:literal $doc:literal,)*) => {
        /// Why an expression is refused. The text of a code never changes its meaning.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ErrorCode {
            $(#[doc = $doc] $name,)*
        }

        impl ErrorCode {
            /// Every code, in order.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The stable text of the code, such as `EX103`.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $code,)* }
            }

            /// What the code means, in one sentence.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$name => $doc,)* }
            }
        }
    };
}

codes! {
    Empty "EX101" "There is no expression.",
    TooLong "EX102" "The expression has too many bytes.",
    TooDeep "EX103" "The expression is nested too deeply.",
    TooManyParts "EX104" "The expression has too many numbers and operators.",
    TooManyPieces "EX105" "The expression bends too often.",
    UnexpectedCharacter "EX201" "A character has no meaning in expressions.",
    MalformedNumber "EX202" "A number is not written as one.",
    UnknownSuffix "EX203" "A number carries a suffix that is none of Kubernetes'.",
    NumberOutOfRange "EX204" "A number is too large or too precise to compute with.",
    ExpectedOperand "EX205" "A number, a variable or a parenthesis is missing.",
    ExpectedOperator "EX206" "Two operands stand side by side without an operator.",
    UnclosedParenthesis "EX207" "A parenthesis is never closed.",
    UnopenedParenthesis "EX208" "A parenthesis was never opened.",
    UnknownName "EX301" "A name is neither a variable nor a function.",
    OtherVariable "EX302" "The variable belongs to another resource.",
    OtherQuantity "EX303" "The quantity belongs to another resource.",
    ArgumentCount "EX304" "A function has too few arguments.",
    ProductOfAmounts "EX305" "Two amounts are multiplied.",
    DivisorNotNumber "EX306" "The divisor is an amount.",
    DivisionByZero "EX307" "The divisor is zero.",
    TooPrecise "EX308" "The numbers cannot be computed with exactly.",
    AlwaysNegative "EX309" "The result is negative whatever the pod looks like.",
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A refused expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}: {help}")]
pub struct Error {
    /// What kind of refusal it is.
    pub code: ErrorCode,
    /// The token or part it is about.
    pub span: Span,
    /// What is wrong, naming the token.
    pub message: String,
    /// The way out.
    pub help: String,
}

impl Error {
    pub(crate) fn new(code: ErrorCode, span: Span, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { code, span, message: message.into(), help: help.into() }
    }
}
