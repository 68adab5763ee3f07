//! Frames: a length of four bytes, little-endian, then as many bytes of JSON.

use std::io;

use bytes::{Buf, BytesMut};
use serde::de::DeserializeOwned;
use serde::Serialize;
use tokio::io::{AsyncRead, AsyncReadExt};

/// The longest frame.
pub const FRAME_BYTES_MAX: usize = 16 << 20;
const HEAD: usize = size_of::<u32>();
/// What is read at once, and kept between frames.
const CHUNK: usize = 64 << 10;

/// Reads frames. A call that is cancelled loses nothing.
#[derive(Default)]
pub struct Frames {
    /// Bytes that have come and are not used.
    buffer: BytesMut,
}

impl Frames {
    /// The next frame; `None` at the end of the connection.
    ///
    /// # Errors
    /// The connection fails or ends within a frame, a frame is too long, or it is not a `T`.
    pub async fn next<T: DeserializeOwned>(&mut self, from: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<T>> {
        loop {
            if let Some(frame) = self.take()? {
                return Ok(Some(frame));
            }
            self.buffer.reserve(CHUNK);
            if from.read_buf(&mut self.buffer).await? == 0 {
                return if self.buffer.is_empty() { Ok(None) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
            }
        }
    }

    fn take<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let Some(head) = self.buffer.first_chunk::<HEAD>() else { return Ok(None) };
        let length = u32::from_le_bytes(*head) as usize;
        if length > FRAME_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a frame of {length} bytes")));
        }
        let Some(body) = self.buffer.get(HEAD..HEAD + length) else { return Ok(None) };
        let frame = serde_json::from_slice(body)?;
        self.buffer.advance(HEAD + length);
        if self.buffer.is_empty() && self.buffer.capacity() > CHUNK {
            self.buffer = BytesMut::new();
        }
        Ok(Some(frame))
    }
}

/// Appends a frame to `to`.
///
/// # Errors
/// It is too long; `to` is as before.
pub fn append(to: &mut Vec<u8>, frame: &impl Serialize) -> io::Result<()> {
    let begin = to.len();
    to.extend([0; HEAD]);
    serde_json::to_writer(&mut *to, frame)?;
    let length = to.len() - begin - HEAD;
    if length > FRAME_BYTES_MAX {
        to.truncate(begin);
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a frame of {length} bytes")));
    }
    to[begin..begin + HEAD].copy_from_slice(&(length as u32).to_le_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(bytes: &[u8]) -> io::Result<Vec<u32>> {
        let (mut frames, mut from, mut found) = (Frames::default(), bytes, Vec::new());
        while let Some(frame) = frames.next(&mut from).await? {
            found.push(frame);
        }
        Ok(found)
    }

    #[tokio::test(flavor = "current_thread")]
    async fn frames_end_where_they_say() {
        let mut bytes = Vec::new();
        append(&mut bytes, &7).expect("short");
        append(&mut bytes, &1234).expect("short");
        assert_eq!(all(&bytes).await.expect("whole frames"), [7, 1234]);
        let cut = all(&bytes[..bytes.len() - 1]).await.expect_err("the last one is short");
        assert_eq!(cut.kind(), io::ErrorKind::UnexpectedEof);
        let long = all(&[255, 255, 255, 0, b'1']).await.expect_err("16 MiB less one have not come");
        assert_eq!(long.kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(all(&[1, 0, 0, 1]).await.expect_err("too long").to_string(), "a frame of 16777217 bytes");
        assert_eq!(all(&[1, 0, 0, 0, b'x']).await.expect_err("no JSON").kind(), io::ErrorKind::InvalidData);
    }
}
