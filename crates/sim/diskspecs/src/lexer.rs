//! Words and punctuation of DiskSim's parameter files, with `source` resolved.
//!
//! libparam's rules (DiskSim 4.0 manual, section 3; libparam's lexer): a word is anything but white space and `; { } ,
//! [ ] : ? =`, so names may contain dots, slashes and brackets; `#` at the start of a word starts a comment; `source
//! FILE` is replaced by the file's words, wherever it occurs. One addition: a carriage return is white space, because
//! files from Windows end their lines with it.
//!
//! Cost: one pass over the bytes; memory for the open files and two words of look-ahead.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::error::{FilePosition, ImportError};
use crate::files::{find, tidy, Files};

/// Maximum nesting of files; libparam allows 32.
const SOURCE_DEPTH_MAX: usize = 32;
/// Maximum number of files that one import may source, and of their total bytes.
const SOURCE_COUNT_MAX: usize = 1_000;
const SOURCE_BYTES_MAX: usize = 64 << 20;

/// A word or a punctuation character.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Token {
    Word(String),
    Mark(char),
    End,
}

impl Token {
    /// The token as an error message shows it.
    pub(crate) fn shown(&self) -> String {
        match self {
            Token::Word(word) => format!("\"{word}\""),
            Token::Mark(mark) => format!("\"{mark}\""),
            Token::End => "the end of the file".to_owned(),
        }
    }
}

struct Open {
    path: Rc<Path>,
    bytes: Vec<u8>,
    next: usize,
    line: u32,
}

/// The words of a file and of all files that it sources.
pub(crate) struct Lexer<'a> {
    files: &'a dyn Files,
    first: PathBuf,
    open: Vec<Open>,
    ahead: VecDeque<(Token, FilePosition)>,
    sourced: Vec<Rc<Path>>,
    bytes: usize,
}

impl<'a> Lexer<'a> {
    /// The words of the file at `path`.
    pub(crate) fn try_new(files: &'a dyn Files, path: &Path) -> Result<Self, ImportError> {
        let path = tidy(path);
        let bytes = files.read(&path).map_err(|source| ImportError::Read {
            at: FilePosition::whole(&path),
            path: path.clone(),
            source,
        })?;
        let mut lexer = Self {
            files,
            first: path.clone(),
            open: Vec::new(),
            ahead: VecDeque::new(),
            sourced: Vec::new(),
            bytes: 0,
        };
        lexer.push(path, bytes);
        Ok(lexer)
    }

    /// Every file that was read, in order.
    pub(crate) fn into_files(self) -> Vec<Rc<Path>> {
        self.sourced
    }

    pub(crate) fn take(&mut self) -> Result<(Token, FilePosition), ImportError> {
        match self.ahead.pop_front() {
            Some(token) => Ok(token),
            None => self.read(),
        }
    }

    /// The token `index` steps ahead, 0 the next.
    pub(crate) fn peek(&mut self, index: usize) -> Result<&(Token, FilePosition), ImportError> {
        while self.ahead.len() <= index {
            let token = self.read()?;
            self.ahead.push_back(token);
        }
        Ok(&self.ahead[index])
    }

    fn read(&mut self) -> Result<(Token, FilePosition), ImportError> {
        loop {
            let (token, at) = self.raw();
            match token {
                Token::Word(word) if word == "source" => self.follow(&at)?,
                Token::End if self.open.len() > 1 => _ = self.open.pop(),
                token => return Ok((token, at)),
            }
        }
    }

    /// The next token of the innermost file, without handling `source` and the file's end.
    fn raw(&mut self) -> (Token, FilePosition) {
        let file = self.open.last_mut().expect("the first file stays open");
        loop {
            match file.bytes.get(file.next) {
                Some(b'\n') => file.line += 1,
                Some(b' ' | b'\t' | b'\r' | b'\x0b' | b'\x0c') => {}
                Some(b'#') => {
                    let rest = &file.bytes[file.next..];
                    file.next += rest.iter().position(|byte| matches!(byte, b'\n' | b'\x0c')).unwrap_or(rest.len());
                    continue;
                }
                _ => break,
            }
            file.next += 1;
        }
        let at = FilePosition { file: Rc::clone(&file.path), line: file.line };
        let rest = &file.bytes[file.next..];
        let token = match rest.iter().position(|byte| ends_word(*byte)).unwrap_or(rest.len()) {
            0 if rest.is_empty() => return (Token::End, at),
            0 => {
                file.next += 1;
                Token::Mark(char::from(rest[0]))
            }
            length => {
                file.next += length;
                Token::Word(String::from_utf8_lossy(&rest[..length]).into_owned())
            }
        };
        (token, at)
    }

    /// Opens the file whose name follows `source`.
    fn follow(&mut self, at: &FilePosition) -> Result<(), ImportError> {
        let (token, _) = self.raw();
        let Token::Word(name) = token else {
            return Err(ImportError::at(at, format!("{} after source", token.shown()), "the name of a file"));
        };
        if self.open.len() >= SOURCE_DEPTH_MAX {
            return Err(ImportError::at(at, "files source each other too deeply", format!("{SOURCE_DEPTH_MAX} deep")));
        }
        let by = Rc::clone(&self.open.last().expect("the first file stays open").path);
        let (path, bytes) = find(self.files, &by, &self.first, &name).map_err(|(path, source)| ImportError::Read {
            at: at.clone(),
            path,
            source,
        })?;
        if self.open.iter().any(|file| *file.path == *path) {
            return Err(ImportError::at(at, format!("{name} sources itself"), "a file that is not being read already"));
        }
        if self.sourced.len() >= SOURCE_COUNT_MAX || self.bytes + bytes.len() > SOURCE_BYTES_MAX {
            let allowed = format!("{SOURCE_COUNT_MAX} files of together {} MiB", SOURCE_BYTES_MAX >> 20);
            return Err(ImportError::at(at, "too many files are sourced", allowed));
        }
        self.push(path, bytes);
        Ok(())
    }

    fn push(&mut self, path: PathBuf, bytes: Vec<u8>) {
        let path: Rc<Path> = path.into();
        self.bytes += bytes.len();
        self.sourced.push(Rc::clone(&path));
        self.open.push(Open { path, bytes, next: 0, line: 1 });
    }
}

fn ends_word(byte: u8) -> bool {
    matches!(
        byte,
        b' ' | b'\t' | b'\r' | b'\n' | b'\x0b' | b'\x0c' | b';' | b'{' | b'}' | b',' | b'[' | b']' | b':' | b'?' | b'='
    )
}
