//! Batches against their declared schema: refusals and their texts, interchangeable types, and the loaded rows.

use crate::arbitrary;

use std::sync::Arc;

use arbitrary::{Value, any_type, array, cells, read, seeds, sliced, types};
use arrow_array::{
    ArrayRef, BinaryArray, DictionaryArray, Int16Array, Int32Array, Int64Array, RecordBatch, StringArray,
    TimestampMillisecondArray,
};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use penstock_memory::batch::{LoadRows, decoded};
use penstock_memory::{Batch, BatchError, ColumnBuf, Physical, SourceColumns};
use proptest::prelude::*;

fn source(fields: Vec<Field>) -> SourceColumns {
    let read = vec![true; fields.len()];
    SourceColumns::new(Arc::new(Schema::new(fields)), read)
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter(columns).unwrap()
}

fn refusal(columns: &SourceColumns, batch: &RecordBatch) -> BatchError {
    columns.open(batch).err().expect("the batch does not fit")
}

fn load(
    batch: &Batch,
    column: usize,
    data_type: &DataType,
    start: usize,
    len: usize,
    rows: LoadRows<'_>,
) -> ColumnBuf {
    let mut into = ColumnBuf::new(Physical::of(data_type).unwrap());
    batch.load(column, start, len, rows, &mut into);
    into
}

/// Returns every row of a column, as the engine reads it.
fn opened(declared: &DataType, array: ArrayRef) -> Vec<Option<Value>> {
    let batch = batch(vec![("x", array)]);
    let opened = source(vec![Field::new("x", declared.clone(), true)]).open(&batch).unwrap();
    read(load(&opened, 0, declared, 0, opened.rows(), LoadRows::All).as_column())
}

#[test]
fn a_missing_column_is_named_beside_those_there_are() {
    let columns =
        source(vec![Field::new("a", DataType::Int64, true), Field::new("b", DataType::Int64, true)]);
    let error = refusal(
        &columns,
        &batch(vec![("a", Arc::new(Int64Array::from(vec![1]))), ("c", Arc::new(Int64Array::from(vec![1])))]),
    );
    assert_eq!(error.column, "b");
    assert_eq!(error.to_string(), "column \"b\" of the declared schema is missing; the batch has: a, c");
}

#[test]
fn an_unread_column_is_checked_as_well() {
    let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, true)]));
    let columns = SourceColumns::new(schema, vec![false]);
    assert!(!columns.is_read(0));
    assert_eq!(columns.row_width(), 0);
    let wrong = batch(vec![("a", Arc::new(Int32Array::from(vec![1])))]);
    assert_eq!(refusal(&columns, &wrong).column, "a");
}

#[test]
fn another_type_is_refused_with_both_names() {
    let time = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let columns = source(vec![Field::new("t", time, true)]);
    let given: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![1]));
    let error = refusal(&columns, &batch(vec![("t", given)]));
    assert_eq!(error.column, "t");
    assert!(error.reason.contains("timestamp[us, tz=UTC]"), "{error}");
    assert!(error.reason.contains("timestamp[ms]"), "{error}");
}

#[test]
fn only_encodings_of_one_type_are_interchangeable() {
    let family = |data_type: &DataType| match decoded(data_type) {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => DataType::Binary,
        other => other.clone(),
    };
    let rows: Vec<_> = (0..20).map(|seed: u64| (seed % 6 != 5).then_some(seed)).collect();
    let (mut fitting, mut refused) = (0, 0);
    for declared in types() {
        let columns = source(vec![Field::new("x", declared.clone(), true)]);
        for given in types() {
            // Seeds are read by type, and types of one family read them alike.
            let batch = batch(vec![("x", array(&given, &cells(&given, &rows)))]);
            match columns.open(&batch) {
                Ok(opened) => {
                    assert_eq!(family(&declared), family(&given), "{given:?} served as {declared:?}");
                    let loaded = load(&opened, 0, &declared, 0, rows.len(), LoadRows::All);
                    assert_eq!(
                        read(loaded.as_column()),
                        cells(&declared, &rows),
                        "{given:?} as {declared:?}"
                    );
                    fitting += 1;
                }
                Err(error) => {
                    assert_ne!(family(&declared), family(&given), "{given:?} for {declared:?}: {error}");
                    refused += 1;
                }
            }
        }
    }
    assert!(fitting > types().len() && refused > fitting, "{fitting} fit, {refused} were refused");
}

#[test]
fn nulls_are_refused_where_none_were_declared() {
    for data_type in types() {
        let columns = source(vec![Field::new("x", data_type.clone(), false)]);
        let with = cells(&data_type, &[Some(5), None, Some(6), None]);
        let given = batch(vec![("x", array(&data_type, &with))]);
        let error = refusal(&columns, &given);
        assert_eq!(error.column, "x");
        assert!(error.reason.contains("not null") && error.reason.contains("2 nulls"), "{error}");
        let without = given.slice(0, 1);
        assert!(columns.open(&without).is_ok(), "{data_type:?}: the nulls lie outside the slice");
    }
}

#[test]
fn order_and_extra_columns_do_not_matter() {
    let columns = source(vec![Field::new("a", DataType::Int64, true), Field::new("b", DataType::Utf8, true)]);
    let given = batch(vec![
        ("extra", Arc::new(Int32Array::from(vec![7]))),
        ("b", Arc::new(StringArray::from(vec!["text"]))),
        ("a", Arc::new(Int64Array::from(vec![3]))),
    ]);
    let opened = columns.open(&given).unwrap();
    assert_eq!(opened.rows(), 1);
    let a = load(&opened, 0, &DataType::Int64, 0, 1, LoadRows::All);
    let b = load(&opened, 1, &DataType::Utf8, 0, 1, LoadRows::All);
    assert_eq!(read(a.as_column()), [Some(Value::Int(3))]);
    assert_eq!(read(b.as_column()), [Some(Value::Bytes(b"text".to_vec()))]);
    assert_eq!(columns.row_width(), 8 + 16);
}

#[test]
fn nulls_among_the_values_of_a_dictionary_are_nulls() {
    let indices = || Int16Array::from(vec![Some(0), Some(1), None, Some(0)]);
    let text: ArrayRef = Arc::new(StringArray::from(vec![None, Some("a")]));
    let binary: ArrayRef = Arc::new(BinaryArray::from(vec![None, Some(b"a".as_slice())]));
    for values in [text, binary] {
        let declared = values.data_type().clone();
        let read = opened(&declared, Arc::new(DictionaryArray::new(indices(), values)));
        assert_eq!(read, [None, Some(Value::Bytes(b"a".to_vec())), None, None], "{declared:?}");
    }
}

#[test]
fn a_dictionary_without_values_is_all_null() {
    let empty: ArrayRef = Arc::new(StringArray::from(Vec::<&str>::new()));
    let indices = Int16Array::from(vec![None::<i16>, None]);
    assert_eq!(opened(&DataType::Utf8, Arc::new(DictionaryArray::new(indices, empty))), [None, None]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_part_of_any_column_is_what_it_was(
        data_type in any_type(),
        rows in seeds(1..150),
        before in 0_usize..70,
        (from, to) in (0.0..1.0, 0.0..1.0),
        picks in prop::collection::vec(any::<bool>(), 150),
    ) {
        let array = sliced(&data_type, &rows, before, 3);
        let columns = source(vec![Field::new("x", data_type.clone(), true)]);
        let opened = columns.open(&batch(vec![("x", array)])).unwrap();
        let place = |share: f64| (share * rows.len() as f64) as usize;
        let (start, end) = (place(from).min(place(to)), place(from).max(place(to)) + 1);
        let len = end - start;
        let expected = cells(&data_type, &rows[start..end]);

        let first_null = expected.iter().position(Option::is_none);
        prop_assert_eq!(opened.first_null(0, start, len), first_null);
        prop_assert_eq!(opened.has_nulls(0, start, len), first_null.is_some());

        let all = load(&opened, 0, &data_type, start, len, LoadRows::All);
        prop_assert_eq!(&read(all.as_column()), &expected);

        let kept: Vec<u32> = (0..len as u32).filter(|&row| picks[row as usize]).collect();
        let some = load(&opened, 0, &data_type, start, len, LoadRows::Selected(&kept));
        let expected_some: Vec<_> = kept.iter().map(|&row| expected[row as usize].clone()).collect();
        prop_assert_eq!(read(some.as_column()), expected_some);

        let fixed = !matches!(data_type, DataType::Boolean | DataType::Dictionary(..))
            && Physical::of(&data_type) != Some(Physical::View);
        prop_assert_eq!(opened.borrow(0, start, len).is_some(), fixed);
        if let Some(values) = opened.borrow(0, start, len) {
            let mut mask = ColumnBuf::new(values.physical());
            opened.load_mask(0, start, len, &mut mask);
            prop_assert_eq!(mask.mask().is_some(), first_null.is_some(), "a mask only where there are nulls");
            prop_assert_eq!(read(penstock_memory::Column { values, valid: mask.mask() }), expected);
        }
    }
}
