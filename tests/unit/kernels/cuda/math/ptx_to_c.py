"""Turns PTX, the text that nvcc makes of device functions, into C.
Usage: ptx_to_c.py IN.ptx OUT.c PREFIX

Every instruction becomes a call of a function of the same name (dots become underscores), which
ptx_model.h and ptx_model_floats.h define; an instruction that is not there does not link.
Registers become variables, labels labels, parameters pieces of memory. A function entry_f becomes
void PREFIX_entry_f(result, argument, ..), all of them addresses; others are static.

A text with kernels (.entry) becomes one with void PREFIX_kernel(void *const *arguments) and the
number of bytes it shares, for tests/unit/kernels/ptx/ptx_block.h, which runs a block's threads: its
loads and stores of global and shared memory and of what may be either are checked, as are atomics
and cp.async, bar.sync yields. Tables in global memory are listed, as PREFIX_tables. What is not
known there (shuffles, indirect branches) is refused, by the linker at the latest.
"""

import re
import sys

C_TYPE = {"pred": "bool", "f32": "float", "f64": "double", "s32": "int32_t", "s64": "int64_t"}
C_TYPE.update({"s8": "int8_t", "s16": "int16_t"})
C_TYPE.update(dict.fromkeys(("b8", "u8"), "uint8_t"))
C_TYPE.update(dict.fromkeys(("b16", "u16"), "uint16_t"))
C_TYPE.update(dict.fromkeys(("b32", "u32"), "uint32_t"))
C_TYPE.update(dict.fromkeys(("b64", "u64"), "uint64_t"))
FLOATS = ("f32", "f64")
IGNORED = (".version", ".target", ".address_size", ".pragma")


def identifier(name):
    return re.sub(r"[%$]", "r_", name)


class Translator:
    def __init__(self, prefix):
        self.prefix = prefix
        self.scopes = [{}]  # register -> type
        self.out = []
        self.has_kernels = False
        self.tables = []  # in global memory: name and bytes
        self.names = set()  # of functions declared so far
        self.kernel = None  # whose body this is, and the bytes that its threads share
        self.n_shared_bytes = 0
        self.parameters = []  # of the kernel

    def type_of(self, register):
        for scope in reversed(self.scopes):
            if register in scope:
                return scope[register]
        raise SystemExit(f"no register {register}")

    def read(self, operand, wanted):
        """The operand as a C expression of the type `wanted`."""
        if re.fullmatch(r"%(n?tid|n?ctaid)\.[xyz]", operand):
            return f"({C_TYPE[wanted]})ptx_{operand[1:].replace('.', '_')}()"
        if operand.startswith("%"):
            has = self.type_of(operand)
            name = identifier(operand)
            if (has in FLOATS) == (wanted in FLOATS) or wanted == "pred":
                return f"({C_TYPE[wanted]}){name}"
            return f"({C_TYPE[wanted]})bits_as_{wanted}({name})" if wanted in FLOATS else \
                f"({C_TYPE[wanted]}){has}_as_bits({name})"
        if operand.startswith("0f"):
            return f"bits_as_f32(0x{operand[2:]}u)"
        if operand.startswith("0d"):
            return f"bits_as_f64(0x{operand[2:]}u)"
        if re.fullmatch(r"-?\d+", operand):
            literal = f"(int64_t)(uint64_t){int(operand) % 2**64}u"
            return f"({C_TYPE[wanted]})({literal})"
        return f"({C_TYPE[wanted]})(uintptr_t){identifier(operand)}"

    def write(self, register, value, given):
        """Assigns a C expression of the type `given`."""
        if register == "_":
            return
        has = self.type_of(register)
        if has in FLOATS and given not in FLOATS:
            value = f"bits_as_{has}({value})"
        elif given in FLOATS and has not in FLOATS:
            value = f"{given}_as_bits({value})"
        self.out.append(f"{identifier(register)} = ({C_TYPE[has]})({value});")

    def address(self, operand):
        base, _, offset = operand.strip("[]").partition("+")
        if base.startswith("%"):
            base = f"(uintptr_t){identifier(base)}"
        else:
            base = f"(uintptr_t){identifier(base)}"
        return f"({base} + (uintptr_t)(intptr_t){offset or 0})"

    def move_memory(self, parts, operands):
        kind, item = parts[0], parts[-1]
        n_items = int(parts[-2][1:]) if re.fullmatch(r"v\d", parts[-2]) else 1
        registers, place = (operands[:n_items], operands[n_items]) if kind == "ld" else \
            (operands[1:], operands[0])
        size = int(item[1:]) // 8
        space = next((p for p in parts if p in ("global", "shared", "local", "param")), "generic")
        at = self.address(place)
        if self.has_kernels and space not in ("local", "param"):
            at = f"ptx_{kind}_{space}({at}, {n_items * size}, __LINE__)"
        self.out.append(f"{{ const uintptr_t at = {at};")
        for i, register in enumerate(registers):
            where = f"at + {i * size}"
            if kind == "ld":
                self.write(register, f"load_{item}({where})", item)
            else:
                self.out.append(f"store_{item}({where}, {self.read(register, item)});")
        self.out.append("}")

    def atomic(self, parts, operands):
        """atom.shared.OP.TYPE d, [a], b."""
        op, item = parts[-2:]
        target, place, value = operands
        self.out.append(f"{{ const uintptr_t at = ptx_atomic_shared({self.address(place)}, "
                        f"{int(item[1:]) // 8}, __LINE__); {C_TYPE[item]} before = load_{item}(at);")
        self.out.append(f"store_{item}(at, {op}_{item}(before, {self.read(value, item)}));")
        self.write(target, "before", item)
        self.out.append("}")

    def copy_ahead(self, parts, operands):
        """cp.async of n bytes, and its groups."""
        if parts[-1] == "commit_group":
            self.out.append("ptx_commit_group();")
        elif parts[-1] == "wait_group":
            self.out.append(f"ptx_wait_group({operands[0]}, __LINE__);")
        else:
            to, source = (self.address(place) for place in operands[:2])
            self.out.append(f"ptx_cp_async({to}, {source}, {operands[2]}, __LINE__);")

    def move_pair(self, text):
        """mov.b64 {a, b}, x and mov.b64 x, {a, b}."""
        registers = re.findall(r"[%\w.$-]+", text.split(None, 1)[1])
        if text.split(None, 1)[1].lstrip().startswith("{"):
            low, high, source = registers
            value = self.read(source, "b64")
            self.out.append(f"{{ uint64_t pair = {value};")
            self.write(low, "(uint32_t)pair", "b32")
            self.write(high, "(uint32_t)(pair >> 32)", "b32")
            self.out.append("}")
        else:
            target, low, high = registers
            self.write(target, f"(uint64_t){self.read(low, 'b32')} | "
                               f"(uint64_t){self.read(high, 'b32')} << 32", "b64")

    def types_of(self, parts, n_sources):
        """The result's type and the sources'."""
        op, last = parts[0], parts[-1]
        if op == "setp":
            return "pred", [last] * n_sources
        if op == "selp":
            return last, [last, last, "pred"]
        if op == "cvt":
            return parts[-2], [last]
        if op == "popc":
            return "u32", [last]
        if op == "prmt":
            return last, [last, last, "u32"]
        if op in ("shl", "shr"):
            return last, [last, "u32"]
        if op == "bfi":
            return last, [last, last, "u32", "u32"]
        if op == "clz":
            return "u32", [last]
        if "wide" in parts:
            wide = f"{last[0]}{2 * int(last[1:])}"
            return wide, [last, last, wide][:n_sources]
        return last, [last] * n_sources

    def instruction(self, text):
        mnemonic, rest = [*text.split(None, 1), ""][:2]
        parts = mnemonic.split(".")
        operands = re.findall(r"\[[^\]]*\]|[%\w.$-]+", rest)
        if parts[0] in ("ld", "st"):
            self.move_memory(parts, operands)
            return
        if parts[0] == "atom":
            self.atomic(parts, operands)
            return
        if parts[:2] == ["cp", "async"]:
            self.copy_ahead(parts, operands)
            return
        if mnemonic == "mov.b64" and "{" in rest:
            self.move_pair(text)
            return
        target, sources = operands[0], operands[1:]
        given, wanted = self.types_of(parts, len(sources))
        arguments = [self.read(s, w) for s, w in zip(sources, wanted)]
        if "cc" in parts or parts[0] in ("addc", "subc", "madc"):
            arguments.append("&carry")
        if parts[0] == "cvt" and len(parts) == 3 and given not in FLOATS and wanted[0] not in FLOATS:
            self.write(target, f"({C_TYPE[given]}){arguments[0]}", given)
            return
        self.write(target, f"{mnemonic.replace('.', '_')}({', '.join(arguments)})", given)

    def statement(self, text):
        match = re.match(r"@(!?)(%\w+)\s+(.*)", text, re.S)
        if match:
            self.out.append(f"if ({match[1]}{identifier(match[2])}) {{")
            self.statement(match[3])
            self.out.append("}")
            return
        word = text.split(None, 1)[0]
        if word in IGNORED:
            return
        if text.startswith(".extern .shared"):  # what the launch gives, in kernels that have no other
            name = re.search(r"([\w$]+)\[", text)[1]
            self.out.append(f"enum {{ {identifier(name)} = 0 }};")
            return
        if word == ".reg":
            self.declare_registers(text)
        elif word in (".param", ".local", ".global"):
            self.declare_memory(text)
        elif word == ".shared":
            self.declare_shared(text)
        elif text.split() == ["bar.sync", "0"]:
            self.out.append("ptx_barrier(__LINE__);")
        elif word in ("bra", "bra.uni"):
            self.out.append(f"goto {identifier(text.split()[1])};")
        elif word == "ret":
            self.out.append("return;")
        elif word == "call.uni":
            names = re.findall(r"[\w$]+", text.split(None, 1)[1])
            called = next(n for n in names if n in self.names)
            names.remove(called)
            self.out.append(f"{identifier(called)}({', '.join(names)});")
        else:
            self.instruction(text)

    def declare_registers(self, text):
        kind = text.split()[1].lstrip(".")
        for name in re.findall(r"%[\w]+(?:<\d+>)?", text):
            base, _, count = name.partition("<")
            every = [f"{base}{i}" for i in range(int(count.rstrip(">")))] if count else [base]
            for register in every:
                self.scopes[-1][register] = kind
            listed = ", ".join(f"{identifier(r)} = 0" for r in every)
            self.out.append(f"{C_TYPE[kind]} {listed};")

    def declare_memory(self, text):
        size = re.search(r"\.b(\d+)\s+([\w$]+)(?:\[(\d+)\])?", text)
        n_bytes = int(size[1]) // 8 * int(size[3] or 1)
        values = re.search(r"=\s*(\{[^}]*\})", text)
        what = "static const" if text.startswith(".global") else ""
        if what:
            self.tables.append((identifier(size[2]), n_bytes))
        self.out.append(f"{what} unsigned char __attribute__((aligned(16))) "
                        f"{identifier(size[2])}[{n_bytes}]{' = ' + values[1] if values else ''};")

    def declare_shared(self, text):
        """An address in a block's shared memory is the distance from its beginning."""
        align, bits, name, count = re.search(
            r"\.align\s+(\d+)\s+\.b(\d+)\s+([\w$]+)(?:\[(\d+)\])?", text).groups()
        start = -(-self.n_shared_bytes // int(align)) * int(align)
        self.n_shared_bytes = start + int(bits) // 8 * int(count or 1)
        self.out.append(f"enum {{ {identifier(name)} = {start} }};")

    def kernel_head(self, text):
        head = text[:text.index(")")]
        name, *self.parameters = re.findall(r"(?:\.entry|\.[busf]\d+)\s+(?:\.ptr[ .\w]*\s)?([\w$]+)",
                                            head)
        self.kernel, self.n_shared_bytes = f"{self.prefix}_{identifier(name)}", 0
        self.out.append(f"void {self.kernel}(void *const *arguments)")

    def kernel_begin(self):
        for i, parameter in enumerate(self.parameters):
            self.out.append(f"void *const {identifier(parameter)} = arguments[{i}];")

    def kernel_end(self):
        self.out.append(f"const uint32_t {self.kernel}_shared_bytes = {self.n_shared_bytes};")
        self.kernel, self.parameters = None, []

    def function(self, text):
        """The head of one, up to its body or the ; of a declaration."""
        if ".entry" in text:
            self.kernel_head(text)
            return
        text = re.sub(r"\.visible|\.func|\.noreturn", "", text)
        result = re.match(r"\s*\(([^)]*)\)", text)
        rest = text[result.end():] if result else text
        name = re.search(r"[\w$]+", rest)[0]
        names = re.findall(r"\.b\d+\s+([\w$]+)", (result[1] if result else "") + rest)
        self.names.add(name)
        listed = ", ".join(f"void *{identifier(n)}" for n in names)
        linkage = "" if name.startswith("entry_") else "static "
        prefix = f"{self.prefix}_" if name.startswith("entry_") else ""
        self.out.append(f"{linkage}void {prefix}{identifier(name)}({listed or 'void'})")

    def translate(self, text):
        text = re.sub(r"//[^\n]*", "", text)
        text = re.sub(r"\{ (\.reg [^;]*;)", r"{\n\1", text)  # a block within a line
        text = re.sub(r"; \}", ";\n}", text)
        self.has_kernels = ".entry" in text
        depth, pending = 0, ""
        for line in text.split("\n"):
            stripped = line.strip()
            if not pending and re.fullmatch(r"[$\w]+:", stripped):
                self.out.append(f"{identifier(stripped[:-1])}:;")
            elif not pending and stripped == "}":
                depth -= 1
                self.scopes.pop()
                self.out.append("}")
                if depth == 0 and self.kernel:
                    self.kernel_end()
            elif stripped == "{":
                if pending:
                    self.function(pending)
                    pending = ""
                self.out.append("{" + ("uint32_t carry = 0; (void)carry;" if depth == 0 else ""))
                if depth == 0:
                    self.kernel_begin()
                depth += 1
                self.scopes.append({})
            else:
                pending = (pending + " " + stripped).strip()
                while ";" in pending:
                    first, pending = (p.strip() for p in pending.split(";", 1))
                    if re.match(r"(\.visible\s+)?\.func", first):
                        self.function(first)
                        self.out.append(";")
                    elif first:
                        self.statement(first)
                if pending.split(None, 1)[:1] and pending.split()[0] in IGNORED:
                    pending = ""
        if self.has_kernels:
            listed = ", ".join(f"{{(void *){name}, {n_bytes}, 0}}" for name, n_bytes in self.tables)
            self.out.append(f"const struct ptx_buffer {self.prefix}_tables[] = {{{listed or '{0}'}}};")
            self.out.append(f"const unsigned {self.prefix}_n_tables = {len(self.tables)};")
        return "\n".join(self.out)


def main():
    with open(sys.argv[1], encoding="utf-8") as source:
        text = source.read()
    body = Translator(sys.argv[3]).translate(text)
    headers = ["tests/unit/kernels/cuda/math/ptx_model_floats.h"]
    if ".entry" in text:
        headers.append("tests/unit/kernels/ptx/ptx_block.h")
    with open(sys.argv[2], "w", encoding="utf-8") as target:
        target.write("".join(f'#include "{h}"\n' for h in headers) + body + "\n")


main()
