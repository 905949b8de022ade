//! Answers yes or no about numbered things, each asked for once.

/// Things whose answers are in one word.
const PER_WORD: usize = 32;

/// The answers that are known: two bits for each thing, whether it was asked about, and whether the
/// answer is yes.
#[derive(Debug, Default)]
pub struct KeptAnswers(Vec<u64>);

impl KeptAnswers {
    /// The answer about the thing of a number: the one that is known, or else that of `ask`. The
    /// memory grows with the largest number, by two bits each.
    pub fn answer(&mut self, number: usize, ask: impl FnOnce() -> bool) -> bool {
        let (word, bit) = (number / PER_WORD, number % PER_WORD * 2);
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        match self.0[word] >> bit & 3 {
            0 => {
                let yes = ask();
                self.0[word] |= (1 + u64::from(yes)) << bit;
                yes
            }
            known => known == 2,
        }
    }

    /// Forgets all answers.
    pub fn forget(&mut self) {
        self.0.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thing_is_asked_about_once_until_the_answers_are_forgotten() {
        let (mut kept, mut asked) = (KeptAnswers::default(), Vec::new());
        let mut answer = |kept: &mut KeptAnswers, number: usize| {
            kept.answer(number, || {
                asked.push(number);
                number % 2 == 1
            })
        };
        for number in [0, 31, 32, 95, 31, 0] {
            assert_eq!(answer(&mut kept, number), number % 2 == 1);
        }
        kept.forget();
        assert!(answer(&mut kept, 31));
        assert_eq!(asked, [0, 31, 32, 95, 31]);
    }
}
