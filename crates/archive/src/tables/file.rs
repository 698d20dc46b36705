//! One Parquet file: rows are gathered and written in groups.

use std::{fs::File, path::Path, sync::Arc};

use parquet::{
    basic::{Compression, ZstdLevel},
    data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type},
    errors::ParquetError,
    file::{properties::WriterProperties, writer::SerializedFileWriter},
    schema::parser::parse_message_type,
};

use crate::{ArchiveError, Result};

/// The bytes of text after which a group of rows is written.
const GROUP_BYTES: usize = 16 << 20;
/// The rows after which a group of rows is written.
const GROUP_ROWS: usize = 100_000;

/// A value of a row; any may be missing.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Int(Option<i64>),
    Real(Option<f64>),
    Text(Option<String>),
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(Some(value))
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(Some(value.to_owned()))
    }
}

/// A time in seconds, as the tables have it.
pub(super) fn time(at_s: impl Into<Option<i64>>) -> Value {
    Value::Int(at_s.into().map(|at_s| at_s.saturating_mul(1000)))
}

/// A file that is being written.
pub(super) struct TableFile {
    writer: SerializedFileWriter<File>,
    path: std::path::PathBuf,
    columns: usize,
    rows: Vec<Vec<Value>>,
    text_bytes: usize,
}

impl TableFile {
    /// `schema` is a message type as Parquet writes it. All its columns are optional.
    pub(super) fn create(path: &Path, schema: &str) -> Result<Self> {
        let folder = path.parent().unwrap_or(path);
        std::fs::create_dir_all(folder).map_err(ArchiveError::io("create", folder))?;
        let file = File::create(path).map_err(ArchiveError::writing(path))?;
        let made = || {
            let schema = Arc::new(parse_message_type(schema)?);
            let columns = schema.get_fields().len();
            let level = ZstdLevel::try_new(3)?;
            let properties =
                WriterProperties::builder().set_compression(Compression::ZSTD(level)).build();
            Ok((SerializedFileWriter::new(file, schema, Arc::new(properties))?, columns))
        };
        let (writer, columns) = made().map_err(failed(path))?;
        Ok(Self { writer, path: path.to_owned(), columns, rows: Vec::new(), text_bytes: 0 })
    }

    pub(super) fn push(&mut self, row: Vec<Value>) -> Result<()> {
        assert_eq!(row.len(), self.columns, "a row has a value for each column");
        let text_bytes = |value: &Value| match value {
            Value::Text(Some(text)) => text.len(),
            _ => 0,
        };
        self.text_bytes += row.iter().map(text_bytes).sum::<usize>();
        self.rows.push(row);
        match self.rows.len() >= GROUP_ROWS || self.text_bytes >= GROUP_BYTES {
            true => self.end_group(),
            false => Ok(()),
        }
    }

    /// Writes what is left, and makes the file durable.
    pub(super) fn finish(mut self) -> Result<()> {
        self.end_group()?;
        let file = self.writer.into_inner().map_err(failed(&self.path))?;
        file.sync_all().map_err(ArchiveError::writing(&self.path))
    }

    fn end_group(&mut self) -> Result<()> {
        let rows = std::mem::take(&mut self.rows);
        self.text_bytes = 0;
        if rows.is_empty() {
            return Ok(());
        }
        write_group(&mut self.writer, &rows).map_err(failed(&self.path))
    }
}

fn write_group(
    writer: &mut SerializedFileWriter<File>,
    rows: &[Vec<Value>],
) -> Result<(), ParquetError> {
    let mut group = writer.next_row_group()?;
    let mut place = 0;
    while let Some(mut column) = group.next_column()? {
        let (mut levels, mut ints, mut reals, mut texts) = (vec![], vec![], vec![], vec![]);
        for row in rows {
            let is_there = match &row[place] {
                Value::Int(value) => add(&mut ints, *value),
                Value::Real(value) => add(&mut reals, *value),
                Value::Text(value) => add(&mut texts, value.as_deref().map(ByteArray::from)),
            };
            levels.push(i16::from(is_there));
        }
        let levels = Some(&levels[..]);
        match &rows[0][place] {
            Value::Int(_) => column.typed::<Int64Type>().write_batch(&ints, levels, None)?,
            Value::Real(_) => column.typed::<DoubleType>().write_batch(&reals, levels, None)?,
            Value::Text(_) => column.typed::<ByteArrayType>().write_batch(&texts, levels, None)?,
        };
        column.close()?;
        place += 1;
    }
    group.close()?;
    Ok(())
}

fn add<T>(values: &mut Vec<T>, value: Option<T>) -> bool {
    let is_there = value.is_some();
    values.extend(value);
    is_there
}

fn failed(path: &Path) -> impl FnOnce(ParquetError) -> ArchiveError {
    let path = path.to_owned();
    move |error| {
        let source = match error {
            ParquetError::External(cause) => std::io::Error::other(cause),
            other => std::io::Error::other(other),
        };
        ArchiveError::Io { action: "write", path, source }
    }
}
