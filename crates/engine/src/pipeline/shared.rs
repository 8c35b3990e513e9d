//! A stream that several queries read: which plans fit it, and where its columns go.

use arrow_schema::{DataType, SchemaRef};
use penstock_memory::batch::decoded;
use penstock_memory::{ColumnKind, Physical, SlotId};
use penstock_types::{PlanError, TypeName};

use super::segment::{Segment, kind};
use crate::plan::StreamStep;

/// What queries have to know of a source that they share.
pub(crate) struct SharedStream {
    declared: StreamStep,
    /// The columns of its log.
    schema: SchemaRef,
    /// Whether times stand in its log once more, as 64 bits.
    has_wide_time: bool,
}

impl SharedStream {
    pub(super) fn new(declared: &StreamStep, schema: &SchemaRef, has_wide_time: bool) -> Self {
        Self { declared: declared.clone(), schema: schema.clone(), has_wide_time }
    }

    /// Why a plan with such a stream, whose rows have that schema, cannot read this one, if it cannot.
    pub(crate) fn check(&self, declared: &StreamStep, schema: &SchemaRef) -> Result<(), PlanError> {
        for field in schema.fields() {
            let Some((_, there)) = self.schema.fields().find(field.name()) else {
                let names = self.schema.fields().iter().map(|field| field.name().as_str());
                return Err(PlanError::unknown_column(field.name(), names));
            };
            let types = (decoded(field.data_type()), decoded(there.data_type()));
            if types.0 != types.1 || (there.is_nullable() && !field.is_nullable()) {
                let what = |data_type: &DataType, nullable: bool| {
                    format!("{}{}", TypeName(data_type), if nullable { "" } else { " not null" })
                };
                return Err(PlanError::mismatch(
                    format!("column \"{}\"", field.name()),
                    format!(
                        "the plan declares {}, the shared source {}",
                        what(types.0, field.is_nullable()),
                        what(types.1, there.is_nullable())
                    ),
                ));
            }
        }
        // Lateness is decided where rows come in, once for all.
        let time = |stream: &StreamStep| {
            (
                stream.time.clone(),
                stream.delay,
                stream.arrival,
                stream.watermark.clone(),
                stream.idle_after_ns,
            )
        };
        if declared.time.is_some() && time(declared) != time(&self.declared) {
            let say = |stream: &StreamStep| match &stream.time {
                Some(time) => {
                    let marks = stream
                        .watermark
                        .as_ref()
                        .map_or(String::new(), |from| format!(", watermarks of {from:?}"));
                    format!("time=\"{time}\" with a delay of {}{marks}", stream.delay)
                }
                None => "no time column".to_owned(),
            };
            return Err(PlanError::Invalid(format!(
                "the plan has {}, the shared source {}; lateness is decided by the source: declare both alike, or build the plan on source.stream",
                say(declared),
                say(&self.declared)
            )));
        }
        Ok(())
    }
}

/// The slots that the columns of the stream go to. Those that the plan does not declare get slots that nobody reads.
pub(super) fn inlet_slots(
    (declared, schema): (&StreamStep, &SchemaRef),
    stream: &SharedStream,
    time_slot: Option<SlotId>,
    segment: &mut Segment,
) -> Result<Vec<SlotId>, PlanError> {
    stream.check(declared, schema)?;
    let mut slots: Vec<SlotId> = Vec::new();
    for field in stream.schema.fields() {
        slots.push(match schema.fields().find(field.name()) {
            Some((column, _)) => column,
            None => segment.add_slot(kind(decoded(field.data_type()), field.is_nullable())),
        });
    }
    if stream.has_wide_time {
        let wide = ColumnKind { physical: Physical::I64, nullable: false };
        slots.push(time_slot.unwrap_or_else(|| segment.add_slot(wide)));
    }
    Ok(slots)
}
