//! Tables of -o fields over typed rows (bhosts, bqueues).

use super::columns::Fields;

/// A field: its name, other names, default width, and what appends its value (nothing where
/// there is none).
pub struct FieldOf<T> {
    pub name: &'static str,
    pub alias: &'static [&'static str],
    pub width: usize,
    pub value: fn(&mut String, &T),
}

/// A command's fields, in the order of `all`.
pub struct FieldsOf<T: 'static>(pub &'static [FieldOf<T>]);

impl<T> FieldsOf<T> {
    /// Appends the value of field number `field`.
    pub fn value(&self, out: &mut String, field: usize, of: &T) {
        if let Some(f) = self.0.get(field) {
            (f.value)(out, of);
        }
    }
}

impl<T> Fields for FieldsOf<T> {
    fn count(&self) -> usize {
        self.0.len()
    }
    fn name(&self, field: usize) -> &str {
        self.0.get(field).map_or("", |f| f.name)
    }
    fn aliases(&self, field: usize) -> &[&str] {
        self.0.get(field).map_or(&[], |f| f.alias)
    }
    fn width(&self, field: usize) -> usize {
        self.0.get(field).map_or(1, |f| f.width)
    }
}
