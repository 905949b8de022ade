//! Why a request was refused.

use serde::{Deserialize, Serialize};

/// Why a request was refused: an lsberrno and the words that go with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    pub code: i32,
    /// The subject of the text (`nosuch` in `nosuch: No such queue`); empty: none.
    pub about: String,
    /// Words beyond the standard text of the code; empty: the standard text.
    pub text: String,
    /// Seconds after which the same may be taken; 0: no use to ask again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub again: u64,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl Refusal {
    pub fn new(code: i32) -> Self {
        Refusal { code, about: String::new(), text: String::new(), again: 0 }
    }
    pub fn about(code: i32, about: impl Into<String>) -> Self {
        Refusal { code, about: about.into(), text: String::new(), again: 0 }
    }
    pub fn text(code: i32, text: impl Into<String>) -> Self {
        Refusal { code, about: String::new(), text: text.into(), again: 0 }
    }
    /// `about: words`, without a final full stop.
    pub fn words(&self) -> String {
        let text = if self.text.is_empty() {
            crate::model::reason::err_text(self.code)
        } else {
            &self.text
        };
        if self.about.is_empty() { text.to_string() } else { format!("{}: {text}", self.about) }
    }
}
