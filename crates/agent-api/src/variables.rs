//! `${SELF:NAME}` and `${POD:NAME}` in texts of a configuration.

use std::collections::BTreeMap;

/// What variables stand for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variables {
    /// `${SELF:NAME}`: the environment of the agent.
    pub of_agent: BTreeMap<String, String>,
    /// `${POD:NAME}`: what the first container of the pod has in its environment as a plain value.
    pub of_app: BTreeMap<String, String>,
}

/// A text with its variables replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Filled {
    pub(crate) text: String,
    /// Whether there was a variable.
    pub(crate) had_variables: bool,
}

/// What is wrong with a variable: from which byte of the text to which, the message and the way out.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct WrongVariable {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) message: String,
    pub(crate) help: String,
}

impl Variables {
    /// Whether a configuration uses `${POD:…}`, which only those can fill who know the pod.
    pub fn of_app_are_used(text: &str) -> bool {
        text.contains("${POD:")
    }

    fn get(&self, name: &str) -> Option<&String> {
        let (of, name) = name.split_once(':')?;
        if of == "SELF" { self.of_agent.get(name) } else { self.of_app.get(name) }
    }
}

/// Replaces variables; without values they stay as they are, and only the way they are written is checked.
pub(crate) fn fill(text: &str, variables: Option<&Variables>) -> Result<Filled, WrongVariable> {
    let mut filled = Filled { text: String::with_capacity(text.len()), had_variables: false };
    let mut at = 0;
    while let Some(found) = text[at..].find('$') {
        let start = at + found;
        filled.text.push_str(&text[at..start]);
        let rest = &text[start..];
        if rest.starts_with("$${") {
            // Where nothing is filled in, the escape too stays for whoever does.
            filled.text.push_str(if variables.is_some() { "${" } else { "$${" });
            at = start + 3;
        } else if rest.starts_with("${") {
            let wrong = |length: usize, message: String, help: &str| {
                let help = format!("{help}; a text that is no variable is written $${{…}}");
                WrongVariable { start, end: start + length, message, help }
            };
            let Some(length) = rest.find('}').map(|end| end + 1) else {
                return Err(wrong(2, "a variable has no end".to_owned(), "write ${SELF:NAME} or ${POD:NAME}"));
            };
            let (whole, name) = (&rest[..length], &rest[2..length - 1]);
            if !is_variable(name) {
                let message = format!("{whole} is no variable");
                return Err(wrong(length, message, "write ${SELF:NAME} or ${POD:NAME}"));
            }
            match variables.map(|variables| variables.get(name)) {
                None => filled.text.push_str(whole),
                Some(Some(value)) => filled.text.push_str(value),
                Some(None) if name.starts_with("SELF") => {
                    let help = "set it in the environment of the agent's container";
                    return Err(wrong(length, format!("{whole} is not set"), help));
                }
                Some(None) => {
                    let help = "give it as a plain value in the environment of the pod's first container";
                    return Err(wrong(length, format!("{whole} is not set"), help));
                }
            }
            filled.had_variables = true;
            at = start + length;
        } else {
            filled.text.push('$');
            at = start + 1;
        }
    }
    filled.text.push_str(&text[at..]);
    Ok(filled)
}

fn is_variable(name: &str) -> bool {
    let Some(("SELF" | "POD", name)) = name.split_once(':') else { return false };
    let is_good = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-' | '.');
    !name.is_empty() && !name.starts_with(|first: char| first.is_ascii_digit()) && name.chars().all(is_good)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn variables() -> Variables {
        let map = |pairs: &[(&str, &str)]| pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Variables { of_agent: map(&[("POD_NAME", "a-0"), ("N", "7")]), of_app: map(&[("N", "8"), ("E", "${SELF:N}")]) }
    }

    fn filled(text: &str) -> (String, bool) {
        let Filled { text, had_variables } = fill(text, Some(&variables())).unwrap();
        (text, had_variables)
    }

    #[test]
    fn every_variable_of_a_text_is_replaced_once() {
        assert_eq!(filled("x-${SELF:N}/${POD:N}${SELF:N}"), ("x-7/87".to_owned(), true));
        // What a value says is not read again.
        assert_eq!(filled("${POD:E}"), ("${SELF:N}".to_owned(), true));
        assert_eq!(filled("$5 $$ ${SELF:POD_NAME}$"), ("$5 $$ a-0$".to_owned(), true));
        assert_eq!(filled("$${SELF:N} $$${SELF:N}"), ("${SELF:N} $${SELF:N}".to_owned(), false));
    }

    #[test]
    fn without_values_the_text_stays_and_the_writing_is_checked() {
        let open = fill("a ${SELF:N} $${x}", None).unwrap();
        assert_eq!(open, Filled { text: "a ${SELF:N} $${x}".to_owned(), had_variables: true });
        assert_eq!(fill("${SELF:}", None).unwrap_err().message, "${SELF:} is no variable");
    }

    #[test]
    fn what_is_no_variable_or_has_no_value_is_told() {
        let told = |text: &str| {
            let wrong = fill(text, Some(&variables())).unwrap_err();
            (wrong.start, wrong.end, wrong.message)
        };
        assert_eq!(told("ab ${SELF:NO}."), (3, 13, "${SELF:NO} is not set".to_owned()));
        assert_eq!(told("${POD:POD_NAME}"), (0, 15, "${POD:POD_NAME} is not set".to_owned()));
        let help = |text: &str| fill(text, Some(&variables())).unwrap_err().help;
        assert!(help("${SELF:NO}").starts_with("set it in the environment of the agent's container"));
        assert!(
            help("${POD:NO}").starts_with("give it as a plain value in the environment of the pod's first container")
        );
        assert_eq!(told("${HOME}"), (0, 7, "${HOME} is no variable".to_owned()));
        assert_eq!(told("é${SELF:1}"), (2, 11, "${SELF:1} is no variable".to_owned()));
        assert_eq!(told("${SELF:N"), (0, 2, "a variable has no end".to_owned()));
    }

    proptest! {
        #[test]
        fn an_escaped_text_says_itself(text in "[a$}{:é]{0,20}") {
            let escaped = text.replace("${", "$${");
            // `$` before an escape is a `$` and an escape.
            prop_assert_eq!(fill(&escaped, Some(&Variables::default())).unwrap().text, text);
        }

        #[test]
        fn filling_never_panics(text in "\\PC{0,40}|[$S{ELF:POD}]{0,30}") {
            let _ = fill(&text, None);
            let _ = fill(&text, Some(&variables()));
        }
    }
}
