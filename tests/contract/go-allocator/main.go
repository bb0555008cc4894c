// Copyright 2026 Flant JSC
// SPDX-License-Identifier: Apache-2.0

// The real allocator of Kubernetes, asked one question a line.
//
// A question is {"id", "node", "classes", "slices", "existing", "claims", "gates"}; gates null: every one on but list
// attributes. The answer is {"id", "outcome": "allocated" | "none" | "error", "cause"}. A panic of the allocator is an
// error that says so. Built against several releases of k8s.io/dynamic-resource-allocation: see build.sh.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"time"

	"ai-inference.deckhouse.io/go-allocator/classes"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

type question struct {
	ID       string                       `json:"id"`
	Node     *v1.Node                     `json:"node"`
	Classes  []*resourceapi.DeviceClass   `json:"classes"`
	Slices   []*resourceapi.ResourceSlice `json:"slices"`
	Existing []*resourceapi.ResourceClaim `json:"existing"`
	Claims   []*resourceapi.ResourceClaim `json:"claims"`
	Gates    []string                     `json:"gates"`
}

type answer struct {
	ID      string `json:"id"`
	Outcome string `json:"outcome"`
	// Given is, for each claim, what was given: "driver/pool/device".
	Given [][]string `json:"given,omitempty"`
	Cause string     `json:"cause,omitempty"`
}

// Our names of gates and the fields that they are in any of the releases.
var fields = map[string][]string{
	"admin":         {"AdminAccess"},
	"binding":       {"DeviceBindingAndStatus", "DeviceBinding", "DeviceStatus"},
	"consumable":    {"ConsumableCapacity"},
	"fractional":    {"FractionalCapacityRange"},
	"lists":         {"ListTypeAttributes"},
	"partitionable": {"PartitionableDevices"},
	"prioritized":   {"PrioritizedList"},
	"taints":        {"DeviceTaints"},
}

func features(gates []string) structured.Features {
	if gates == nil {
		gates = []string{"admin", "binding", "consumable", "fractional", "partitionable", "prioritized", "taints"}
	}
	var chosen structured.Features
	for _, gate := range gates {
		for _, name := range fields[gate] {
			if field := reflect.ValueOf(&chosen).Elem().FieldByName(name); field.IsValid() {
				field.SetBool(true)
			}
		}
	}
	return chosen
}

func held(claims []*resourceapi.ResourceClaim, shares bool) structured.AllocatedState {
	state := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	for _, claim := range claims {
		if claim.Status.Allocation == nil {
			continue
		}
		for _, result := range claim.Status.Allocation.Devices.Results {
			if result.AdminAccess != nil && *result.AdminAccess {
				continue
			}
			id := structured.MakeDeviceID(result.Driver, result.Pool, result.Device)
			if result.ShareID == nil || !shares {
				state.AllocatedDevices.Insert(id)
				continue
			}
			state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, result.ShareID))
			if result.ConsumedCapacity != nil {
				state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, result.ConsumedCapacity))
			}
		}
	}
	return state
}

func ask(asked question) (given answer) {
	given.ID = asked.ID
	defer func() {
		if fault := recover(); fault != nil {
			given.Outcome, given.Cause = "error", fmt.Sprintf("panic: %v", fault)
		}
	}()
	byName := classes.Of(asked.Classes)
	chosen := features(asked.Gates)
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
	defer stop()
	allocator, err := structured.NewAllocator(ctx, chosen, held(asked.Existing, chosen.ConsumableCapacity), byName,
		asked.Slices, cel.NewCache(100, cel.Features{EnableConsumableCapacity: chosen.ConsumableCapacity}))
	if err != nil {
		given.Outcome, given.Cause = "error", err.Error()
		return given
	}
	results, err := allocator.Allocate(ctx, asked.Node, asked.Claims)
	switch {
	case err != nil:
		given.Outcome, given.Cause = "error", err.Error()
	case results == nil:
		given.Outcome = "none"
	default:
		given.Outcome = "allocated"
		for _, result := range results {
			var devices []string
			for _, device := range result.Devices.Results {
				devices = append(devices, device.Driver+"/"+device.Pool+"/"+device.Device)
			}
			given.Given = append(given.Given, devices)
		}
	}
	return given
}

func main() {
	questions := bufio.NewScanner(os.Stdin)
	questions.Buffer(nil, 64<<20)
	answers := bufio.NewWriter(os.Stdout)
	defer answers.Flush()
	for questions.Scan() {
		var asked question
		if err := json.Unmarshal(questions.Bytes(), &asked); err != nil {
			fmt.Fprintln(os.Stderr, "unreadable question:", err)
			os.Exit(2)
		}
		line, err := json.Marshal(ask(asked))
		if err != nil {
			fmt.Fprintln(os.Stderr, "unwritable answer:", err)
			os.Exit(1)
		}
		fmt.Fprintln(answers, string(line))
	}
}
