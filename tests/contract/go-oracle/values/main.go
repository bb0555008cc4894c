// Copyright 2026 Flant JSC
// SPDX-License-Identifier: Apache-2.0

// values reads quantities and versions with the libraries of Kubernetes: one JSON question a line in, one answer a
// line out. Versions are normalised through the CEL function, whose Go code is not exported.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strconv"
	"time"

	"github.com/blang/semver/v4"
	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/api/resource"
	celquantity "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/library"
)

type question struct {
	Kind  string  `json:"kind"`
	Text  string  `json:"text"`
	Other *string `json:"other"`
}

type read struct {
	String  string `json:"string"`
	Value   string `json:"value,omitempty"`
	Int64   string `json:"int64,omitempty"`
	Float   string `json:"float,omitempty"`
	Sign    int    `json:"sign,omitempty"`
	Numbers string `json:"numbers,omitempty"`
}

type answer struct {
	Read       *read  `json:"read"`
	Normalized *read  `json:"normalized,omitempty"`
	Compare    *int   `json:"compare,omitempty"`
	Sum        string `json:"sum,omitempty"`
	Difference string `json:"difference,omitempty"`
}

func quantity(text string) *resource.Quantity {
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return nil
	}
	return &q
}

func describe(q *resource.Quantity) *read {
	if q == nil {
		return nil
	}
	copied := q.DeepCopy()
	answer := &read{String: copied.String(), Sign: q.Sign(), Value: strconv.FormatInt(q.Value(), 10)}
	if value, ok := q.AsInt64(); ok {
		answer.Int64 = strconv.FormatInt(value, 10)
	}
	if float := q.AsApproximateFloat64(); math.IsInf(float, 0) {
		answer.Float = fmt.Sprint(float)
	} else {
		answer.Float = strconv.FormatFloat(float, 'g', 17, 64)
	}
	return answer
}

func quantities(q question) answer {
	one := quantity(q.Text)
	result := answer{Read: describe(one)}
	if q.Other == nil {
		return result
	}
	if other := quantity(*q.Other); one != nil && other != nil {
		left, right := one.DeepCopy(), other.DeepCopy()
		compared := left.Cmp(right)
		result.Compare = &compared
		sum, difference := one.DeepCopy(), one.DeepCopy()
		sum.Add(other.DeepCopy())
		difference.Sub(other.DeepCopy())
		result.Sum, result.Difference = sum.String(), difference.String()
	}
	return result
}

var env = func() *cel.Env {
	env, err := cel.NewEnv(library.SemverLib(library.SemverVersion(1)), cel.Variable("text", cel.StringType))
	if err != nil {
		panic(err)
	}
	return env
}()

var normalize = func() cel.Program {
	ast, issues := env.Compile("semver(text, true)")
	if issues.Err() != nil {
		panic(issues.Err())
	}
	program, err := env.Program(ast)
	if err != nil {
		panic(err)
	}
	return program
}()

func version(v semver.Version) *read {
	return &read{String: v.String(), Numbers: fmt.Sprintf("%d %d %d", v.Major, v.Minor, v.Patch)}
}

func versions(q question) answer {
	var result answer
	one, err := semver.Parse(q.Text)
	if err == nil {
		result.Read = version(one)
	}
	if value, _, err := normalize.Eval(map[string]any{"text": q.Text}); err == nil {
		result.Normalized = version(value.(celquantity.Semver).Version)
	}
	if q.Other != nil && err == nil {
		if other, err := semver.Parse(*q.Other); err == nil {
			compared := one.Compare(other)
			result.Compare = &compared
		}
	}
	return result
}

func main() {
	go func() {
		time.Sleep(time.Minute)
		fmt.Fprintln(os.Stderr, "a question takes too long")
		os.Exit(1)
	}()
	input := bufio.NewScanner(os.Stdin)
	output := json.NewEncoder(os.Stdout)
	output.SetEscapeHTML(false)
	for input.Scan() {
		var q question
		if err := json.Unmarshal(input.Bytes(), &q); err != nil {
			panic(err)
		}
		result := answer{}
		if q.Kind == "quantity" {
			result = quantities(q)
		} else {
			result = versions(q)
		}
		if err := output.Encode(result); err != nil {
			panic(err)
		}
	}
}
