"""Checks JSON against the part of JSON Schema that results/schema.json uses, so that the driver needs no package for it."""
import re

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
CHECKED = {"type", "enum", "const", "pattern", "minimum", "required", "properties", "additionalProperties", "items",
           "minItems", "maxItems", "oneOf", "$ref"}
NOTES = {"$schema", "$id", "$defs", "title", "description"}


def is_a(value, name):
    if name in ("number", "integer"):
        number = isinstance(value, int) or (name == "number" and isinstance(value, float))
        return number and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def same(a, b):
    return a == b and isinstance(a, bool) == isinstance(b, bool)  # 1 is not true


def errors(value, schema, root=None, path="the file"):
    """What is wrong, a line each; empty where the value fits. An unknown word in the schema is an error of ours."""
    root = root or schema
    assert not schema.keys() - CHECKED - NOTES, f"schema.py does not know {schema.keys() - CHECKED - NOTES}"
    if "$ref" in schema:
        return errors(value, root["$defs"][schema["$ref"].removeprefix("#/$defs/")], root, path)
    if "oneOf" in schema:  # the branches differ in a constant: the one that fits best is the one that was meant
        tried = [errors(value, branch, root, path) for branch in schema["oneOf"]]
        return min(tried, key=len)
    return [*of_scalar(value, schema, path), *of_object(value, schema, root, path), *of_array(value, schema, root, path)]


def of_scalar(value, schema, path):
    names = schema.get("type", [])
    names = [names] if isinstance(names, str) else names
    if names and not any(is_a(value, name) for name in names):
        return [f"{path}: expected {' or '.join(names)}, got {str(value)[:60]!r}"]
    if "const" in schema and not same(value, schema["const"]):
        return [f"{path}: expected {schema['const']!r}, got {str(value)[:60]!r}"]
    if "enum" in schema and not any(same(value, one) for one in schema["enum"]):
        return [f"{path}: expected one of {schema['enum']}, got {str(value)[:60]!r}"]
    if "pattern" in schema and isinstance(value, str) and not re.search(schema["pattern"], value):
        return [f"{path}: {value[:60]!r} does not match {schema['pattern']}"]
    if "minimum" in schema and is_a(value, "number") and not value >= schema["minimum"]:  # NaN is wrong too
        return [f"{path}: {value} is below {schema['minimum']}"]
    return []


def of_object(value, schema, root, path):
    if not isinstance(value, dict):
        return []
    found = [f"{path}: lacks {name!r}" for name in schema.get("required", []) if name not in value]
    known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
    for name, item in value.items():
        here = f"{path}.{name}" if path != "the file" else name
        if name in known:
            found += errors(item, known[name], root, here)
        elif others is False:
            found.append(f"{here}: the schema knows no such field")
        elif others is not True:
            found += errors(item, others, root, here)
    return found


def of_array(value, schema, root, path):
    if not isinstance(value, list):
        return []
    least, most = schema.get("minItems", 0), schema.get("maxItems", len(value))
    fits = least <= len(value) <= most
    found = [] if fits else [f"{path}: has {len(value)} items, needs {least if len(value) < least else most}"]
    if "items" in schema:
        for at, item in enumerate(value):
            found += errors(item, schema["items"], root, f"{path}[{at}]")
    return found
