//! The key groups of rows outside of an engine: whoever spreads rows over machines puts them where the engine would.

use arrow_array::RecordBatch;
use penstock_memory::{Column, Physical, Run, SourceColumns};
use penstock_operators::keys::groups::groups;
use penstock_types::PlanError;

/// The key group of each row of a batch, by these of its columns.
///
/// # Errors
/// A column that is not there, or whose type no key has.
pub fn key_groups(batch: &RecordBatch, columns: &[String]) -> Result<Vec<u8>, PlanError> {
    let schema = batch.schema();
    let find = |name: &String| {
        let found = schema.fields().find(name);
        let (column, field) =
            found.ok_or_else(|| PlanError::Invalid(format!("there is no column \"{name}\"")))?;
        let physical = Physical::of(field.data_type());
        physical.ok_or_else(|| PlanError::Invalid(format!("the column \"{name}\" cannot be a key")))?;
        Ok(column)
    };
    let places = columns.iter().map(find).collect::<Result<Vec<usize>, PlanError>>()?;
    let read = (0..schema.fields().len()).map(|column| places.contains(&column)).collect();
    let source = SourceColumns::new(schema.clone(), read);
    let mut run = Run::new();
    for field in schema.fields() {
        // Columns that nobody reads may be of any type.
        run.add_slot(Physical::of(field.data_type()).unwrap_or(Physical::U8));
    }
    run.open(&source, batch).map_err(|error| PlanError::Invalid(error.to_string()))?;
    let mut of_rows = Vec::with_capacity(batch.num_rows());
    if batch.num_rows() > 0 {
        run.begin(&source, 0, batch.num_rows());
        run.ready(&places);
        let keys: Vec<Column<'_>> = places.iter().map(|&place| run.column(place)).collect();
        let types: Vec<_> = places.iter().map(|&place| schema.field(place).data_type().clone()).collect();
        groups(&keys, &types, batch.num_rows(), &mut of_rows);
    }
    Ok(of_rows)
}
