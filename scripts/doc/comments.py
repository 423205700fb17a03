#!/usr/bin/env python3
"""Copies public headers for Doxygen, with their comments turned into Doxygen's.

    scripts/doc/comments.py FOLDER INTO

Copies all headers below FOLDER to the same places below INTO. Names public enumerators without a comment, of which
Doxygen says nothing, and ends with code 1 then. The headers are written for readers of the headers: plain
comments, no commands. Lines keep their numbers, so that Doxygen's messages name the right ones.

- A comment directly above a declaration documents it. So does a comment after a declaration, on the same line.
- A comment above several declarations, without a blank line between them, documents the first one, and those after it
  that have its name, or its type and the first or last word of its name. One that begins with "Each is", "Each does"
  or "Each returns" documents them all.
- The comment at the top of a header is that of the class with the name of the header, if that class has no other
  comment. Otherwise it documents the header.
- After "What Layer promises.", overrides inherit the documentation of the functions that they override.
- Indented lines are code.
- The comment of an enumeration that fits on a line describes its values.
- A rule describes what its declaration explains: constructors without parameters or with options alone, moves,
  destructors, structs of options, comparisons that the compiler writes, members that mean the same in all layers.
  Other members that the compiler writes are not shown.

Comments in bodies of functions, and comments that a blank line separates from what follows, stay as they are.
"""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

INHERITED = re.compile(r"What [\w:]+ promises\.")
# Members of layers, optimizers and their options that mean the same wherever they have no comment.
SAME_EVERYWHERE = {
    "std::string name =": "Names the layer in its model and in savepoints; empty: the model chooses a name.",
    "bool use_bias =": "Whether a bias is added.",
    "Padding padding =": "What is done at the edges; see padding.h.",
    "Initializer kernel_initializer =": "Where the kernel begins; see initializer.h.",
    "Initializer depthwise_initializer =": "Where the depthwise kernel begins; see initializer.h.",
    "Initializer pointwise_initializer =": "Where the pointwise kernel begins; see initializer.h.",
    "Initializer bias_initializer =": "Where the bias begins; see initializer.h.",
    "Extent strides =": "The distance between neighbouring windows, for each spatial axis.",
    "Extent dilation_rate =": "The distance between neighbouring elements of the kernel, for each spatial axis.",
    "float epsilon =": "Added to the variance before its square root is taken.",
    "std::vector<LearningRateFactor> learning_rate_factors": "Of some parameters; see parameter_rules.h.",
    "std::string_view kKind =": "What kind() returns.",
}
OF_EACH = re.compile(r" Each (is|does|returns) ")
SPECIFIER = re.compile(
    r"(virtual|static|explicit|constexpr|inline|friend|mutable|extern|HOLDFAST_C_API|\[\[\w+\]\])\s+"
)


@dataclass
class Line:
    code: str  # without comments; texts of literals are blank
    comment: str | None = None  # what follows //
    column: int = 0  # of the comment
    between: bool = False  # begins where a declaration may begin


@dataclass
class Declaration:
    start: int
    end: int
    head: str  # up to the terminating ; or {
    scope: str  # namespace, class or enum, in which it stands
    owner: str  # name of that scope
    opens: str = ""  # the scope that it opens
    name: str = ""  # of a class, with its namespaces
    is_private: bool = False

    @property
    def is_override(self):
        return not self.opens and re.search(r"\b(override|final)\b", self.head.rpartition(")")[2]) is not None

    def bare(self):
        """The head without template parameters and specifiers."""
        text = self.head.strip()
        while text.startswith("template"):
            depth = 0
            for at, letter in enumerate(text):
                depth += (letter == "<") - (letter == ">")
                if letter == ">" and depth == 0:
                    break
            text = text[at + 1 :].strip()
            text = re.sub(r"^requires\s*\((?:[^()]|\([^()]*\))*\)\s*", "", text)
        while match := SPECIFIER.match(text):
            text = text[match.end() :]
        return text

    def type_and_name(self):
        text = self.bare()
        if match := re.match(r"using\s+(\w+)", text):
            return "using", match[1]
        if self.scope == "enum":
            return "enumerator", text
        text = re.split(r"(?<![=!<>])=(?!=)|\{|\[", text)[0] if "operator" not in text else text
        depth = 0
        for at, letter in enumerate(text):
            depth += (letter == "<") - (letter == ">")
            if letter == "(" and (depth == 0 or "operator" in text):
                text = text[:at]
                break
        match = re.match(r"(.*?)(operator\s*\S*|~?\w+)\s*$", text, re.DOTALL)
        return (" ".join(match[1].split()), match[2]) if match else (text, "")

    def shares_comment_of(self, others, is_of_each):
        is_written_by_rule = re.search(r"=\s*(default|delete)\s*$|\w+&&[^&]*\)\s*noexcept", self.head)
        if self.opens or is_written_by_rule or (self.is_override and not is_of_each):
            return False
        type_, name = self.type_and_name()
        words = name.strip("_").split("_")
        for other in others:
            others_type, others_name = other.type_and_name()
            others_words = others_name.strip("_").split("_")
            has_like_name = words[0] == others_words[0] or words[-1] == others_words[-1]
            if is_of_each or name == others_name or (type_ == others_type and has_like_name):
                return True
        return False


def split_line(text, in_comment):
    """Code and comment of a line; whether it ends within /* ... */."""
    code, at = [], 0
    while at < len(text):
        if in_comment:
            end = text.find("*/", at)
            at = len(text) if end < 0 else end + 2
            in_comment = end < 0
        elif text.startswith("//", at):
            return Line("".join(code), text[at + 2 :], at), False
        elif text.startswith("/*", at):
            in_comment, at = True, at + 2
        elif text[at] in "\"'" and not (text[at] == "'" and at and text[at - 1].isalnum()):
            end = at + 1
            while end < len(text) and text[end] != text[at]:
                end += 2 if text[end] == "\\" else 1
            code.append('""')
            at = end + 1
        else:
            code.append(text[at])
            at += 1
    return Line("".join(code)), in_comment


class Parser:
    """Finds the declarations of a header that clang-format laid out."""

    def __init__(self, lines):
        self.lines = lines
        self.declarations = []
        self.scopes = [("namespace", "")]
        self.private = [False]  # of each scope: whether what follows in it is private
        self.head = ""
        self.start = 0
        self.parens = 0
        self.braces = 0  # within a body or a list in braces
        self.tail = False  # between the } of a class and its ;

    def parse(self):
        continued = False
        for number, line in enumerate(self.lines):
            line.between = not (self.head or self.braces or self.tail)
            if continued or (line.between and line.code.lstrip().startswith("#")):
                if not continued and (match := re.match(r"\s*#\s*define\s+(\w+)", line.code)):
                    self.declarations.append(Declaration(number, number, line.code, "define", match[1]))
                continued = line.code.rstrip().endswith("\\")
                continue
            for at, letter in enumerate(line.code + "\n"):
                self.take(letter, number, line.code[at + 1 :])
        return self.declarations

    def take(self, letter, number, rest):
        scope = self.scopes[-1][0]
        if self.braces:
            self.braces += (letter == "{") - (letter == "}")
            if not self.braces and not self.parens and not rest.strip():
                self.finish(number)
        elif self.tail:
            self.tail = letter != ";"
        elif letter == "{":
            self.open(number)
        elif letter == "}" and not self.parens:
            if self.head.strip():
                self.finish(number)
            self.scopes.pop()
            self.private.pop()
            self.tail = scope in ("class", "enum")
        elif not self.parens and (letter == ";" or (letter == "," and scope == "enum")):
            self.finish(number)
        elif letter == ":" and self.head.strip() in ("public", "protected", "private"):
            self.private[-1] = self.private[-2] or self.head.strip() == "private"
            self.head = ""
        elif self.head or not letter.isspace():
            if not self.head:
                self.start = number
            self.parens += (letter in "([") - (letter in ")]")
            self.head += letter

    def open(self, number):
        head = " ".join(self.head.split())
        bare = re.sub(r"^typedef ", "", Declaration(0, 0, head, "", "").bare())
        kind = None
        if match := re.match(r"(?:inline )?namespace ?([\w:]*)", bare):
            kind, name = "namespace", match[1]
        elif re.match(r'(extern )?""$', bare):
            kind, name = "namespace", ""
        elif match := re.match(r"enum (?:class |struct )?(\w*)", bare):
            kind, name = "enum", match[1]
        elif (match := re.match(r"(?:class|struct|union) (?:\[\[\w+\]\] )?(\w*)", bare)) and not self.parens:
            kind, name = "class", match[1]
        if kind is None or self.parens:
            self.braces = 1
            return
        whole = "::".join(name for _, name in (*self.scopes, (kind, name)) if name)
        self.finish(number, kind, whole)
        self.scopes.append((kind, name))
        self.private.append(self.private[-1] or (kind == "class" and bare.startswith("class")))

    def finish(self, number, opens="", name=""):
        scope, owner = self.scopes[-1]
        if self.head.strip() and opens != "namespace":
            is_private = self.private[-1]
            self.declarations.append(Declaration(self.start, number, self.head, scope, owner, opens, name, is_private))
        self.head = ""


def escaped(text):
    """Words of a paragraph, in which nothing is a command. `code` is shown as such."""
    parts = text.split("`")
    for at, part in enumerate(parts):
        part = re.sub(r"([\\@#%])", r"\\\1", part).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        part = part.replace('"', "&quot;")  # Doxygen takes no backslash between quotes
        parts[at] = re.sub(r"[*~|]|(?<!\w)_|_(?!\w)", r"\\\g<0>", part)
    if len(parts) % 2 == 0:
        return "`".join(parts)
    return "".join(f"<code>{part}</code>" if at % 2 else part for at, part in enumerate(parts))


def documentation(comments):
    """The lines of a comment, without //, as lines of Doxygen. As many lines come out as go in."""
    texts = [comment.removeprefix(" ") for comment in comments]
    found, in_code, in_list = [], False, False
    for text in texts:
        is_item = re.match(r" *([-*]|\d+\.) ", text) is not None
        is_code = text.startswith("  ") and not in_list and not is_item
        if in_code and not is_code and text.strip():
            found[-1] += " \\endcode" if found[-1].strip() else "\\endcode"
            in_code = False
        if is_code and not in_code:
            if found:
                found[-1] += "\\code{.cpp}" if found[-1] == "" else " \\code{.cpp}"
            else:
                text = "\\code{.cpp} " + text
            in_code = True
        if in_code:
            found.append(text.removeprefix("  "))
        else:
            in_list = is_item or (in_list and text.startswith(" "))
            found.append(escaped_line(text, is_item))
    if in_code:
        found[-1] += " \\endcode"
    return found


def escaped_line(text, is_item):
    if not is_item:
        return escaped(text)
    mark, words = re.match(r"( *\S+ )(.*)", text).groups()
    return mark + escaped(words)


def on_one_line(comments):
    """The paragraphs of a comment, without its code."""
    words = []
    for comment in comments:
        text = comment.removeprefix(" ")
        if text.startswith("  "):
            continue
        words.append(escaped(text) if text else "<p>")
    while words[-1] == "<p>":
        words.pop()
    return f"/** {re.sub('(<p> )+', '<p> ', ' '.join(words))} */ "


def written_by_rule(declaration, classes, has_conventions):
    """What a member without a comment is, where its declaration says all. None: it needs a comment. "": not shown."""
    text = " ".join(declaration.bare().split())
    kind, name = declaration.type_and_name()
    if declaration.opens == "class":
        match = re.match(r"struct (\w+)Options$", text)
        return f"Options of {match[1]}." if match and match[1] in classes else None
    if declaration.scope == "define":
        return "" if declaration.owner.endswith("_H") else None
    if declaration.scope != "class":
        is_named_elsewhere = re.match(r"using (\w+::)+\w+$|(class|struct) \w+$|[\w:<>]+ \w+::\w+\(", text)
        return "" if is_named_elsewhere else None
    if re.match(r"using (\w+::)+\w+$|(class|struct) \w+$|static_assert|friend class ", text):
        return ""
    if re.search(r"= delete$", text):
        return "Is not copied." if name in (declaration.owner, "operator=") else None
    if re.search(r"= default$", text):
        if name == declaration.owner and "()" in text:
            return "Makes one with the default of each member."
        return "Compares all members." if "operator" in text and name != "operator=" else ""
    if re.match(rf"({declaration.owner}& operator=|{declaration.owner})\({declaration.owner}&&", text):
        return "Takes over what the other one holds."
    if name == "~" + declaration.owner:
        return "Frees what it holds."
    if name == declaration.owner:
        parameters = text[text.index("(") + 1 :]
        if parameters.startswith(")"):
            return "Takes no options; see the class."
        if match := re.match(r"(?:const )?((?:\w+::)*\w*Options)\b[&\s]*\w*( =)?\s*\)", parameters):
            return f"Makes one with these options; see {match[1]}."
    if has_conventions and (match := re.match(r"(Regularizer|Constraint) (\w+)_\w+ =", text)):
        kinds = {"Regularizer": "A penalty on", "Constraint": "A bound of"}
        return f"{kinds[match[1]]} the {match[2]}, none by default; see {match[1].lower()}.h."
    return SAME_EVERYWHERE.get(re.sub(r" =.*", " =", text)) if has_conventions else None


def class_of_header(path, declarations):
    """The class or enumeration that has the name of the header."""
    name = path.stem.replace("_", "").lower()
    return next(
        (
            each
            for each in declarations
            if each.opens and each.scope == "namespace" and each.name.split("::")[-1].lower() == name
        ),
        None,
    )


class Filter:
    def __init__(self, path):
        self.path = path
        self.texts = path.read_text().split("\n")
        self.lines = []
        in_comment = False
        for text in self.texts:
            line, in_comment = split_line(text, in_comment)
            self.lines.append(line)
        self.declarations = Parser(self.lines).parse()
        self.starts = {each.start: each for each in reversed(self.declarations)}
        self.documented = set()  # the first lines of declarations
        self.above = {}  # first line of a declaration: the comment above it

    def result(self):
        self.comments_after()
        self.comments_above()
        self.comments_of_groups()
        self.enumerators_on_one_line()
        self.rules()
        return "\n".join(self.texts)

    def write(self, lines, mark):
        for number, text in zip(lines, documentation([self.lines[each].comment for each in lines])):
            line = self.lines[number]
            self.texts[number] = f"{self.texts[number][: line.column]}{mark} {text}".rstrip()
            line.comment = None

    def comments_after(self):
        last = {}
        for each in self.declarations:
            last[each.end] = each
            if each.scope == "enum":  # its comma or brace may follow on the next line
                last.setdefault(each.start, each)
        for number, each in last.items():
            line = self.lines[number]
            if line.comment is None or "NOLINT" in line.comment or each.opens == "class" or not line.code.strip():
                continue
            lines = [number]
            while (next_line := self.lines[lines[-1] + 1]).column == line.column and not next_line.code.strip():
                if next_line.comment is None:
                    break
                lines.append(lines[-1] + 1)
            self.documented.add(each.start)
            self.write(lines, "///<")

    def blocks(self):
        block = []
        for number, line in enumerate(self.lines):
            if line.comment is not None and line.between and not line.code.strip():
                block.append(number)
                continue
            if block:
                yield block, number
            block = []

    def comments_above(self):
        for block, follows in list(self.blocks()):
            each = self.starts.get(follows)
            words = [self.lines[at].comment for at in block]
            if each is not None:
                if not (INHERITED.match(words[0].strip()) and len(words) == 1):
                    self.documented.add(each.start)
                    self.above[each.start] = words
                    self.write(block, "///")
            elif not any(each.start < block[0] for each in self.declarations if each.scope != "define"):
                self.comment_at_the_top(block)

    def comment_at_the_top(self, block):
        each = class_of_header(self.path, self.declarations)
        if block[0] == 0 or self.texts[block[0] - 1] != "":
            return
        if each is not None and self.lines[each.start - 1].comment is None and each.start not in self.documented:
            kind = re.search(r"enum|class|struct|union", each.bare())[0]
            self.texts[block[0] - 1] = f"/// \\{kind} {each.name}"
            self.documented.add(each.start)
            if self.texts[0] == "#pragma once":
                self.texts[0] = f"/** \\file {self.path.name} The header of {each.name}. */"
        else:
            self.texts[block[0] - 1] = "/// \\file"
        self.write(block, "///")

    def comments_of_groups(self):
        heads = []
        for before, each in zip([None, *self.declarations], self.declarations):
            if each.start in self.above:
                heads = [each]
                continue
            if before is None or each.start != before.end + 1 or each.owner != before.owner or before.opens:
                heads = []
            if heads and each.start not in self.documented:
                comment = self.above[heads[0].start]
                if each.shares_comment_of(heads, OF_EACH.match(comment[0])):
                    self.put(each, on_one_line(comment))
                    heads.append(each)

    def enumerators_on_one_line(self):
        """Where the comment of an enumeration explains what its short names mean."""
        for each in self.declarations:
            names = re.search(r"\{(.*)\};", self.texts[each.start]) if each.opens == "enum" else None
            if names and each.start in self.documented:
                shown = ", ".join(f"/** See {each.name}. */ {name.strip()}" for name in names[1].split(","))
                self.texts[each.start] = self.texts[each.start].replace(names[1], f" {shown} ")

    def put(self, each, text):
        line = self.texts[each.start]
        indent = len(line) - len(line.lstrip())
        self.texts[each.start] = line[:indent] + text + line[indent:]
        self.documented.add(each.start)

    def enumerators_without_comment(self):
        for each in self.declarations:
            if each.scope == "enum" and not each.is_private and each.start not in self.documented:
                yield each.start + 1, each.head.strip()

    def rules(self):
        classes = {each.name.split("::")[-1] for each in self.declarations if each.opens == "class"}
        for each in self.declarations:
            if each.start in self.documented or each.is_override:
                continue
            words = written_by_rule(each, classes, self.path.parent.name in ("nn", "optim"))
            if words:
                self.put(each, f"/** {words} */ ")
            elif words == "":
                for number in range(each.start, each.end + 1):
                    self.texts[number] = ""


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("comments: usage: scripts/doc/comments.py FOLDER INTO")
    folder, into = Path(sys.argv[1]), Path(sys.argv[2])
    into.mkdir(parents=True)
    is_complete = True
    for header in sorted(folder.rglob("*.h")):
        copy = into / header.relative_to(folder)
        copy.parent.mkdir(parents=True, exist_ok=True)
        filtered = Filter(header)
        copy.write_text(filtered.result())
        for line, name in filtered.enumerators_without_comment():
            print(f"{header}:{line}: error: Enumerator {name} is not documented.", file=sys.stderr)
            is_complete = False
    sys.exit(0 if is_complete else 1)
