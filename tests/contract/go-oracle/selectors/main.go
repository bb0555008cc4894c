// Copyright 2026 Flant JSC
// SPDX-License-Identifier: Apache-2.0

// selectors answers device selectors with the real evaluator of the linked Kubernetes version:
// one JSON case a line in, one answer a line out.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"

	resourceapi "k8s.io/api/resource/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"
)

type selectorCase struct {
	ID         string             `json:"id"`
	Expression string             `json:"expression"`
	Driver     string             `json:"driver"`
	Device     resourceapi.Device `json:"device"`
}

type selectorAnswer struct {
	ID      string  `json:"id"`
	Outcome any     `json:"outcome"`
	MaxCost *uint64 `json:"maxCost"`
	Cost    *uint64 `json:"cost,omitempty"`
	Detail  string  `json:"detail,omitempty"`
}

func selector(c selectorCase) (answer selectorAnswer) {
	answer.ID = c.ID
	defer func() {
		if caught := recover(); caught != nil {
			answer.Outcome, answer.Detail = "runtime-error", fmt.Sprint("panic: ", caught)
		}
	}()
	compiler := dracel.GetCompiler(dracel.Features{EnableConsumableCapacity: true})
	compiled := compiler.CompileCELExpression(c.Expression, dracel.Options{})
	if compiled.Error != nil {
		answer.Outcome, answer.Detail = "compile-error", compiled.Error.Detail
		return answer
	}
	answer.MaxCost = &compiled.MaxCost
	matches, details, err := compiled.DeviceMatches(context.Background(), dracel.Device{
		Driver:                   c.Driver,
		AllowMultipleAllocations: c.Device.AllowMultipleAllocations,
		Attributes:               c.Device.Attributes,
		Capacity:                 c.Device.Capacity,
	})
	if details != nil {
		answer.Cost = details.ActualCost()
	}
	if err != nil {
		answer.Outcome, answer.Detail = "runtime-error", err.Error()
		return answer
	}
	answer.Outcome = matches
	return answer
}

func main() {
	input := bufio.NewScanner(os.Stdin)
	input.Buffer(nil, 1<<24)
	output := json.NewEncoder(os.Stdout)
	output.SetEscapeHTML(false)
	for input.Scan() {
		var c selectorCase
		if err := json.Unmarshal(input.Bytes(), &c); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if err := output.Encode(selector(c)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
