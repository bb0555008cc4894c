# Copyright 2026 Flant JSC
# SPDX-License-Identifier: Apache-2.0

"""Selector questions beyond the recorded 86: every function, macro and rule, on devices of several drivers.

    python tests/contract/go-oracle/questions.py >questions.jsonl

`record.py` hands them to the real evaluators and writes `tests/fixtures/cel-golden-more.json`.
"""

import json
import random
import re
from collections.abc import Iterator
from typing import Any, Final

N: Final = 'device.attributes["gpu.nvidia.com"]'
C: Final = 'device.capacity["gpu.nvidia.com"]'

DEVICES: Final[dict[str, dict[str, Any]]] = {
    "gpu": {
        "driver": "gpu.nvidia.com",
        "device": {
            "name": "gpu-0",
            "attributes": {
                "type": {"string": "gpu"},
                "productName": {"string": "NVIDIA L40S"},
                "uuid": {"string": "GPU-3f2a"},
                "driverVersion": {"version": "580.159.4"},
                "pre": {"version": "1.2.3-rc.1+build.5"},
                "index": {"int": 3},
                "negative": {"int": -7},
                "big": {"int": 9223372036854775807},
                "mig": {"bool": False},
                "good": {"bool": True},
                "empty": {"string": ""},
                "unicode": {"string": "Größe 漢字"},
                "address": {"string": "0000:65:00.0"},
                "version": {"string": "v570.086"},
                "resource.kubernetes.io/pcieRoot": {"string": "pci0000:15"},
                "resource.kubernetes.io/numaNode": {"int": 1},
            },
            "capacity": {
                "memory": {"value": "46068Mi"},
                "shares": {"value": "10"},
                "fraction": {"value": "1500m"},
                "slow": {"value": "1.5Gi"},
                "example.com/cores": {"value": "142"},
            },
            "allowMultipleAllocations": True,
        },
    },
    "bare": {"driver": "bare.example.com", "device": {"name": "d"}},
    "broken": {
        "driver": "gpu.nvidia.com",
        "device": {"name": "d", "attributes": {"driverVersion": {"version": "5.01.0"}}},
    },
    "lists": {"driver": "dra.example.com", "device": {"name": "d", "attributes": {"names": {"strings": ["a"]}}}},
}

GPU: Final = f"""
{N}.type == "gpu"
{N}.type != "gpu"
"gpu" == {N}.type
{N}["type"] == 'gpu'
device["driver"] == "x"
device.driver == "gpu.nvidia.com"
device.driver.startsWith("gpu.") && device.driver.endsWith(".com") && device.driver.contains("nvidia")
device.driver.size() == 14
size(device.driver) == 14
device.allowMultipleAllocations
!device.allowMultipleAllocations
has(device.driver)
has(device.allowMultipleAllocations)
has(device.attributes)
has(device.attributes.foo)
has(device.attributes.foo.bar)
has({N}.type)
has({N}.nope)
has({N}.nope.deeper)
has({N}.type.deeper)
has(device.nosuch)
has({C}.memory)
has({C}.nope)
has(device.capacity["nope.example.com"].memory)
"gpu.nvidia.com" in device.capacity
"example.com" in device.capacity
"memory" in {C}
"nope" in device.capacity["nope.example.com"]
1 in device.attributes
device.attributes[1].x == 1
device.attributes == {{}}
device.attributes.size() == 2
size(device.capacity) == 2
device.attributes["resource.kubernetes.io"].pcieRoot == "pci0000:15"
device.attributes["resource.kubernetes.io"]["numaNode"] == 1
device.attributes["no.such"].size() == 0
device.attributes["no.such"] == {{}}
{N}.size() > 5
{N}.index == 3 && {N}.index == 3u && {N}.index == 3.0
{N}.index > 2.5
{N}.index < 3u
{N}.index >= 3
{N}.index <= 2
{N}.index + 1 == 4
{N}.index - 4 == -1
{N}.index * 2 == 6
{N}.index / 2 == 1
{N}.negative / 2 == -3
{N}.negative % 4 == -3
{N}.index % 2 == 1
{N}.index % 0 == 1
{N}.big + 1 > 0
{N}.big * 2 > 0
-{N}.big - 2 < 0
-{N}.index == -3
--{N}.index == 3
-{N}.type == 1
!{N}.mig
!!{N}.good
!{N}.type
!{N}.index
{N}.mig
{N}.good
{N}.index
{N}.nope
{N}.driverVersion
{C}.memory
{N}
device
{N}.mig || {N}.good
{N}.mig && {N}.good
{N}.type && true
{N}.type || true
{N}.type || false
true || {N}.type
{N}.nope || true
{N}.nope || false
false || {N}.nope
{N}.nope && false
true && {N}.nope
{N}.nope == 1 || {N}.type == "gpu"
{N}.nope == 1 && {N}.nope2 == 1
({N}.nope == 1 || false) || true
({N}.nope == 1 && true) && false
{N}.nope == 1 || {N}.nope == 2 || {N}.good || false
{N}.good ? {N}.mig : {N}.nope
{N}.mig ? {N}.nope : {N}.good
{N}.type ? true : false
{N}.nope ? true : false
{N}.good ? {N}.type == "gpu" : 1 == 1
({N}.good ? {N} : device.attributes["x"]).type == "gpu"
{N}.good ? "a" : "b"
{N}.good ? 1 : true
{N}.mig ? 1 : {N}.good
{N}.mig ? true : {N}.type
{N}.type + "x" == "gpux"
{N}.type + 1 == 2
{N}.index + 1.0 == 4.0
{N}.type < "h"
{N}.type > "h"
{N}.type >= "gpu"
{N}.type < 1
{N}.mig < true
{N}.good > {N}.mig
{N}.type == null
{N}.type != null
null == null
null == 1
{N}.type == 1
{N}.index == "3"
{N}.index != "3"
{N}.mig == 0
{N}.driverVersion == semver("580.159.4")
{N}.driverVersion != semver("580.159.4")
{N}.driverVersion == "580.159.4"
{N}.driverVersion != "580.159.4"
"580.159.4" == {N}.driverVersion
"580.159.4" != {N}.driverVersion
{N}.driverVersion == 1
1 == {N}.driverVersion
{N}.driverVersion == null
{N}.driverVersion in ["580.159.4"]
{N}.driverVersion in [semver("580.159.4")]
{N}.driverVersion in [{N}.type]
({N}.driverVersion in ["580.159.4"]) || true
{N}.driverVersion < semver("581.0.0")
{N}.driverVersion.isLessThan(semver("581.0.0"))
{N}.driverVersion.isGreaterThan(semver("580.159.3"))
{N}.driverVersion.compareTo(semver("580.159.4")) == 0
{N}.driverVersion.compareTo("580.159.4") == 0
{N}.driverVersion.compareTo(quantity("1")) == 0
{N}.driverVersion.major() == 580 && {N}.driverVersion.minor() == 159 && {N}.driverVersion.patch() == 4
{N}.driverVersion.startsWith("580")
{N}.driverVersion.size() == 9
string({N}.driverVersion) == "580.159.4"
{N}.pre.isLessThan(semver("1.2.3"))
{N}.pre == semver("1.2.3-rc.1+other")
{N}.pre.compareTo(semver("1.2.3-rc.1.1")) == -1
semver({N}.version).major() == 570
semver({N}.version, true).minor() == 86
semver({N}.version, false).minor() == 86
isSemver({N}.version)
isSemver({N}.version, true)
isSemver("1.2.3") && !isSemver("1.2") && isSemver("1.2", true) && isSemver("v1", true)
isSemver("1.2-rc1", true)
semver("1.2.3-01") == semver("1.2.3-1")
semver("v1.02.3", true) == semver("1.2.3")
semver("18446744073709551615.0.0").major() == -1
semver(1) == semver("1.0.0")
type({N}.type) == string
type({N}.index) == int
type({N}.mig) == bool
type({N}.driverVersion) == string
type({N}) == map
type([1]) == list
type(type(1)) == type
type(1.0) == double && type(1u) == uint && type(b"a") == bytes && type(null) == null_type
type(duration("1s")) == google.protobuf.Duration
type(timestamp("2020-01-01T00:00:00Z")) == google.protobuf.Timestamp
type(optional.none()) == optional_type
type(ip("1.2.3.4")) == net.IP
type(cidr("1.2.3.4/8")) == net.CIDR
type(quantity("1")) == kubernetes.Quantity
type(url("http://a")) == kubernetes.URL
type(dyn(1)) == int
dyn(1) == 1
dyn({N}.type) == "gpu"
dyn(true)
dyn("a").startsWith("a")
dyn(1).startsWith("a")
int == int
{C}.memory == quantity("46068Mi")
{C}.memory == quantity("48305799168")
{C}.memory != quantity("1Gi")
quantity("46068Mi") == {C}.memory
{C}.memory == "46068Mi"
{C}.memory == 1
{C}.memory.compareTo(quantity("40Gi")) == 1
{C}.memory.isGreaterThan(quantity("40Gi")) && {C}.memory.isLessThan(quantity("48Gi"))
{C}.memory.isGreaterThan(40)
{C}.memory.add(quantity("1Mi")) == quantity("46069Mi")
quantity("46069Mi") == {C}.memory.add(quantity("1Mi"))
{C}.memory.sub(quantity("1Mi")).compareTo(quantity("46067Mi")) == 0
{C}.memory.add(1).asInteger() == 48305799169
{C}.memory.sub(1).sub(1).asInteger() == 48305799166
{C}.memory.add(quantity("1Mi")) == {C}.memory.add(quantity("1Mi"))
[{C}.memory.add(1)] == [{C}.memory]
{C}.memory.add({N}.index).isGreaterThan({C}.memory)
{C}.memory.add({N}.type) == {C}.memory
{C}.memory.asInteger() == 48305799168
{C}.memory.asInteger() / 1073741824 >= 44
{C}.memory.asApproximateFloat() > 4.8e10
{C}.memory.isInteger()
{C}.slow.isInteger()
{C}.slow.asInteger() == 1610612736
{C}.fraction.isInteger()
{C}.fraction.asInteger() == 1
{C}.fraction.asApproximateFloat() == 1.5
{C}.memory.isGreaterThan(quantity("1.5Gi")) && {C}.memory.isInteger()
{C}.memory.isGreaterThan({C}.slow) && {C}.memory.isInteger()
quantity("1.5Gi").isLessThan({C}.memory) && {C}.memory.isInteger()
sign({C}.memory) == 1
{C}.memory.sign() == 1
sign(quantity("-1")) == -1 && sign(quantity("0")) == 0
{C}.shares.asInteger() >= {N}.index
{C}.shares >= 3
{C}["shares"].asInteger() == 10
device.capacity["example.com"].cores.asInteger() > 100
{C}.nope.asInteger() == 1
quantity("10").isInteger() && !quantity("10m").isInteger() && !quantity("1000m").isInteger()
quantity("1000m") == quantity("1")
quantity("abc") == quantity("1")
quantity("40GB").isInteger()
quantity("") == quantity("0")
isQuantity("1Gi") && isQuantity("1e3") && !isQuantity("1gb") && !isQuantity("")
isQuantity({N}.type)
isQuantity({N}.index)
quantity({N}.type).isInteger()
string({C}.memory) == "46068Mi"
{C}.memory in [quantity("46068Mi")]
{C}.memory in [{C}.memory]
[{C}.memory].exists(m, m.isGreaterThan(quantity("1Gi")))
{C}.exists(k, k == "memory")
{C}.all(k, {C}[k].isGreaterThan(quantity("1")))
{C}.exists(k, v, k == "memory" && v.isGreaterThan(quantity("1Gi")))
{C}.map(k, {C}[k].asInteger()).size() > 1
{N}.productName.matches("L40S?")
{N}.productName.matches("^L40")
matches({N}.productName, "NVIDIA.*")
{N}.productName.matches({N}.type)
{N}.productName.matches("[")
{N}.productName.matches("(?i)nvidia")
{N}.productName.matches("(?=x)")
{N}.productName.matches("[" + "")
{N}.productName.find("[0-9]+") == "40"
{N}.productName.find("zzz") == ""
{N}.productName.find("[")  == ""
{N}.productName.find({N}.type + "[") == ""
{N}.productName.findAll("[A-Z]") .size() == 8
{N}.productName.findAll("[A-Z]*") == ["NVIDIA", "L", "", "S"]
{N}.productName.findAll("[A-Z]", 2) == ["N", "V"]
{N}.productName.findAll("[A-Z]", 0).size() == 0
"123 abc 456".findAll("[0-9]*") == ["123", "", "", "", "456"]
"baaab".findAll("a*") == ["", "aaa", ""]
"".findAll("x*").size() == 1
{N}.unicode.size() == 8
{N}.unicode.charAt(6) == "漢"
{N}.unicode.indexOf("漢") == 6
{N}.unicode.substring(6) == "漢字"
{N}.unicode.upperAscii() == "GRößE 漢字"
{N}.unicode.find("漢.") == "漢字"
{N}.unicode.findAll(".").size() == 8
{N}.unicode.findAll("") .size() == 9
{N}.unicode.split("").size() == 8
{N}.unicode > "G"
{N}.type.charAt(0) == "g" && {N}.type.charAt(3) == ""
{N}.type.charAt(4) == ""
{N}.type.charAt(-1) == ""
{N}.index.charAt(0) == ""
"tacocat".indexOf("ac") == 1 && "tacocat".indexOf("none") == -1 && "tacocat".indexOf("") == 0
"tacocat".indexOf("a", 3) == 5 && "tacocat".indexOf("a", 20) == -1
"tacocat".indexOf("a", -1) == -1
"tacocat".lastIndexOf("at") == 5 && "tacocat".lastIndexOf("") == 7
"tacocat".lastIndexOf("a", 3) == 1
"tacocat".lastIndexOf("a", -1) == 1
"ac".lastIndexOf("tacocat") == -1
"TacoCat".lowerAscii() == "tacocat" && "TacoCÆt".lowerAscii() == "tacocÆt"
"hello hello".replace("he", "we") == "wello wello"
"hello hello".replace("he", "we", 1) == "wello hello"
"hello hello".replace("he", "we", 0) == "hello hello"
"abc".replace("", "-") == "-a-b-c-"
"abc".replace("", "-", 2) == "-a-bc"
"a b c".split(" ") == ["a", "b", "c"]
"a b c".split(" ", 2) == ["a", "b c"]
"a b c".split(" ", 0) == []
"a b c".split(" ", 1) == ["a b c"]
"a b c".split(" ", -1).size() == 3
"abc".split("") == ["a", "b", "c"]
"abc".split("", 2) == ["a", "bc"]
"".split(",").size() == 1
"tacocat".substring(4) == "cat" && "tacocat".substring(0, 4) == "taco"
"tacocat".substring(9) == ""
"tacocat".substring(-1, 3) == ""
"tacocat".substring(3, 2) == ""
"  \\ttrim\\n ".trim() == "trim"
["a", "b"].join() == "ab" && ["a", "b"].join("-") == "a-b" && [].join("x") == ""
[{N}.type, {N}.uuid].join(",") == "gpu,GPU-3f2a"
[{N}.type, {N}.index].join(",") == "gpu,3"
["a", 1].join() == "a1"
strings.quote("a\\"b\\n") == "\\"a\\\\\\"b\\\\n\\""
strings.quote({N}.type) == "\\"gpu\\""
"abc".reverse() == "cba"
"%s is %d and %f".format(["a", 1, 1.5]) == "a is 1 and 1.500000"
"%.2f %e %b %o %x %X".format([3.14159, 1234.5, 5, 8, 255, 255]) != ""
"%x %X".format(["hello", b"\\xff"]) == "68656c6c6f FF"
"%s".format([[1, 2]]) == "[1, 2]"
"%s".format([["a", "b"]]) == "[\\"a\\", \\"b\\"]"
"%s".format([{{"a": 1}}]) == "{{\\"a\\":1}}"
"%s %s %s".format([true, null, 1u]) == "true null 1"
"%s".format([{N}.type]) == "gpu"
"%s".format([{N}.driverVersion]) == "x"
"%d".format(["a"]) == "a"
"%d".format([1.5]) == "1"
"%d%%".format([5]) == "5%"
"%s".format([]) == ""
"%s".format([1, 2]) == "1"
"%y".format([1]) == "1"
"%".format([1]) == ""
"%.3f".format([1.0]) == "1.000"
"%s".format([1.0]) == "1"
"%s".format([1e30]) == "1e+30"
"%s".format([duration("90s")]) == "90s"
"%s".format([timestamp("2020-01-01T00:00:00Z")]) == "2020-01-01T00:00:00Z"
"%s".format([int]) == "int"
{N}.type.format([1]) == "gpu"
{N}.productName.format([]) == "NVIDIA L40S"
int("42") == 42 && int("-7") == -7
int("abc") == 1
int({N}.type) == 1
int({N}.index) == 3
int(1.9) == 1 && int(-1.9) == -1
int(1e20) == 1
int(18446744073709551615u) == 1
int(true) == 1
uint("7") == 7u && uint(7) == 7u
uint(-1) == 1u
uint({N}.negative) == 1u
double("1.5") == 1.5 && double(2) == 2.0
double("x") == 1.0
double("inf") > 1e300
double("1e400") > 1.0
string(1) == "1" && string(1.5) == "1.5" && string(true) == "true" && string(b"abc") == "abc"
string(1e21) == "1e+21" && string(100000.0) == "100000" && string(1e-7) == "1e-07"
string(0.1 + 0.2) == "0.30000000000000004"
string(1e20) == "100000000000000000000"
string(123456789.0) == "1.23456789e+08"
string({N}.index) == "3"
string(duration("1h30m")) == "5400s"
string(duration("1.5s")) == "1.5s"
bool("true") && !bool("f")
bool("yes")
bool({N}.good)
bool({N}.type)
bytes("abc") == b"abc"
bytes({N}.type).size() == 3
b"ab" + b"c" == b"abc"
b"a" < b"b"
duration("1m") == duration("60s")
duration("1m") > duration("59s")
duration("1h") + duration("1m") == duration("61m")
duration("xyz") == duration("1s")
duration({N}.type) == duration("1s")
duration("1h").getHours() == 1 && duration("90m").getMinutes() == 90 && duration("1m").getSeconds() == 60
duration("1.5s").getMilliseconds() == 1500
timestamp("2023-01-02T03:04:05Z").getFullYear() == 2023
timestamp("2023-01-02T03:04:05Z").getMonth() == 0 && timestamp("2023-01-02T03:04:05Z").getDate() == 2
timestamp("2023-01-02T03:04:05Z").getDayOfWeek() == 1 && timestamp("2023-01-02T03:04:05Z").getDayOfYear() == 1
timestamp("2023-01-02T03:04:05Z").getHours("+02:00") == 5
timestamp("2023-01-02T03:04:05Z").getHours("America/New_York") == 22
timestamp("2023-01-02T03:04:05Z").getHours("Nowhere/Land") == 22
timestamp("2023-01-02T03:04:05Z") + duration("1h") == timestamp("2023-01-02T04:04:05Z")
timestamp("2023-01-02T03:04:05Z") - timestamp("2023-01-02T03:04:04Z") == duration("1s")
timestamp("bad") == timestamp("2023-01-02T03:04:05Z")
timestamp("2023-01-02T03:04:05+01:00") == timestamp("2023-01-02T02:04:05Z")
timestamp(0) == timestamp("1970-01-01T00:00:00Z")
int(timestamp("1970-01-01T00:01:00Z")) == 60
{N}.index in [1, 2, 3]
{N}.index in [1u, 2u, 3u]
{N}.index in [1.0, 3.0]
{N}.type in ["gpu", "mig"]
{N}.type in [1, 2]
{N}.type in []
{N}.type in [{N}.uuid, {N}.type]
{N}.mig in [true]
{N}.nope in ["a"]
{N}.type in "gpu"
{N}.type in {{"gpu": 1}}
{N}.index in {{3: 1}}
{N}.index in {{3u: 1}}
{N}.type in {N}.uuid
"type" in {N}
"g" in {N}.type
1 in [1, 2] && !(4 in [1, 2])
[1, 2, 3].all(x, x > 0)
[1, 2, 3].exists(x, x == 2)
[1, 2, 3].exists_one(x, x > 2)
[1, 2, 3].existsOne(x, x > 2)
[1, 2, 3].exists_one(x, x > 1)
[1, 2, 3].map(x, x * 2) == [2, 4, 6]
[1, 2, 3].map(x, x > 1, x * 2) == [4, 6]
[1, 2, 3].filter(x, x > 1) == [2, 3]
[1, 2, 3].filter(x, {N}.nope == x).size() == 0
[1, 2, 3].all(x, {N}.nope == x)
[1, 2, 3].all(x, x == 0 || {N}.nope == x)
[0, 1].all(x, x == 0 && {N}.nope == x)
[1, 0].all(x, 1 / x > 0)
[0, 1].exists(x, 1 / x == 1)
[0, 1].exists(x, 1 / x == 2)
[0, 2].exists_one(x, 1 / x == 0)
[].all(x, false)
[].exists(x, true)
[1].all(x, x)
[true].all(x, x)
[{N}.good].all(x, x)
[{N}.type].all(x, x)
[1, 2].all(1, true)
[1, 2].all(__result__, true)
{N}.exists(k, k == "type")
{N}.exists(k, k.startsWith("ty"))
{N}.all(k, {N}[k] != "zzz")
{N}.all(k, {N}[k] == "zzz")
{N}.exists_one(k, {N}[k] == "gpu")
{N}.filter(k, k == "type") == ["type"]
{N}.map(k, k).size() > 3
device.attributes.exists(d, d == "resource.kubernetes.io")
device.attributes.exists(d, has(device.attributes[d].pcieRoot))
device.attributes.all(d, m, m.size() > 0)
device.attributes.exists(d, m, "numaNode" in m)
{N}.exists(k, v, v == "gpu")
{N}.exists_one(k, v, v == "gpu")
{N}.existsOne(k, v, v == "gpu")
{N}.transformList(k, v, k).size() > 3
{N}.transformList(k, v, k == "type", v) == ["gpu"]
{N}.transformMap(k, v, k == "type", v) == {{"type": "gpu"}}
{N}.transformMapEntry(k, v, k == "type", {{v: k}}) == {{"gpu": "type"}}
[1, 2].transformMap(i, v, v * 2) == {{0: 2, 1: 4}}
[1, 2].transformList(i, v, i + v) == [1, 3]
["a", "b"].transformMapEntry(i, v, {{v: i}}) == {{"a": 0, "b": 1}}
["a", "a"].transformMapEntry(i, v, {{v: i}}).size() == 1
[1, 2].all(i, v, v > i)
[1, 2].exists(i, i, true)
[1, 2].exists(i, v, i == 1 && v == 2)
{N}.type.exists(x, true)
{N}.type.map(x, x)
{N}.type.filter(x, x)
{N}.type.all(i, v, true)
dyn([1, 2]).all(x, x > 0)
dyn(1).all(x, x > 0)
"abc".all(x, true)
cel.bind(x, 1, x == 1)
cel.bind(x, {N}.nope, true)
cel.bind(x, {N}.nope, x == 1 || true)
cel.bind(a, device.attributes, a["gpu.nvidia.com"].type == "gpu")
cel.bind(a, device.attributes, a["no.such"].type == "gpu")
cel.bind(a, device.attributes, "no.such" in a)
cel.bind(a, device.attributes["no.such"], has(a.type))
cel.bind(g, {N}, cel.bind(t, g.type, t == "gpu"))
cel.bind(m, {C}.memory, m.isGreaterThan(quantity("1Gi")) && m.isLessThan(quantity("1Ti")))
cel.bind("x", 1, true)
foo.bind(x, 1, x == 1)
cel.bind(device, {N}, device.type == "gpu")
[1].exists(device, device == 1)
[1, 2, 3].sum() == 6 && [1.5, 2.5].sum() == 4.0 && [1u].sum() == 1u
[].sum() == 0
["a"].sum() == "a"
[duration("1s"), duration("1m")].sum() == duration("61s")
[{N}.index, {N}.index].sum() == 6
[{N}.index, {N}.type].sum() == 6
[{N}.type].sum() == 6
[1, 3, 2].max() == 3 && [1, 3, 2].min() == 1
[].max() == 1
["b", "a"].min() == "a"
[{N}.index, 1].max() == 3
[{N}.index].max() == 3
[{C}.memory].max() == {C}.memory
[1, 2, 2].isSorted() && ![2, 1].isSorted()
["a", "b"].isSorted()
[1, 2, 2].indexOf(2) == 1 && [1, 2, 2].lastIndexOf(2) == 2 && [1].indexOf(5) == -1
["a"].indexOf("a") == 0
[1].indexOf("a") == 0
[1, 2, 3, 4].slice(1, 3) == [2, 3]
[1, 2].slice(0, 3).size() == 1
[1, 2].slice(-1, 1).size() == 1
[1, 2].slice(2, 1).size() == 1
[[1], [2, 3]].flatten() == [1, 2, 3]
[[1, [2]], [3]].flatten() == [1]
[[[1]], [[2]]].flatten(2) == [1, 2]
[[1]].flatten(-1) == [1]
[1].flatten() == [1]
[3, 1, 2].sort() == [1, 2, 3]
["b", "a"].sort() == ["a", "b"]
[{N}.type, {N}.uuid].sort()[0] == "GPU-3f2a"
[{N}.type, {N}.index].sort().size() == 2
[3, 1, 2].sortBy(x, -x) == [3, 2, 1]
["bb", "a"].sortBy(x, x.size()) == ["a", "bb"]
{N}.map(k, k).sortBy(k, k.size()).size() > 2
lists.range(4) == [0, 1, 2, 3]
lists.range(0) == []
lists.range(-1) == []
lists.range(2000000).size() == 2000000
lists.range(999000).size() == 999000
[1, 2, 3].reverse() == [3, 2, 1]
[1, 2, 2, 3, 1].distinct() == [1, 2, 3]
[].distinct() == []
[1, 2, 3].first().value() == 1
[1, 2, 3].last().orValue(0) == 3
[].first().hasValue()
sets.contains([1, 2], [1]) && sets.contains([1], []) && !sets.contains([1], [2])
sets.equivalent([1, 2, 1], [2, 1]) && sets.intersects([1, 2], [2, 3]) && !sets.intersects([1], [])
sets.contains([1, 2], [1u])
sets.contains(["gpu"], [{N}.type])
sets.intersects([{N}.type, {N}.uuid], ["gpu"])
sets.contains([{N}.driverVersion], [semver("580.159.4")])
sets.contains([{N}.driverVersion], ["580.159.4"])
sets.contains(["580.159.4"], [{N}.driverVersion])
optional.of(1).hasValue() && !optional.none().hasValue()
optional.none().value() == 1
optional.of({N}.type).value() == "gpu"
optional.ofNonZeroValue("").hasValue()
optional.ofNonZeroValue({N}.empty).orValue("d") == "d"
optional.ofNonZeroValue(0).hasValue() || optional.ofNonZeroValue([]).hasValue()
optional.none().orValue(1) == 1
optional.none().or(optional.of(2)).value() == 2
optional.of(1) == optional.of(1) && optional.none() == optional.none() && optional.of(1) != optional.none()
{N}.?type.orValue("x") == "gpu"
{N}.?nope.orValue("x") == "x"
{N}[?"type"].value() == "gpu"
{N}.?type.hasValue()
{N}.?nope.hasValue()
{N}.?type == optional.of("gpu")
{N}.?nope.?deep.hasValue()
{N}.?type.?deep.hasValue()
device.attributes[?"no.such"].?x.hasValue()
device.attributes[?"no.such"].x.hasValue()
device.?attributes.hasValue()
device.?driver.orValue("x") == "gpu.nvidia.com"
device.?nosuch.hasValue()
{C}.?memory.hasValue()
{C}.?memory.orValue(quantity("0")).isGreaterThan(quantity("1Gi"))
{C}.?nope.orValue(quantity("0")).isGreaterThan(quantity("1Gi"))
{C}.?nope.orValue("0")
{N}.?index.optMap(i, i + 1).orValue(0) == 4
{N}.?nope.optMap(i, i + 1).orValue(0) == 0
{N}.?type.optFlatMap(t, {N}.?uuid).value() == "GPU-3f2a"
{N}.?good.orValue(false)
{N}.?mig.orValue(true)
{N}.?nope.orValue(true)
{N}.?type.orValue(true)
{N}.?good
has({N}.?type.x)
[?optional.of(1), ?optional.none()] == [1]
[?{N}.?type, ?{N}.?nope].size() == 1
{{?"a": {N}.?type, ?"b": {N}.?nope}}.size() == 1
[optional.of(1), optional.none()].unwrapOpt() == [1]
optional.unwrap([optional.of(1)]) == [1]
[1, 2][?1].value() == 2 && ![1, 2][?5].hasValue()
[1, 2][0] == 1
[1, 2][5] == 1
[1, 2][-1] == 1
[1, 2][{N}.index] == 1
[1, 2, 3, 4][{N}.index] == 4
[1, 2]["a"] == 1
[1, 2][1.0] == 2
[1, 2][dyn(1.0)] == 2
[1, 2][1u] == 2
[1, 2][dyn(1.5)] == 2
{{"a": 1}}["a"] == 1 && {{"a": 1}}.a == 1
{{"a": 1}}.b == 1
{{"a": 1}}["b"] == 1
{{1: "a"}}[1] == "a"
{{1: "a"}}[1u] == "a"
{{1: "a"}}[dyn(1u)] == "a"
{{1: "a"}}[dyn(1.0)] == "a"
{{true: 1}}[true] == 1
{{"gpu": 1}}[{N}.type] == 1
{{"mig": 1}}[{N}.type] == 1
{{"a": 1, "a": 2}}["a"] == 2
{{"a": 1, "b": "x"}}.size() == 2
{{"a": [1, 2]}}.a[1] == 2
{{"a": 1}} == {{"a": 1}} && {{"a": 1}} != {{"a": 2}} && {{"a": 1}} == {{"a": 1.0}}
[1, 2] == [1, 2] && [1] != [1, 2] && [1] == [1.0]
[{N}.driverVersion] == ["x"]
[{N}.driverVersion] != ["x"]
{{"a": {N}.driverVersion}} == {{"a": "x"}}
[1] + [2] == [1, 2]
[1] + ["a"] == [1]
[{N}.type] + ["a"] == ["gpu", "a"]
[{N}.type, "a"].size() == 2
[{N}.type, {N}.index].size() == 2
["a", {N}.type].size() == 2
[1, 1u].size() == 2
[1, 1.0].size() == 2
[1, null].size() == 2
[dyn(1), dyn("a")].size() == 2
[dyn(1), "a"].size() == 2
[[1], ["a"]].size() == 2
[[], [1]].size() == 2
[optional.of(1), optional.none()].size() == 2
url("https://user@example.com:80/path?q=1#f").getHost() == "example.com:80"
url("https://example.com:80/p").getHostname() == "example.com" && url("https://example.com:80/p").getPort() == "80"
url("https://example.com/a b/").getEscapedPath() == "/a%20b/"
url("https://example.com/p?a=1&a=2&b=%20x").getQuery() == {{"a": ["1", "2"], "b": [" x"]}}
url("https://[::1]:80/").getHost() == "[::1]:80" && url("https://[::1]:80/").getHostname() == "::1"
url("/path").getScheme() == "" && url("/path").getHost() == ""
url("HTTPS://a/").getScheme() == "https"
url("not a url").getHost() == ""
isURL("https://a.b") && isURL("/p") && !isURL("p") && !isURL("") && !isURL("http://a b/") && !isURL("://x")
isURL("http://a:x/") || isURL("http://[::1") || isURL("https://a%zz/")
isURL("mailto:a@b.c") && isURL("http://a/%20") && !isURL("http://a/%2")
url("https://a/b") == url("https://a/b") && url("https://a/b") != url("https://a/c")
url("https://a/b") == "https://a/b"
url({N}.type).getHost() == ""
isURL({N}.type)
url("https://a/b").foo() == 1
ip("192.168.0.1").family() == 4 && ip("::1").family() == 6
ip("192.168.0.1") == ip("192.168.0.1") && ip("::1") == ip("0:0:0:0:0:0:0:1")
ip("1.2.3.4") == "1.2.3.4"
ip("256.0.0.1").family() == 4
ip("::ffff:1.2.3.4").family() == 4
ip("fe80::1%eth0").family() == 6
isIP("1.2.3.4") && !isIP("1.2.3") && !isIP("01.2.3.4") && isIP("::") && !isIP("::ffff:1.2.3.4")
isIP({N}.type)
ip("127.0.0.1").isLoopback() && ip("::1").isLoopback() && ip("0.0.0.0").isUnspecified() && ip("::").isUnspecified()
ip("224.0.0.1").isLinkLocalMulticast() && ip("ff02::1").isLinkLocalMulticast()
!ip("224.0.1.1").isLinkLocalMulticast()
ip("169.254.0.1").isLinkLocalUnicast() && ip("fe80::1").isLinkLocalUnicast()
ip("192.168.0.1").isGlobalUnicast() && !ip("255.255.255.255").isGlobalUnicast() && !ip("224.0.1.1").isGlobalUnicast()
ip("ff00::1").isGlobalUnicast() || ip("127.0.0.1").isGlobalUnicast()
ip.isCanonical("::1") && !ip.isCanonical("0:0:0:0:0:0:0:1") && ip.isCanonical("1.2.3.4")
ip.isCanonical("bad")
string(ip("::1")) == "::1" && string(cidr("10.0.0.1/8")) == "10.0.0.1/8"
string(ip("2001:DB8::0")) == "2001:db8::"
cidr("192.168.0.0/24").containsIP("192.168.0.1") && !cidr("192.168.0.0/24").containsIP(ip("192.168.1.1"))
cidr("192.168.0.0/24").containsIP("::1")
cidr("192.168.0.0/24").containsIP("bad")
cidr("192.168.0.0/16").containsCIDR("192.168.10.0/24") && !cidr("192.168.0.0/24").containsCIDR(cidr("192.168.0.0/16"))
cidr("192.168.0.5/24").masked() == cidr("192.168.0.0/24") && cidr("192.168.0.5/24") != cidr("192.168.0.0/24")
cidr("192.168.0.5/24").ip() == ip("192.168.0.5") && cidr("::/64").prefixLength() == 64
isCIDR("10.0.0.0/8") && !isCIDR("10.0.0.0/33") && !isCIDR("10.0.0.0") && !isCIDR("10.0.0.0/08")
cidr("10.0.0.0/8") == ip("10.0.0.0")
format.dns1123Label().validate("abc").hasValue()
format.dns1123Label().validate("Abc").hasValue()
format.dns1123Label().validate({N}.type) == optional.none()
format.dns1123Label().validate({N}.index) == optional.none()
format.named("dns1123Label").hasValue() && !format.named("zzz").hasValue()
format.named("uuid").value().validate("123e4567-e89b-12d3-a456-426614174000").hasValue()
!format.uuid().validate("123e4567e89b12d3a456426614174000").hasValue()
format.uuid().validate("x").hasValue()
!format.byte().validate("aGVsbG8=").hasValue() && format.byte().validate("a").hasValue()
!format.date().validate("2021-01-01").hasValue() && format.date().validate("2021-13-01").hasValue()
!format.datetime().validate("2021-01-01T00:00:00Z").hasValue() && format.datetime().validate("2021-01-01").hasValue()
!format.uri().validate("http://a").hasValue() && format.uri().validate("a").hasValue()
!format.qualifiedName().validate("a.b/c").hasValue() && format.qualifiedName().validate("a/b/c").hasValue()
!format.labelValue().validate("").hasValue() && format.labelValue().validate("-a").hasValue()
!format.dns1123LabelPrefix().validate("a-").hasValue() && !format.dns1123SubdomainPrefix().validate("a.b-").hasValue()
!format.dns1035Label().validate("a1").hasValue() && format.dns1035Label().validate("1a").hasValue()
format.dns1123Label() == format.dns1123Label()
{N}.type.includes("gpu")
{N}.type.includes("g")
{N}.type.includes(1)
[1, 2].includes(2)
[1, 2].includes("a")
lists.range(65).includes(64)
lists.range(64).includes(63)
{N}.driverVersion.includes(semver("580.159.4"))
{N}.driverVersion.includes("580.159.4")
{N}.reason() == "x"
{N}.type.allowed()
{N}.type.foo()
nosuch({N}.type)
math.greatest(1, 2) == 2
math.abs(-1) == 1
base64.encode(b"a") == ""
regex.extract("a", "b") == ""
1 == 1
1 == 1.0 && 1u == 1 && 1.5 != 1
1 == "1"
1 < 1.5 && 2u > 1.5 && 1 < 2u
1 + 1u == 2
1 + 1.0 == 2.0
1.0 / 0.0 > 1e300
0.0 / 0.0 == 0.0 / 0.0
1 / 0 == 1
5 % 3 == 2 && -5 % 3 == -2
2 - 3 - 4 == -5 && 2 * 3 + 4 == 10 && 2 + 3 * 4 == 14
9223372036854775807 + 1 > 0
-9223372036854775808 < 0
9223372036854775808 > 0
18446744073709551615u > 0u
18446744073709551616u > 0u
0x10 == 16 && 0xFFu == 255u
1e3 == 1000.0 && .5 == 0.5
1. == 1.0
"a" "b" == "ab"
'single' == "single" && '''triple''' == "triple" && r"\\n" == "\\\\n" && R'\\d' == "\\\\d"
"\\x41\\u0042\\U00000043\\104" == "ABCD"
b"\\377".size() == 1 && b"\\u0041".size() == 1
"\\q" == "q"
"unterminated
"\\ud800" == "x"
true
false
null
// only a comment
true // comment
  true  
(true)
((((((true))))))
true &&
true && && false
true and false
a
device.
device..driver
device.driver == 
!true
!1
-"a" == 1
--1 == 1
!!true
true == !false
if == 1
device.if == 1
{{"if": 1}}.if == 1
{{"in": 1}}.in == 1
.device.driver == "gpu.nvidia.com"
[1, 2,] == [1, 2]
[,] == []
{{"a": 1,}}.a == 1
[1 2]
f(1,)
{{1}}
device{{}}
google.protobuf.Duration{{seconds: 1}} == duration("1s")
Foo{{a: 1}} == 1
device.driver == "gpu.nvidia.com" ? true : false
true ? true : false ? false : false
1 < 2 < 3
1 == 1 == true
true || false && false
"a" in ["a"] == true
1 + 2 in [3]
has(1)
has(device)
has(a.b)
has({N}["type"])
has({N}.type, 1)
has()
[1].all(x)
[1].all(x, y, z, w)
size(1) == 1
size("a", "b") == 1
"abc".size() == 3 && size([1]) == 1 && {{}}.size() == 0 && b"ab".size() == 2
{N}.index.size() == 1
size({N}.type) == 3
size({N}.index) == 3
"a".startsWith(1)
"a".startsWith({N}.index)
{N}.index.startsWith("a")
{N}.type.contains({N}.type)
{N}.type.endsWith("pu")
[[1, 2], [3]].map(l, l.size()) == [2, 1]
[1, 2].map(x, [x, x]).flatten().sum() == 6
["a", "b"].map(x, x + "!").join(",") == "a!,b!"
[1, 2, 3].filter(x, x % 2 == 1).map(x, x * x).sum() == 10
{N}.productName.split(" ").exists(w, w.startsWith("L40"))
{N}.productName.split(" ").map(w, w.size()).max() == 6
{N}.productName.lowerAscii().contains("l40s")
int({N}.address.split(":")[1]) == 65
{N}.address.matches("^[0-9a-f]{{4}}:[0-9a-f]{{2}}:[0-9a-f]{{2}}\\\\.[0-7]$")
["L4", "L40S", "H100"].exists(m, {N}.productName.endsWith(m))
["L4", "L40S", "H100"].exists_one(m, {N}.productName.contains(m))
{N}.type == "gpu" && {C}.memory.compareTo(quantity("24Gi")) >= 0 && {N}.driverVersion.isGreaterThan(semver("550.0.0"))
device.driver == "gpu.nvidia.com" && has({N}.profile) && {N}.profile == "1g.5gb"
device.driver != "gpu.nvidia.com" || {N}.type == "gpu"
lists.range(1000).all(x, x >= 0)
lists.range(1000).map(x, lists.range(1000)).size() == 1000
lists.range(1000).map(x, "aaaaaaaaaaaaaaaaaaaa").join().size() == 20000
lists.range(500).all(x, lists.range(500).all(y, x + y >= 0))
lists.range(300).all(x, lists.range(300).all(y, true))
lists.range(2000).distinct().size() == 2000
lists.range(700).distinct().size() == 700
lists.range(600).sort().size() == 600
lists.range(100000).sum() > 0
lists.range(1000).map(x, string(x)).join(",").find("99.").size() == 3
lists.range(3000).map(x, "aaaaaaaaaa").join().matches("(a|b)*c(d|e)*f(g|h)*aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")
lists.range(2000000).size() > 0 || true
sets.contains(lists.range(2000), lists.range(2000))
"""

BARE: Final = f"""
device.driver == "bare.example.com"
{N}.type == "gpu"
has({N}.type)
device.attributes.size() == 0
device.allowMultipleAllocations
!device.allowMultipleAllocations
{C}.memory.isGreaterThan(quantity("1"))
device.attributes["bare.example.com"].size() == 0
"bare.example.com" in device.attributes
device.attributes.all(d, false)
device.capacity.exists(d, true)
device.driver == "gpu.nvidia.com" && {N}.type == "gpu"
device.attributes[?"x"].hasValue()
true
"""


def questions() -> Iterator[dict[str, Any]]:
    """Every question: identity, expression, driver, device."""
    texts = {"gpu": GPU, "bare": BARE, "broken": f"true\n1\n{N}.x == 1", "lists": "true\nfalse\n("}
    for kind, text in texts.items():
        for number, expression in enumerate(filter(None, text.split("\n")), 1):
            yield {"id": f"{kind}-{number:03}", "expression": expression, **DEVICES[kind]}
    for number, expression in enumerate(composed(), 1):
        yield {"id": f"composed-{number:03}", "expression": expression, **DEVICES["gpu"]}
    for number, expression in enumerate(crossed(), 1):
        yield {"id": f"crossed-{number:03}", "expression": expression, **DEVICES["gpu"]}


ATOMS: Final = (
    f'{N}.type == "gpu"', f'{N}.nope == "x"', f"{N}.good", f"{N}.mig", f"{N}.type", f"{N}.index > 2", f"{N}.nope",
    "true", "false", f"has({N}.type)", f"has({N}.nope)", f"{C}.memory.isGreaterThan(quantity(\"40Gi\"))",
    f"{C}.nope.isInteger()", f"{N}.index / 0 == 1", f'{N}.driverVersion == "1"', f'{N}.driverVersion != "1"',
    f"{N}.?good.orValue(false)", f"{N}.?nope.orValue({N}.mig)", f'{N}.type in ["gpu", "mig"]', f"{N}.index in [1, 2]",
    f'{N}.productName.matches("L4")', f'{N}.index.matches("L4")', "[1, 2].exists(x, x == 2)",
    "[0, 1].all(x, 1 / x == 1)",
)  # fmt: skip


def composed() -> Iterator[str]:
    """Random compositions of && || ! ?: over atoms that hold, do not hold, and fail."""
    draw = random.Random(20260808)

    def build(depth: int) -> str:
        kind = draw.choice(("&&", "||", "!", "?:", "all", "exists", "one")) if depth else "atom"
        if kind == "atom":
            return draw.choice(ATOMS)
        if kind == "!":
            return f"!({build(depth - 1)})"
        if kind == "?:":
            return f"(({build(depth - 1)}) ? ({build(depth - 1)}) : ({build(depth - 1)}))"
        if kind == "all":
            return f"[1, 2, 3].all(x, ({build(depth - 1)}) || x > {draw.randrange(4)})"
        if kind == "exists":
            return f"[1, 2, 3].exists(x, ({build(depth - 1)}) && x > {draw.randrange(4)})"
        if kind == "one":
            return f"[1, 2].exists_one(x, x == {draw.randrange(3)} && ({build(depth - 1)}))"
        return f" {kind} ".join(f"({build(depth - 1)})" for _ in range(draw.randrange(2, 4)))

    for _ in range(150):
        yield build(draw.randrange(1, 4))


def crossed() -> Iterator[str]:
    """Halves of the questions put together: most do not compile, and must not."""
    draw = random.Random(20260810)
    whole = [text for text in GPU.split("\n") if text and "lists.range" not in text and "//" not in text]
    for _ in range(700):
        one, other = draw.choice(whole), draw.choice(whole)
        left, right = one.partition(" == ")[0], other.rpartition(" == ")[2]
        kind = draw.randrange(6)
        if kind == 0:
            yield f"({one}) == ({other})"
        elif kind == 1:
            yield f"[{one}, {other}].size() == 2"
        elif kind == 2:
            yield f"({one}) ? ({other}) : ({one})"
        elif kind == 3:
            yield f"{left} == {right}"
        elif kind == 4:
            operator = draw.choice(("+", "-", "<", "in", "!=", ">=", "*"))
            yield f"{left} {operator} {other.partition(' == ')[0]} == {right}"
        else:
            member = re.search(r"\.[a-zA-Z]+\([^()]*\)", other)
            yield f"{left}{member.group() if member else '.size()'} == {right}"


if __name__ == "__main__":
    for question in questions():
        print(json.dumps(question, ensure_ascii=False))
