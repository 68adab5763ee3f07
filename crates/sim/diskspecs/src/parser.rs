//! The grammar of DiskSim's parameter files, as libparam reads them.
//!
//! ```text
//! file   = { TYPE NAME "{" params "}" | "instantiate" list "as" TYPE | "topology" TYPE NAME list }
//! params = name "=" value { "," name "=" value }        name: one or several words, or a list of words
//! value  = number | word | list | TYPE "{" params "}" | TYPE NAME "{" params "}" | TYPE NAME list
//! list   = "[" [ item { "," item } ] "]"                item: a value, or the range  disk0 .. disk7
//! ```
//!
//! There are no expressions. A TYPE may be the NAME of an earlier block: the new block then inherits its parameters
//! unless it overrides them. Of two blocks with one name the first counts. We accept more than libparam does:
//! superfluous commas, and a block without a name at the top of a file.
//!
//! Cost: linear in the words; inherited parameters are looked up along the chain, not copied, and ranges are not
//! expanded, so that memory stays proportional to the text.

use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use crate::error::{FilePosition, ImportError};
use crate::files::Files;
use crate::lexer::{Lexer, Token};

/// Maximum nesting of blocks and lists; DiskSim's own files need six.
const DEPTH_MAX: usize = 64;

/// A value with its position.
#[derive(Debug)]
pub(crate) struct Value {
    pub(crate) kind: Kind,
    pub(crate) at: FilePosition,
}

/// The kind of a value.
#[derive(Debug)]
pub(crate) enum Kind {
    Whole(i64),
    Real(f64),
    Word(String),
    List(Vec<Value>),
    Block(Block),
    /// `TYPE NAME [ below ]` of a topology.
    Component(Component),
    /// `disk0 .. disk7`: prefix, first, last.
    Range(String, u32, u32),
}

/// `TYPE NAME { ... }`; a block that is a value has no name.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) kind: String,
    pub(crate) name: Option<String>,
    /// By name, its words joined by one space.
    pub(crate) params: BTreeMap<String, Rc<Value>>,
    pub(crate) at: FilePosition,
}

/// A node of the topology.
#[derive(Debug)]
pub(crate) struct Component {
    pub(crate) name: String,
    pub(crate) below: Vec<Value>,
}

/// The content of all files.
#[derive(Debug, Default)]
pub(crate) struct Document {
    /// Top-level blocks in order; of one name only the first.
    pub(crate) blocks: Vec<Block>,
    /// Index of a named block in `blocks`.
    pub(crate) by_name: BTreeMap<String, usize>,
    /// `instantiate LIST as TYPE`: the list, the type.
    pub(crate) instances: Vec<(Vec<Value>, String, FilePosition)>,
    /// The topologies.
    pub(crate) topology: Vec<Component>,
    /// Every file that was read, in order.
    pub(crate) files: Vec<Rc<Path>>,
    /// Definitions that were skipped because their name was already used.
    pub(crate) passed_over: Vec<(String, FilePosition)>,
}

/// Reads the file at `path` and all that it sources.
///
/// # Errors
/// The offending file and line.
pub(crate) fn parse(files: &dyn Files, path: &Path) -> Result<Document, ImportError> {
    let mut parser = Parser { lexer: Lexer::try_new(files, path)?, document: Document::default(), depth: 0 };
    while parser.top()? {}
    let Parser { lexer, mut document, .. } = parser;
    document.files = lexer.into_files();
    Ok(document)
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    document: Document,
    depth: usize,
}

impl Parser<'_> {
    /// One item at the top level of a file; false at the end.
    fn top(&mut self) -> Result<bool, ImportError> {
        const ALLOWED: &str = "TYPE NAME { ... }, instantiate [...] as TYPE, topology TYPE NAME [...], source FILE";
        let (token, at) = self.lexer.take()?;
        let word = match token {
            Token::End => return Ok(false),
            Token::Mark(',') => return Ok(true),
            Token::Word(word) => word,
            token => return Err(ImportError::at(&at, format!("unexpected {}", token.shown()), ALLOWED)),
        };
        match word.as_str() {
            "topology" => {
                let (_, at) = self.word("the type of a component")?;
                let component = self.component(&at)?;
                self.document.topology.push(component);
            }
            "instantiate" => {
                let list = self.list()?;
                let (keyword, at) = self.lexer.take()?;
                if keyword != Token::Word("as".into()) {
                    return Err(ImportError::at(&at, format!("{} after the list", keyword.shown()), "as TYPE"));
                }
                let (kind, at) = self.word("the name of a block")?;
                self.document.instances.push((list, kind, at));
            }
            _ => {
                let named = matches!(self.lexer.peek(0)?.0, Token::Word(_));
                if self.lexer.peek(usize::from(named))?.0 != Token::Mark('{') {
                    return Err(ImportError::at(&at, format!("\"{word}\" begins nothing known"), ALLOWED));
                }
                let block = self.block(word, &at)?;
                self.define(block);
            }
        }
        Ok(true)
    }

    fn define(&mut self, block: Block) {
        let index = self.document.blocks.len();
        if let Some(name) = &block.name {
            if self.document.by_name.contains_key(name) {
                self.document.passed_over.push((name.clone(), block.at));
                return;
            }
            self.document.by_name.insert(name.clone(), index);
        }
        self.document.blocks.push(block);
    }

    /// `[NAME] { params }` after its type.
    fn block(&mut self, kind: String, at: &FilePosition) -> Result<Block, ImportError> {
        let name = match self.lexer.peek(0)?.0 {
            Token::Word(_) => Some(self.word("a name")?.0),
            _ => None,
        };
        self.expect('{')?;
        self.enter(at)?;
        let (mut params, mut first) = (BTreeMap::new(), true);
        while self.more('}', first)? {
            self.params(&mut params)?;
            first = false;
        }
        self.depth -= 1;
        Ok(Block { kind, name, params, at: at.clone() })
    }

    /// `name = value`, or `[name, name] = value`.
    fn params(&mut self, params: &mut BTreeMap<String, Rc<Value>>) -> Result<(), ImportError> {
        let at = self.lexer.peek(0)?.1.clone();
        let mut names = Vec::new();
        if self.lexer.peek(0)?.0 == Token::Mark('[') {
            self.lexer.take()?;
            while self.more(']', names.is_empty())? {
                names.push(self.name()?);
            }
        } else {
            names.push(self.name()?);
        }
        self.expect('=')?;
        let value = Rc::new(self.value()?);
        for name in names {
            if params.contains_key(&name) {
                return Err(ImportError::at(&at, format!("\"{name}\" is given twice"), "each parameter once"));
            }
            params.insert(name, Rc::clone(&value));
        }
        Ok(())
    }

    /// The words before "=".
    fn name(&mut self) -> Result<String, ImportError> {
        let (mut name, _) = self.word("the name of a parameter, or \"}\"")?;
        while let Token::Word(_) = self.lexer.peek(0)?.0 {
            name.push(' ');
            name.push_str(&self.word("a word")?.0);
        }
        Ok(name)
    }

    fn value(&mut self) -> Result<Value, ImportError> {
        const ALLOWED: &str = "a number, a word, a list in [ ], or a block in { }";
        if self.lexer.peek(0)?.0 == Token::Mark('[') {
            let at = self.lexer.peek(0)?.1.clone();
            return Ok(Value { kind: Kind::List(self.list()?), at });
        }
        let (token, at) = self.lexer.take()?;
        let Token::Word(word) = token else {
            return Err(ImportError::at(&at, format!("{} in place of a value", token.shown()), ALLOWED));
        };
        let kind = match &self.lexer.peek(0)?.0 {
            Token::Mark('{') => Kind::Block(self.block(word, &at)?),
            Token::Word(next) if next == ".." => self.range(&word, &at)?,
            Token::Word(_) => match self.lexer.peek(1)?.0 {
                Token::Mark('{') => Kind::Block(self.block(word, &at)?),
                Token::Mark('[') => Kind::Component(self.component(&at)?),
                _ => {
                    let problem = format!("{} after the value \"{word}\"", self.lexer.peek(0)?.0.shown());
                    return Err(ImportError::at(&self.lexer.peek(0)?.1, problem, "\",\" or the end of the block"));
                }
            },
            _ => scalar(word, &at)?,
        };
        Ok(Value { kind, at })
    }

    /// `NAME [ ... ]` after its type.
    fn component(&mut self, at: &FilePosition) -> Result<Component, ImportError> {
        let (name, _) = self.word("the name of a component")?;
        self.enter(at)?;
        let below = self.list()?;
        self.depth -= 1;
        Ok(Component { name, below })
    }

    /// `.. last` after the first.
    fn range(&mut self, first: &str, at: &FilePosition) -> Result<Kind, ImportError> {
        self.lexer.take()?;
        let (last, _) = self.word("the last name of the range")?;
        match (split_number(first), split_number(&last)) {
            (Some((prefix, from)), Some((same, to))) if prefix == same && from <= to => {
                Ok(Kind::Range(prefix.to_owned(), from, to))
            }
            _ => Err(ImportError::at(at, format!("{first} .. {last} is no range"), "such as disk0 .. disk7")),
        }
    }

    fn list(&mut self) -> Result<Vec<Value>, ImportError> {
        let at = self.lexer.peek(0)?.1.clone();
        self.expect('[')?;
        self.enter(&at)?;
        let mut values = Vec::new();
        while self.more(']', values.is_empty())? {
            values.push(self.value()?);
        }
        self.depth -= 1;
        Ok(values)
    }

    /// Skips commas and, at the end, the closing bracket; returns whether there is another item. A comma separates two
    /// items.
    fn more(&mut self, close: char, first: bool) -> Result<bool, ImportError> {
        let mut apart = first;
        while self.lexer.peek(0)?.0 == Token::Mark(',') {
            self.lexer.take()?;
            apart = true;
        }
        let (token, at) = self.lexer.peek(0)?;
        if *token == Token::Mark(close) {
            self.lexer.take()?;
            return Ok(false);
        }
        match apart && *token != Token::End {
            true => Ok(true),
            false => Err(ImportError::at(at, format!("unexpected {}", token.shown()), format!("\",\" or \"{close}\""))),
        }
    }

    fn enter(&mut self, at: &FilePosition) -> Result<(), ImportError> {
        self.depth += 1;
        match self.depth > DEPTH_MAX {
            true => Err(ImportError::at(at, "blocks and lists lie within each other too deeply", "64 deep")),
            false => Ok(()),
        }
    }

    fn expect(&mut self, mark: char) -> Result<(), ImportError> {
        let (token, at) = self.lexer.take()?;
        match token == Token::Mark(mark) {
            true => Ok(()),
            false => Err(ImportError::at(&at, format!("unexpected {}", token.shown()), format!("\"{mark}\" here"))),
        }
    }

    fn word(&mut self, allowed: &str) -> Result<(String, FilePosition), ImportError> {
        let (token, at) = self.lexer.take()?;
        match token {
            Token::Word(word) => Ok((word, at)),
            token => Err(ImportError::at(&at, format!("unexpected {}", token.shown()), allowed)),
        }
    }
}

/// A single word: a number if it looks like one, as in libparam; `1e-3` and `.5`, which are words there, are accepted
/// too.
fn scalar(word: String, at: &FilePosition) -> Result<Kind, ImportError> {
    let (sign, digits) = word.strip_prefix('-').map_or((1, word.as_str()), |rest| (-1, rest));
    let (radix, digits) = digits.strip_prefix("0x").map_or((10, digits), |rest| (16, rest));
    if !digits.is_empty() && digits.bytes().all(|byte| char::from(byte).is_digit(radix)) {
        let allowed = "a whole number of 64 bits";
        let number = i64::from_str_radix(digits, radix)
            .map_err(|_| ImportError::at(at, format!("{word} is too large"), allowed))?;
        return Ok(Kind::Whole(sign * number));
    }
    let numeric = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'+' | b'e' | b'E');
    let begins = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
    if digits.bytes().all(numeric) && digits.as_bytes().first().is_some_and(begins) {
        match word.parse::<f64>() {
            Ok(number) if number.is_finite() => return Ok(Kind::Real(number)),
            Ok(_) => return Err(ImportError::at(at, format!("{word} is too large"), "a number of double precision")),
            Err(_) => {}
        }
    }
    Ok(Kind::Word(word))
}

/// `disk12` is `disk` and 12.
pub(crate) fn split_number(name: &str) -> Option<(&str, u32)> {
    let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
    let (prefix, number) = name.split_at(name.len() - digits);
    Some((prefix, number.parse().ok()?))
}
