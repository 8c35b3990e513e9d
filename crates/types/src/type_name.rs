//! Arrow types by the names of pyarrow.
//!
//! One spelling serves messages, `explain()`, the JSON form of a plan and schemas given as a mapping; `parse_type`
//! reads back everything that `TypeName` writes for a supported type.

use std::fmt;

use arrow_schema::{DataType, Field, TimeUnit};

use crate::suggest::closest;

/// Displays an Arrow type.
pub struct TypeName<'a>(pub &'a DataType);

fn unit_name(unit: &TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Second => "s",
        TimeUnit::Millisecond => "ms",
        TimeUnit::Microsecond => "us",
        TimeUnit::Nanosecond => "ns",
    }
}

const PLAIN: [(&str, DataType); 24] = [
    ("bool", DataType::Boolean),
    ("int8", DataType::Int8),
    ("int16", DataType::Int16),
    ("int32", DataType::Int32),
    ("int64", DataType::Int64),
    ("uint8", DataType::UInt8),
    ("uint16", DataType::UInt16),
    ("uint32", DataType::UInt32),
    ("uint64", DataType::UInt64),
    ("float16", DataType::Float16),
    ("float32", DataType::Float32),
    ("float64", DataType::Float64),
    ("date32", DataType::Date32),
    ("date64", DataType::Date64),
    ("string", DataType::Utf8),
    ("large_string", DataType::LargeUtf8),
    ("string_view", DataType::Utf8View),
    ("binary", DataType::Binary),
    ("large_binary", DataType::LargeBinary),
    ("binary_view", DataType::BinaryView),
    ("null", DataType::Null),
    ("time32[s]", DataType::Time32(TimeUnit::Second)),
    ("time32[ms]", DataType::Time32(TimeUnit::Millisecond)),
    ("time64[us]", DataType::Time64(TimeUnit::Microsecond)),
];

impl fmt::Display for TypeName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((name, _)) = PLAIN.iter().find(|(_, data_type)| data_type == self.0) {
            return f.write_str(name);
        }
        match self.0 {
            DataType::Timestamp(unit, None) => write!(f, "timestamp[{}]", unit_name(unit)),
            DataType::Timestamp(unit, Some(zone)) => write!(f, "timestamp[{}, tz={zone}]", unit_name(unit)),
            DataType::Duration(unit) => write!(f, "duration[{}]", unit_name(unit)),
            DataType::Time64(unit) => write!(f, "time64[{}]", unit_name(unit)),
            DataType::Decimal128(precision, scale) => write!(f, "decimal128({precision}, {scale})"),
            DataType::Decimal256(precision, scale) => write!(f, "decimal256({precision}, {scale})"),
            DataType::Dictionary(indices, values) => {
                write!(f, "dictionary<values={}, indices={}>", TypeName(values), TypeName(indices))
            }
            DataType::FixedSizeBinary(width) => write!(f, "fixed_size_binary[{width}]"),
            DataType::List(item) => write!(f, "list<{}>", TypeName(item.data_type())),
            DataType::LargeList(item) => write!(f, "large_list<{}>", TypeName(item.data_type())),
            DataType::FixedSizeList(item, size) => {
                write!(f, "fixed_size_list<{}>[{size}]", TypeName(item.data_type()))
            }
            DataType::Struct(fields) => {
                let names: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
                write!(f, "struct<{}>", names.join(", "))
            }
            other => write!(f, "{}", other.to_string().to_lowercase()),
        }
    }
}

/// Formats a column as in a list of columns: `price: decimal128(10, 2) not null`.
pub fn describe_field(field: &Field) -> String {
    let not_null = if field.is_nullable() { "" } else { " not null" };
    format!("{}: {}{not_null}", field.name(), TypeName(field.data_type()))
}

fn parse_unit(text: &str) -> Option<TimeUnit> {
    Some(match text.trim() {
        "s" => TimeUnit::Second,
        "ms" => TimeUnit::Millisecond,
        "us" => TimeUnit::Microsecond,
        "ns" => TimeUnit::Nanosecond,
        _ => return None,
    })
}

fn inside<'a>(text: &'a str, open: &str, close: char) -> Option<&'a str> {
    text.strip_prefix(open)?.strip_suffix(close)
}

/// Type names worth suggesting.
pub const COMMON_TYPES: [&str; 25] = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float32",
    "float64",
    "string",
    "binary",
    "date32",
    "date64",
    "timestamp[s]",
    "timestamp[ms]",
    "timestamp[us]",
    "timestamp[ns]",
    "duration[s]",
    "duration[ms]",
    "duration[us]",
    "duration[ns]",
    "decimal128(10, 2)",
    "time64[us]",
];

/// Type names of other systems, with their equivalents here.
const FOREIGN_NAMES: [(&str, &str); 29] = [
    ("int", "int64"),
    ("integer", "int64"),
    ("long", "int64"),
    ("bigint", "int64"),
    ("i8", "int8"),
    ("i16", "int16"),
    ("i32", "int32"),
    ("i64", "int64"),
    ("u8", "uint8"),
    ("u16", "uint16"),
    ("u32", "uint32"),
    ("u64", "uint64"),
    ("uint", "uint64"),
    ("f32", "float32"),
    ("f64", "float64"),
    ("real", "float32"),
    ("number", "float64"),
    ("numeric", "decimal128(10, 2)"),
    ("decimal", "decimal128(10, 2)"),
    ("text", "string"),
    ("varchar", "string"),
    ("object", "string"),
    ("bytes", "binary"),
    ("date", "date32"),
    ("datetime", "timestamp[us]"),
    ("timestamp", "timestamp[us]"),
    ("time", "time64[us]"),
    ("timedelta", "duration[us]"),
    ("duration", "duration[us]"),
];

/// Returns a suggestion for `name`, which is no type: the end of an error message.
pub fn suggest_type(name: &str) -> String {
    let lower = name.trim().to_lowercase();
    let foreign = FOREIGN_NAMES.iter().find(|(other, _)| *other == lower).map(|(_, ours)| *ours);
    match foreign.or_else(|| closest(name, COMMON_TYPES)) {
        Some(near) => format!(" (did you mean \"{near}\"?)"),
        None => format!("; some types are: {}", COMMON_TYPES.join(", ")),
    }
}

/// Parses a type name; returns `None` when no type has that name.
pub fn parse_type(text: &str) -> Option<DataType> {
    let text = text.trim();
    if let Some((_, data_type)) = PLAIN.iter().find(|(name, _)| *name == text) {
        return Some(data_type.clone());
    }
    match text {
        "boolean" => return Some(DataType::Boolean),
        "float" => return Some(DataType::Float32),
        "double" => return Some(DataType::Float64),
        "utf8" | "str" => return Some(DataType::Utf8),
        "large_utf8" => return Some(DataType::LargeUtf8),
        "time64[ns]" => return Some(DataType::Time64(TimeUnit::Nanosecond)),
        _ => {}
    }
    if let Some(body) = inside(text, "timestamp[", ']') {
        let (unit, zone) = match body.split_once(',') {
            Some((unit, zone)) => (unit, Some(zone.trim().strip_prefix("tz=")?.into())),
            None => (body, None),
        };
        return Some(DataType::Timestamp(parse_unit(unit)?, zone));
    }
    if let Some(body) = inside(text, "duration[", ']') {
        return Some(DataType::Duration(parse_unit(body)?));
    }
    if let Some(body) = inside(text, "decimal128(", ')') {
        let (precision, scale) = body.split_once(',')?;
        let (precision, scale): (u8, i8) = (precision.trim().parse().ok()?, scale.trim().parse().ok()?);
        let valid = (1..=38).contains(&precision) && i16::from(scale).unsigned_abs() <= u16::from(precision);
        return valid.then_some(DataType::Decimal128(precision, scale));
    }
    if let Some(body) = inside(text, "dictionary<", '>') {
        let (values, indices) = body.strip_prefix("values=")?.rsplit_once(", indices=")?;
        // A dictionary of dictionaries does not exist in Arrow, and hostile text must not recurse.
        let flat = |text: &str| if text.trim().starts_with("dictionary") { None } else { parse_type(text) };
        let indices = flat(indices).filter(DataType::is_dictionary_key_type)?;
        let values = flat(values)?;
        return Some(DataType::Dictionary(Box::new(indices), Box::new(values)));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back() {
        let mut types: Vec<DataType> = PLAIN.iter().map(|(_, data_type)| data_type.clone()).collect();
        for unit in [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond] {
            types.push(DataType::Timestamp(unit, None));
            types.push(DataType::Timestamp(unit, Some("Europe/Berlin".into())));
            types.push(DataType::Timestamp(unit, Some("+02:00".into())));
            types.push(DataType::Duration(unit));
        }
        types.push(DataType::Time64(TimeUnit::Nanosecond));
        types.push(DataType::Decimal128(38, 10));
        types.push(DataType::Decimal128(5, -2));
        types.push(DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)));
        types.push(DataType::Dictionary(
            Box::new(DataType::UInt8),
            Box::new(DataType::Timestamp(TimeUnit::Second, Some("UTC".into()))),
        ));
        for data_type in types {
            let name = TypeName(&data_type).to_string();
            assert_eq!(parse_type(&name), Some(data_type), "{name}");
        }
    }

    #[test]
    fn names_of_other_systems_lead_to_ours() {
        for (name, ours) in FOREIGN_NAMES {
            assert_eq!(parse_type(name), None, "{name} is a type, and needs no suggestion");
            assert!(parse_type(ours).is_some(), "{ours}");
            assert_eq!(suggest_type(name), format!(" (did you mean \"{ours}\"?)"));
        }
        assert_eq!(suggest_type("Int"), " (did you mean \"int64\"?)");
        assert_eq!(suggest_type("in64"), " (did you mean \"int64\"?)");
        assert!(suggest_type("").contains("some types are: bool"));
    }

    #[test]
    fn nonsense_is_no_type() {
        let nested =
            format!("{}{}", "dictionary<values=".repeat(10_000), "int8, indices=int8>".repeat(10_000));
        for text in [
            "",
            "int",
            "timestamp",
            "timestamp[m]",
            "decimal128(39, 2)",
            "decimal128(3)",
            "list<int8>",
            &nested,
        ] {
            assert_eq!(parse_type(text), None, "{text}");
        }
    }
}
