//! Makes foreign text safe to print: one line, without control characters.

use std::borrow::Cow;
use std::path::Path;

/// `text` with every character that a terminal would interpret escaped as in Rust and Python: `\0`, `\n`, `\u{1b}`, and
/// marks of writing direction. Quotes and backslashes are kept.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_printable) {
        return Cow::Borrowed(text);
    }
    let escaped =
        text.chars().map(|each| if is_printable(each) { each.to_string() } else { each.escape_debug().to_string() });
    Cow::Owned(escaped.collect())
}

/// A path as [`printable`] text; bytes that are not UTF-8 become `\xff`.
#[must_use]
pub fn printable_path(path: &Path) -> String {
    let chunks = path.as_os_str().as_encoded_bytes().utf8_chunks();
    let texts = chunks.map(|chunk| format!("{}{}", printable(chunk.valid()), chunk.invalid().escape_ascii()));
    texts.collect()
}

/// Whether `escape_debug` would keep the character, apart from quotes and backslashes.
fn is_printable(each: char) -> bool {
    each == ' '
        || matches!(each, '"' | '\'' | '\\')
        || each.is_ascii_graphic()
        || !each.is_ascii() && each.escape_debug().len() == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_act_on_is_escaped_and_nothing_else() {
        assert_eq!(printable("\"pläne\" \\ 'x'"), "\"pläne\" \\ 'x'");
        assert_eq!(printable("a\0b\nc\u{1b}[31m\u{9b}\u{202e}\u{7f}"), "a\\0b\\nc\\u{1b}[31m\\u{9b}\\u{202e}\\u{7f}");
    }

    #[cfg(unix)]
    #[test]
    fn a_path_need_not_be_text() {
        use std::os::unix::ffi::OsStrExt;
        let path = Path::new(std::ffi::OsStr::from_bytes(b"/a/\xffb\x1b.csv"));
        assert_eq!(printable_path(path), "/a/\\xffb\\u{1b}.csv");
    }
}
