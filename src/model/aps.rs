//! The absolute priority that an administrator gives a pending job (bmod -aps).

use std::fmt;

/// Largest number of bmod -aps, and its negative the smallest.
pub const MAX_APS_VALUE: f32 = 1e9;

/// A priority that bmod -aps has set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ApsSetting {
    /// `system=value`: the priority itself, before any that is calculated.
    System(ApsNumber),
    /// `admin=value`: is added to the calculated priority.
    Admin(ApsNumber),
}

/// A finite number other than 0, by its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ApsNumber(u32);

/// Why a text is no value of bmod -aps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApsFault {
    /// The text is not `system=number` or `admin=number`.
    Form,
    /// The number is 0.
    Zero,
    /// The number is too large or too small.
    Range,
}

impl ApsNumber {
    pub fn get(self) -> f32 {
        f32::from_bits(self.0)
    }
}

impl ApsSetting {
    /// Reads `system=number` or `admin=number`; a `;` behind it is what histories write.
    pub fn parse(text: &str) -> Result<ApsSetting, ApsFault> {
        let text = text.trim();
        let text = text.strip_suffix(';').unwrap_or(text);
        let (word, number) = text.split_once('=').ok_or(ApsFault::Form)?;
        let number: f32 = number.trim().parse().map_err(|_| ApsFault::Form)?;
        if number.is_nan() {
            return Err(ApsFault::Form);
        }
        let system = match word.trim().to_ascii_lowercase().as_str() {
            "system" => true,
            "admin" => false,
            _ => return Err(ApsFault::Form),
        };
        if number == 0.0 {
            return Err(ApsFault::Zero);
        }
        if number.abs() > MAX_APS_VALUE || (system && number < 0.0) {
            return Err(ApsFault::Range);
        }
        let number = ApsNumber(number.to_bits());
        Ok(if system { ApsSetting::System(number) } else { ApsSetting::Admin(number) })
    }
}

impl fmt::Display for ApsSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ApsSetting::System(number) => write!(f, "system={}", number.get()),
            ApsSetting::Admin(number) => write!(f, "admin={}", number.get()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aps_settings_are_read_as_they_are_written_and_wrong_ones_told_apart() {
        for text in ["system=10", "admin=-2.5", "admin=1000000000"] {
            assert_eq!(ApsSetting::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(ApsSetting::parse(" Admin = 10.00; ").unwrap().to_string(), "admin=10");
        let wrong = [
            ("admin=0", ApsFault::Zero),
            ("system=0.0", ApsFault::Zero),
            ("system=-1", ApsFault::Range),
            ("admin=2e9", ApsFault::Range),
            ("admin=inf", ApsFault::Range),
            ("admin=nan", ApsFault::Form),
            ("admin", ApsFault::Form),
            ("user=1", ApsFault::Form),
            ("", ApsFault::Form),
        ];
        for (text, fault) in wrong {
            assert_eq!(ApsSetting::parse(text), Err(fault), "{text}");
        }
    }
}
