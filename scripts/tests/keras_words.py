#!/usr/bin/env python3
"""Checks docs/keras.md against Keras and the public headers, and counts.

    KERAS_BACKEND=numpy python3 scripts/tests/keras_words.py     (needs Keras, as tests/interop does)

Prints each public name of Keras that has no row, each row that names something Keras does not have, and each name in a
second column that no public header declares. The table of counts at the top of the page must be what the rows give; the
counts are printed. Exit code: 0 all is well, 1 something is to be changed.

A row is "| words of Keras | names of Holdfast | note |". The second column is "absent", or begins with "partly", or
says what takes the place of the word. In backticks it has names alone: `Dense`, `losses::Huber`, `Dataset::batch()`.
"""

import inspect
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/keras.md"
# Those that sdk/include includes, too.
HEADERS = ("sdk", "base", "recovery")

# Sections (## or ###) whose rows have all public names of a module of Keras.
MODULES = {
    "Layers": "layers",
    "Activations": "activations",
    "Initializers": "initializers",
    "Regularizers": "regularizers",
    "Constraints": "constraints",
    "Losses": "losses",
    "Metrics": "metrics",
    "Optimizers": "optimizers",
    "Learning rate schedules": "optimizers.schedules",
    "Callbacks": "callbacks",
    "Models": "models",
    "Utilities": "utils",
    "Random numbers": "random",
    "Distribution": "distribution",
}
# Sections with rows for some names of a module.
PARTS_OF_MODULES = {"Functions of values": "ops", "Loading and saving": "saving", "Data sets of Keras": "datasets"}
# Sections with a row for each argument of a function of keras.Model.
FUNCTIONS = {"fit()": "fit", "compile()": "compile", "evaluate()": "evaluate", "predict()": "predict"}

# The table of counts: what it calls a part, the sections that are counted, and the names there that are not features.
# Sections of modules count classes; that of activations counts functions, and all others count rows.
COUNTED = {
    "layers": (("Layers",), {"InputSpec"}),
    "ways to make a model": (("Ways to make a model",), set()),
    "losses": (("Losses",), {"Loss"}),
    "metrics": (("Metrics",), {"Metric", "Mean", "MeanMetricWrapper", "Sum"}),
    "optimizers": (("Optimizers",), {"Optimizer", "OptimizerMap", "MultiOptimizer", "LossScaleOptimizer"}),
    "learning rate schedules": (("Learning rate schedules",), {"LearningRateSchedule"}),
    "options of optimizers": (("Options of optimizers",), set()),
    "callbacks": (("Callbacks",), {"Callback", "CallbackList"}),
    "arguments of fit()": (("fit()",), set()),
    "activations": (("Activations",), {"get", "serialize", "deserialize"}),
    "initializers": (("Initializers",), {"Initializer"}),
    "regularizers and constraints": (("Regularizers", "Constraints"), {"Regularizer", "Constraint"}),
    "what is trained": (("What is trained",), set()),
    "data": (("Stages of data",), set()),
    "files": (("Files of others",), set()),
}
STATES = ("present", "partly", "absent")


class Row:
    def __init__(self, line, section, place):
        self.line, self.section, self.place = line, section, place
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        self.words, self.holdfast = cells[0], cells[1] if len(cells) == 3 else ""
        self.has_three_cells = len(cells) == 3

    def keras_words(self):
        return re.findall(r"`([^`]+)`", self.words)

    def names(self):
        return [word for word in self.keras_words() if re.fullmatch(r"\w+", word)]

    def state(self):
        first = re.match(r"\w*", self.holdfast).group()
        return first if first in ("absent", "partly") else "present"


def rows_of(page):
    """All rows of tables of words, with their sections: a row belongs to its ### heading, and to the ## above."""
    rows, above, heading = [], None, None
    for number, line in enumerate(page.splitlines(), 1):
        if line.startswith("## "):
            above = heading = line[3:].strip()
        elif line.startswith("### "):
            heading = line[4:].strip()
        elif line.startswith("|") and above and not re.match(r"\|( Keras \||[-| ]+$)", line):
            own = heading if heading in MODULES | FUNCTIONS | PARTS_OF_MODULES or is_counted_by_rows(heading) else above
            rows.append(Row(line, own, f"docs/keras.md:{number}"))
    return rows


def is_counted_by_rows(section):
    return section not in MODULES and any(section in sections for sections, _ in COUNTED.values())


def module_of(keras, path):
    for name in path.split("."):
        keras = getattr(keras, name)
    return keras


def public_names(module):
    return [name for name in dir(module)
            if not name.startswith("_") and not inspect.ismodule(getattr(module, name))]


def arguments(function):
    return [name for name, parameter in inspect.signature(function).parameters.items()
            if name != "self" and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)]


def missing_words(rows, keras):
    """Names of Keras without a row, names of rows that Keras does not have, and names with two rows."""
    found = []
    lists = [(section, f"keras.{path}", public_names(module_of(keras, path))) for section, path in MODULES.items()]
    lists += [(section, f"keras.Model.{name}", arguments(getattr(keras.Model, name)))
              for section, name in FUNCTIONS.items()]
    for section, module, names in lists:
        listed = [(name, row) for row in rows if row.section == section for name in row.names()]
        words = [name for name, _ in listed]
        found += [f"docs/keras.md has no row for {name} of {module} in its section {section!r}"
                  for name in names if name not in words]
        found += [f"{row.place}: {module} has no {name}" for name, row in listed if name not in names]
        found += [f"{row.place}: a second row for {name}" for i, (name, row) in enumerate(listed) if name in words[:i]]
    for section, path in PARTS_OF_MODULES.items():
        found += [f"{row.place}: keras.{path} has no {name}" for row in rows if row.section == section
                  for name in row.names() if not hasattr(module_of(keras, path), name)]
    return found + missing_options(rows, keras)


def missing_options(rows, keras):
    """Options are written `Class(option=)`. A class with one such row has a row for each of its options."""
    listed = {}
    for row in rows:
        for word in row.keras_words():
            option = re.fullmatch(r"(\w+)\((\w+)=\)", word)
            if option:
                listed.setdefault((row.section, option[1]), {})[option[2]] = row.place
    found = []
    for (section, name), options in listed.items():
        known = arguments(getattr(module_of(keras, MODULES[section]), name))
        found += [f"docs/keras.md has no row for {name}({option}=)" for option in known if option not in options]
        found += [f"{place}: {name} of Keras has no {option}"
                  for option, place in options.items() if option not in known]
    return found


class Headers:
    """The declarations of the public headers, without comments."""

    def __init__(self, text):
        self.text = re.sub(r"//[^\n]*", "", text)
        self.known, self.bodies_of = {}, {}

    @staticmethod
    def of_tree():
        paths = [path for part in HEADERS for path in sorted((ROOT / part / "include").rglob("*.h"))]
        return Headers("\n".join(path.read_text() for path in paths))

    def declares(self, name):
        if name not in self.known:
            *scopes, last = name.split("::")
            self.known[name] = any(self.declares_here(text, last, bool(scopes)) for text in self.bodies(tuple(scopes)))
        return self.known[name]

    def bodies(self, scopes):
        """What stands between the braces of each class, enumeration or namespace of that name; all for no name."""
        if not scopes:
            return [self.text]
        if scopes not in self.bodies_of:
            self.bodies_of[scopes] = [body for text in self.bodies(scopes[:-1])
                                      for body in self.bodies_in(text, scopes[-1])]
        return self.bodies_of[scopes]

    @staticmethod
    def bodies_in(text, scope):
        opening = rf"\b(?:class|struct|enum class|namespace)\s+(?:holdfast::)?{scope}\b[^;{{}}()]*\{{"
        for match in re.finditer(opening, text):
            depth, end = 1, match.end()
            for brace in re.compile(r"[{}]").finditer(text, match.end()):
                depth += 1 if brace.group() == "{" else -1
                end = brace.end()
                if depth == 0:
                    break
            yield text[match.end() : end]

    @staticmethod
    def declares_here(text, name, is_in_scope):
        if name.startswith("operator"):
            return name + "(" in text
        name = re.escape(name)
        if re.search(rf"\b(?:class|struct|enum class|enum)\s+{name}\b[^;{{}}()]*\{{|\busing\s+{name}\s*=", text):
            return True
        if is_in_scope:  # members and enumerators
            return re.search(rf"\b{name}\b", text) is not None
        return re.search(rf"^[A-Za-z][^\n]*\b{name}\(", text, re.MULTILINE) is not None  # functions


def unknown_names(rows, headers):
    found = []
    for row in rows:
        for code in re.findall(r"`([^`]+)`", row.holdfast):
            for name in re.findall(r"operator[-+*/]|[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*", code):
                if name not in ("true", "false") and not headers.declares(name):
                    found.append(f"{row.place}: no public header declares {name}")
    return found


def malformed(rows):
    found = [f"{row.place}: a row has three cells: {row.line}" for row in rows if not row.has_three_cells]
    return found + [f"{row.place}: the second column is empty"
                    for row in rows if row.has_three_cells and not row.holdfast]


def features(rows, keras, sections, others):
    """The states of all features of these sections. An alias is not a feature of its own."""
    states = {}
    for row in rows:
        if row.section not in sections:
            continue
        if row.section not in MODULES:
            for name in row.names() if row.section in FUNCTIONS else [row.place]:
                states[name] = row.state()
            continue
        module = module_of(keras, MODULES[row.section])
        for name in row.names():
            value = getattr(module, name, None)
            if name not in others and (inspect.isclass(value) or (row.section == "Activations" and callable(value))):
                if getattr(value, "__name__", name) not in others:
                    states[id(value)] = row.state()
    return list(states.values())


def counts(rows, keras):
    """For each part, how many features Keras has, and how many are present, partly there and absent."""
    table = {}
    for part, (sections, others) in COUNTED.items():
        states = features(rows, keras, sections, others)
        table[part] = [len(states)] + [states.count(state) for state in STATES]
    table["sum"] = [sum(column) for column in zip(*table.values())]
    return table


def wrong_counts(page, rows, keras):
    found = []
    for part, numbers in counts(rows, keras).items():
        line = f"| {part} | {' | '.join(map(str, numbers))} |"
        if line not in page.splitlines():
            found.append(f"docs/keras.md: the table of counts should have the line {line}")
    return found


def problems(page, headers, keras):
    rows = rows_of(page)
    found = malformed(rows)
    if found:
        return found
    return missing_words(rows, keras) + unknown_names(rows, headers) + wrong_counts(page, rows, keras)


def main():
    import keras

    page = PAGE.read_text()
    found = problems(page, Headers.of_tree(), keras)
    for part, numbers in counts(rows_of(page), keras).items():
        print(f"| {part} | {' | '.join(map(str, numbers))} |")
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
