//! Functions with the attribute return errors where they would panic.

use std::panic::{AssertUnwindSafe, catch_unwind};

use penstock_border::guarded;

type PyResult<T> = Result<T, String>;

mod border {
    use super::*;

    pub(crate) fn guard<T>(call: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
        catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|_| Err("panicked".to_owned()))
    }
}

struct Number(i64);

#[guarded]
impl Number {
    const ZERO: i64 = 0;

    fn new(value: i64) -> Self {
        assert!(value >= Self::ZERO, "negative");
        Self(value)
    }

    fn part_of(&self, whole: i64) -> PyResult<i64> {
        if self.0 == 7 {
            return Err("seven".to_owned());
        }
        Ok(whole / self.0)
    }

    fn name(&self) -> &str {
        if self.0 > 3 {
            return "many";
        }
        ["none", "one", "two"][self.0 as usize]
    }

    fn check(&self) {
        assert_ne!(self.0, 2);
    }
}

/// Its documentation is kept.
#[guarded]
fn first<'a>(words: &'a [String], skip: &usize) -> PyResult<&'a str> {
    Ok(&words[*skip])
}

#[test]
fn answers_and_errors_come_back_as_they_are() {
    let number = Number::new(2).unwrap();
    assert_eq!(number.part_of(10), Ok(5));
    assert_eq!(Number(7).part_of(10), Err("seven".to_owned()));
    assert_eq!((number.name(), Number(9).name()), (Ok("two"), Ok("many")));
    assert_eq!(Number(1).check(), Ok(()));
    assert_eq!(first(&["a".to_owned(), "b".to_owned()], &1), Ok("b"));
}

#[test]
fn panics_come_back_as_errors() {
    let panicked = Some("panicked".to_owned());
    assert_eq!(Number::new(-1).err(), panicked);
    assert_eq!(Number(0).part_of(1).err(), panicked);
    assert_eq!(Number(3).name().err(), panicked);
    assert_eq!(Number(2).check().err(), panicked);
    assert_eq!(first(&[], &0).err(), panicked);
}
