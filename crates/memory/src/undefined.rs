//! Values under a null. Arrow leaves them undefined: bytes that are no text, and views that point anywhere.
//!
//! The engine reads columns without looking at their nulls first, so no undefined value gets past [`defined`].

use arrow_array::builder::GenericStringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryViewArray, GenericBinaryArray, OffsetSizeTrait, StringViewArray};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType};
use std::sync::Arc;

/// Copies the column with empty values under its nulls. Fails if it is not valid even then.
pub(crate) fn defined(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    Ok(match array.data_type() {
        DataType::Utf8 => texts::<i32>(array)?,
        DataType::LargeUtf8 => texts::<i64>(array)?,
        DataType::Utf8View => {
            let given = array.as_string_view();
            let views = views(given.views(), given.nulls());
            Arc::new(StringViewArray::try_new(views, given.data_buffers().to_vec(), given.nulls().cloned())?)
        }
        DataType::BinaryView => {
            let given = array.as_binary_view();
            let views = views(given.views(), given.nulls());
            Arc::new(BinaryViewArray::try_new(views, given.data_buffers().to_vec(), given.nulls().cloned())?)
        }
        DataType::Dictionary(..) => {
            let given = array.as_any_dictionary();
            given.with_values(defined(given.values())?)
        }
        _ => Arc::clone(array),
    })
}

/// Replaces the views under a null by empty ones.
fn views(given: &[u128], nulls: Option<&NullBuffer>) -> ScalarBuffer<u128> {
    let is_null = |row| nulls.is_some_and(|nulls| nulls.is_null(row));
    given.iter().enumerate().map(|(row, &view)| if is_null(row) { 0 } else { view }).collect()
}

fn texts<O: OffsetSizeTrait>(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let data = array.to_data().into_builder().data_type(GenericBinaryArray::<O>::DATA_TYPE);
    let bytes = GenericBinaryArray::<O>::from(data.build()?);
    let mut texts = GenericStringBuilder::<O>::with_capacity(bytes.len(), 0);
    for value in &bytes {
        let text = value.map(std::str::from_utf8).transpose();
        texts.append_option(text.map_err(|error| ArrowError::InvalidArgumentError(error.to_string()))?);
    }
    Ok(Arc::new(texts.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::types::Int8Type;
    use arrow_array::{DictionaryArray, Int8Array, LargeStringArray, StringArray};
    use arrow_buffer::Buffer;
    use arrow_data::ArrayData;

    fn broken(data_type: DataType, buffers: [Buffer; 2], valid: [bool; 2]) -> ArrayRef {
        let nulls = NullBuffer::from(valid.to_vec());
        let builder = ArrayData::builder(data_type).len(2).nulls(Some(nulls));
        // SAFETY: the data is invalid on purpose: the test shows how the functions above treat it, and they validate
        // before they read.
        let data = unsafe { builder.buffers(buffers.to_vec()).build_unchecked() };
        arrow_array::make_array(data)
    }

    fn offsets(data_type: DataType, valid: [bool; 2]) -> ArrayRef {
        let bounds = if data_type == DataType::Utf8 {
            Buffer::from_slice_ref([0_i32, 2, 4])
        } else {
            Buffer::from_slice_ref([0_i64, 2, 4])
        };
        broken(data_type, [bounds, Buffer::from_slice_ref(b"ok\xff\xfe")], valid)
    }

    #[test]
    fn bytes_under_a_null_may_be_anything() {
        let text = defined(&offsets(DataType::Utf8, [true, false])).unwrap();
        assert_eq!(text.as_string::<i32>(), &StringArray::from(vec![Some("ok"), None]));
        let text = defined(&offsets(DataType::LargeUtf8, [true, false])).unwrap();
        assert_eq!(text.as_string::<i64>(), &LargeStringArray::from(vec![Some("ok"), None]));
        for kind in [DataType::Utf8, DataType::LargeUtf8] {
            assert!(defined(&offsets(kind, [false, true])).is_err());
        }
    }

    #[test]
    fn so_may_views_and_the_values_of_a_dictionary() {
        let long = (7_u128 << 64) | 40; // 40 bytes of a buffer that is not there
        let views = Buffer::from_slice_ref([0_u128, long]);
        let view = |valid| broken(DataType::Utf8View, [views.clone(), Buffer::from_slice_ref(b"x")], valid);
        let text = defined(&view([true, false])).unwrap();
        assert_eq!(text.as_string_view(), &StringViewArray::from(vec![Some(""), None]));
        assert!(defined(&view([true, true])).is_err());
        let values = offsets(DataType::Utf8, [true, false]);
        let dictionary = DictionaryArray::<Int8Type>::new(Int8Array::from(vec![0, 1]), values);
        let text = defined(&(Arc::new(dictionary) as ArrayRef)).unwrap();
        assert_eq!(text.as_any_dictionary().values().null_count(), 1);
        text.to_data().validate_full().unwrap();
    }
}
