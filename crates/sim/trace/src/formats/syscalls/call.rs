//! A system call as a tracer prints it: "name(arguments) = result".
//!
//! Arguments are split at commas outside strings, brackets and the names attached to descriptors (`3</etc/passwd>`).

/// Maximum number of arguments that are parsed.
const ARGUMENTS_MAX: usize = 8;

/// A parsed call. Calls printed in two pieces are joined first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Call<'a> {
    pub name: &'a str,
    arguments: [&'a str; ARGUMENTS_MAX],
    /// The text after "=".
    pub result: &'a str,
}

impl<'a> Call<'a> {
    /// Parses "name(arguments) = result"; `None` for a line of another form.
    pub fn parse(text: &'a str) -> Option<Self> {
        let open = text.find('(')?;
        let name = &text[..open];
        if name.is_empty()
            || !name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        {
            return None;
        }
        let mut arguments = [""; ARGUMENTS_MAX];
        let mut count = 0;
        let close = cut(text, open + 1, |argument| {
            if let Some(place) = arguments.get_mut(count) {
                *place = argument;
            }
            count += 1;
        })?;
        let result = text[close + 1..].trim_start().strip_prefix('=')?.trim_start();
        Some(Self { name, arguments, result })
    }

    /// The argument at this index, from 0.
    pub fn at(&self, index: usize) -> &'a str {
        self.arguments.get(index).copied().unwrap_or_default()
    }

    /// The argument of this name, as perf prints them ("count: 4096"); perf omits those that are 0.
    pub fn named(&self, name: &str) -> Option<&'a str> {
        self.arguments.iter().find_map(|argument| argument.strip_prefix(name)?.strip_prefix(": "))
    }

    /// The result as a number; `None` for an error or a missing result.
    pub fn number(&self) -> Option<u64> {
        leading_number(self.result)
    }
}

/// Splits `text` from `start` on at the commas outside strings, brackets and names, up to the closing bracket; returns
/// the bracket's position, or `None` if there is none.
fn cut<'a>(text: &'a str, mut start: usize, mut put: impl FnMut(&'a str)) -> Option<usize> {
    let (bytes, mut at, mut depth) = (text.as_bytes(), start, 0_u32);
    loop {
        match *bytes.get(at)? {
            b'"' => at = end_of_string(bytes, at)?,
            b'<' if at > start && bytes[at - 1].is_ascii_digit() || text[..at].ends_with("AT_FDCWD") => {
                at = end_of_name(bytes, at)?;
            }
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' if depth == 0 => {
                put(text[start..at].trim());
                return Some(at);
            }
            b')' | b']' | b'}' => depth -= 1,
            b',' if depth == 0 => {
                put(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
}

/// The members of an array or structure, "[a, b]" or "{a=1, b=2}"; empty for text of another form.
pub(super) fn members(text: &str) -> Vec<&str> {
    let mut members = Vec::new();
    if text.starts_with(['[', '{']) {
        cut(text, 1, |member| members.push(member));
    }
    members
}

pub(super) fn field<'a>(members: &[&'a str], name: &str) -> Option<&'a str> {
    members.iter().find_map(|member| member.strip_prefix(name)?.strip_prefix('='))
}

/// The leading digits of a text, or hexadecimal digits after "0x".
pub(super) fn leading_number(text: &str) -> Option<u64> {
    let (digits, radix) = text.strip_prefix("0x").map_or((text, 10), |digits| (digits, 16));
    let end = digits.bytes().position(|byte| !char::from(byte).is_digit(radix)).unwrap_or(digits.len());
    u64::from_str_radix(&digits[..end], radix).ok()
}

/// The end of a string: its last quote. Quotes within are escaped.
fn end_of_string(bytes: &[u8], quote: usize) -> Option<usize> {
    let mut at = quote + 1;
    while *bytes.get(at)? != b'"' {
        at += 1 + usize::from(bytes[at] == b'\\');
    }
    Some(at)
}

/// The end of the text between "<" and ">" after a descriptor: names may contain brackets (`</dev/null<char 1:3>>`) and
/// arrows (`<TCP:[a->b]>`).
fn end_of_name(bytes: &[u8], open: usize) -> Option<usize> {
    let (mut at, mut depth) = (open, 0_u32);
    loop {
        match *bytes.get(at)? {
            b'<' => depth += 1,
            b'>' if bytes[at - 1] != b'-' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
        at += 1;
    }
}

/// A descriptor, "3" or "3</etc/passwd>", with its name if it has one.
pub(super) fn descriptor(text: &str) -> Option<(u32, Option<&str>)> {
    let number = u32::try_from(leading_number(text)?).ok()?;
    // Directly after the number: a duration follows a space.
    let open = text.bytes().position(|byte| !byte.is_ascii_digit()).filter(|at| text.as_bytes()[*at] == b'<');
    let name = open.and_then(|open| Some(&text[open + 1..end_of_name(text.as_bytes(), open)?]));
    Some((number, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_cut_outside_strings_and_names() {
        let call = Call::parse(r#"read(3</tmp/a (1), b>, "x\"), = 1\n"..., 4096) = 12"#).unwrap();
        assert_eq!((call.name, call.at(0), call.at(2), call.number()), ("read", "3</tmp/a (1), b>", "4096", Some(12)));
        let call =
            Call::parse(r#"preadv(3, [{iov_base="a,b", iov_len=1}, {iov_base="", iov_len=2}], 2, 8192) = 3"#).unwrap();
        assert_eq!((call.at(1).len(), call.at(2), call.at(3)), (55, "2", "8192"));
        let call = Call::parse("pread64(fd: 3</l>, buf: 0x7f, count: 784, pos: 64) = 784").unwrap();
        assert_eq!((call.named("fd"), call.named("pos"), call.named("flags")), (Some("3</l>"), Some("64"), None));
        for text in ["", "read", "read(3", "Read(3) = 1", "read(3) 1", "(3) = 1", "read(\"x) = 1", "read(3<x) = 1"] {
            assert_eq!(Call::parse(text), None, "{text}");
        }
    }

    #[test]
    fn members_of_arrays_and_structures() {
        let list = members(r#"[{a=1, b="},{", c=[1, 2], d=7</x, {y>}, {a=2}, 0x5, ...]"#);
        assert_eq!(list.len(), 4);
        let first = members(list[0]);
        assert_eq!([field(&first, "a"), field(&first, "d"), field(&first, "e")], [Some("1"), Some("7</x, {y>"), None]);
        assert_eq!(members(field(&first, "c").unwrap()), ["1", "2"]);
        assert!(members("NULL").is_empty() && members("[1, 2").len() < 2);
    }

    #[test]
    fn descriptors_and_their_names() {
        assert_eq!(descriptor("3"), Some((3, None)));
        assert_eq!(descriptor("3</a>(deleted)"), Some((3, Some("/a"))));
        assert_eq!(descriptor("2</dev/null<char 1:3>>"), Some((2, Some("/dev/null<char 1:3>"))));
        assert_eq!(descriptor("4<TCP:[1->2]>"), Some((4, Some("TCP:[1->2]"))));
        assert_eq!(descriptor("3 <0.000010>"), Some((3, None)));
        assert_eq!(descriptor("-1"), None);
        assert_eq!(descriptor("AT_FDCWD</home>"), None);
    }
}
