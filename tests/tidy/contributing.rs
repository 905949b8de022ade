//! Examples in CONTRIBUTING.md are code that the tests build, and policies keep to its rules.

use super::root;

/// The lines of the text that are set in by four blanks, without these.
fn code(text: &str) -> String {
    let line = |line: &str| match line.is_empty() {
        true => Some("\n".to_string()),
        false => line.strip_prefix("    ").map(|line| format!("{line}\n")),
    };
    text.lines().filter_map(line).collect()
}

#[test]
fn policy_of_contributing_is_the_file_that_the_tests_build() {
    const MOST_LINES: usize = 60;
    let read = |file: &str| std::fs::read_to_string(root().join(file)).unwrap();
    let example = read("src/batch/sched/policy/example.rs");
    assert!(example.lines().count() < MOST_LINES, "the example has {MOST_LINES} lines or more");
    let text = code(&read("CONTRIBUTING.md"));
    assert!(text.contains(&example), "CONTRIBUTING.md has other code than the file:\n{example}");
    assert!(read("src/batch/sched/policy/mod.rs").contains("mod example;"));
}

/// The methods of `Policy` that a file writes, by their questions.
fn written(text: &str) -> Vec<&'static str> {
    let questions =
        [("Queue", "queue"), ("User", "user"), ("Host", "host"), ("Blocked", "blocked")];
    let writes = |method: &str| text.contains(&format!("\n    fn {method}(&self, "));
    questions.iter().filter(|(_, method)| writes(method)).map(|(question, _)| *question).collect()
}

#[test]
fn policies_answer_the_questions_that_they_have_methods_for() {
    let (mut wrong, mut policies) = (Vec::new(), 0);
    let mut files = Vec::new();
    super::walk(&root().join("src/batch/sched/policy"), "rs", &mut files);
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let Some((_, of_policy)) = text.split_once("\nimpl Policy for ") else { continue };
        let (of_policy, _) = of_policy.split_once("\n}\n").unwrap_or((of_policy, ""));
        let list = of_policy.split("&[").nth(1).and_then(|list| list.split(']').next());
        let named: Vec<&str> = list
            .into_iter()
            .flat_map(|list| list.split(','))
            .filter_map(|word| word.trim().strip_prefix("Question::"))
            .collect();
        policies += 1;
        if named != written(of_policy) {
            wrong.push(format!("{}: {named:?}, not {:?}", file.display(), written(of_policy)));
        }
    }
    assert!(wrong.is_empty(), "policies name other questions than they answer: {wrong:#?}");
    assert!(policies > 15, "{policies} policies found");
}
