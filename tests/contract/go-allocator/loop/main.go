// Copyright 2026 Flant JSC
// SPDX-License-Identifier: Apache-2.0

// The real allocator of Kubernetes admits and releases claims in a loop, as the scheduler would, minus the API server.
//
// Standard input is one JSON object: {"nodes", "classes", "slices", "claims", "hold", "rounds", "seed", "seconds"}.
// `claims` are kinds of pending claims, taken in turn. First `hold` claims are allocated, then each round admits one and
// releases one that is held, chosen by the seed, until `rounds` or `seconds` are spent. Every admission makes an
// allocator from what is held, as the scheduler does for each pod, and asks it node by node, starting after the node
// that served last (the scheduler goes round too), until one admits the claim. The answer is one JSON object with
// microseconds of every admission, the outcome counts and the CPU seconds of the process.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"syscall"
	"time"

	"ai-inference.deckhouse.io/go-allocator/classes"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

type question struct {
	Nodes   []*v1.Node                   `json:"nodes"`
	Classes []*resourceapi.DeviceClass   `json:"classes"`
	Slices  []*resourceapi.ResourceSlice `json:"slices"`
	Claims  []*resourceapi.ResourceClaim `json:"claims"`
	Hold    int                          `json:"hold"`
	Rounds  int                          `json:"rounds"`
	Seed    int64                        `json:"seed"`
	Seconds float64                      `json:"seconds"`
}

type answer struct {
	Held       int       `json:"held"`
	Admitted   int       `json:"admitted"`
	Refused    int       `json:"refused"`
	Micros     []float64 `json:"micros"`
	CPUSeconds float64   `json:"cpuSeconds"`
	Seconds    float64   `json:"seconds"`
}

type loop struct {
	question
	byName   classes.Lister
	cache    *cel.Cache
	features structured.Features
	held     []resourceapi.AllocationResult
	state    structured.AllocatedState
	next     int
	made     int
}

// What one allocation holds, added to or taken from the state that the scheduler keeps beside its informers.
func (l *loop) account(result resourceapi.AllocationResult, add bool) {
	for _, device := range result.Devices.Results {
		id := structured.MakeDeviceID(device.Driver, device.Pool, device.Device)
		if device.ShareID == nil {
			if add {
				l.state.AllocatedDevices.Insert(id)
			} else {
				l.state.AllocatedDevices.Delete(id)
			}
			continue
		}
		shared := structured.MakeSharedDeviceID(id, device.ShareID)
		consumed := structured.NewDeviceConsumedCapacity(id, device.ConsumedCapacity)
		if add {
			l.state.AllocatedSharedDeviceIDs.Insert(shared)
			l.state.AggregatedCapacity.Insert(consumed)
		} else {
			l.state.AllocatedSharedDeviceIDs.Delete(shared)
			l.state.AggregatedCapacity.Remove(consumed)
		}
	}
}

func (l *loop) admit() bool {
	claim := l.Claims[l.made%len(l.Claims)].DeepCopy()
	claim.UID = types.UID(fmt.Sprintf("uid-%d", l.made))
	l.made++
	ctx := context.Background()
	allocator, err := structured.NewAllocator(ctx, l.features, l.state, l.byName, l.Slices, l.cache)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for step := range l.Nodes {
		place := (l.next + step) % len(l.Nodes)
		results, err := allocator.Allocate(ctx, l.Nodes[place], []*resourceapi.ResourceClaim{claim})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if results != nil {
			l.next = (place + 1) % len(l.Nodes)
			l.held = append(l.held, results[0])
			l.account(results[0], true)
			return true
		}
	}
	return false
}

func (l *loop) release(place int) {
	l.account(l.held[place], false)
	l.held[place] = l.held[len(l.held)-1]
	l.held = l.held[:len(l.held)-1]
}

func cpu() float64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return float64(used.Utime.Sec+used.Stime.Sec) + float64(used.Utime.Usec+used.Stime.Usec)/1e6
}

func main() {
	var asked question
	if err := json.NewDecoder(os.Stdin).Decode(&asked); err != nil {
		fmt.Fprintln(os.Stderr, "unreadable question:", err)
		os.Exit(2)
	}
	l := &loop{
		question: asked,
		byName:   classes.Of(asked.Classes),
		cache:    cel.NewCache(100, cel.Features{EnableConsumableCapacity: true}),
		features: structured.Features{
			AdminAccess: true, PrioritizedList: true, PartitionableDevices: true, ConsumableCapacity: true,
			DeviceTaints: true, DeviceBindingAndStatus: true,
		},
		state: structured.AllocatedState{
			AllocatedDevices:         sets.New[structured.DeviceID](),
			AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
			AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
		},
	}
	for len(l.held) < asked.Hold && l.admit() {
	}
	random := rand.New(rand.NewSource(asked.Seed))
	given := answer{Held: len(l.held)}
	spent, started := cpu(), time.Now()
	for round := 0; round < asked.Rounds && time.Since(started).Seconds() < asked.Seconds; round++ {
		before := time.Now()
		done := l.admit()
		given.Micros = append(given.Micros, float64(time.Since(before).Nanoseconds())/1e3)
		if done {
			given.Admitted++
		} else {
			given.Refused++
		}
		if len(l.held) > 0 {
			l.release(random.Intn(len(l.held)))
		}
	}
	given.Seconds, given.CPUSeconds = time.Since(started).Seconds(), cpu()-spent
	if err := json.NewEncoder(os.Stdout).Encode(given); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
