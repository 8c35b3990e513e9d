//! State in bytes: a header, the watermarks, the tables of each operator as Arrow streams, and a checksum.
//!
//! Numbers are little-endian. Nothing is believed before the checksum was, and no length before it was compared with
//! what there is.

use std::io::Cursor;

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::ArrowError;
use penstock_operators::StateSnapshot;
use thiserror::Error;

use super::Checkpoint;
use penstock_tasks::checkpoint::OperatorState;

const MAGIC: &[u8; 8] = b"PENSTOCK";
const VERSION: u32 = 1;
const CHECKSUM_BYTES: usize = 8;

/// Bytes that are no state.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the state cannot be read: {0}")]
pub struct CheckpointError(String);

/// FNV-1a: the same everywhere and always, which is all that is asked of it.
pub(super) fn hash(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xCBF2_9CE4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3))
}

fn broken(reason: impl ToString) -> CheckpointError {
    CheckpointError(reason.to_string())
}

fn write_table(table: &RecordBatch, to: &mut Vec<u8>) -> Result<(), ArrowError> {
    let mut stream = Vec::new();
    let mut writer = StreamWriter::try_new(&mut stream, table.schema_ref())?;
    writer.write(table)?;
    writer.finish()?;
    drop(writer);
    to.extend_from_slice(&(stream.len() as u64).to_le_bytes());
    to.extend_from_slice(&stream);
    Ok(())
}

/// Takes numbers and slices off the front.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], CheckpointError> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(|| broken("it ends too early"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], CheckpointError> {
        Ok(self.take(N)?.try_into().expect("as many were taken"))
    }

    /// A count of things, each of which takes a byte at least.
    fn count(&mut self) -> Result<usize, CheckpointError> {
        let count = u32::from_le_bytes(self.array()?) as usize;
        if count > self.0.len() { Err(broken("it ends too early")) } else { Ok(count) }
    }

    fn time(&mut self) -> Result<i64, CheckpointError> {
        Ok(i64::from_le_bytes(self.array()?))
    }

    fn table(&mut self) -> Result<RecordBatch, CheckpointError> {
        let len = usize::try_from(u64::from_le_bytes(self.array()?)).map_err(broken)?;
        let mut reader = StreamReader::try_new(Cursor::new(self.take(len)?), None).map_err(broken)?;
        let table = reader.next().ok_or_else(|| broken("a table is missing"))?;
        table.map_err(broken)
    }
}

impl Checkpoint {
    /// Writes it down.
    ///
    /// # Errors
    /// A table that Arrow cannot write.
    pub fn to_bytes(&self) -> Result<Vec<u8>, CheckpointError> {
        let mut to = Vec::new();
        to.extend_from_slice(MAGIC);
        to.extend_from_slice(&VERSION.to_le_bytes());
        to.extend_from_slice(&self.plan.to_le_bytes());
        to.extend_from_slice(&(self.sources.len() as u32).to_le_bytes());
        self.sources.iter().for_each(|latest| to.extend_from_slice(&latest.to_le_bytes()));
        to.extend_from_slice(&(self.outputs.len() as u32).to_le_bytes());
        self.outputs.iter().for_each(|behind| to.extend_from_slice(&behind.to_le_bytes()));
        to.extend_from_slice(&(self.operators.len() as u32).to_le_bytes());
        for operator in &self.operators {
            to.push(u8::from(operator.is_some()));
            let Some(OperatorState { watermark, snapshot }) = operator else { continue };
            to.extend_from_slice(&watermark.to_le_bytes());
            to.extend_from_slice(&(snapshot.tables.len() as u32).to_le_bytes());
            for table in &snapshot.tables {
                write_table(table, &mut to).map_err(broken)?;
            }
        }
        to.extend_from_slice(&hash(&to).to_le_bytes());
        Ok(to)
    }

    /// Reads what was written.
    ///
    /// # Errors
    /// Bytes that are not what [`Checkpoint::to_bytes`] wrote, or by another version of it.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CheckpointError> {
        let body = bytes.len().checked_sub(CHECKSUM_BYTES).ok_or_else(|| broken("it is too short"))?;
        let (body, checksum) = bytes.split_at(body);
        let mut from = Bytes(body);
        if from.take(MAGIC.len())? != MAGIC {
            return Err(broken("it does not begin as state does"));
        }
        if checksum != hash(body).to_le_bytes() {
            return Err(broken("its checksum is wrong: it was damaged or cut off"));
        }
        let version = u32::from_le_bytes(from.array()?);
        if version != VERSION {
            return Err(broken(format!("it is of version {version}, and this is version {VERSION}")));
        }
        let plan = u64::from_le_bytes(from.array()?);
        let sources = (0..from.count()?).map(|_| from.time()).collect::<Result<_, _>>()?;
        let outputs = (0..from.count()?).map(|_| from.time()).collect::<Result<_, _>>()?;
        let mut operators = Vec::new();
        for _ in 0..from.count()? {
            operators.push(match from.array()? {
                [0] => None,
                _ => {
                    let watermark = from.time()?;
                    let tables = (0..from.count()?).map(|_| from.table()).collect::<Result<_, _>>()?;
                    Some(OperatorState { watermark, snapshot: StateSnapshot { tables } })
                }
            });
        }
        if !from.0.is_empty() {
            return Err(broken("there is something behind its end"));
        }
        Ok(Self { plan, sources, operators, outputs })
    }
}
