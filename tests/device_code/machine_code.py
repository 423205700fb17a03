"""Machine code from cuobjdump: kernels, the resources that they use of a multiprocessor, and their instructions."""

import re
import subprocess
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Instruction:
    text: str  # "@!P0 FFMA R5, R4, R7, R4"

    @property
    def operation(self):
        """With its suffixes: "LDG.E.128"."""
        return re.sub(r"^@!?U?P\w+\s+", "", self.text).split()[0]

    @property
    def name(self):
        return self.operation.split(".")[0]

    @property
    def operands(self):
        rest = re.sub(r"^@!?U?P\w+\s+", "", self.text).partition(" ")[2]
        return [operand.strip() for operand in rest.split(",")] if rest else []

    @property
    def is_multiply_add(self):
        """Arithmetic in f32 or f64. HFMA2, which moves constants as two halves, does not count."""
        return self.name in ("FFMA", "DFMA")


@dataclass
class Kernel:
    symbol: str
    name: str  # without arguments
    instructions: list = field(default_factory=list)
    stack_bytes: int = 0

    def has(self, name, suffix=""):
        return any(i.name == name and suffix in i.operation.split(".")[1:] + [""] for i in self.instructions)


def readable(symbols):
    """Names without namespaces and arguments: "elements_kernel<4, AdamPass>"."""
    lines = subprocess.run(["c++filt"], input="\n".join(symbols), text=True, capture_output=True, check=True).stdout
    names = []
    for line in lines.splitlines():
        short = re.sub(r"\(anonymous namespace\)::|holdfast::(compute::)?|^void ", "", line)
        names.append(short.split("(")[0])
    return names


def read_instructions(listing):
    """The instructions by symbol, from the output of `cuobjdump -sass`."""
    found, current = {}, None
    for line in listing.splitlines():
        if function := re.search(r"Function : (\S+)", line):
            current = found.setdefault(function[1], [])
        elif instruction := re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;", line):
            current.append(Instruction(instruction[1]))
    return found


def read_kernels(library, architecture):
    def cuobjdump(option):
        command = ["cuobjdump", option, "-arch", architecture, str(library)]
        return subprocess.run(command, text=True, capture_output=True, check=True).stdout

    instructions = read_instructions(cuobjdump("-sass"))
    stacks = dict(re.findall(r"Function (\S+?):\s+REG:\d+ STACK:(\d+)", cuobjdump("-res-usage")))
    return [
        Kernel(symbol, name, instructions[symbol], int(stacks[symbol]))
        for symbol, name in zip(instructions, readable(instructions))
    ]


def registers(operand, is_pair):
    numbers = {int(number) for number in re.findall(r"\bR(\d+)\b", operand)}
    return numbers | {number + 1 for number in numbers} if is_pair else numbers


def has_constant(instruction):
    """An operand that is a constant or zero, as in the terms of a polynomial and in plain products."""
    return any(
        "RZ" in operand or re.fullmatch(r"[-+]?(\d[\d.]*(e[-+]?\d+)?|INF|QNAN)", operand)
        for operand in instruction.operands[1:]
    )


def contractions(instructions):
    """The multiply-adds that do not belong to a division, a square root, an exponential, a logarithm or such a function.

    All of those begin with an approximation (MUFU) that multiply-adds refine, or end with one that multiply-adds prepare, or are polynomials,
    whose coefficients stand in the instructions. So a multiply-add does not count if it has a constant, takes an earlier result of one of
    these, or gives its result to one. Any other is a product and a sum of the source that were fused, with other bits. Instructions are read
    in their order, whatever jumps there are.
    """
    is_explained = [i.is_multiply_add and has_constant(i) for i in instructions]

    def read(order, is_backward):
        marked = set()
        for at in order:
            instruction = instructions[at]
            operands = instruction.operands
            if not operands or not operands[0].startswith("R"):
                continue
            is_pair = instruction.name.startswith("D") or "64" in instruction.operation
            result = registers(operands[0], is_pair)
            sources = set().union(*(registers(operand, is_pair) for operand in operands[1:]))
            is_source = instruction.name == "MUFU" or (instruction.is_multiply_add and has_constant(instruction))
            known, given = (result, sources) if is_backward else (sources, result)
            is_marked = bool(known & marked)
            if is_marked and instruction.is_multiply_add:
                is_explained[at] = True
            if instruction.name.startswith("LD"):
                is_marked = False
            marked -= result
            if is_marked or (instruction.name == "MUFU" if is_backward else is_source):
                marked |= given

    read(range(len(instructions)), is_backward=False)
    read(reversed(range(len(instructions))), is_backward=True)
    return [i for i, explained in zip(instructions, is_explained) if i.is_multiply_add and not explained]
