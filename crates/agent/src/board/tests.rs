use super::*;

fn labels(pairs: &[(&str, &str)]) -> Marks {
    let labels = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Marks { labels, ..Marks::default() }
}

fn shown_labels(board: &Board) -> Vec<(String, Option<String>)> {
    let text = |content| match content {
        Some(Content::Text(text)) => Some(text),
        _ => None,
    };
    board.wanted().into_iter().map(|(place, content)| (place.to_string(), text(content))).collect()
}

fn pair(key: &str, value: Option<&str>) -> (String, Option<String>) {
    (format!("label {key}"), value.map(str::to_owned))
}

#[test]
fn what_is_not_posted_again_is_taken_away() {
    let board = Board::default();
    board.post("x", labels(&[("a", "1"), ("b", "2")]));
    board.post("y/0", labels(&[("b", "3")]));
    assert_eq!(shown_labels(&board), [pair("a", Some("1")), pair("b", Some("3"))]);
    board.post("x", labels(&[("c", "4")]));
    assert_eq!(shown_labels(&board), [pair("a", None), pair("b", Some("3")), pair("c", Some("4"))]);
    board.withdraw("x");
    assert_eq!(shown_labels(&board), [pair("a", None), pair("b", Some("3")), pair("c", None)]);
}

#[test]
fn parts_of_a_plugin_are_withdrawn_and_no_others() {
    let board = Board::default();
    for source in ["y", "y/0", "y/1", "y2", "z"] {
        board.post(source, labels(&[(source, "1")]));
    }
    board.withdraw_all_but("y", &BTreeSet::from(["y/1".to_owned()]));
    let left: Vec<_> =
        ["y", "y/0", "y/1", "y2", "z"].into_iter().filter(|source| board.posted(source).is_some()).collect();
    assert_eq!(left, ["y/1", "y2", "z"]);
}

#[test]
fn long_messages_are_cut_between_characters() {
    let board = Board::default();
    let condition = Condition { status: ConditionStatus::True, reason: String::new(), message: "ü".repeat(1_000) };
    let long = Condition { message: format!("a{}", condition.message), ..condition.clone() };
    let conditions = BTreeMap::from([("A".to_owned(), condition), ("B".to_owned(), long)]);
    board.post("x", Marks { conditions, ..Marks::default() });
    let posted = board.posted("x").unwrap();
    assert_eq!(posted.conditions["A"].message, "ü".repeat(512));
    assert_eq!(posted.conditions["B"].message, format!("a{}", "ü".repeat(511)));
}

#[test]
fn the_same_again_wakes_nobody() {
    let board = Board::default();
    let (mut seen, at_once) = (0, Some(Instant::now()));
    board.post("x", labels(&[("a", "1")]));
    assert_eq!(board.wait(&mut seen, None), Woken::Changed);
    board.post("x", labels(&[("a", "1")]));
    assert_eq!(board.wait(&mut seen, at_once), Woken::Due);
    board.withdraw("y");
    board.set_reassert(None);
    assert_eq!(board.wait(&mut seen, at_once), Woken::Due);
    board.close();
    assert_eq!(board.wait(&mut seen, at_once), Woken::Closed);
}
