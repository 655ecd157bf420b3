//! The tables of every key of the agent's configuration, from the table its reader uses.

use std::fmt::Write as _;

use pillion_agent_api::keys::{CONFIG, HOT_UPDATE, HTTP_PROBE, Holds, Key, Need, POD_PROBE};

/// One section for each object, the whole first, then the plugins.
pub(super) fn tables() -> String {
    let mut tables = Tables { text: String::new(), done: Vec::new() };
    tables.object("The configuration", CONFIG);
    for (plugin, table) in [("http_probe", HTTP_PROBE), ("pod_probe", POD_PROBE), ("hot_update", HOT_UPDATE)] {
        tables.object(&format!("`config` of `{plugin}`"), table);
    }
    tables.text
}

struct Tables {
    text: String,
    /// What was described, by where its keys are: `storageConfig` stands in two places.
    done: Vec<*const Key>,
}

impl Tables {
    fn object(&mut self, title: &str, table: &'static [Key]) {
        if self.done.contains(&table.as_ptr()) {
            return;
        }
        self.done.push(table.as_ptr());
        // Writing to a String cannot fail.
        let _ = write!(self.text, "\n### {title}\n\n| Key | Holds | Default | Meaning |\n|---|---|---|---|\n");
        for key in table.iter().filter(|key| !matches!(key.holds, Holds::Refused(_))) {
            let spellings: Vec<_> = [&key.name].into_iter().chain(key.also).map(|name| format!("`{name}`")).collect();
            let (names, holds, default) = (spellings.join(", "), holds(key), default(key));
            let _ = writeln!(self.text, "| {names} | {holds} | {default} | {} |", key.meaning);
        }
        for key in table {
            if let Holds::Refused(why) = key.holds {
                let _ = write!(self.text, "\n`{}` is refused: {why}.\n", key.name);
            }
        }
        for key in table {
            if let Some((below, suffix)) = below(key) {
                self.object(&format!("`{}{suffix}`", key.name), below);
            }
        }
    }
}

fn below(key: &Key) -> Option<(&'static [Key], &'static str)> {
    match key.holds {
        Holds::Object(table) => Some((table, "")),
        Holds::List(table) | Holds::ListOrTexts(table) => Some((table, "[]")),
        _ => None,
    }
}

fn holds(key: &Key) -> String {
    let link = |words: &str| {
        let (_, suffix) = below(key).expect("it has keys below it");
        let title = format!("`{}{suffix}`", key.name);
        let letters = title.chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
        format!("[{words}](#{})", letters.collect::<String>().to_lowercase().replace(' ', "-"))
    };
    match key.holds {
        Holds::Text => "text".to_owned(),
        Holds::FixedText => "text without variables".to_owned(),
        Holds::Number(least, most) => format!("number from {least} to {most}"),
        Holds::Switch => "`true` or `false`".to_owned(),
        Holds::OneOf(choices) => choices.iter().map(|choice| format!("`{choice}`")).collect::<Vec<_>>().join(" or "),
        Holds::Amount => "amount, such as `100m` or `128Mi`".to_owned(),
        Holds::Texts => "texts by key".to_owned(),
        Holds::ListOfTexts => "list of texts".to_owned(),
        Holds::Object(_) => link("object"),
        Holds::List(_) => link("list of objects"),
        Holds::ListOrTexts(_) => link("list of objects, or of texts for their first key"),
        Holds::Plugin => "object".to_owned(),
        Holds::BootOrder => "number".to_owned(),
        Holds::Refused(_) => String::new(),
    }
}

fn default(key: &Key) -> String {
    match key.need {
        Need::Required => "**required**".to_owned(),
        Need::Optional => String::new(),
        Need::Default("") => "empty".to_owned(),
        Need::Default(text) => format!("`{text}`"),
    }
}
